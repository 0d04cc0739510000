"""``axil tune``: look for a better variant of a workflow file."""

from __future__ import annotations

import argparse
import hashlib
import json
import re
from pathlib import Path
from typing import Any, cast

import yaml

from axil import run_sync
from axil.plugin import file_without_secrets, without_secrets
from axil_cli import Exit, Session, add_shared_arguments
from axil_evals.command import named_component
from axil_evals.datasets import read_dataset
from axil_evals.tuning.errors import TuneError
from axil_evals.tuning.report import as_markdown, as_text
from axil_evals.tuning.search import Search, Tuned, tune


class Tune:
    """Try variants of a workflow file by a dataset, and write the best one with its evidence.

    Tried are instructions that a model proposes, examples, models, and numbers of rounds; and what
    --tries says. The variant that is best on one part of the cases is tested on the other part. The
    same command again goes on where it broke off. The exit code: 0 a variant is better, 1 nothing
    was better than chance, 2 the file, the dataset or an option cannot be used.
    """

    def configure(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument("workflow", metavar="WORKFLOW", help="a .yaml or .json file")
        parser.add_argument("dataset", metavar="DATASET", help=".yaml, .json, .jsonl or .csv")
        parser.add_argument(
            "--budget", type=float, required=True, metavar="MONEY", help="for all of it"
        )
        parser.add_argument(
            "--tries", metavar="FILE", help="values of yours: a list of {node, key, values}"
        )
        parser.add_argument(
            "--try-model",
            action="append",
            default=[],
            metavar="NAME",
            help='a model that each agent is tried with: a name, or JSON, {"type": …}',
        )
        parser.add_argument(
            "--model",
            help="the model that proposes, and that of judges that name none: a name, or JSON; "
            "without it, the agent's own proposes",
        )
        parser.add_argument(
            "--proposals", type=int, default=3, metavar="N", help="for each agent (3)"
        )
        parser.add_argument("--scorer", default="", metavar="NAME", help="what is to be better")
        parser.add_argument(
            "--held-out", type=float, default=0.5, metavar="SHARE", help="of the cases (0.5)"
        )
        parser.add_argument(
            "--finalists", type=int, default=1, metavar="N", help="variants that are tested (1)"
        )
        parser.add_argument("--repeats", type=int, default=1, metavar="N", help="trials of a case")
        parser.add_argument("--concurrency", type=int, default=4, metavar="N")
        parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the split (0)")
        parser.add_argument(
            "--run-id", default="", help="the name of the search; the default is made of its files"
        )
        add_shared_arguments(parser, "--workflow", "--journal")
        parser.add_argument(
            "--out",
            metavar="FILE",
            help="the best file; the default is WORKFLOW with .tuned before its ending. The "
            "evidence is beside it, and ends with .md",
        )

    def run(self, options: argparse.Namespace, session: Session) -> int:
        """Search, and write what was found."""
        file = Path(options.workflow)
        try:
            text = file.read_text("utf-8-sig")
        except (OSError, ValueError) as error:
            message = f"the file cannot be read: {error}."
            raise TuneError("AX985", message, where=str(file)) from None
        reading = session.reading(options)
        dataset = read_dataset(options.dataset, allow=options.allow)
        search = Search(
            budget=options.budget,
            tries=_tries(options.tries) if options.tries else (),
            models=[named_component(each) for each in options.try_model],
            proposals=options.proposals,
            model=named_component(options.model) if options.model else None,
            scorer=options.scorer,
            held_out=options.held_out,
            finalists=options.finalists,
            repeats=options.repeats,
            concurrency=options.concurrency,
            seed=options.seed,
            options={"allow": reading["allow"]},
        )
        out = Path(options.out or file.with_suffix(f".tuned{file.suffix}"))
        journal = session.journal(options, "axil tune")
        try:
            tuned: Tuned = run_sync(
                tune(
                    text,
                    file.name,
                    dataset,
                    search,
                    lambda variant: session.workflow(
                        str(file), texts={file.name: variant}, **reading
                    ),
                    journal=journal,
                    run_id=options.run_id or _name(options, text, dataset.plain()),
                    registry=session.registry,
                )
            )
        finally:
            journal.close()
        evidence = out.with_suffix(".md")
        said = as_markdown(tuned, file.name, dataset.name, search)
        evidence.write_text(without_secrets(said), "utf-8", errors="backslashreplace")
        session.say(as_text(tuned))
        if tuned.outcome == "better":
            out.write_text(file_without_secrets(tuned.text), "utf-8")
            session.say(f"file      {out}")
        session.say(f"evidence  {evidence}")
        return Exit.DONE if tuned.outcome == "better" else Exit.FAILED


def _name(options: argparse.Namespace, text: str, dataset: Any) -> str:
    """Return the usual name of a search: another one for other files or settings, and the same for
    a larger budget.
    """
    names = ("tries", "try_model", "model", "proposals", "held_out", "repeats", "seed", "set")
    settings = {name: value for name, value in vars(options).items() if name in names}
    if options.tries:
        settings["tries"] = _tries(options.tries)
    whole = json.dumps([text, dataset, settings], sort_keys=True, default=str)
    stem = re.sub(r"[^A-Za-z0-9_]+", "-", Path(options.workflow).stem).strip("-")
    return f"tune-{stem or 'flow'}-{hashlib.sha256(whole.encode()).hexdigest()[:12]}"


def _tries(path: str) -> Any:
    """Return the tries in a file. Raises: TuneError (AX986)."""
    try:
        found: Any = yaml.safe_load(Path(path).read_text("utf-8-sig"))
        json.dumps(found, sort_keys=True, default=str)  # keys that are texts, and no endless depth
    except (OSError, ValueError, TypeError, RecursionError, yaml.YAMLError) as error:
        said = " ".join(str(error).split())
        raise TuneError("AX986", f"the tries cannot be read: {said}.", where=path) from None
    return cast("dict[str, Any]", found).get("tries") if isinstance(found, dict) else found
