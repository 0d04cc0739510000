"""ChatDev 2.0's workflow files, which axil runs as they are (axil-devall)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, cast

import axil
import axil_agent
import axil_files
import axil_models
from masfactory.adapters.model.base import reply_of
from masfactory.compatibility.blueprint import exported
from masfactory.compatibility.errors import CompatibilityImportError
from masfactory.compatibility.options import ChatDevCompileOptions
from masfactory.compatibility.sources import mapping_of
from masfactory.components.human.console import Console
from masfactory.errors import also_in
from masfactory.utils.apart import apart

__path__: list[str] = []  # ``masfactory.elsewhere`` has what is below it
__getattr__: Callable[[str], Any] = also_in("masfactory.compatibility", __name__)

_TELLING = ("task", "input", "message", "query", "question", "content", "text")


class ChatDevRootGraph:
    """A workflow of ChatDev: ``build()``, then ``invoke(input)``."""

    def __init__(self, path: Path, options: ChatDevCompileOptions) -> None:
        self.path, self.options = path, options
        self._made: axil.Workflow | None = None

    @property
    def axil(self) -> axil.Workflow:
        """The workflow of axil."""
        if self._made is None:
            given = {
                "API_KEY": self.options.openai_api_key,
                "BASE_URL": self.options.openai_base_url,
            }
            stands_in = self.options.use_stub_llm or self.options.model_factory is not None
            usual = {"API_KEY": "-", "BASE_URL": "http://localhost/v1"} if stands_in else {}
            reported = usual | {name: value for name, value in given.items() if value}
            self._made = axil_files.load(self.path, vars=reported)
        return self._made

    def build(self) -> None:
        """Read and check the file. Raises: SpecError: all that is wrong with it."""
        with self._models():
            _ = self.axil.plan

    def invoke(
        self,
        input: Mapping[str, Any] | str,  # MASFactory's name
        attributes: Mapping[str, Any] | None = None,
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Run once: the last text as ``message``, and the attributes."""
        text = input if isinstance(input, str) else _reported(input)

        def run() -> tuple[Any, dict[str, Any]]:
            with self._models():
                result = self.axil.invoke(text, attributes, channel=Console())
                return result.output, result.attributes

        output, after = apart(run)
        if isinstance(output, Mapping):
            return dict(cast("Mapping[str, Any]", output)), dict(after)
        return {"message": output}, dict(after)

    def _models(self) -> AbstractContextManager[None]:
        options = self.options
        if not options.use_stub_llm and options.model_factory is None:
            return nullcontext()
        return axil_agent.models_through(lambda meant, written: _Asked(options, written))


class _Asked:
    """The model that the options give in the place of the file's."""

    def __init__(self, options: ChatDevCompileOptions, written: Any) -> None:
        self._model: Any = options.resolve_model(
            cast("Mapping[str, Any]", written) if isinstance(written, Mapping) else {}
        )

    async def reply(self, request: axil_models.Request, emit: Any, /) -> axil_models.Reply:
        if callable(getattr(self._model, "reply", None)):
            return await self._model.reply(request, emit)
        return reply_of(self._model.invoke([dict(m) for m in request.messages], None))


def _reported(fields: Mapping[str, Any]) -> str:
    found = [fields[name] for name in _TELLING if fields.get(name) is not None]
    return str(found[0] if found else next(iter(fields.values()), ""))


def load_graph_from_chatdev_yaml(
    source: str | Path,
    *,
    graph_name: str = "chatdev_import",
    options: ChatDevCompileOptions | None = None,
    use_placeholder: bool = False,
    graph_design_path: str | Path | bool | None = None,
    aml_path: str | Path | bool | None = None,
) -> ChatDevRootGraph:
    """Give the workflow in a file of ChatDev 2.0.

    Raises: CompatibilityImportError: there is no such file.
    """
    del graph_name, use_placeholder
    path = Path(source)
    if not path.is_file():
        raise CompatibilityImportError(
            f'ChatDev document "{path}": found no file, expected one. Give its path.'
        )
    if aml_path or graph_design_path:
        exported(
            mapping_of(path, "ChatDev document"),
            "chatdev",
            input_path=path,
            graph_design_path=graph_design_path,
            aml_path=aml_path,
        )
    return ChatDevRootGraph(path, options or ChatDevCompileOptions())
