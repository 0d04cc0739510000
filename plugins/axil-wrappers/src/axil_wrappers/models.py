"""``fallback`` among models: several, asked in order until one answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any, Self, Unpack, cast

from pydantic import Field

from axil import Problem, SpecError
from axil.plugin import decode_config, make_component, with_article
from axil_models import Emit, Model, ModelLike, Reply, Request
from axil_wrappers.failures import LASTING, Failures, chain, describe_failure

if TYPE_CHECKING:
    from axil_wrappers.keywords import FallbackModelKeywords


class FallbackModelConfig(Failures):
    """Models, and the failures after which the next one is asked; by default all but mistakes in
    the graph or the program.
    """

    models: tuple[ModelLike, ...] = Field(
        min_length=1,
        description="The models in order: each the name of an installed adapter, or {type, …}.",
    )


class _Shown:
    """``emit`` for one model, which counts the chunks that were not taken back."""

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self.count = 0

    def __call__(self, chunk: object) -> None:
        shown = cast("Mapping[str, Any]", chunk if isinstance(chunk, Mapping) else {})
        kind = shown.get("kind")
        if kind == "reset":
            self.count -= int(shown.get("chunks") or 0)
        elif kind != "retry":
            self.count += 1
        self._emit(cast("object", chunk))


class FallbackModel:
    """The model ``fallback``: asks the first of several models, and the next one where it fails."""

    examples = ({"models": ["openai", {"type": "openai", "name": "a-smaller-model"}]},)

    Config = FallbackModelConfig

    def __init__(
        self,
        config: FallbackModelConfig | Sequence[ModelLike],
        /,
        **settings: Unpack[FallbackModelKeywords],
    ) -> None:
        """Take ``config``, or models and settings: ``FallbackModel([a, b], on_status=[503])``."""
        if not isinstance(config, FallbackModelConfig):
            config = decode_config(
                FallbackModelConfig, {"models": tuple(config), **settings}, "fallback"
            )
        self.config = config
        self._setting: Any = None
        self._models: list[Model] = []
        self._made: list[Any] = []
        self._held: list[AsyncExitStack] = []

    def bind(self, setting: object) -> None:
        """Make the models now rather than with the first question.

        Raises: PluginError, ConfigError; SpecError (AX835): it is no model.
        """
        self._setting = setting
        self.models()

    def models(self) -> Sequence[Model]:
        """Return the models; those given by name are made once, all or none of them."""
        if not self._models:
            self._models = [
                self._model(given, f"models[{number}]")
                for number, given in enumerate(self.config.models)
            ]
        return self._models

    def _model(self, given: Any, where: str) -> Model:
        if isinstance(given, (str, Mapping)):
            from axil.plugin import default_registry

            use: dict[str, Any] = {"type": given} if isinstance(given, str) else {**given}
            name = str(use.pop("type", ""))
            config = use.pop("config", None) or use
            known = getattr(self._setting, "registry", None) or default_registry()
            given = make_component(known.resolve("models", name, where), config, where)
            self._made.append(given)
            if callable(getattr(given, "bind", None)):
                given.bind(self._setting)
        if not callable(getattr(given, "reply", None)):
            message = f"{with_article(type(given).__name__)} is not a model."
            hint = "Give it the method `async reply(request, emit) -> Reply`."
            raise SpecError(Problem("AX835", where, message, hint))
        return given

    @property
    def names(self) -> tuple[str, ...]:
        """Return the models' names in prices: a reservation is made for the dearest."""
        names = (
            getattr(model, "names", None) or (getattr(model, "name", None),)
            for model in self.models()
        )
        return tuple(str(name) for some in names for name in some if name)

    @property
    def provider_tools(self) -> frozenset[str]:
        """The tools that the providers of all of them have."""
        has = (frozenset(getattr(model, "provider_tools", ())) for model in self.models())
        return frozenset[str].intersection(*has)

    async def __aenter__(self) -> Self:
        """Keep the models' connections."""
        async with AsyncExitStack() as stack:
            for model in self.models():
                if hasattr(model, "__aenter__"):
                    await stack.enter_async_context(cast("Any", model))
            self._held.append(stack.pop_all())
        return self

    async def __aexit__(self, *error: object) -> None:
        await self._held.pop().aclose()

    async def reply(self, request: Request, emit: Emit, /) -> Reply:
        """Return the answer of the first model that gives one.

        Raises: what the last one raised; at once, what is not selected.
        """
        models = self.models()
        for number, model in enumerate(models):
            shown = _Shown(emit)
            try:
                return await model.reply(request, shown)
            except Exception as error:
                usual = not any(isinstance(each, LASTING) for each in chain(error))
                if number + 1 == len(models) or not self.config.selects(error, usual):
                    raise
                if shown.count:
                    emit({"kind": "reset", "chunks": shown.count})
                emit({"kind": "fallback", "error": describe_failure(error), "model": number + 1})
        raise AssertionError("expected at least one model")

    async def close(self) -> None:
        """Close the models that were made from names, even where one of them fails."""
        made, self._models, self._made = self._made, [], []
        async with AsyncExitStack() as stack:
            for model in made:
                if hasattr(model, "close"):
                    stack.push_async_callback(model.close)

    def __repr__(self) -> str:
        return f"FallbackModel({len(self.config.models)} models)"
