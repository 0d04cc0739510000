"""The kit of guards: a finding names a reason and real parts of the text, and shows nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from axil import AxilError
from axil_testing.kit.base import CANARY, Kit, require
from axil_testing.kit.hostile import TEXTS, is_clumsy, shown


class GuardKit(Kit):
    """The laws of guards."""

    trips: ClassVar[Sequence[Any]] = ()
    """Values that it must not let pass."""
    passes: ClassVar[Sequence[Any]] = ()
    """Values that it must let pass."""
    asks_a_model: ClassVar[bool] = False
    """True if it needs a model that the kit does not have."""

    def values(self, component: Any) -> list[Any]:
        """Return the values that it is asked about."""
        texts = [str(each) for each in TEXTS]
        if getattr(component, "of", "text") == "text":
            own = [each for each in (*self.trips, *self.passes) if isinstance(each, str)]
            return [*texts, f"{CANARY} ann@example.org", *own]
        return [*texts, {}, {"text": CANARY}, [], None, 7, {"a": [{"b": "c"}]}]

    def found(self, component: Any, value: Any) -> Any:
        """Return its finding. Raises: AssertionError: it fails by accident."""
        import inspect

        if self.asks_a_model:
            self.skip("it asks a model that the kit does not have")

        async def asked() -> Any:
            given = component.check(value, None)
            return await given if inspect.isawaitable(given) else given

        try:
            return self.wait(asked())
        except AxilError:
            return None
        except Exception as error:
            require(
                not is_clumsy(error),
                f"{shown(value)} makes it fail by accident: {type(error).__name__}: {error}",
            )
            raise

    # -- laws

    def test_a_finding_has_a_reason_and_parts_that_are_there(self) -> None:
        """Parts are within the text, and none is empty."""
        component = self.make()
        for value in self.values(component):
            found = self.found(component, value)
            if found is None:
                continue
            require(found.reason, f"the finding about {shown(value)} has no reason")
            for span in found.spans:
                require(
                    isinstance(value, str) and 0 <= span.start < span.end <= len(value),
                    f"{span} is no part of {shown(value)}",
                )
                require(span.label, "a part has no label")

    def test_a_finding_does_not_show_what_it_is_about(self) -> None:
        """Reasons are logged, shown and sent to models."""
        component = self.make()
        for value in self.values(component):
            found = self.found(component, value)
            require(
                found is None or CANARY not in f"{found.reason}{found.spans}",
                f"its reason shows the value: {found and found.reason}",
            )

    def test_it_finds_what_it_is_for(self) -> None:
        """Stop what it has to stop, and let the rest pass; twice alike."""
        component, again = self.make(), self.make()
        for value in self.values(component):
            require(
                self.found(component, value) == self.found(again, value),
                f"it says two things of {shown(value)}",
            )
        for value in self.trips:
            require(self.found(component, value) is not None, f"{shown(value)} passes")
        for value in self.passes:
            found = self.found(component, value)
            require(found is None, f"{shown(value)} does not pass: {found and found.reason}")
