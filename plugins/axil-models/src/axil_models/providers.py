"""The shared parts of context providers: their settings, creation by name, one flight of work."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar, cast

from pydantic import BaseModel, ConfigDict, Field

from axil.plugin import current_grants, decode_config, granted, make_component
from axil_models.threads import call_async

if TYPE_CHECKING:
    from axil.plugin import Registry

Settings = TypeVar("Settings", bound=BaseModel)
NamedComponent = str | dict[str, object]


class ProviderSettings(BaseModel):
    """The settings that all context providers have."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    context_label: str = Field(
        "", description="The label of its blocks; without one, the component's name."
    )
    passive: bool = Field(True, description="Its blocks go into the prompt.")
    active: bool = Field(False, description="The model may ask it.")


def decoded_settings(
    model: type[Settings], config: Settings | None, settings: Mapping[str, object]
) -> Settings:
    """Return ``config``, or one of keyword arguments. Raises: as ``decode_config``."""
    return config if config is not None else decode_config(model, settings, model.__name__)


def name_and_config(given: Any) -> tuple[str, object]:
    """Return the name and the settings of a component, written as its name or ``{type: …, …}``.

    >>> name_and_config("history"), name_and_config({"type": "history", "k": 3})
    (('history', None), ('history', {'k': 3}))
    """
    use = {"type": given} if isinstance(given, str) else dict(cast("Mapping[str, Any]", given))
    name = str(use.pop("type", ""))
    return name, use.pop("config", None) or use or None


def component_of(kind: str, given: Any, where: str = "", registry: Registry | None = None) -> Any:
    """Return a component: an object as it is; a name, or ``{type: name, …}``, from the registry.

    Raises: as ``resolve`` and ``make_component``.
    """
    if not isinstance(given, (str, Mapping)):
        return given
    from axil.plugin import default_registry

    name, config = name_and_config(given)
    found = (registry or default_registry()).resolve(kind, name, where)
    return make_component(found, config, where)


class LaterComponent:
    """A component that a setting gives, as an object or by name: made when it is first used, under
    the grants with which the setting was read. Safe to use from any thread.
    """

    def __init__(self, kind: str, given: object, where: str = "") -> None:
        """Make it once and drop it, which has no effects, where a file's grants are to be asked.

        ``where``: for errors. Raises: as ``component_of``.
        """
        self._kind, self._given, self._where = kind, given, where
        self._grants, self._making = current_grants(), threading.Lock()
        self._made: object = None
        if self._grants is not None:
            component_of(kind, given, where)

    def get(self) -> Any:
        """Return it. Raises: as ``component_of``."""
        with self._making, granted(self._grants):
            if self._made is None:
                self._made = component_of(self._kind, self._given, self._where)
            return self._made

    def release(self, *, owns: bool = False) -> Callable[[], object] | None:
        """Forget what was made, and return what closes it; None: nothing does.

        ``owns``: close an object, too, and not only what was made by name.
        """
        with self._making:
            made, self._made = self._made, None
        if owns or isinstance(self._given, (str, Mapping)):
            return getattr(made, "close", None)
        return None

    async def close(self) -> None:
        """Close what was made by name; the next use makes it again."""
        if (close := self.release()) is not None:
            await call_async(close)


Result = TypeVar("Result")
_Report = (
    tuple[Literal["done"], Result]
    | tuple[Literal["failed"], Exception]
    | tuple[Literal["abandoned"], None]
)
"""The outcome of work."""


class SingleFlight(Generic[Result]):
    """Work that is under way once at a time: a call meanwhile, from any thread or event loop, waits
    for the same result.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._under_way: Future[_Report[Result]] | None = None

    async def run(self, work: Callable[[], Awaitable[Result]]) -> Result:
        """Return what ``work`` gives, or what the work under way gives.

        If the call that works is cancelled, the next one takes the work on.
        """
        while True:
            with self._lock:
                mine = self._under_way is None
                future = self._under_way = self._under_way or Future()
            if mine:
                return await self._done(work, future)
            report = await asyncio.shield(asyncio.wrap_future(future))
            if report[0] == "failed":
                raise report[1]
            if report[0] == "done":
                return report[1]

    async def _done(
        self, work: Callable[[], Awaitable[Result]], future: Future[_Report[Result]]
    ) -> Result:
        report: _Report[Result] = ("abandoned", None)
        try:
            result = await work()
            report = ("done", result)
            return result
        except Exception as error:
            report = ("failed", error)
            raise
        finally:
            with self._lock:
                self._under_way = None
            future.set_result(report)
