"""Imports of Python files: files beside them, and distributions."""

from __future__ import annotations

from axil_files.imports import imports_of


def write(folder, **files):
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return str(folder)


def test_files_beside_a_file_are_followed_and_others_are_not(tmp_path):
    folder = write(
        tmp_path,
        flow="import json\nimport words\nfrom parts.inner import one\n",
        words="from parts import other\n",
        parts__inner="from .other import two\n",
        parts__other="two = 2\n",
        stranger="import nothing\n",
    )
    (tmp_path / "parts/__init__.py").write_text("")
    found = imports_of([f"{folder}/flow.py"], folder)
    names = {file.removeprefix(f"{tmp_path.resolve()}/") for file in found.files}
    assert names == {
        "flow.py",
        "words.py",
        "parts/__init__.py",
        "parts/inner.py",
        "parts/other.py",
    }
    assert found.distributions == {}


def test_an_import_of_a_package_is_that_of_its_distribution(tmp_path):
    folder = write(tmp_path, flow="def later():\n    import pytest.mark\n")
    assert imports_of([f"{folder}/flow.py"], folder).distributions == {
        "pytest": "flow.py:2 pytest.mark"
    }


def test_what_is_imported_for_types_alone_is_left_out(tmp_path):
    folder = write(
        tmp_path,
        flow="from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import pytest\n",
    )
    assert imports_of([f"{folder}/flow.py"], folder).distributions == {}
