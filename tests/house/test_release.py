"""Laws of releases: URLs, absolute links and a keyword in wheels; who may publish."""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from pathlib import Path

import pytest
import yaml
from hatchling.metadata.core import ProjectMetadata
from hatchling.plugin.manager import PluginManager
from release import stamp, wheelhouse
from tests.house.checkout import text_of

URL = "https://example.org/axil/axil"
RELATIVE = re.compile(r"\]\((?!#)(?![a-z]+:)[^)]+\)")


def test_every_link_of_every_readme_is_absolute_in_a_wheel_and_leads_somewhere(member, root):
    text = stamp.with_links(
        (member.folder / "README.md").read_text("utf-8"), member.folder, URL, "v1"
    )
    outside_of_code = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    assert RELATIVE.findall(outside_of_code) == []
    places = re.findall(rf"\({URL}/(?:blob|tree|raw)/v1/([^)#]+)", text)
    assert [place for place in places if not (root / place).exists()] == []


def test_the_metadata_of_a_stamped_member_has_its_urls(tmp_path, root):
    for name in ("core", "plugins/axil-plugins"):
        shutil.copytree(root / name, tmp_path / name, ignore=shutil.ignore_patterns("src", "tests"))
    for page in ("docs/how-to", "docs/reference"):
        shutil.copytree(root / page, tmp_path / page)
    for name in ("core", "plugins/axil-plugins"):
        folder = tmp_path / name
        (folder / "README.md").write_text("[The kit](../../docs/reference/kit.md#laws)\n", "utf-8")
    (tmp_path / "core/README.md").write_text(
        "![a graph](../docs/reference/kit.md) [x](#x)\n", "utf-8"
    )
    stamp.stamp(URL, "v1", tmp_path)
    core = metadata(tmp_path / "plugins/axil-plugins")
    assert core.urls["Source"] == f"{URL}/tree/v1/plugins/axil-plugins"
    assert core.urls["Homepage"] == URL
    assert core.readme == f"[The kit]({URL}/blob/v1/docs/reference/kit.md#laws)\n"
    assert metadata(tmp_path / "core").readme == (
        f"![a graph]({URL}/raw/v1/docs/reference/kit.md) [x](#x)\n"
    )
    with pytest.raises(ValueError, match="already"):
        stamp.stamp(URL, "v2", tmp_path)


def metadata(folder: Path) -> object:
    return ProjectMetadata(str(folder), PluginManager()).core


def test_a_link_that_leads_nowhere_stops_a_release(root):
    with pytest.raises(ValueError, match=r"gone\.md leads nowhere"):
        stamp.with_links("see [it](gone.md)", root / "core", URL, "v1")
    code = "```\n[it](gone.md)\n```\n"
    assert stamp.with_links(code, root / "core", URL, "v1") == code


def test_the_readme_of_a_wheel_installs_by_name(member, members):
    text = stamp.with_names(text_of(member.folder / "README.md"), member.folder)
    found = " ".join(re.findall(r"pip install ([^\n#`]*)", text)).replace('"', "").split()
    names = {re.sub(r"\[.*", "", word) for word in found}
    assert member.name in names
    assert names <= {each.name for each in members}


def test_plugins_are_found_by_one_keyword(member):
    if member.folder.parent.name == "plugins" and member.has_code:
        assert "axil-plugin" in member.project["keywords"]


def test_only_the_job_that_publishes_may_publish(root):
    workflow = yaml.safe_load((root / ".github/workflows/release.yml").read_text("utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    writing = {
        name: job.get("permissions", {}).get("id-token") for name, job in workflow["jobs"].items()
    }
    assert writing == {"build": None, "try": None, "attest": "write", "publish": "write"}
    assert workflow["jobs"]["publish"]["needs"] == "attest"
    assert workflow["jobs"]["attest"]["needs"] == "try"
    assert "release/stamp.py" in str(workflow["jobs"]["build"])
    versions = workflow["jobs"]["try"]["strategy"]["matrix"]["python"]
    assert tuple(versions) == wheelhouse.VERSIONS


def test_a_release_has_one_version_and_its_tag_names_it():
    (version,) = {
        tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]["version"]
        for folder in wheelhouse.published().values()
    }
    wheelhouse.check_versions(f"v{version}")
    with pytest.raises(wheelhouse.Fault, match=rf"v99\.0, but there are axil-core {version}, "):
        wheelhouse.check_versions("v99.0")


def test_a_release_publishes_every_member_but_examples_of_plugins(members):
    left = {member.name for member in members} - wheelhouse.published().keys()
    assert all(name.startswith("fern-") for name in left)


def test_wheels_are_the_same_when_they_are_built_again(tmp_path, monkeypatch, capsys):
    chosen = {name: wheelhouse.published()[name] for name in ("axil", "axil-otel")}
    monkeypatch.setattr(wheelhouse, "published", lambda: chosen)
    monkeypatch.setattr(wheelhouse, "BESIDE", tmp_path / "beside")
    wheelhouse.build((), tmp_path / "dist")
    sums = (tmp_path / "beside/SHA256SUMS").read_text("utf-8").splitlines()
    assert sorted(line.split("  ")[1] for line in sums) == sorted(
        file.name for file in (tmp_path / "dist").iterdir()
    )
    assert len(sums) == 4
    digests = iter([{"a": "1"}, {"a": "2"}])
    monkeypatch.setattr(wheelhouse, "digests", lambda _: next(digests))
    with pytest.raises(wheelhouse.Fault, match=r"differs: a"):
        wheelhouse.build((), tmp_path / "dist")


def test_what_is_required_names_its_licence_and_asks_no_more_than_ours(capsys, monkeypatch):
    wheelhouse.licences()
    assert "pydantic: MIT\n" in capsys.readouterr().out
    monkeypatch.setattr(wheelhouse, "foreign", lambda: {"pydantic", "gone"})
    with pytest.raises(wheelhouse.Fault, match="gone: not said"):
        wheelhouse.licences()
    for text in ("GPL-3.0-only", "AGPL-3.0", "GNU Affero General Public License", "BUSL-1.1"):
        assert wheelhouse.REFUSED.search(text)
    assert not wheelhouse.REFUSED.search("LGPL-3.0-only")


def test_bills_need_a_program_that_is_named_where_it_is_missing(monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(wheelhouse, "_wheels", lambda folder: {})
    assert wheelhouse.main(["bills"]) == 1
    assert "Run pip install cyclonedx-bom." in capsys.readouterr().err


def test_wheels_of_ours_are_passed_by_path_with_all_that_they_require():
    wheels = {name: Path(name) for name in wheelhouse.published()}
    assert wheelhouse.required_wheels("axil-otel", wheels)[0] == Path("axil-otel")
    assert Path("axil-core") in wheelhouse.required_wheels("axil-otel", wheels)
    assert Path("axil-serve") not in wheelhouse.required_wheels("axil", wheels)


def test_the_image_of_the_usual_set_fetches_nothing_and_has_no_rights(root, members):
    text = (root / "release/Dockerfile").read_text("utf-8")
    code = re.sub(r"^#.*\n|\\\n", "", text, flags=re.MULTILINE)
    steps = [tuple(line.split(None, 1)) for line in code.splitlines() if line]
    assert [word for word, _ in steps] == [
        *("ARG", "FROM", "ENV", "COPY", "RUN"),
        *("FROM", "COPY", "USER", "WORKDIR", "ENV", "ENTRYPOINT", "CMD"),
    ]
    said = dict(steps)  # of several the last
    standard = next(member for member in members if member.name == "axil")
    assert said["ENTRYPOINT"] == json.dumps(list(standard.project["scripts"]))
    assert said["USER"].split(":")[0].isdigit()
    assert "--no-index --find-links /wheels axil" in said["RUN"]
    [base] = re.findall(r"^BASE=python:(3\.\d+)-slim$", said["ARG"], flags=re.MULTILINE)
    assert base in wheelhouse.VERSIONS
    [wheel] = re.findall(r"dist/(axil-\S+)\.whl", text)
    assert wheel == f"axil-{standard.project['version']}-py3-none-any"
