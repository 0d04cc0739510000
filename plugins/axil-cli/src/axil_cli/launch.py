"""Options that plugins add to a command: the contract of the entry-point group ``axil.options``.

    [project.entry-points."axil.options"]
    "run.greet" = "acme_greet:Greet"                    # `axil run FILE --greet NAME`

The name says which command and which option; ``workflow.greet`` is an option of every command that
opens workflows. An entry point names a class without arguments, or an object. Its docstring is its
help, and it is imported only when somebody types it or asks for help:

    class Greet:
        \"\"\"say hello to NAME first\"\"\"

        metavar = "NAME"             # left out: a switch that takes no value
        repeated = False             # true: it may be given several times, and `value` is a list
        excludes = ("silent",)       # options of the same command that cannot be given as well

        def prepare(self, value, launch): ...

``prepare`` is called before the file is read, once, with what was typed (a text, a list of texts,
True for a switch) and the ``Launch``: how the run is going to be made. It may

* read the file otherwise: ``launch.reading["vars"]`` and all arguments of ``axil_files.load``;
* run it otherwise: ``launch.running["workspace"] = path``, and all fields of ``axil.Options``;
* watch it: ``launch.observers.append(observer)``;
* change what goes in: ``launch.inputs.append(lambda input, workflow: …)``, called when the workflow
  is known;
* know what a run that goes on has done: ``launch.recorded``;
* hold something open while the file is read and run: ``launch.within.enter_context(…)``,
  ``launch.within.callback(…)``.

An option without which a run would go on otherwise than it began has two methods more:
``keep(value)`` returns plain data that is kept with the run, and ``resume(kept, launch)`` is called
with it, in the place of ``prepare``, where the run is resumed and the option is not given anew.

What it raises as ``AxilError`` is printed as problems, with exit code 2. Commands other than
``run`` and ``runs`` make many runs or none: of a ``workflow`` option they take ``within`` alone.
"""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import combinations, takewhile
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Final, Protocol

from axil import AxilError
from axil.plugin import PluginContract, Registry, component_index
from axil_cli.command import misuse

if TYPE_CHECKING:
    from axil import Workflow
    from axil_journals import Entry

_KIND: Final = "options"


@dataclass(slots=True, kw_only=True)
class Launch:
    """A run that is about to be made; options change it before it begins."""

    file: str
    """The workflow file."""
    registry: Registry
    """The components that the run may use."""
    tell: Callable[[str], None]
    """Says something on standard error."""
    reading: dict[str, Any] = field(default_factory=dict[str, Any])
    """Arguments of ``axil_files.load``: ``vars``, ``allow_code`` …"""
    running: dict[str, Any] = field(default_factory=dict[str, Any])
    """Fields of ``axil.Options``, the observers apart: ``workspace``, ``journal``, ``run_id``,
    ``limits`` …
    """
    functions: str | None = None
    """The folder of functions of one's own, where there is one."""
    observers: list[Any] = field(default_factory=list[Any])
    """Objects with methods named like the observer hooks."""
    inputs: list[Callable[[Any, Workflow], Any]] = field(
        default_factory=list["Callable[[Any, Workflow], Any]"]
    )
    """Functions of the input as the graph takes it, and of the workflow, to the input to use."""
    recorded: Sequence[tuple[str, Any]] = ()
    """The steps that a run which goes on has done already, in order: names and results."""
    within: ExitStack = field(default_factory=ExitStack)
    """Open from before the file is read until the run is over and everything is closed."""


class Option(Protocol):
    """An option of a command; ``metavar``, ``repeated`` and ``excludes`` may be left out."""

    def prepare(self, value: Any, launch: Launch) -> None:
        """Change how the run is made."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """An option that was typed."""

    name: str
    option: Any
    value: Any


def add(
    parser: argparse.ArgumentParser, command: str, registry: Registry, arguments: Sequence[str]
) -> Mapping[str, Any]:
    """Add those options of plugins to ``parser`` that are among ``arguments``, or all where help is
    asked for, and return them by name. What the command declares itself is never a plugin's.

    Raises: PluginError: one that was typed cannot be had; it says which distribution provides it.
    """
    known = {f"{_KIND}:{each.name}" for each in registry.candidates(_KIND)} | set(component_index())
    found: dict[str, Any] = {}
    for name in _typed(arguments):
        if f"{_KIND}:{command}.{name}" in known:
            option = _found(registry.resolve(_KIND, f"{command}.{name}", f"--{name}"), name)
            if _declare(parser, name, option):
                found[name] = option
    if {"-h", "--help"} & set(arguments):
        _describe(parser, command, registry)
    return found


def given(found: Mapping[str, Any], options: argparse.Namespace) -> tuple[Given, ...]:
    """Return the options that were given, in their order.

    Raises: ConfigError (AX700): two that exclude each other.
    """
    typed = [
        Given(name=name, option=option, value=getattr(options, _slot(name)))
        for name, option in found.items()
        if hasattr(options, _slot(name))  # else it is of another sub-command
    ]
    for one, other in combinations(typed, 2):
        if other.name in _excluded(one) or one.name in _excluded(other):
            message = f"it cannot be used together with --{one.name}."
            raise misuse(f"--{other.name}", message, "Leave one of them out.")
    return tuple(typed)


def kept_options(options: Iterable[Given]) -> dict[str, Any]:
    """Return what is kept with a run of the options that it is begun with, by their names."""
    return {
        each.name: each.option.keep(each.value) for each in options if hasattr(each.option, "keep")
    }


def remaining(
    kept: Mapping[str, Any], registry: Registry, options: Sequence[Given]
) -> list[tuple[str, Any, Any]]:
    """Return the options that were kept with a run, but for those that ``options`` replace or
    exclude: their names, the options, and what was kept of them.

    Raises: UnknownComponent: one is not installed.
    """
    typed = {each.name for each in options}
    replaced = typed.union(*map(_excluded, options))
    known = {each.name for each in registry.candidates(_KIND)}
    left: list[tuple[str, Any, Any]] = []
    for name, data in kept.items():
        group = "run" if f"run.{name}" in known else "workflow"
        if name not in replaced:
            found: Any = registry.resolve(_KIND, f"{group}.{name}", f"--{name}")
            option = _found(found, name)
            if typed.isdisjoint(getattr(option, "excludes", ())):
                left.append((name, option, data))
    return left


def resume(kept: Mapping[str, Any], launch: Launch, options: Sequence[Given]) -> None:
    """Prepare a run with the options that were kept with it, and are not given anew.

    Raises: UnknownComponent: one is not installed; and what they raise.
    """
    for _, option, data in remaining(kept, launch.registry, options):
        option.resume(data, launch)


def recorded(entries: Iterable[Entry]) -> list[tuple[str, Any]]:
    """Return the steps of bodies that are done, with their results."""
    from axil_journals import decode_value  # journals, which --help does without

    return [
        (str(entry.data["name"]), decode_value(entry.data["value"]))
        for entry in entries
        if entry.kind == "step"
    ]


def _typed(arguments: Sequence[str]) -> list[str]:
    before = takewhile(lambda argument: argument != "--", arguments)
    typed = (argument[2:].partition("=")[0] for argument in before if argument.startswith("--"))
    return list(dict.fromkeys(typed))


def _found(component: Any, name: str) -> Any:
    option = component() if isinstance(component, type) else component
    if not callable(getattr(option, "prepare", None)):
        raise PluginContract(
            f"the option --{name} is no option: it lacks prepare.",
            hint="Report it to the plugin's owner.",
        )
    return option


def _slot(name: str) -> str:
    return f"option {name}"


def _excluded(each: Given) -> Sequence[str]:
    return getattr(each.option, "excludes", ())


def _declare(parser: Any, name: str, option: Any) -> bool:
    """Add one option to a parser or to a group of one; return whether its name was free."""
    metavar = getattr(option, "metavar", None)
    settings: dict[str, Any] = {"action": "store_true"}
    if metavar is not None:
        is_repeated = getattr(option, "repeated", False)
        settings = {"action": "append" if is_repeated else "store", "metavar": metavar}
    about = (inspect.getdoc(option) or "").replace("%", "%%")
    try:
        parser.add_argument(f"--{name}", dest=_slot(name), help=about, **settings)
    except argparse.ArgumentError:
        return False
    return True


def _describe(parser: argparse.ArgumentParser, command: str, registry: Registry) -> None:
    """Describe all options of plugins for help, or why one cannot be loaded."""
    group = parser.add_argument_group("options of plugins")
    for each in registry.candidates(_KIND):
        if each.status == "blocked" or not each.name.startswith(f"{command}."):
            continue
        name = each.name.removeprefix(f"{command}.")
        try:
            option: Any = _found(registry.resolve(_KIND, each.name), name)
        except AxilError as error:
            option = SimpleNamespace(__doc__=f"({error})")
        _declare(group, name, option)


__all__ = [
    "Given",
    "Launch",
    "Option",
    "add",
    "given",
    "kept_options",
    "recorded",
    "remaining",
    "resume",
]
