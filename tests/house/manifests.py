"""Writes what is made of the code: the manifest of each member and of each template, the page of
groups, hooks and protocols, and the pages and stubs of the doors.

`make manifests` runs it.
"""

from __future__ import annotations

import re
import sys
import tempfile
import tomllib
from pathlib import Path
from types import SimpleNamespace

from tests.internals import internal

from axil.plugin import MANIFEST_FILE, Policy, Registry

manifests, scaffolds = internal("manifests"), internal("scaffold")

ROOT = Path(__file__).resolve().parents[2]
PLACES = ROOT / "plugins/axil-plugins/src/axil_plugins/templates"
SECTION = f"=== src/@package@/{MANIFEST_FILE}\n"
_NAME = "qqvendor-qqthing"
_FILLED = {
    "qqvendor-qqthing": "@dist@",
    "qqvendor_qqthing": "@package@",
    "qqvendor.qqthing": "@name@",
    "Qqthing": "@title@",
    "qqthing": "@word@",
}
"""Replacements in a distribution of that name, the longer first, and the texts before."""


def template_with_manifest(kind: str) -> str:
    """Return a kind's template with the manifest that its classes give."""
    text = (PLACES / f"{kind}.txt").read_text("utf-8")
    without = re.sub(rf"{re.escape(SECTION)}(?:(?!=== ).*\n)*", "", text)
    with tempfile.TemporaryDirectory() as temporary:
        folder = scaffolds.scaffold(_NAME, kind, Path(temporary)).folder
        project = tomllib.loads((folder / "pyproject.toml").read_text("utf-8"))["project"]
        dist = SimpleNamespace(name=_NAME, version=project["version"], requires=None)
        entries = [
            SimpleNamespace(name=name, group=group, value=value, dist=dist)
            for group, table in project["entry-points"].items()
            for name, value in table.items()
        ]
        package = _NAME.replace("-", "_")
        sys.path.insert(0, str(folder / "src"))
        try:
            manifest = manifests.as_text(
                manifests.manifest_of(_NAME, Registry(Policy(), entries), project["description"])
            )
        finally:
            sys.path.remove(str(folder / "src"))
            sys.modules.pop(package, None)
    for filled, place in _FILLED.items():
        manifest = manifest.replace(filled, place)
    return f"{without}{SECTION}{manifest}"


def main() -> int:
    registry = Registry(Policy())
    for file in [
        ROOT / "core/pyproject.toml",
        *sorted(ROOT.glob("plugins/*/pyproject.toml")),
        *sorted(ROOT.glob("contrib/*/pyproject.toml")),
    ]:
        project = tomllib.loads(file.read_text("utf-8"))["project"]
        package = next((file.parent / "src").glob("*/__init__.py"), file).parent
        has_code = package != file.parent
        if has_code and project["name"] not in registry.plugins():
            sys.stderr.write(
                f"{project['name']} is not installed here; its manifest stays as it is\n"
            )
        elif has_code:
            text = manifests.as_text(
                manifests.manifest_of(project["name"], registry, project["description"])
            )
            target = package / MANIFEST_FILE
            if not target.is_file() or target.read_text("utf-8") != text:
                target.write_text(text, "utf-8")
                sys.stdout.write(f"{target.relative_to(ROOT)}\n")
    for kind in scaffolds.TEMPLATES:
        template = PLACES / f"{kind}.txt"
        text = template_with_manifest(kind)
        if template.read_text("utf-8") != text:
            template.write_text(text, "utf-8")
            sys.stdout.write(f"{template.relative_to(ROOT)}\n")
    from tests.house import doors, keywords, providers, reference, stubs, translations

    written = {
        reference.PAGE: reference.page(),
        providers.PAGE: providers.page(),
        **doors.pages(),
        **stubs.stubs(),
        **keywords.keywords(),
        **translations.renewed(),
    }
    for path, text in written.items():
        page = ROOT / path
        if not page.is_file() or page.read_text("utf-8") != text:
            page.write_text(text, "utf-8")
            sys.stdout.write(f"{path}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
