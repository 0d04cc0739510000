"""Laws of releases: URLs, absolute links and a keyword in wheels; who may publish."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
import yaml
from hatchling.metadata.core import ProjectMetadata
from hatchling.plugin.manager import PluginManager
from release import stamp
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
    assert writing == {"build": None, "attest": "write", "publish": "write"}
    assert workflow["jobs"]["publish"]["needs"] == "attest"
    assert "release/stamp.py" in str(workflow["jobs"]["build"])
