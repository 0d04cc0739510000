"""A member's README has every setting of its components, every shorthand, and its errors."""

from __future__ import annotations

import importlib
import re
import tomllib
from functools import cache
from typing import Any

from tests.house.checkout import ROOT, Member, all_members, text_of

HEADING = re.compile(r"^(#+ [^\n]*)\n(.*?)(?=^#|\Z)", re.MULTILINE | re.DOTALL)
ROW = re.compile(r"^\| (`[^|]*?) *\|", re.MULTILINE)
CODE = re.compile(r"`([\w.-]+)`")
ERROR = re.compile(r"AX\d{3}")
ELSEWHERE = re.compile(r"README\.md#")
"""A paragraph with such a link names settings that another README describes."""
LIKE_AN_AGENT = {"dynamic_agent": "agent", "agent_switch": "agent"}
"""Components that take an agent's settings, which have one table."""
INSTALL = re.compile(r"pip install ((?:[^\s`#-][^\s`#]*)(?: [^\s`#]+)*)")
NAME = re.compile(r"[\w.-]+")
OF_A_MODEL = {"provider", "name", "base_url", "api_key"}
"""Settings of an agent that stand for those of its model."""


def sections(member: Member) -> list[tuple[str, str]]:
    """Return the headings of a README with the texts under them."""
    return HEADING.findall(text_of(member.folder / "README.md"))


def rows(text: str) -> set[str]:
    """Return the names in the first columns of a text's tables, and those that are described in
    another README.
    """
    named = [*ROW.findall(text), *(each for each in text.split("\n\n") if ELSEWHERE.search(each))]
    return {name for part in named for name in re.findall(r"`(\w+)`", part)}


def components(member: Member) -> dict[str, Any]:
    """Return the components of a member that have settings, by name."""
    found = {}
    for group, table in member.entry_points.items():
        for name, value in table.items() if group != "axil.plugin" else ():
            module, _, attribute = value.partition(":")
            component = getattr(importlib.import_module(module), attribute or name, None)
            if isinstance(component, type):
                found[name] = component
    return found


def settings_of(component: type) -> set[str]:
    config = getattr(component, "Config", None)
    return set(config.model_fields) if config else set()


def test_every_setting_is_described_and_unknown_ones_are_refused(member):
    configs = {name: getattr(each, "Config", None) for name, each in components(member).items()}
    assert [
        name
        for name, config in configs.items()
        if config and config.model_config.get("extra") != "forbid"
    ] == []
    assert [
        f"{name}.{field}"
        for name, config in configs.items()
        for field, info in (config.model_fields if config else {}).items()
        if not info.description
    ] == []


def test_every_setting_is_in_a_table_of_the_readme(member):
    names = set(components(member))
    missing = {}
    for name, component in components(member).items():
        texts = [
            text
            for heading, text in sections(member)
            if {name, LIKE_AN_AGENT.get(name)} & (named := set(CODE.findall(heading)))
            or not names & named
        ]
        left = settings_of(component) - rows("\n".join(texts))
        if member.name == "axil-agent":
            left -= OF_A_MODEL
        if left:
            missing[name] = left
    assert missing == {}


def test_errors_that_a_readme_explains_are_raised(member):
    used = {each for file in member.package.rglob("*.py") for each in ERROR.findall(text_of(file))}
    explained = re.findall(r"^\| (AX\d{3}) ", text_of(member.folder / "README.md"), re.MULTILINE)
    assert set(explained) - used == set()


def test_every_shorthand_is_in_a_table_of_the_readme(member):
    shorthands = set(member.entry_points.get("axil.shorthands", {}))
    assert shorthands - rows(text_of(member.folder / "README.md")) == set()


@cache
def usual() -> frozenset[str]:
    """Return the members that `pip install .` installs in a checkout."""
    project = tomllib.loads(text_of(ROOT / "pyproject.toml"))["project"]
    return frozenset(NAME.match(each)[0] for each in project["dependencies"])


@cache
def needed_by(folder: str) -> frozenset[str]:
    """Return the members that one of them needs, itself included."""
    members = {each.name: each for each in all_members()}
    [member] = [each for each in members.values() if each.folder == ROOT / folder]
    names = {NAME.match(each)[0] for each in member.project.get("dependencies", [])}
    found = {member.name}
    for name in names & set(members):
        found |= needed_by(members[name].folder.relative_to(ROOT).as_posix())
    return frozenset(found)


def installed_by(command: str) -> tuple[set[str], set[str]]:
    """Return the members that a command of pip installs from the checkout, and those that pip looks
    up in an index: their names are not ours there.
    """
    words = [word.strip('"') for word in command.split()]
    places = {word.partition("[")[0][2:] for word in words if word.startswith("./")}
    places = {each for each in places if each.startswith(("core", "plugins/", "contrib/"))}
    got = {each.name for each in all_members() if each.folder in {ROOT / each for each in places}}
    got |= usual() if "." in words else set()
    wanted = {name for place in places for name in needed_by(place)}
    named = {NAME.match(word)[0] for word in words if word[0] != "."}
    return got, (wanted | named & {each.name for each in all_members()}) - got


def test_no_page_installs_the_project_by_a_name_that_may_be_anothers(pages):
    assert [
        f"{page.relative_to(ROOT)}: {command}: {found}"
        for page in pages
        for command in INSTALL.findall(text_of(page))
        if (found := installed_by(command)[1])
    ] == []


def test_a_readme_says_how_to_install_its_member_from_the_checkout(member):
    commands = INSTALL.findall(text_of(member.folder / "README.md"))
    found = set().union(*(installed_by(command)[0] for command in commands))
    assert member.name in found or (member.name == "axil" and usual() <= found)
