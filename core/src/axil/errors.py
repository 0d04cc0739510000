"""Every error axil raises, and the one form in which problems are reported.

    AxilError
    ├── SpecError (ValueError)         your graph
    │   └── NotBuilt (RuntimeError)
    ├── ConfigError (ValueError)       your settings
    ├── ProblemError                   errors that plugins define, and all below
    ├── PluginError                    that plugin
    │   ├── UnknownComponent, ComponentConflict, ComponentBlocked
    │   ├── PluginLoadError, PluginContract
    │   └── NotInstalled (ImportError)
    ├── StateError (ValueError)        what that body wrote
    │   └── UndeclaredField, InvalidValue, SchemaMismatch, ConcurrentReset
    ├── BodyError (TypeError)          what that body returned
    ├── MissingKeys (KeyError)         that edge
    ├── RouteError (ValueError)        that router
    ├── RunError (RuntimeError)        how a run ended
    │   ├── NodeFailed, CycleError (ValueError), LimitReached, HookFailed
    │   └── RunPaused, RunCancelled, Overdue, Uncertain
    ├── JournalError (ValueError)      the journal
    ├── EngineError (RuntimeError)     what owns runs
    └── KernelBug (RuntimeError)       us

Blame is in the type. A message says where, what was found, what was expected and what to do next,
and begins with an id (``AX104``) that has an entry in ``docs/reference/errors.md``.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Literal, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")
Severity = Literal["error", "warning"]


@dataclass(frozen=True, slots=True)
class Problem:
    """One thing that is wrong with a graph, a file or a setting, and what to do about it."""

    id: str
    """Stable id, ``AX`` and three digits."""
    where: str
    """The place, as a reader finds it: ``flow.yaml:41 edges[5].to``, ``graph "brief", node
    "a"``.
    """
    message: str
    """The fact and the expectation."""
    hint: str = ""
    """The next thing to do."""
    severity: Severity = "error"

    def __str__(self) -> str:
        where = f"{self.where}: " if self.where else ""
        hint = f" {self.hint}" if self.hint else ""
        return _shown(f"{self.id} {where}{self.message}{hint}")

    def __repr__(self) -> str:
        fields = (f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return _shown(f"Problem({', '.join(fields)})")


def _shown(text: str) -> str:
    """Return what an error says without the secrets of this process."""
    from axil.secrecy import without_secrets

    return without_secrets(text)


class AxilError(Exception):
    """The root of all errors of axil."""

    id: str = "AX000"

    def __str__(self) -> str:
        return _shown(super().__str__())

    def __repr__(self) -> str:
        return _shown(super().__repr__())


class _Problems(AxilError, ValueError):
    """Several problems in one exception; ``str()`` shows one a line."""

    def __init__(self, problems: Problem | Iterable[Problem]) -> None:
        self.problems: tuple[Problem, ...] = (
            (problems,) if isinstance(problems, Problem) else tuple(problems)
        )
        super().__init__(self.problems)

    @property
    def id(self) -> str:  # type: ignore[override]  # the first problem's id stands for the whole
        return self.problems[0].id if self.problems else "AX000"

    def __str__(self) -> str:
        return "\n".join(str(p) for p in self.problems)


class SpecError(_Problems):
    """The graph cannot run; ``problems`` holds all that was found."""


class GraphWarning(UserWarning):
    """Something in a graph that is no error and hardly meant."""


class NotBuilt(SpecError, RuntimeError):
    """The graph was used before ``build()``, or changed after it."""


class ConfigError(_Problems):
    """The settings of a component do not fit its config; ``problems`` holds all that was found."""


class ProblemError(AxilError):
    """One problem: a sentence with an id; plugins define errors of their own by it."""

    def __init__(self, id: str, message: str, hint: str = "", where: str = "") -> None:
        self.id, self.message, self.hint, self.where = id, message, hint, where
        super().__init__(message)

    def __str__(self) -> str:
        return str(self.problem)

    @property
    def problem(self) -> Problem:
        """The same facts as a ``Problem``."""
        return Problem(self.id, self.where, self.message, self.hint)


class _ClassError(ProblemError):
    """A problem whose id is that of its class."""

    def __init__(
        self, message: str, *, hint: str = "", where: str = "", id: str | None = None
    ) -> None:
        super().__init__(id or type(self).id, message, hint, where)


class PluginError(_ClassError):
    """Something about a plugin; the plugin is named."""

    id = "AX300"


class UnknownComponent(PluginError):
    """No installed distribution provides the name; says what to install."""

    id = "AX301"


class ComponentConflict(PluginError):
    """Two distributions provide the same name; says how to choose."""

    id = "AX302"


class ComponentBlocked(PluginError):
    """Policy forbids the component, which was not imported."""

    id = "AX303"


class PluginLoadError(PluginError):
    """The component's module failed to import; the original is ``__cause__``."""

    id = "AX304"


class PluginContract(PluginError):
    """The component is not what its kind promises."""

    id = "AX305"


class NotInstalled(PluginError, ImportError):
    """A library that an extra of a distribution brings is not installed."""

    id = "AX306"


class StateError(_ClassError, ValueError):
    """A body wrote a value that cannot be committed; nothing was."""

    id = "AX200"


class UndeclaredField(StateError):
    """A field that the schema does not have."""

    id = "AX201"


class InvalidValue(StateError):
    """A value does not fit its field."""

    id = "AX202"


class SchemaMismatch(StateError):
    """States of two different schemas were to be joined."""

    id = "AX212"


class ConcurrentReset(StateError):
    """A field that was reset (by a filter or a merge) meets concurrent writes."""

    id = "AX213"


class BodyError(_ClassError, TypeError):
    """A body returned something that is no outcome."""

    id = "AX220"


class MissingKeys(_ClassError, KeyError):
    """An edge asks for fields that the payload lacks."""

    id = "AX221"
    missing: Sequence[str] = ()
    has: Sequence[str] = ()
    """The keys that the payload has instead."""


class RouteError(_ClassError, ValueError):
    """A router's answer is none of its targets."""

    id = "AX222"


class RunError(_ClassError, RuntimeError):
    """A run did not end well; ``result`` holds the partial result."""

    id = "AX400"
    result: object = None


class HookFailed(RunError):
    """A hook that decides about a firing raised, or gave what is no answer."""

    id = "AX419"


class NodeFailed(RunError):
    """A node failed; ``path`` names it through graphs and rounds, the original is ``__cause__``."""

    id = "AX401"

    def __init__(self, path: str, cause: BaseException) -> None:
        self.path = path
        self.others: tuple[NodeFailed, ...] = ()
        text = _text_of(cause) or type(cause).__name__
        name = "" if isinstance(cause, AxilError) else f"{type(cause).__name__}: "
        notes = "".join(
            f" ({note})" for note in getattr(cause, "__notes__", ()) if note not in text
        )
        super().__init__(f"{name}{text}{notes}", where=f'node "{path}"')
        self.__cause__ = cause

    @property
    def place(self) -> str:
        """The innermost line of the user's own code that the cause went through, as ``file.py:3 in
        name: code``; empty: it is not known, or the cause says itself what to mend.
        """
        cause = self.__cause__
        if cause is None or isinstance(cause, AxilError):
            return ""
        return own_line(cause)


def own_line(error: BaseException) -> str:
    """Return the innermost line that an error went through which is neither Python's, nor ours, nor
    of an installed distribution, as ``file.py:3 in name: code``; empty: there is none.
    """
    import os  # only where something failed
    import sysconfig
    import traceback

    names = ("stdlib", "platstdlib", "purelib")
    installed = tuple(os.path.join(sysconfig.get_path(name), "") for name in names)
    found = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        code = frame.f_code
        package = str(frame.f_globals.get("__name__", "")).partition(".")[0]
        is_ours = package == "axil" or package.startswith("axil_")
        if not (is_ours or code.co_filename.startswith((*installed, "<"))):
            (summary,) = traceback.StackSummary.extract(iter([(frame, line)]))
            file = os.path.relpath(code.co_filename)
            file = code.co_filename if file.startswith("..") else file
            found = f"{file}:{line} in {code.co_name}: {summary.line}"
    return found


def _text_of(cause: BaseException) -> str:
    try:
        return str(cause)
    except Exception as error:  # noqa: BLE001
        # an error without readable text is shown by its type
        return f"(its text cannot be read: {type(error).__name__})"


class CycleError(RunError, ValueError):
    """A cycle was entered at several nodes at once."""

    id = "AX402"


class LimitReached(RunError):
    """A limit of the run or of a cycle was reached; the result is partial."""

    id = "AX403"


class RunPaused(RunError):
    """The run waits for answers; ``result.questions`` holds the questions."""

    id = "AX404"


class RunCancelled(RunError):
    """The run was cancelled."""

    id = "AX405"


class Uncertain(RunError):
    """It may have happened when the run broke off, and a person gave it up."""

    id = "AX406"


class Overdue(RunError):
    """A question was not answered in time and has no default."""

    id = "AX520"


class JournalError(_ClassError, ValueError):
    """The journal cannot hold a value exactly, or does not belong to this plan."""

    id = "AX500"


class EngineError(_ClassError, RuntimeError):
    """The engine cannot do what was asked of it."""

    id = "AX540"


class KernelBug(_ClassError, RuntimeError):
    """An invariant of the kernel does not hold; please report it."""

    id = "AX900"


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the one of ``known`` that is like a name, or begins with it; empty: none is."""
    import difflib

    known, begin = list(known), name.casefold()
    longer = [each for each in known if begin and each.casefold().startswith(begin)]
    longer = [each for each in longer if len(begin) > 3 or len(each) == len(begin)]
    return next(iter([*difflib.get_close_matches(name, known, n=1), *longer]), "")


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ``'Did you mean "reviewer"?'``, or nothing."""
    close = nearest(name, known)
    return f'Did you mean "{close}"?' if close else ""


def refused_setting(
    component: Callable[..., object], settings: Collection[str], error: BaseException
) -> tuple[str, set[str]] | None:
    """Return the setting that a constructor or a method refused with a TypeError, and those that
    it takes, those of a class's bases included where it has ``**options``; None: the error is about
    something else.
    """
    import inspect
    import re

    found = re.search(r"unexpected keyword argument '(\w+)'", str(error))
    if found is None or found[1] not in settings:
        return None
    named = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    known: set[str] = set()
    bases = component.__mro__[:-1] if isinstance(component, type) else ()
    makers = (vars(base)["__init__"] for base in bases if "__init__" in vars(base))
    for call in makers if bases else (component,):
        parameters = inspect.signature(call).parameters.values()
        known |= {each.name for each in parameters if each.kind in named}
        if not any(each.kind is each.VAR_KEYWORD for each in parameters):
            break
    return None if found[1] in known else (found[1], known - {"self"})


def takes_no(component: Callable[..., object], key: str, known: Collection[str]) -> tuple[str, str]:
    """Return the message and the hint about a setting that a constructor or a method refused."""
    hint = did_you_mean(key, known) or f"It takes {format_names(sorted(known), 20)}."
    return f'{component.__name__} takes no "{key}".', hint


def naming_unknown(make: Callable[P, T]) -> Callable[P, T]:
    """Return a constructor, or a method, as one whose error names an unknown setting and what may
    be meant.

    Raises: ConfigError (AX130).
    """

    @wraps(make)
    def named(*args: P.args, **settings: P.kwargs) -> T:
        try:
            return make(*args, **settings)
        except TypeError as error:
            of = type(args[0]) if make.__name__ == "__init__" else make
            if (stranger := refused_setting(of, settings, error)) is None:
                raise
            raise ConfigError(Problem("AX130", "", *takes_no(of, *stranger))) from error

    return named


def with_article(name: str) -> str:
    """Return a name with its article: ``"an Agent"``, ``"a dict"``."""
    return f"{'an' if name[:1] in 'aeioAEIO' else 'a'} {name}"


def format_names(names: Sequence[str], most: int = 8) -> str:
    """Return ``"a, b, c"``, or ``"a, b, … (12 in all)"``."""
    if len(names) <= most:
        return ", ".join(names)
    return ", ".join(names[:most]) + f", … ({len(names)} in all)"


def one_line(text: str) -> str:
    """Return a text on one line, of at most 400 characters.

    >>> one_line("a\\nb")
    'a?b'
    """
    import re

    # what may stand there, as a class, takes ten times as long to compile
    return re.sub(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff\U00010000-\U0010ffff]", "?", text)[:400]
