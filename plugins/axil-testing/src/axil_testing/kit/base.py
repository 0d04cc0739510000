"""The shared parts of all kits: how a component is made, its claims, and the laws for every kind.

A kit is a class whose ``test_…`` methods take nothing but ``self``: pytest runs them, and so does
``report.check``, which needs no pytest. A test that waits is a plain function all the same: it
calls ``self.wait(…)``, which gives the coroutine a loop of its own, bounds it, and insists that no
task is left behind.

A subclass may not override or remove a test of the kit, unless it says why:
``@pytest.mark.xfail(reason="…")``.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import importlib.util
import json
import shutil
import sys
import tempfile
import weakref
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import cached_property
from itertools import product
from pathlib import Path
from typing import Any, ClassVar, Final, NoReturn, TypeVar, cast

import pytest

from axil import AxilError, ConfigError
from axil.plugin import make_component
from axil_testing.kit.imports import imported
from axil_testing.kit.watch import watched

T = TypeVar("T")
Test = TypeVar("Test", bound=Callable[..., None])

PATIENCE_SECONDS: Final = 120.0
"""A test that waits longer has failed; what is awaited in a kit takes milliseconds, but for a first
import of what is large.
"""
CANARY: Final = "canary-3f9a-secret"
"""The value of every secret in a kit; it must not be seen anywhere."""
_OURS: Final = "axil_testing.kit"


def require(condition: object, message: str) -> None:
    """Nothing, if the condition holds.

    Raises: AssertionError with the message: pytest does not rewrite a library's asserts.
    """
    if not condition:
        raise AssertionError(message)


async def cancel_each_turn(begin: Callable[[], Awaitable[object]], turns: int) -> None:
    """Begin something and cancel it, after each number of turns of the event loop below ``turns``.

    Raises: AssertionError: it was not cancelled.
    """
    for turn in range(turns):
        task = asyncio.ensure_future(begin())
        for _ in range(turn):
            await asyncio.sleep(0)
        if not task.done():
            task.cancel()
            await asyncio.wait([task])
            message = "it was cancelled, and continued as if nothing had happened."
            require(task.cancelled(), message)


def claimed(*claims: str) -> Callable[[Test], Test]:
    """Mark a test that runs only where the kit claims all of ``claims``, its true attributes."""

    def mark(test: Test) -> Test:
        @functools.wraps(test)
        def law(self: Kit) -> None:
            missing = [claim for claim in claims if not getattr(self, claim, False)]
            if missing:
                self.skip(f"it does not claim {', '.join(missing)}")
            test(self)

        return cast("Test", law)

    return mark


def _once_for_each_cause(law: Test) -> Test:
    """Return a law that is skipped where it ends with the error of another law of its kit."""

    @functools.wraps(law)
    def test(self: Kit) -> None:
        __tracebackhide__ = True
        try:
            law(self)
        except AssertionError:
            raise
        except Exception as error:
            first = type(self).causes.setdefault(_cause(error), law.__name__)
            if first == law.__name__:
                raise
            self.skip(f"it ends with the error of {first}: {type(error).__name__}: {error}")

    return cast("Test", test)


def _cause(error: BaseException) -> tuple[str, ...]:
    """Return what tells an error from others: its kind, its text, and where it began."""
    while error.__cause__ is not None:
        error = error.__cause__
    place = error.__traceback__
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    code = "" if place is None else f"{place.tb_frame.f_code.co_filename}:{place.tb_lineno}"
    return type(error).__name__, str(error), code


class Kit:
    """The base of all kits. Give ``make``, or ``component`` and ``config``."""

    kind: ClassVar[str] = ""
    """The kind of component, as in the entry-point group: ``nodes`` for ``axil.nodes``."""
    component: ClassVar[Any] = None
    """The object that the entry point names: a class, a function, or an instance."""
    config: ClassVar[Mapping[str, Any]] = {}
    """A config that it can be made with, as a file would say it."""
    causes: ClassVar[dict[tuple[str, ...], str]] = {}
    """Errors that laws of this kit ended with, and the first law of each."""

    def __init_subclass__(cls, **more: Any) -> None:
        super().__init_subclass__(**more)
        cls.causes = {}
        if cls.__module__ == _OURS or cls.__module__.startswith(f"{_OURS}."):
            for name, law in list(vars(cls).items()):
                if name.startswith("test_"):
                    setattr(cls, name, _once_for_each_cause(law))
            return
        for name in vars(cls):
            laws = [base for base in cls.__mro__[1:] if name in vars(base) and _is_law(base, name)]
            if laws and not _is_excused(vars(cls)[name]):
                raise TypeError(
                    f"{cls.__name__} overrides {laws[0].__name__}.{name}, a law of its kind. "
                    'If it cannot hold, say why: @pytest.mark.xfail(reason="…").'
                )

    # -- what an author gives

    def make(self) -> Any:
        """Return a new component, ready for use; called several times in one test."""
        component = type(self).component
        if component is None:
            raise NotImplementedError("Give make(self), or component and config.")
        return make_component(component, self.config)

    # -- what tests use

    @cached_property
    def folder(self) -> Path:
        """A folder of this test's own."""
        made = tempfile.mkdtemp(prefix="axil-kit-")
        weakref.finalize(self, shutil.rmtree, made, ignore_errors=True)
        return Path(made)

    def wait(self, awaitable: Coroutine[Any, Any, T], seconds: float = PATIENCE_SECONDS) -> T:
        """Return the result of a coroutine, on an event loop of its own.

        Raises: AssertionError: it does not end, or leaves tasks behind.
        """

        async def bounded() -> T:
            try:
                result = await asyncio.wait_for(awaitable, seconds)
            except TimeoutError:
                raise AssertionError(f"it did not end within {seconds:g} seconds.") from None
            left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
            for _ in range(10):  # what was cancelled a moment ago may still be on its way out
                if all(task.done() for task in left):
                    break
                await asyncio.sleep(0)
            left = [task for task in left if not task.done()]
            require(not left, f"it leaves tasks behind: {', '.join(map(repr, left))}")
            return result

        return asyncio.run(bounded())

    def skip(self, reason: str) -> NoReturn:
        """End the test: it says nothing about this component."""
        pytest.skip(reason)

    @property
    def subject(self) -> Any:
        """The object that the entry point names, or the class of the result of ``make``."""
        if type(self).component is not None:
            return type(self).component
        made = self.make()
        return (
            made
            if isinstance(made, type) or callable(getattr(made, "__code__", None))
            else type(made)
        )

    @property
    def module(self) -> str:
        """Return the module that defines the component; empty if a new process cannot import it."""
        name = str(getattr(self.subject, "__module__", ""))
        package = name.partition(".")[0]
        try:
            # not what is loaded already
            if package == "__main__" or not any(
                finder.find_spec(package, None) for finder in sys.meta_path
            ):
                return ""
            return name if importlib.util.find_spec(name) is not None else ""
        except (ImportError, ValueError):
            return ""

    # -- laws of every kind

    def test_importing_it_does_nothing_else(self) -> None:
        """No output, no thread, no socket, no process, no change of the environment."""
        if not self.module:
            self.skip("its module cannot be imported by name")
        found = imported(self.module)
        faults = [f"fails ({found.failure})"] if found.failure else found.faults
        require(not faults, f"importing {self.module} {'; '.join(faults)}.")

    def test_making_it_has_no_effects(self) -> None:
        """A constructor connects to nothing, starts nothing and writes nothing."""
        self.make()  # what it imports, it imports now
        with watched() as seen:
            self.make()
        require(
            not seen.effects,
            f"making it has effects: {', '.join(seen.effects)}. "
            "Do that in provision, or when it is used.",
        )

    def test_an_unknown_key_in_its_config_is_an_error(self) -> None:
        """Slips of the pen are found, with the key's name."""
        component = self.subject
        if getattr(component, "Config", None) is None:
            self.skip("it has no Config")
        strange = "kit_unknown_key"
        try:
            make_component(component, {**self.config, strange: 1})
        except ConfigError as error:
            message = str(error)
            require(strange in message, f"the error does not name the unknown key: {message}")
            return
        except Exception as error:
            raise AssertionError(
                f"an unknown key raises {type(error).__name__}, not ConfigError: {error}"
            ) from error
        raise AssertionError('its Config takes unknown keys. Set extra="forbid".')

    def test_its_config_has_a_schema(self) -> None:
        """Editors complete and check with it: it is JSON, and every secret in it is marked."""
        model: Any = getattr(self.subject, "Config", None)
        if model is None:
            self.skip("it has no Config")
        try:
            schema = model.model_json_schema()
            json.dumps(schema)
        except Exception as error:
            raise AssertionError(
                f"its Config has no JSON Schema: {type(error).__name__}: {error}"
            ) from error

    def test_a_secret_is_never_shown(self) -> None:
        """Neither the component nor its config shows the value of a secret that it was given."""
        component = self.subject
        names = secrets_of(getattr(component, "Config", None))
        if not names:
            self.skip("it has no secrets")
        tried = 0
        configs = [self.config, *getattr(component, "examples", ())]
        for (name, value), config in product(names.items(), configs):
            try:
                made = make_component(component, {**config, name: value})
            except ConfigError:  # not beside what its config says
                continue
            tried += 1
            shown = (
                f"{made!r} {made} {getattr(made, 'config', None)!r} "
                f"{vars(made) if hasattr(made, '__dict__') else ''}"
            )
            require(
                CANARY not in shown,
                f"the value of {name} is in its text form. Keep it in an axil.plugin.Secret.",
            )
        require(tried, f"it takes none of its secrets: {', '.join(names)}.")

    def test_closing_it_twice_is_closing_it_once(self) -> None:
        """Also when it was never provisioned."""
        if not hasattr(self.subject, "close"):
            self.skip("it has no close")

        async def close() -> None:
            made = self.make()
            await _awaited(made.close())
            await _awaited(made.close())
            if hasattr(made, "provision"):
                # what it needs may not be here; it has to be closed all the same
                with contextlib.suppress(AxilError, OSError):
                    await _awaited(made.provision())
                await _awaited(made.close())
                await _awaited(made.close())

        self.wait(close())


for _name in [name for name in vars(Kit) if name.startswith("test_")]:
    setattr(Kit, _name, _once_for_each_cause(getattr(Kit, _name)))


async def _awaited(given: Any) -> Any:
    return await given if hasattr(given, "__await__") else given


def _is_law(base: type, name: str) -> bool:
    return name.startswith("test_") and (
        base.__module__ == _OURS or base.__module__.startswith(f"{_OURS}.")
    )


def _is_excused(test: Any) -> bool:
    return any(
        mark.name == "xfail" and mark.kwargs.get("reason")
        for mark in getattr(test, "pytestmark", ())
    )


def secrets_of(model: Any) -> dict[str, Any]:
    """Return the fields of a config that hold secrets (``axil.plugin.Secret``, or a schema with
    ``x-axil-secret``), each with a value for it.
    """
    if model is None:
        return {}
    properties = cast("Mapping[str, Any]", model.model_json_schema().get("properties", {}))
    several = {
        name: isinstance(shape.get("additionalProperties"), Mapping)
        for name, shape in properties.items()
    }
    found = [
        name for name, shape in properties.items() if '"x-axil-secret": true' in json.dumps(shape)
    ]
    return {name: {"KIT": CANARY} if several[name] else CANARY for name in found}
