"""People as nodes of a graph with fields: ``HumanNode`` asks for the fields its edges carry,
``HumanFileEdit`` lets a person edit files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Self, Unpack, cast

from axil import Context, Question
from axil.plugin import Body, BodyRules, as_body, naming_unknown, with_article
from axil_agent.errors import WiringError
from axil_agent.prompt import Wiring
from axil_agent.template import joined, rendered
from axil_files import parse_duration
from axil_models import as_text, content_text, in_thread

if TYPE_CHECKING:
    from axil import Graph
    from axil.plugin import CompileOptions
    from axil_agent.arguments import FileEditNodeOptions, FileEditOptions, HumanNodeOptions


class HumanNode:
    """Asks a person for each field that its out-edges carry or that it pushes; ``message`` where
    there is none.

    How the person is asked is a channel's business; without a channel the run pauses with the
    questions.
    """

    lane = "human"
    strict = True
    reply_name = "the answer"

    @naming_unknown
    def __init__(
        self,
        prompt: str | Sequence[str] = "",
        *,
        fields: Mapping[str, str] | None = None,
        as_form: bool = False,
        within: float | str | None = None,
        defaults: Mapping[str, object] | None = None,
        name: str = "",
    ) -> None:
        """Set how the person is asked.

        Args:
            prompt: the text for the person; ``{name}`` is the place of an input. Empty: all inputs
                are shown.
            fields: what to ask for, with descriptions, instead of what the edges carry.
            as_form: one question of kind ``form`` for all fields, answered by a mapping; else one
                question a field.
            within: how long there is for each question: seconds, or ``"15m"``, ``"2h 30m"``, ``"3
                days"``.
            defaults: the answers, by field, if there is none in time; without one the node
                fails (AX520).
        """
        self._within = None if within is None else parse_duration(within)
        self._defaults = dict(defaults or {})
        self.name, self.prompt, self.as_form = name, joined(prompt), as_form
        self._fields = dict(fields or {})
        self._needed: dict[str, str] = {}

    if TYPE_CHECKING:

        @classmethod
        def create_in(
            cls, graph: Graph, /, *args: str | Sequence[str], **options: Unpack[HumanNodeOptions]
        ) -> Self: ...

    def bind(self, out_edges: Sequence[object], setting: CompileOptions | None = None) -> None:
        """Take what the out-edges carry as what is asked for; called by the planner."""
        self._needed = Wiring.carried(out_edges)

    def adapted(self, rules: BodyRules) -> Body:
        """Return the body."""
        if rules.chat and not (self._fields or rules.push):
            return as_body(self._in_conversation, replace(rules, payload="messages"))
        pushed = {name: str(text or "") for name, text in (rules.push or {}).items()}
        wanted = self._fields or {**self._needed, **pushed} or {"message": ""}

        async def run(
            inputs: dict[str, object], attributes: dict[str, object], ctx: Context
        ) -> dict[str, object]:
            return await self.asked(inputs, attributes, wanted, ctx)

        return as_body(run, rules)

    async def _in_conversation(
        self, messages: list[dict[str, object]], ctx: Context
    ) -> list[dict[str, object]]:
        said = [
            f"{m.get('source') or m.get('role')}: {content_text(m.get('content'))}"
            for m in messages
        ]
        question = Question(
            text="\n\n".join([*said, self.prompt] if self.prompt else said),
            default=self._defaults.get("message"),
            within_seconds=self._within,
        )
        return [{"role": "user", "content": as_text(await ctx.ask(question))}]

    async def asked(
        self,
        inputs: Mapping[str, object],
        attributes: Mapping[str, object],
        wanted: Mapping[str, str],
        ctx: Context,
    ) -> dict[str, object]:
        """Return the answers. Raises: WiringError (AX667): one to a form lacks a field."""
        if self.prompt:
            shown = rendered(self.prompt, {**attributes, **inputs})
        else:
            shown = "\n".join(f"{name}:\n{as_text(value)}" for name, value in inputs.items())
        defaults = self._defaults
        if self.as_form:
            has_all = defaults and defaults.keys() >= wanted.keys()
            form = Question(
                text=shown,
                kind="form",
                data={"fields": dict(wanted)},
                default={name: defaults[name] for name in wanted} if has_all else None,
                within_seconds=self._within,
            )
            return _fields_of_form(await ctx.ask(form), wanted)
        answers: dict[str, object] = {}
        for name, text in wanted.items():
            question = Question(
                text=f"{shown}\n\n{name}: {text}".strip(),
                data={"field": name, "description": text},
                default=defaults.get(name),
                within_seconds=self._within,
            )
            answers[name] = await ctx.ask(question)
        return answers


def _fields_of_form(answer: object, wanted: Mapping[str, str]) -> dict[str, object]:
    if not isinstance(answer, Mapping):
        if len(wanted) == 1:
            return {next(iter(wanted)): answer}
        kind = with_article(type(answer).__name__)
        expected = f"expected a mapping with {', '.join(wanted)}."
        raise WiringError("AX667", f"the answer to a form is {kind}; {expected}")
    given = cast("Mapping[str, object]", answer)
    if missing := [name for name in wanted if name not in given]:
        message = f"the answer to a form lacks {', '.join(missing)}."
        raise WiringError("AX667", message, "Answer all fields.")
    return dict(given)


class HumanFileEdit(HumanNode):
    """Writes fields into files of the run's workspace, lets a person edit them, and reads them;
    then asks for the other fields as ``HumanNode`` does.

    Without an answer ``within`` the time, the files count as they are then.
    """

    @naming_unknown
    def __init__(
        self,
        file_fields: Mapping[str, str],
        prompt: str | Sequence[str] = "",
        **settings: Unpack[FileEditOptions],
    ) -> None:
        """``file_fields``: a path for each field, below the run's workspace."""
        super().__init__(prompt, **settings)
        self.file_fields = dict(file_fields)

    if TYPE_CHECKING:

        @classmethod
        def create_in(  # type: ignore[override]  # its settings are its own
            cls,
            graph: Graph,
            /,
            *args: str | Sequence[str] | Mapping[str, str],
            **options: Unpack[FileEditNodeOptions],
        ) -> Self: ...

    async def asked(
        self,
        inputs: Mapping[str, object],
        attributes: Mapping[str, object],
        wanted: Mapping[str, str],
        ctx: Context,
    ) -> dict[str, object]:
        """Return the edited fields and the answers.

        Raises: WiringError (AX667): no workspace, or a path leads out of it.
        """
        paths = {name: _within(ctx.workspace, path) for name, path in self.file_fields.items()}
        known = {**attributes, **inputs}

        texts = {path: as_text(known[name]) for name, path in paths.items() if name in known}

        async def write() -> None:
            await in_thread(lambda: _write(texts))

        await ctx.step("write", write)
        question = Question(
            text="\n".join(["Edit, save, and confirm:", *map(str, paths.values())]),
            kind="approval",
            default=True,
            within_seconds=self._within,
            data={"files": list(map(str, paths.values()))},
        )
        await ctx.ask(question)

        async def read() -> object:
            return await in_thread(
                lambda: {name: path.read_text("utf-8") for name, path in paths.items()}
            )

        edited = await ctx.step("read", read)
        rest = {name: text for name, text in wanted.items() if name not in paths}
        if not rest:
            return edited
        return {**edited, **await super().asked({**inputs, **edited}, attributes, rest, ctx)}


def _within(workspace: Path | None, path: str) -> Path:
    if workspace is None:
        message = "there is no workspace to put files into."
        raise WiringError("AX667", message, "Run with workspace=….")
    home = workspace.resolve()
    found = (home / path).resolve()
    if not found.is_relative_to(home):
        message = f'the path "{path}" leads out of the run\'s workspace.'
        raise WiringError("AX667", message, "Give a path below it.")
    return found


def _write(texts: Mapping[Path, str]) -> None:
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
