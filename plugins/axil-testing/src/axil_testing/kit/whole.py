"""All that a distribution registers, under the kits of its kinds, without a line of code.

    python -m axil_testing.kit.whole acme-shout [--format json]

A component is made from each of its examples (those of its config's schema, else ``examples`` of
the class, else no config at all), and its ``capabilities`` are the claims. A kind without a kit of
its own is held to the laws of every kind.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import re
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, ClassVar, Final, cast

from axil import AxilError, PluginError
from axil.plugin import (
    KERNEL,
    Component,
    Registry,
    UnknownComponent,
    canonical_name,
    default_registry,
    did_you_mean,
    format_names,
    is_component_name,
    make_component,
)
from axil_testing.kit.base import Kit, require
from axil_testing.kit.confined import confinement_faults
from axil_testing.kit.imports import imported
from axil_testing.kit.report import Outcome, Report, check

KITS: Final[Mapping[str, str]] = {
    "nodes": "nodes:NodeKit",
    "conditions": "edges:ConditionKit",
    "processors": "edges:ProcessorKit",
    "reducers": "reducers:ReducerKit",
    "joins": "joins:JoinKit",
    "formatters": "formatters:FormatterKit",
    "loaders": "loaders:LoaderKit",
    "hooks": "hooks:HookKit",
    "journals": "journals:JournalKit",
    "context": "context:ContextKit",
    "scorers": "scorers:ScorerKit",
    "guards": "guards:GuardKit",
    "stores": "stores:StoreKit",
    "importers": "importers:ImporterKit",
}
"""Kind → module and class of its kit, in this package.

Those of context and stores are about interfaces of axil-models, and so are those of models,
which ``unaided`` chooses by what an adapter says of its service."""
_USED_AS_THEY_ARE: Final = frozenset({"reducers", "loaders", "commands", "options", "pictures"})


def kit_of(kind: str) -> type[Kit]:
    """Return the kit of a kind; the laws of every kind, where it has none, or where what it is
    about is not installed.
    """
    module, _, name = KITS.get(kind, "base:Kit").partition(":")
    try:
        return getattr(importlib.import_module(f"axil_testing.kit.{module}"), name)
    except ModuleNotFoundError:
        return Kit


class DistributionKit(Kit):
    """The laws of every distribution: its metadata is true, and its parts are there."""

    registry: ClassVar[Registry]
    distribution: ClassVar[str] = ""

    def make(self) -> Any:
        """There is nothing to make."""
        self.skip("a distribution is not made")

    @property
    def subject(self) -> Any:
        """Nothing."""
        return object

    @property
    def module(self) -> str:
        """Nothing that is imported as one."""
        return ""

    @property
    def metadata(self) -> Any:
        """The metadata of the distribution."""
        return getattr(self.registry.distribution(self.distribution), "metadata", None) or {}

    def components(self) -> list[Component]:
        """Return the components that it registers."""
        return [
            each for each in self.registry.candidates() if each.distribution == self.distribution
        ]

    # -- laws

    def test_everything_it_registers_is_there(self) -> None:
        """Each entry point leads to an object, in a module of its own."""
        faults: list[str] = []
        for each in self.components():
            try:
                self.registry.resolve(each.kind, f"{each.distribution}/{each.name}")
            except PluginError as error:
                faults.append(str(error))
        require(not faults, "; ".join(faults))

    def test_it_has_names_that_can_be_written(self) -> None:
        """Lower case, with the vendor before a dot; the project's own have none."""
        odd = [
            each.name for each in self.components() if not is_component_name(each.kind, each.name)
        ]
        require(not odd, f"these are no names: {format_names(odd)}")

    def test_it_has_a_manifest_that_names_all_it_registers(self) -> None:
        """A manifest is optional; one that is wrong is not."""
        manifest = self.registry.manifest(self.distribution)
        broken = [
            report
            for report in self.registry.unreadable
            if report.startswith(f"{self.distribution}:")
        ]
        require(not broken, "; ".join(broken))
        if manifest is None:
            self.skip("it has no manifest: its settings are known only by importing it")
            return
        described = {(each["kind"], each["name"]) for each in manifest.components}
        registered = {(each.kind, each.name) for each in self.components()}
        apart = sorted(f"{kind}:{name}" for kind, name in described ^ registered)
        require(not apart, f"its manifest and its entry points differ: {format_names(apart)}")

    def test_every_component_that_needs_a_config_has_an_example(self) -> None:
        """Without one it can be neither shown nor tested."""
        without: list[str] = []
        for each in self.components():
            if each.kind in (*_USED_AS_THEY_ARE, "hooks", "executors", "meters"):
                continue
            if not examples_of(
                self.registry.resolve(each.kind, f"{each.distribution}/{each.name}")
            ):
                without.append(f"{each.kind}:{each.name}")
        require(
            not without, f"no examples: {format_names(without)}. Give the class examples = ({{…}},)"
        )

    def test_it_leaves_others_their_freedom(self) -> None:
        """It requires axil without an upper bound, pins nothing, and says which Python it needs."""
        if not self.metadata:
            self.skip("it has no metadata")
        requires = [
            str(each).partition(";")[0]
            for each in self.metadata.get_all("Requires-Dist") or ()
            if "extra ==" not in str(each)
        ]
        pinned = [each for each in requires if re.search(r"[^!<>~]==(?!.*\*)", each)]
        require(
            not pinned,
            f"it pins {format_names(pinned)}; a pin breaks every plugin that needs another version",
        )
        capped = [
            each
            for each in requires
            if re.match(rf"{KERNEL}\b(?![-_.])", each) and re.search(r"<|~=", each)
        ]
        require(
            not capped, f"it caps the kernel: {format_names(capped)}; the contract's version fences"
        )
        require(
            self.metadata.get("Requires-Python"),
            "it does not say which Python it needs: requires-python",
        )

    def test_it_says_under_which_licence_it_is(self) -> None:
        """State a licence: without one, use is not permitted."""
        if not self.metadata:
            self.skip("it has no metadata")
        classifiers = [
            each
            for each in self.metadata.get_all("Classifier") or ()
            if str(each).startswith("License ::")
        ]
        stated = (
            self.metadata.get("License-Expression") or self.metadata.get("License") or classifiers
        )
        require(stated, "it has no licence")

    def test_importing_its_parts_imports_no_other_plugin(self) -> None:
        """Beside those that it requires, and those that they require."""
        mine = {each.value.partition(":")[0].strip() for each in self.components()}
        wanted = self._required()
        others = {
            each.value.partition(":")[0].partition(".")[0]: each.distribution
            for each in self.registry.candidates()
            if each.distribution not in (self.distribution, KERNEL, "", *wanted) and each.value
        }
        found = imported(*sorted(mine))
        require(not found.failure, f"its parts cannot be imported together: {found.failure}")
        strangers = sorted(others[name] for name in found.loaded & set(others))
        require(not strangers, f"it imports {format_names(strangers)}, which it does not require")

    def test_settings_of_a_strangers_file_do_nothing_that_needs_leave(self) -> None:
        """Paths are declared (``ReadPath``, ``WritePath``), keys are ``Secret``, code and
        programs are asked for (``current_grants``, ``ctx.allows``).
        """
        found = confinement_faults(self.distribution)
        faults = "; ".join(f"{name} {', '.join(seen)}" for name, seen in found.items())
        require(not found, f"without leave, {faults}")

    def _required(self) -> set[str]:
        """Return what it requires, extras included, and what that requires in turn."""
        waiting = _names_in(self.metadata, with_extras=True)
        found: set[str] = set()
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting |= _names_in(getattr(self.registry.distribution(name), "metadata", None))
        return found


def _names_in(metadata: Any, *, with_extras: bool = False) -> set[str]:
    """Return the distributions that the metadata of one requires."""
    messages = [str(each) for each in metadata.get_all("Requires-Dist") or ()] if metadata else []
    wanted = [each for each in messages if with_extras or "extra ==" not in each]
    return {canonical_name(found[0]) for each in wanted if (found := re.match(r"[\w.-]+", each))}


def examples_of(component: Any) -> list[Mapping[str, Any]]:
    """Return configs that a component can be made with."""
    model: Any = getattr(component, "Config", None)
    schema: Mapping[str, Any] = (
        model.model_json_schema() if hasattr(model, "model_json_schema") else {}
    )
    given = schema.get("examples") or getattr(component, "examples", None)
    if given:
        return [dict(each) for each in cast("Sequence[Mapping[str, Any]]", given)]
    try:
        make_component(component, {})
    except (AxilError, TypeError, ValueError):
        return []
    return [{}]


def claims_of(component: Any, kit: type[Kit]) -> dict[str, bool]:
    """Return the claims of a component that its kit knows: ``durable`` is a claim, ``not_durable``
    its denial.
    """
    claims: dict[str, bool] = {}
    for word in getattr(component, "capabilities", ()):
        claim = str(word).removeprefix("not_")
        if isinstance(getattr(kit, claim, None), bool):
            claims[claim] = claim == word
    return claims


def kits_for(
    distribution: str, registry: Registry | None = None
) -> Iterator[tuple[str, type[Kit] | None, str]]:
    """Yield the kits of a distribution and of each of its components, with their subjects; None,
    and the reason, where there is nothing to test.

    A kit with a reason is that of every kind: the reason says what the component would have to tell
    for its own.

    Raises: UnknownComponent: it is not installed, or registers nothing.
    """
    seen = registry or default_registry()
    name = canonical_name(distribution)
    own = [each for each in seen.candidates() if each.distribution == name]
    if name not in seen.plugins():
        raise UnknownComponent(
            f'no plugin is called "{distribution}".',
            hint=did_you_mean(name, seen.plugins())
            or f"Installed: {format_names(list(seen.plugins()), 20)}.",
        )
    yield (
        name,
        cast(
            "type[Kit]",
            type("Distribution", (DistributionKit,), {"registry": seen, "distribution": name}),
        ),
        "",
    )
    for each in own:
        message = f"{each.kind}:{each.name}"
        try:
            component = seen.resolve(each.kind, f"{name}/{each.name}")
        except PluginError as error:
            yield message, None, str(error)
            continue
        if excuse := getattr(component, "kit_excuse", ""):
            yield message, None, f"skipped: {excuse}"
            continue
        configs: list[Mapping[str, Any]] = [{}]
        if each.kind not in (*_USED_AS_THEY_ARE, "hooks"):
            configs = examples_of(component)
        if not configs:
            yield message, None, "skipped: it has no examples to make it with"
        for number, config in enumerate(configs):
            base, more, why = _kit_for(each.kind, component, config)
            claims = claims_of(component, base)
            given = (
                staticmethod(component)
                if callable(component) and not isinstance(component, type)
                else component
            )
            made = type(
                base.__name__, (base,), {"component": given, "config": config, **more, **claims}
            )
            yield message if len(configs) == 1 else f"{message} example {number + 1}", made, why


def _kit_for(
    kind: str, component: Any, config: Mapping[str, Any]
) -> tuple[type[Kit], dict[str, Any], str]:
    """Return the kit of a component, what it is given beside the component and its config, and why
    it is not that of its kind.
    """
    try:
        from axil_testing.kit.unaided import model_kit, provider_lines, store_lines

        if kind == "models":
            return model_kit(component, config)
        lines = {"context": provider_lines, "stores": store_lines}.get(kind)
        return kit_of(kind), lines(component, config) if lines else {}, ""
    except ModuleNotFoundError:  # what the kit is about is not installed
        return Kit, {}, ""


def examine(distribution: str, registry: Registry | None = None) -> list[Report]:
    """Return the result of every law for every component that a distribution registers.

    Raises: UnknownComponent.
    """
    reports: list[Report] = []
    for report, kit, why in kits_for(distribution, registry):
        if kit is None:
            skipped = why.startswith("skipped: ")
            outcome = Outcome(
                law="it can be tested",
                verdict="skipped" if skipped else "failed",
                reason=why.removeprefix("skipped: "),
            )
            reports.append(Report(kit=report, outcomes=(outcome,)))
        else:
            lacking = (
                (Outcome(law="the laws of its kind", verdict="skipped", reason=why),) if why else ()
            )
            reports.append(Report(kit=report, outcomes=(*check(kit).outcomes, *lacking)))
    return reports


def main(argv: Sequence[str] | None = None) -> int:
    """Run the kit as a program; 0: all holds, 1: something does not, 2: no such distribution."""
    parser = argparse.ArgumentParser(prog="python -m axil_testing.kit.whole", description=__doc__)
    parser.add_argument("distribution")
    parser.add_argument("--format", choices=("text", "json"), default="text")
    options = parser.parse_args(argv)
    try:
        # what a component leaves behind, it leaves there
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            reports = examine(options.distribution)
    except AxilError as error:
        sys.stderr.write(f"error: {error}\n")
        return 2
    fine = all(report.is_fine for report in reports)
    if options.format == "json":
        data = {
            "distribution": canonical_name(options.distribution),
            "fine": fine,
            "reports": [_plain(report) for report in reports],
        }
        sys.stdout.write(json.dumps(data, ensure_ascii=False, indent=2) + "\n")
    else:
        sys.stdout.write("\n".join(lines(reports)) + "\n")
    return 0 if fine else 1


def _plain(report: Report) -> dict[str, Any]:
    outcomes = [asdict(each) for each in report.outcomes]
    return {"about": report.kit, "fine": report.is_fine, "outcomes": outcomes}


def lines(reports: Sequence[Report]) -> Iterator[str]:
    """Yield the report for people: one line for each component, and every law that does not
    hold.
    """
    for report in reports:
        counts = ", ".join(
            f"{report.count(v)} {v}"
            for v in ("passed", "failed", "excused", "skipped")
            if report.count(v)
        )
        yield f"{'ok  ' if report.is_fine else 'FAIL'}  {report.kit}: {counts}"
        for each in report.outcomes:
            if each.verdict in ("failed", "excused") or each.law == "the laws of its kind":
                yield f"        {each.verdict}: {each.law}: {each.reason}"
    total = sum(len(report.outcomes) for report in reports)
    failed = sum(report.count("failed") for report in reports)
    yield f"{total} laws, {failed} broken"


if __name__ == "__main__":
    sys.exit(main())
