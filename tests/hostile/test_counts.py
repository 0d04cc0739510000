"""The number of hostile files, and their kinds: `docs/explanation/security.md` says so."""

from __future__ import annotations

import re
from pathlib import Path

from . import (
    test_beside,
    test_bounds,
    test_joints,
    test_manifests,
    test_paths,
    test_time,
    test_widening,
)
from .secret_files import FILES

settings = len(test_paths.READS) + len(test_paths.WRITES)
spellings = len(test_paths.MUST) + len(test_paths.MAY)
CORPUS = [*(Path(__file__).parents[1] / "fuzz/corpus").iterdir()]
KINDS: dict[str, int] = {
    "paths that lead out, in each setting": settings * len(test_paths.MUST),
    "paths that are odd, in each setting": settings * len(test_paths.MAY),
    "folders for writing that are links": 2 * len(test_paths.WRITES),
    "wishes in places that could have more": len(test_widening.PLACES) * len(test_widening.WANTED),
    "words of leave in a file": 20,
    "inner addresses": len(test_widening.INNER),
    "programs": len(test_widening.PROGRAMS),
    "imports": 2 * len(test_widening.IMPORTS),
    "variables of the environment": 5 * len(test_widening.VARIABLES),
    "secrets that are wanted": sum("environment" in each.promise for each in FILES),
    "secrets that are to be said": sum("--set" in each.promise for each in FILES),
    "variables without bound": sum("size" in each.promise for each in FILES),
    "sizes of YAML, TOML and JSON": sum(
        any(word in name for word in ("YAML", "TOML", "aliases", "merges", "brackets", "number"))
        for name in test_bounds.FILES
    ),
    "patterns without end": 2 * len(test_bounds.REGEX),
    "work without end, in memory": len(test_bounds.FILES) - 2 * len(test_bounds.REGEX),
    "work without end, in time": len(test_time.KINDS),
    "datasets": len(test_beside.DATASETS),
    "locks": len(test_beside.LOCKS),
    "drafts": len(test_beside.DRAFTS),
    "recordings": len(test_beside.RECORDINGS),
    "metadata of wheels": len(test_manifests.METADATA),
    "entry points": len(test_manifests.ENTRY_POINTS),
    "manifests": len(test_manifests.MANIFESTS),
    "drafts and edited files that could have more": 2 * (len(test_widening.WANTED) + 1),
    "words of forms": len(test_joints.FORMS),
    "parts of messages that name files": 2 * len(test_joints.PARTS),
    "judges that want secrets": len(test_joints.JUDGES),
    "values that are tried": len(test_joints.TRIES),
    "files that were found by mutants": len(CORPUS),
}
"""Hostile files by kind, of the tests beside this one."""


def test_there_are_200_hostile_files_of_20_kinds_and_the_page_says_how_many():
    assert all(KINDS.values())
    assert sum(KINDS.values()) >= 200
    assert len(KINDS) >= 20
    page = (Path(__file__).parents[2] / "docs/explanation/security.md").read_text("utf-8")
    found = re.search(r"([\d,]+) hostile files of (\d+) kinds", page)
    assert found is not None
    whole = f"{sum(KINDS.values()):,} hostile files of {len(KINDS)} kinds"
    assert found[0] == whole, f"write: {whole}"
