"""Policy: which components may be used, said by options, the environment and ``axil.toml``, in this
order of strength.

What is blocked is never imported. Blocks of all sources add up; of everything else the
strongest voice is heard.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, cast

from axil.errors import ConfigError, Problem, did_you_mean, format_names
from axil.spec.kinds import COMPONENT_KINDS, KERNEL, canonical_name

SETTINGS: Final = "axil.toml"
"""The file of settings that the command looks for: in the current folder, or in the nearest one
above it that has one.
"""
_KEYS: Final = ("mode", "allow", "block", "only", "pins", "hooks", "index")


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The rules on which components may be used.

    Distributions are named in any spelling, components as ``kind:name``.
    """

    mode: Literal["auto", "listed"] = "auto"
    """``auto``: what is installed is allowed; ``listed``: only the kernel and what ``allow`` names.
    """
    allow: frozenset[str] = frozenset()
    """Distributions and components; read in mode ``listed``."""
    block: frozenset[str] = frozenset()
    """Distributions and components; stronger than everything else."""
    pins: Mapping[str, str] = field(default_factory=dict[str, str])
    """``kind:name`` → the distribution to take it from, where several have it."""
    only: frozenset[str] | None = None
    """Besides the kernel only these distributions; empty: only the kernel; None: no such
    restriction.
    """
    hooks: tuple[str, ...] = ()
    """Hook plugins that act without being asked for, in order."""
    index: str = ""
    """A file like the shipped ``index.json``, for what a site has of its own: it is asked what to
    install, too.
    """
    origins: Mapping[str, str] = field(default_factory=dict[str, str], compare=False)
    """The source of each setting: an option, a variable, a file."""

    def __post_init__(self) -> None:
        for name in ("allow", "block", "only"):
            given = getattr(self, name)
            if given is not None:
                object.__setattr__(self, name, frozenset(map(_rule, given)))
        pins = {
            _rule(component): canonical_name(distribution)
            for component, distribution in self.pins.items()
        }
        object.__setattr__(self, "pins", pins)
        wrong = [rule for rule in self.pins if ":" not in rule]
        if self.mode not in ("auto", "listed"):
            raise ConfigError(
                Problem("AX135", "plugins.mode", f'expected auto or listed, found "{self.mode}".')
            )
        if wrong:
            raise ConfigError(
                Problem(
                    "AX135",
                    "plugins.pins",
                    f'expected kind:name, found "{wrong[0]}".',
                    "Write nodes:switch.",
                )
            )

    @classmethod
    def in_force(
        cls,
        environment: Mapping[str, str] | None = None,
        folder: str | os.PathLike[str] | None = None,
    ) -> Policy:
        """Return the policy of the environment, over that of a file of settings.

        Args:
            folder: ``axil.toml`` is looked for in it and above, as the command ``axil`` does from
                the current folder; None: nowhere, so that what a program does never depends on
                where it was started. ``AXIL_CONFIG`` names the file either way; set and
                empty: none is read.
        Raises: ConfigError (AX135, AX311).
        """
        given = os.environ if environment is None else environment
        path = given.get("AXIL_CONFIG")
        found = path if path is not None else _nearest(folder) if folder is not None else ""
        stated = cls.from_environment(given)
        return stated.over(cls.from_file(found)) if found else stated

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Policy:
        """Return the policy that environment variables describe; lists are separated by commas.

        ``AXIL_PLUGINS_MODE`` is the mode, ``AXIL_PLUGINS`` what is allowed (and implies mode
        ``listed``), ``AXIL_BLOCK`` what is blocked, ``AXIL_ONLY`` what alone may be used (set and
        empty: only the kernel), ``AXIL_PINS`` the pins (``nodes:switch=axil-control``),
        ``AXIL_HOOKS`` the hook plugins that act, ``AXIL_INDEX`` a site's index. Raises: ConfigError
        (AX135): a value has no meaning.
        """
        given = os.environ if environment is None else environment
        origins: dict[str, str] = {}

        def said(variable: str, setting: str) -> str | None:
            if variable in given:
                origins.setdefault(setting, variable)
            return given.get(variable)

        mode = (said("AXIL_PLUGINS_MODE", "mode") or "").strip().lower()
        allow = said("AXIL_PLUGINS", "allow")
        if not mode and allow is not None:
            mode, origins["mode"] = "listed", "AXIL_PLUGINS"
        if mode not in ("", "auto", "listed"):
            raise ConfigError(
                Problem("AX135", "AXIL_PLUGINS_MODE", f'expected auto or listed, found "{mode}".')
            )
        if not mode:
            origins.pop("mode", None)
        pins: dict[str, str] = {}
        for pin in _words(said("AXIL_PINS", "pins")):
            component, equals, distribution = pin.partition("=")
            if not equals or ":" not in component or not distribution:
                example = "Write nodes:switch=axil-control."
                raise ConfigError(
                    Problem(
                        "AX135",
                        "AXIL_PINS",
                        f'expected kind:name=distribution, found "{pin}".',
                        example,
                    )
                )
            pins[component.strip()] = distribution.strip()
        only = said("AXIL_ONLY", "only")
        return cls(
            mode=cast("Any", mode or "auto"),
            allow=frozenset(_words(allow)),
            block=frozenset(_words(said("AXIL_BLOCK", "block"))),
            pins=pins,
            only=None if only is None else frozenset(_words(only)),
            hooks=tuple(_words(said("AXIL_HOOKS", "hooks"))),
            index=said("AXIL_INDEX", "index") or "",
            origins=origins,
        )

    @classmethod
    def from_file(cls, path: str | os.PathLike[str]) -> Policy:
        """Return the policy in the table ``[plugins]`` of a TOML file; ``index`` is looked up
        beside the file.

        Raises: ConfigError: AX311 the file cannot be read; AX135 a setting that is unknown or has
        no meaning, all at once.
        """
        import tomllib

        name = os.fspath(path)
        try:
            with open(name, "rb") as file:
                data = tomllib.load(file)
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else str(error)
            raise ConfigError(
                Problem(
                    "AX311",
                    name,
                    f"the settings cannot be read: {why}.",
                    "Correct the file, or set AXIL_CONFIG.",
                )
            ) from None
        table: Any = data.get("plugins", {})
        problems = list(_misfits(table, name))
        if problems:
            raise ConfigError(problems)
        known: dict[str, Any] = dict(table)
        for key in ("allow", "block", "only"):
            if key in known:
                known[key] = frozenset(cast("list[str]", known[key]))
        if "hooks" in known:
            known["hooks"] = tuple(cast("list[str]", known["hooks"]))
        if "index" in known:
            known["index"] = os.path.join(os.path.dirname(os.path.abspath(name)), known["index"])
        try:
            return cls(**known, origins=dict.fromkeys(known, name))
        except ConfigError as error:
            raise ConfigError(
                [replace(problem, where=f"{name} {problem.where}") for problem in error.problems]
            ) from None

    def over(self, weaker: Policy) -> Policy:
        """This policy where it says something, else the weaker one; what either blocks is
        blocked.
        """
        taken: dict[str, object] = {
            name: getattr(weaker, name)
            for name in _KEYS
            if name in weaker.origins and name not in self.origins
        }
        taken["block"] = self.block | weaker.block
        if self.block and weaker.block:
            taken["origins"] = {
                **weaker.origins,
                **self.origins,
                "block": f"{weaker.origins['block']} and {self.origins['block']}",
            }
        else:
            taken["origins"] = {**weaker.origins, **self.origins}
        return replace(self, **taken)

    def refuses(self, kind: str, name: str, distribution: str) -> str:
        """Return why the component may not be used; empty: it may."""
        component = f"{kind}:{name}"
        for rule in (component, distribution):
            if rule in self.block:
                return f"the policy blocks {rule}{self._by('block')}"
        if distribution == KERNEL:
            return ""
        if self.only is not None and distribution not in self.only:
            return (
                "the policy admits only "
                f"{format_names(sorted(self.only)) or 'the kernel'}{self._by('only')}"
            )
        if self.mode == "listed" and not {component, distribution} & self.allow:
            listing = f"neither {distribution or 'its plugin'} nor {component} is listed"
            return f"the policy admits only listed plugins, and {listing}{self._by('mode')}"
        return ""

    def _by(self, setting: str) -> str:
        origin = self.origins.get(setting, "")
        return f" ({origin})" if origin else ""

    def as_environment(self) -> dict[str, str]:
        """Return variables that say the same to another process."""
        data = {
            "AXIL_CONFIG": "",
            "AXIL_PLUGINS_MODE": self.mode,
            "AXIL_PLUGINS": ",".join(sorted(self.allow)),
            "AXIL_BLOCK": ",".join(sorted(self.block)),
            "AXIL_PINS": ",".join(
                f"{component}={distribution}"
                for component, distribution in sorted(self.pins.items())
            ),
            "AXIL_HOOKS": ",".join(self.hooks),
            "AXIL_INDEX": self.index,
        }
        return data if self.only is None else {**data, "AXIL_ONLY": ",".join(sorted(self.only))}


def _nearest(folder: str | os.PathLike[str]) -> str:
    """Return the settings of a folder; empty: there are none."""
    try:
        here = os.path.abspath(folder)
    except OSError:  # the current folder is gone
        return ""
    while True:
        path = os.path.join(here, SETTINGS)
        if os.path.isfile(path):
            return path
        above = os.path.dirname(here)
        if above == here:
            return ""
        here = above


def _misfits(table: object, name: str) -> list[Problem]:
    """Return the faults in the shape of a table of settings."""
    if not isinstance(table, Mapping):
        return [Problem("AX135", f"{name} plugins", "expected a table.", "Write [plugins].")]
    problems: list[Problem] = []
    for key, value in cast("Mapping[str, Any]", table).items():
        where = f"{name} plugins.{key}"
        if key not in _KEYS:
            hint = did_you_mean(key, _KEYS) or f"Known here: {format_names(_KEYS)}."
            problems.append(Problem("AX135", where, f'unknown key "{key}".', hint))
        elif key in ("mode", "index"):
            problems += (
                [] if isinstance(value, str) else [Problem("AX135", where, "expected text.")]
            )
        elif key == "pins":
            entries = (
                cast("Mapping[str, Any]", value).values() if isinstance(value, Mapping) else (None,)
            )
            if not all(isinstance(entry, str) for entry in entries):
                problems.append(
                    Problem(
                        "AX135",
                        where,
                        "expected a table of distributions.",
                        'Write, for example: "nodes:switch" = "axil-control".',
                    )
                )
        elif not isinstance(value, list) or not all(
            isinstance(word, str) for word in cast("list[Any]", value)
        ):
            problems.append(Problem("AX135", where, "expected a list of texts."))
    return problems


def _words(text: str | None) -> list[str]:
    return [word.strip() for word in (text or "").split(",") if word.strip()]


def _rule(text: str) -> str:
    """Return a rule in canonical form; ``node:x`` is understood as ``nodes:x``."""
    kind, colon, name = text.partition(":")
    if not colon:
        return canonical_name(text)
    kind = kind if kind in COMPONENT_KINDS else f"{kind}s"
    return f"{kind}:{name}"
