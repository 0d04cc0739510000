"""The shape of the checkout: what every member has, and that names agree."""

from __future__ import annotations

import re
import tomllib

import pytest
from tests.house import alone

TOP = (
    "README.md",
    "CONVENTIONS.md",
    "LICENSE",
    "Makefile",
    "pyproject.toml",
    ".gitignore",
    ".ci/run",
    "core/pyproject.toml",
    "contrib/README.md",
    "changelog.d/README.md",
    "docs/index.md",
    "docs/map.md",
    "docs/explanation/names.md",
    "docs/explanation/divergences.md",
    "docs/reference/errors.md",
)


@pytest.mark.parametrize("name", TOP)
def test_a_stranger_finds_what_every_project_has(root, name):
    assert (root / name).is_file()
    assert (root / name).stat().st_size > 0


def test_the_ci_script_can_be_executed(root):
    assert (root / ".ci/run").stat().st_mode & 0o100


def test_every_member_has_a_readme_that_opens_with_its_name(member):
    first = (member.folder / "README.md").read_text("utf-8").splitlines()[0]
    assert first == f"# {member.name}"
    assert member.project["readme"] == "README.md"


def test_every_member_is_typed(member):
    if not member.has_code:
        assert "Typing :: Typed" not in member.project["classifiers"]
    else:
        assert (member.package / "py.typed").is_file()
        assert "Typing :: Typed" in member.project["classifiers"]


def test_every_member_is_checked_by_the_type_checker(root, members):
    settings = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["tool"]["pyright"]
    folders = [str(each.folder.relative_to(root) / "src") for each in members if each.has_code]
    assert sorted(settings["include"]) == sorted(folders)
    assert settings["typeCheckingMode"] == "strict"


def test_every_member_ships_the_licence(root, member):
    assert member.project["license"] == "Apache-2.0"
    assert member.project["license-files"] == ["LICENSE"]
    assert (member.folder / "LICENSE").read_bytes() == (root / "LICENSE").read_bytes()


def test_distribution_folder_and_import_name_agree(root, member):
    expected = "core" if member.name == "axil-core" else member.name
    assert member.folder.name == expected
    if member.has_code:
        folders = {entry.name for entry in (member.folder / "src").iterdir() if entry.is_dir()}
        assert folders - {"__pycache__"} == {member.import_name}
        assert (member.package / "__init__.py").is_file()


def test_every_member_states_its_version_and_its_python(member):
    assert re.fullmatch(r"\d+\.\d+\.\d+", member.project["version"])
    assert member.project["requires-python"] == ">=3.11"
    assert len(member.project["description"]) > 10


def test_every_dependency_has_a_lower_bound(member):
    pyproject = tomllib.loads((member.folder / "pyproject.toml").read_text("utf-8"))
    wanted = [
        *pyproject["build-system"]["requires"],
        *member.project.get("dependencies", []),
        *(
            each
            for extra in member.project.get("optional-dependencies", {}).values()
            for each in extra
        ),
        *(each for group in pyproject.get("dependency-groups", {}).values() for each in group),
    ]
    assert [each for each in wanted if ">=" not in each] == []


def test_no_member_caps_the_kernel(member):
    wanted = member.project.get("dependencies", [])
    kernel = [each for each in wanted if re.match(r"axil-core(?![\w-])", each)]
    assert kernel or member.name == "axil-core"
    assert [each for each in kernel if "<" in each or "==" in each] == []


def test_every_plugin_declares_itself(member):
    declared = member.entry_points.get("axil.plugin", {})
    if member.name == "axil-core" or not member.has_code:
        assert set(declared.values()) <= {member.import_name}
    else:
        assert declared == {member.name: member.import_name}


def test_every_entry_point_leads_into_its_own_distribution(member):
    targets = [value for table in member.entry_points.values() for value in table.values()]
    assert [value for value in targets if re.split(r"[.:]", value)[0] != member.import_name] == []


def test_no_two_members_register_one_name(members):
    seen: dict[tuple[str, str], str] = {}
    for member in members:
        for group, table in member.entry_points.items():
            for name in table:
                assert seen.setdefault((group, name), member.name) == member.name


def test_the_root_installs_the_standard_set_from_the_checkout(root, members):
    project = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["project"]
    standard = next(member for member in members if member.name == "axil")
    by_path = dict(each.split(" @ ") for each in project["dependencies"])
    assert set(by_path) == {
        re.match(r"[\w-]+", each)[0] for each in standard.project["dependencies"]
    }
    folders = {
        member.name: "{root:uri}/" + str(member.folder.relative_to(root)) for member in members
    }
    assert by_path == {name: folders[name] for name in by_path}
    assert "Private :: Do Not Upload" in project["classifiers"]
    # installers of commands look for them in the project that is named, and in no other
    assert project["scripts"] == standard.project["scripts"]


def test_changelog_fragments_say_what_kind_of_change_they_are(root):
    written = tomllib.loads((root / "pyproject.toml").read_text("utf-8"))["tool"]["towncrier"]
    assert written["start_string"] in (root / "CHANGELOG.md").read_text("utf-8")
    kinds = "|".join(kind["directory"] for kind in written["type"])
    folder = root / written["directory"]
    fragments = [file.name for file in folder.iterdir() if file.name != "README.md"]
    assert [
        name for name in fragments if not re.fullmatch(rf"[a-z0-9-]+\.({kinds})\.md", name)
    ] == []


def test_decisions_are_numbered_without_gaps(root):
    numbers = sorted(int(file.name[:4]) for file in (root / "docs/decisions").glob("[0-9]*.md"))
    assert numbers == list(range(1, len(numbers) + 1))


def test_the_environment_of_ray_has_the_members_that_its_tests_need(root):
    """``make ray`` makes one of its own, where nothing else is looked up."""
    text = (root / "Makefile").read_text("utf-8")
    names = re.findall(r"^NEAR_RAY .*axil-,([a-z ]+)\)", text, re.MULTILINE)[0].split()
    wanted, _ = alone.needed("axil-ray", alone.load_members())
    assert wanted - {"axil-core", *(f"axil-{name}" for name in names)} == set()
