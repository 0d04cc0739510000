"""``axil draft``: a workflow file, drafted from a sentence or a text."""

from __future__ import annotations

import argparse
import json
import os
import secrets
from collections.abc import Collection
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, Final

from axil import Result
from axil.plugin import file_without_secrets, is_private
from axil_cli.arguments import add_shared_arguments
from axil_cli.command import Exit, Session, error_lines
from axil_cli.draft.errors import DraftError
from axil_cli.draft.record import LAST, DraftRecord, put
from axil_cli.draft.vocabulary import vocabulary
from axil_cli.job import Job
from axil_cli.picture import spent
from axil_files import load

_OPEN: Final = ("paused", "failed", "cancelled")
"""Ends of runs that can be resumed."""


class DraftFile:
    """Draft a workflow file from a sentence, a text, or remarks on the last draft.

    Agents assign roles, plan a graph and write the file; its check sends it back until it passes.
    The drawing is shown, and remarks are asked for: an empty line keeps the file. The draft and
    what was said are kept in the folder beside the file, team.draft for team.yaml; the same command
    with another sentence goes on from there, without one it resumes what broke off. The exit code:
    0 the file is written, 1 a model failed, 2 an option cannot be used, 3 a person is asked, 4 the
    rounds or the budget are used up, 130 interrupted.
    """

    def configure(self, parser: argparse.ArgumentParser) -> None:
        self.takes = [(parser, "run")]
        parser.add_argument("sentence", nargs="?", default="", help="what is wanted, or a remark")
        parser.add_argument(
            "--output", "-o", required=True, metavar="FILE", help="the file to write, .yaml"
        )
        parser.add_argument(
            "--from", dest="source", metavar="FILE", help="draft it from this text, such as an SOP"
        )
        parser.add_argument(
            "--model",
            default=os.environ.get("AXIL_MODEL", ""),
            metavar="NAME",
            help="the model of the drafting and of the drafted agents: its name at OpenAI or a "
            'compatible server, an installed adapter, or JSON, {"type": …}; '
            "the default is $AXIL_MODEL",
        )
        parser.add_argument(
            "--rounds", type=int, default=6, metavar="N", help="how often it is written at most (6)"
        )
        parser.add_argument(
            "--budget", type=float, default=None, metavar="AMOUNT", help="money for the drafting"
        )
        # Not "--workflow": the file for which --set and --functions would be is not written yet.
        add_shared_arguments(parser, "--allow")
        parser.add_argument("--yes", action="store_true", help="ask for no remarks")
        parser.add_argument(
            "--replace", action="store_true", help="replace FILE without asking, if it exists"
        )

    def run(self, options: argparse.Namespace, session: Session) -> int:
        """Draft the file; see the class."""
        output = Path(options.output)
        if output.suffix.lower() not in (".yaml", ".yml"):
            raise DraftError("AX997", f"{output} is no YAML file.", "Call it team.yaml.")
        if output.exists() and not options.replace and (options.yes or not session.stdin.isatty()):
            message = f"{output} exists, and is not replaced without leave."
            raise DraftError("AX995", message, "Add --replace, or name another file with -o.")
        record = DraftRecord.read(output.with_suffix(".draft"))
        if options.source:
            record.source = _text(options.source)
        if not (options.sentence or options.source or record.run_id):
            message = "there is nothing to draft from, and nothing that broke off."
            raise DraftError("AX997", message, "Say what is wanted, or name a text with --from.")
        return _Drafting(options, session, record).run()


class _Drafting:
    """One call of the command: a run of the drafting workflow, and its record."""

    def __init__(self, options: argparse.Namespace, session: Session, record: DraftRecord) -> None:
        self.options, self.session, self.record = options, session, record
        self.output = Path(options.output)
        self.folder = self.output.with_suffix(".draft")
        self.drafts = 0
        """The number of drafts that were checked."""

    def run(self) -> int:
        """Run the workflow to its end or to a question, and return the exit code."""
        record, session = self.record, self.session
        is_resumed = bool(record.run_id) and (bool(record.question) or not self._sentence)
        variables = record.variables if is_resumed else self._variables()
        journal = session.journal(argparse.Namespace(journal=str(self.folder)), "axil draft")
        try:
            entries = list(journal.entries(record.run_id)) if is_resumed else []
            with (
                session.launch("axil draft", entries=entries, journal=journal) as launch,
                as_file(files("axil_cli.draft").joinpath("draft.yaml")) as file,
            ):
                workflow = load(
                    file,
                    registry=session.registry,
                    vars=variables,
                    # those of the model that the user named, and those that the draft may need
                    allow=(
                        "env",
                        "network",
                        f"read:{os.path.dirname(os.path.realpath(self.output))}",
                        *self.options.allow,
                    ),
                )
                task, more = self._resumed() if is_resumed else self._begun(variables)
                running = {
                    "channel": self._channel(),
                    "allow": frozenset({"network"}),
                    **launch.running,
                    **more,
                }
                result = Job(workflow, task, running, [self, *launch.observers]).run(session)
        finally:
            journal.close()
        return self._finish(result)

    @property
    def _sentence(self) -> str:
        """The sentence; where only a text is given, what to do with it."""
        if self.options.sentence or not self.options.source:
            return str(self.options.sentence)
        return "A team that does what the text describes."

    def _variables(self) -> dict[str, Any]:
        """Return the variables of a new run. Raises: DraftError (AX997)."""
        options, model = self.options, self._model()
        prices = model.get("prices") if isinstance(model, dict) else None
        if options.budget is not None and isinstance(model, dict) and not prices:
            message = "--budget needs to know what the model costs."
            hint = (
                'Say it for a million tokens: --model \'{…, "prices": {"input": 1, "output": 2}}\'.'
            )
            raise DraftError("AX997", message, hint)
        return {
            "MODEL": model,
            "VOCABULARY": vocabulary(self.session.registry, options.allow),
            "NAME": str(self.output.resolve()),
            "ALLOW": sorted(options.allow),
            "ROUNDS": options.rounds,
            "COST": options.budget,
            "PRICING": {"models": {str(model.get("name")): prices}}
            if isinstance(model, dict) and prices
            else None,
        }

    def _begun(self, variables: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """Return the task of a new run, and its options; the record is written first."""
        record = self.record
        task = record.task(self._sentence, self._present())
        record.said.append(self._sentence)
        record.run_id, record.question, record.variables = secrets.token_hex(4), "", variables
        record.write(self.folder)
        return task, {"run_id": record.run_id}

    def _resumed(self) -> tuple[None, dict[str, Any]]:
        """Return the options of a run that is resumed; a sentence answers its question."""
        record, answers = self.record, dict[str, Any]()
        if record.question and (self.options.sentence or self.options.yes):
            answers[record.question] = self.options.sentence
        return None, {"run_id": record.run_id, "resuming": True, "answers": answers}

    def _channel(self) -> Any:
        """Return the channel to the person; None: the run pauses, with the question."""
        return _Keeps() if self.options.yes else self.session.terminal("axil draft")

    def _model(self) -> str | dict[str, Any]:
        """Return the model as a setting. Raises: DraftError (AX997): none is named."""
        named = str(self.options.model)
        if not named:
            if any(given.name in ("model-script", "replay") for given in self.session.options):
                return "scripted"
            message = "no model is named."
            raise DraftError("AX997", message, "Add --model NAME, or set AXIL_MODEL.")
        return model_of(named, self.session.registry.names("models"))

    def _present(self) -> str:
        """Return the file as it is now: that on the disk, else the newest draft."""
        return _text(str(self.output)) if self.output.exists() else self.record.text

    # ------------------------------------------------------------------------------------ observer

    def firing_finished(self, activation: Any, kind: str, output: Any) -> None:
        """Say how far it is, and note the draft and the remarks."""
        if activation.path in ("roles", "plan"):
            self.session.tell(f"{activation.path}: done")
        elif activation.path == "check":
            self.drafts += 1
            self._note(output[-1])
            verdict = "passes its check" if self.record.is_fine else "does not pass its check"
            self.session.tell(f"draft {self.drafts}: {verdict}")
            if not self.record.is_fine:
                self.session.tell("\n".join(f"    {x}" for x in self.record.summary.splitlines()))
        elif activation.path == "look" and output:  # an empty remark goes along no edge
            self.record.said.append(str(output[-1]["content"]))

    def _note(self, message: Any) -> None:
        record = self.record
        record.text, record.is_fine = file_without_secrets(message["file"]), message["fine"]
        record.summary = message["summary"]
        record.write(self.folder)

    # ------------------------------------------------------------------------------------- the end

    def _finish(self, result: Result) -> int:
        """Write the file, or say what is missing; return the exit code."""
        record, session = self.record, self.session
        if result.messages and "file" in result.messages[-1]:
            self._note(result.messages[-1])
        if result.status not in _OPEN:
            record.run_id = ""
        record.question = result.questions[0].id if result.questions else ""
        record.write(self.folder)
        usage = result.usage
        drafts = f"{self.drafts} draft{'s' * (self.drafts != 1)}"
        parts = [drafts, f"{usage.seconds:.1f} s", *spent(usage.tokens, usage.cost)]
        session.tell(" · ".join(parts))
        if result.status == "done":
            return self._written()
        if result.status == "paused":
            session.say(record.summary)
            session.tell(
                "Say what to change: the same command with a remark. Keep it: --yes without one."
            )
        elif result.status == "limited":
            is_unfit = not self.record.is_fine and self.drafts >= self.options.rounds
            why = f"It does not pass after {self.drafts} drafts (--rounds)."
            session.tell(why if is_unfit else str(result.error))
            session.tell(f"The newest draft is {self.folder / LAST}; draft again to go on from it.")
        else:
            for line in error_lines(result.error) if result.error else [f"error: {result.status}"]:
                session.tell(line)
            session.tell("The same command without a sentence resumes it.")
        return Exit.of(result.status)

    def _written(self) -> int:
        session = self.session
        if self.options.yes:
            session.say(self.record.summary)
        if self.output.exists() and not self.options.replace and not self._may_replace():
            session.tell(f"{self.output} is as it was; the draft is {self.folder / LAST}.")
            return Exit.DONE
        put(self.output, self.record.text)
        session.tell(f"{self.output} is written; what was said is kept in {self.folder}.")
        return Exit.DONE

    def _may_replace(self) -> bool:
        """Return whether the person lets the file be replaced."""
        if self.options.yes or not self.session.stdin.isatty():
            return False
        return self.session.confirms(f"{self.output} exists. Replace it?")


class _Keeps:
    """A channel that has no remarks."""

    async def ask(self, question: Any) -> str:
        """Return an empty answer, which keeps the file."""
        return ""


def model_of(named: str, adapters: Collection[str]) -> str | dict[str, Any]:
    """Return a model as a setting: an installed adapter, JSON, or a name at an OpenAI-compatible
    server.

    Raises: DraftError (AX997): it is no JSON object, or holds a secret, which would be written.

    >>> model_of("scripted", ["scripted"]), model_of("small", ["scripted"])
    ('scripted', {'type': 'openai', 'name': 'small'})
    """
    if named in adapters:
        return named
    if not named.startswith("{"):
        return {"type": "openai", "name": named}
    try:
        data = json.loads(named)
    except (ValueError, RecursionError) as error:
        message = f"--model is no JSON: {error}."
        raise DraftError("AX997", message, 'Write \'{"type": "openai", "name": "…"}\'.') from error
    for key, value in data.items():
        if is_private(key) and isinstance(value, str) and not value.startswith("${"):
            hint = 'Write "${NAME}", and set the environment variable NAME.'
            raise DraftError("AX997", f"{key} is a secret, and would be in the file.", hint)
    return data


def _text(path: str) -> str:
    """Return the text of a file. Raises: DraftError (AX997): it cannot be read."""
    try:
        return Path(path).read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "this is not text in UTF-8"
        raise DraftError("AX997", f"{path} cannot be read: {why}.", "Name a text file.") from error


__all__ = ["DraftFile", "model_of"]
