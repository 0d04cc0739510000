"""Writes what is made of the code: each member's manifest, and the page of groups, hooks and protocols. `make manifests`."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

from axil.manifest import FILE
from axil.registry import Policy, Registry
from axil_plugins.manifests import as_text, manifest_of

ROOT = Path(__file__).resolve().parents[2]


def main() -> int:
    registry = Registry(Policy())
    for file in [
        ROOT / "core/pyproject.toml",
        *sorted(ROOT.glob("plugins/*/pyproject.toml")),
        *sorted(ROOT.glob("contrib/*/pyproject.toml")),
    ]:
        project = tomllib.loads(file.read_text("utf-8"))["project"]
        package = file.parent / "src" / project["name"].replace("-", "_")
        if package.is_dir() and project["name"] not in registry.plugins():
            sys.stderr.write(f"{project['name']} is not installed here; its manifest stays as it is\n")
        elif package.is_dir():
            text = as_text(manifest_of(project["name"], registry, project["description"]))
            target = package / FILE
            if not target.is_file() or target.read_text("utf-8") != text:
                target.write_text(text, "utf-8")
                sys.stdout.write(f"{target.relative_to(ROOT)}\n")
    sys.path.insert(0, str(Path(__file__).parent))
    import reference

    page = ROOT / reference.PAGE
    if not page.is_file() or page.read_text("utf-8") != reference.page():
        page.write_text(reference.page(), "utf-8")
        sys.stdout.write(f"{reference.PAGE}\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
