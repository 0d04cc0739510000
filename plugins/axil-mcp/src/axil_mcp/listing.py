"""The tools of a server under names that models accept, and a digest that shows changes.

A tool is called ``server__tool`` here. Models' interfaces take letters, digits, ``_`` and ``-``, at
most 64 of them; MCP's names may hold dots and slashes, too. What is refused becomes ``_``; a name
that is too long, or is then no longer the only one, gets eight digits of its hash. The name of a
server holds no ``__``, so tools of two servers are never called the same.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from axil.plugin import did_you_mean, format_names, legible
from axil_mcp.config import Offer
from axil_mcp.errors import ListingRefused
from axil_mcp.texts import clean, cleaned, look_of

LONGEST: Final = 64
_LONGEST_OWN: Final = 256
"""Characters of a name that a server gives a tool."""
_REFUSED: Final = re.compile(r"[^A-Za-z0-9_-]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """One tool, as a server describes it."""

    name: str
    description: str = ""
    input_schema: Mapping[str, Any]
    output_schema: Mapping[str, Any] | None = None
    annotations: Mapping[str, Any] | None = None
    needs: str = ""
    """The features that a client needs to call it, and this one lacks; empty: it can be called."""

    @property
    def digest(self) -> str:
        """A hash of all of it."""
        return _digest([self.name, *self._parts().values()])

    @property
    def parts(self) -> dict[str, str]:
        """Hashes of its parts, by which it is known what changed."""
        return {name: _digest(part) for name, part in self._parts().items()}

    def _parts(self) -> dict[str, Any]:
        return {
            "description": self.description,
            "input_schema": self.input_schema,
            "output_schema": self.output_schema,
            "annotations": self.annotations,
        }


def _digest(value: Any) -> str:
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One tool, as a model sees it."""

    tool: Offered
    name: str
    description: str
    parameters: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """The tools of a server that are offered, and their digest."""

    server: str
    tools: tuple[Shown, ...]
    digest: str
    """``sha256:`` and 64 digits; it does not depend on the order."""

    @property
    def digests(self) -> dict[str, str]:
        """Of each tool, by its own name."""
        return {shown.tool.name: shown.tool.digest for shown in self.tools}

    @property
    def parts(self) -> dict[str, dict[str, str]]:
        """The hashes of each tool's parts, by its own name."""
        return {shown.tool.name: shown.tool.parts for shown in self.tools}


def chosen(server: str, tools: Sequence[Offered], offer: Offer) -> Listing:
    """Return those of ``tools`` that are offered.

    Raises: ListingRefused: AX923: two tools have one name, there are too many, or one that is to be
    offered is not there; AX922: the digest is not the expected one.
    """
    where = f'MCP server "{server}"'
    twice = [name for name, count in Counter(tool.name for tool in tools).items() if count > 1]
    if twice:
        raise ListingRefused(
            "AX923",
            f"several tools are called {clean(twice[0], 100)!r}.",
            "Report it to the server's owner.",
            where,
        )
    known = {tool.name for tool in tools}
    for pattern in offer.allow:
        if pattern not in known and not any(sign in pattern for sign in "*?["):
            message = f'the tool "{pattern}" is allowed, and the server has none of this name.'
            names = format_names([clean(name, 100) for name in sorted(known)], 20)
            hint = did_you_mean(pattern, known) or f"It has {names or 'no tools'}."
            raise ListingRefused("AX923", message, hint, where)
        needs = next((tool.needs for tool in tools if tool.name == pattern), "")
        if needs:
            message = f'the tool "{pattern}" is allowed, and it can only be called with {needs}.'
            raise ListingRefused("AX923", message, "Allow other tools.", where)
    taken = [tool for tool in tools if offer.takes(tool.name) and not tool.needs]
    if len(taken) > offer.max_tools:
        message = f"the server offers {len(taken)} tools, more than {offer.max_tools}."
        raise ListingRefused("AX923", message, "Choose some with allow, or raise max_tools.", where)
    if fault := _odd_name(taken):
        raise ListingRefused("AX923", fault, "Report it to the server's owner.", where)
    digest = digest_of(taken)
    if offer.expect and offer.expect.removeprefix("sha256:") != digest.removeprefix("sha256:"):
        message = (
            f"its tools are not those that were expected: found {digest}, expected {offer.expect}."
        )
        raise ListingRefused(
            "AX922",
            message,
            "Check them (axil mcp tools); if they are right, put the new digest into expect.",
            where,
        )
    names = names_of(server, [tool.name for tool in tools])
    shown = tuple(
        Shown(
            tool=tool,
            name=names[tool.name],
            description=clean(tool.description, offer.description_limit),
            parameters={"type": "object", "properties": {}, **cleaned(tool.input_schema)},
        )
        for tool in taken
    )
    return Listing(server=server, tools=shown, digest=digest)


def _odd_name(tools: Sequence[Offered]) -> str:
    """Return why the name of a tool deceives; empty: none does."""
    looks: dict[str, str] = {}
    for tool in tools:
        name = legible(tool.name.replace("\n", "\x0a").replace("\t", "\x09"))
        if not tool.name or len(tool.name) > _LONGEST_OWN:
            return f"the name of a tool has {len(tool.name)} characters: {name[:100]!r}."
        if name != tool.name or not tool.name.isprintable():
            return f"the name of a tool has characters that are not shown: {tool.name!a}."
        other = looks.setdefault(look_of(tool.name), tool.name)
        if other != tool.name:
            return f"the names of two tools look alike: {other!a} and {tool.name!a}."
    return ""


def digest_of(tools: Sequence[Offered]) -> str:
    """Return one digest of several tools, in whatever order."""
    joined = "\n".join(sorted(tool.digest for tool in tools))
    return "sha256:" + hashlib.sha256(joined.encode()).hexdigest()


def names_of(server: str, tools: Sequence[str]) -> dict[str, str]:
    """Return a name for each tool that models' interfaces take, and that no other tool has.

    >>> for tool, name in names_of("files", ["read", "read.all", "read/all"]).items():
    ...     print(tool, name)
    read files__read
    read.all files__read_all_8fb73bbb
    read/all files__read_all_4a2b2cdf
    """
    plain = {tool: f"{server}__{_REFUSED.sub('_', tool)}" for tool in tools}
    often = Counter(plain.values())
    return {
        tool: name
        if len(name) <= LONGEST and tool and (often[name] == 1 or name == f"{server}__{tool}")
        else _hashed(name, tool)
        for tool, name in plain.items()
    }


def _hashed(name: str, tool: str) -> str:
    digest = hashlib.sha256(tool.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{name[: LONGEST - 9]}_{digest[:8]}"


def drift(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, Any]:
    """Return the tools that were added, removed and changed, by the hashes of their parts; and of
    those that changed the parts.

    >>> drift({"a": {"x": "1"}, "b": {"x": "1", "y": "1"}}, {"b": {"x": "2", "y": "1"}, "c": {}})
    {'added': ['c'], 'removed': ['a'], 'changed': ['b'], 'parts': {'b': ['x']}}
    """
    changed = sorted(name for name in before if name in after and before[name] != after[name])
    return {
        "added": sorted(set(after) - set(before)),
        "removed": sorted(set(before) - set(after)),
        "changed": changed,
        "parts": {name: _changed(before[name], after[name]) for name in changed},
    }


def _changed(before: Any, after: Mapping[str, str]) -> list[str]:
    """Return the parts that changed; of a run that was begun long ago it is not known."""
    if not isinstance(before, Mapping):
        return []
    known = cast("Mapping[str, str]", before)
    return [name for name in after if known.get(name) != after[name]]


def difference(before: Offered, after: Offered | None) -> str:
    """Return what a server changed of a tool, in words."""
    if after is None:
        return "it is gone"
    said: list[str] = []
    for name in _changed(before.parts, after.parts):
        was, now = (clean(_text(getattr(each, name)), 300) for each in (before, after))
        said.append(f"its {name.replace('_', ' ')} was {was} and is {now}")
    return "; ".join(said)


def _text(part: Any) -> str:
    return json.dumps(part, ensure_ascii=False, sort_keys=True)
