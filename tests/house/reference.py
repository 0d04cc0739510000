"""The page `docs/reference/plugins.md`, made of the code: entry-point groups, hooks and protocols.

Written by `make manifests`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import axil.driver
import axil.plugin
import axil_files
import axil_importers
import axil_journals
import axil_models
from axil.plugin import COMPONENT_KINDS, CONTRACT_VERSIONS, Hooks
from axil_testing.kit import KITS, kit_of, laws

PAGE = "docs/reference/plugins.md"
NAMED = {
    "nodes": "a class with `run`, or a function",
    "conditions": "a class with `__call__(self, seen)`, or a function of the text",
    "processors": "a class with `__call__(self, seen)`, or a function of the text",
    "reducers": "an `axil.Reducer`, or a function of `(old, new)`",
    "joins": "a class with `fires(self, live, dead, total)`, `early`, `per_token` and `rest`",
    "models": "a class with `async reply(self, request, emit)`",
    "formatters": "a class with `introduction`, `dump` and `parse`",
    "context": "a class with `get_blocks(self, query, top_k)`",
    "tools": "a function, or a class",
    "embedders": "a class; see [axil-context](../../plugins/axil-context/README.md)",
    "rerankers": "a class with `async rerank(self, query, texts)`",
    "stores": "a class with `upsert`, `search`, `delete` and `marks`",
    "wrappers": "a class with `wrap(self, body, node)`",
    "channels": "a class with `async ask(self, question)`",
    "meters": "a class made with `(usage, limits, stop)`; see `axil.plugin.Meter`",
    "pictures": "a function of a plan that returns text; `notebook`: an object with `bundle`, "
    "`show` and `watch`",
    "journals": "a class with `open`, `entries`, `thread`, `runs` and `forget`, and what "
    "`axil_journals.Recording` gives",
    "ciphers": "a class with `seal`, `open`, `digest` and `is_current`",
    "executors": "a class with `async execute(self, body, task, ctx)` and `async close(self)`",
    "sandboxes": "a class with `problem(self)` and `launch(self, command, place)`",
    "loaders": "a function of `(text, name)`, named like the suffix of its files",
    "judges": "a class with `async decide(self, fields, attributes, ctx)`",
    "scorers": "a class with `score(self, case, trial, ctx)`; "
    "see [axil-evals](../../plugins/axil-evals/README.md#a-scorer-of-your-own)",
    "guards": "a class with `check(self, text, ctx)`; "
    "see [axil-wrappers](../../plugins/axil-wrappers/README.md#a-guard-of-your-own)",
    "shorthands": "a function of what a workflow file says under a key, named like the key",
    "dialects": "a function of `(node, graph)`, named like the node type that it reads",
    "hooks": "a module, an object or a class with functions marked by `axil.hookimpl`",
    "commands": "a class with `configure(self, parser)` and `run(self, options, session)`",
    "options": "a class with `prepare(self, value, launch)`, named `run.…` or `workflow.…`",
    "engines": "a class made with `(journal, workflows, *, find, loaded, **options)`; see "
    "`axil_journals.Engine`",
    "importers": "a class with `recognises(self, document)` and `read(self, document, name)`; "
    "see [axil-importers](../../plugins/axil-importers/README.md#an-importer-of-your-own)",
    "protocols": "a class with `routes(self, service)`; see "
    "[axil-serve](../../plugins/axil-serve/README.md#protocols)",
}
PROTOCOLS: tuple[tuple[Any, tuple[str, ...]], ...] = (
    (axil.plugin, ("Condition", "Processor", "Channel", "Meter")),
    (axil.driver, ("Clock", "Executor", "Recorder", "RunJournal")),
    (axil_files, ("Loader",)),
    (axil_importers, ("Importer",)),
    (axil_journals, ("Journal", "SharedJournal", "JournalWriter", "Cipher", "Engine")),
    (axil_models, ("Model", "Formatter", "ContextProvider", "Memory", "ChatMemory")),
)


def page() -> str:
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "# Plugins: groups, hooks, protocols"
    yield ""
    yield "This page is made of the code (`make manifests`) and tested to be current."
    yield (
        "[Write a plugin](../tutorials/write-a-plugin.md) is where to begin, "
        "[the kit](kit.md) is how a plugin is proved."
    )
    yield ""
    yield "## Entry-point groups"
    yield ""
    yield (
        "A distribution names its components in these groups; the name is what files say. "
        "Nothing is imported before it is used."
    )
    yield (
        "The contract of each kind has a version; "
        "see [versions of a contract](../how-to/plugin-policy.md#versions-of-a-contract)."
    )
    yield ""
    yield "| group | a name is | the object | contract | kit |"
    yield "|---|---|---|---|---|"
    for kind, word in COMPONENT_KINDS.items():
        kit = kit_of(kind)
        reported = f"`{kit.__name__ if kind in KITS else 'Kit'}`, {len(laws(kit))} laws"
        cells = (
            f"`axil.{kind}`",
            _article(word),
            NAMED[kind],
            str(CONTRACT_VERSIONS[kind]),
            reported,
        )
        yield f"| {' | '.join(cells)} |"
    yield (
        "| `axil.plugin` | the distribution "
        "| the package that holds its `axil-plugin.json`; read, never imported | | |"
    )
    yield ""
    yield "## Hooks"
    yield ""
    yield (
        "A hook plugin (`axil.hooks`) implements any of these; "
        "an implementation may leave out arguments. [Hooks](hooks.md) has examples."
    )
    yield ""
    yield "| hook | is for |"
    yield "|---|---|"
    for name, hook in vars(Hooks).items():
        if not name.startswith("_"):
            arguments = list(inspect.signature(hook).parameters)[1:]
            yield f"| `{name}({', '.join(arguments)})` | {_first(hook)} |"
    yield ""
    yield "## Protocols"
    yield ""
    yield (
        "What components are to the kernel and to each other. "
        "Nothing is inherited: whatever has these methods is one."
    )
    for module, names in PROTOCOLS:
        for name in names:
            protocol = getattr(module, name)
            yield ""
            yield f"### {name}"
            yield ""
            yield f"`{module.__name__}.{name}`. {_text(protocol)}"
            yield ""
            yield from _methods(protocol)


def _methods(protocol: type) -> Iterator[str]:
    found = [
        (name, each)
        for name, each in vars(protocol).items()
        if not name.startswith("_") or name == "__call__"
    ]
    found = [
        (name, each)
        for name, each in found
        if inspect.isfunction(each) or isinstance(each, property)
    ]
    attributes = [
        name for name in getattr(protocol, "__annotations__", {}) if not name.startswith("_")
    ]
    if not found and not attributes:
        return
    yield "| | |"
    yield "|---|---|"
    for name in attributes:
        yield f"| `{name}` | an attribute |"
    for name, each in found:
        if isinstance(each, property):
            yield f"| `{name}` | {_first(each.fget)} |"
        else:
            parameters = [one for one in inspect.signature(each).parameters if one != "self"]
            word = "async " if inspect.iscoroutinefunction(each) else ""
            yield f"| `{word}{name}({', '.join(parameters)})` | {_first(each)} |"


def _text(thing: Any) -> str:
    """Return what it says of itself, without the marks of another markup."""
    return " ".join((inspect.getdoc(thing) or "").replace("``", "`").split()).replace("|", "\\|")


def _first(thing: Any) -> str:
    # its own words, not those of what it is a subclass of
    text = inspect.cleandoc(thing.__doc__ or "")
    return " ".join(text.replace("``", "`").split("\n\n")[0].split()).replace("|", "\\|")


def _article(word: str) -> str:
    return f"{'an' if re.match('[aeiou]', word) else 'a'} {word}"
