"""The outputs of a build: a lock, a wheel that requires exactly it, a single file, a folder for a
container.
"""

from __future__ import annotations

import hashlib
import re
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from axil_plugins.builds.plan import Plan
from axil_plugins.builds.wheels import Wheel, record_of, write_zip

LOCK: Final = "requirements.lock"

_MAIN: Final = '''"""Runs {workflow}."""

import sys
from pathlib import Path

NAME, WORKFLOW, FUNCTIONS = {name!r}, {workflow!r}, {functions!r}
FLOWS = Path(__file__).parent / "flows"


def target():
    """The workflow: a file, or a graph in Python."""
    place, colon, graph = WORKFLOW.partition(":")
    if colon and not place.endswith(".py"):
        sys.path.insert(0, str(FLOWS))
        return WORKFLOW
    return f"{{FLOWS / place}}{{colon}}{{graph}}"


def ways():
    """The options that it needs."""
    return ["--functions", str(FLOWS / FUNCTIONS), "--allow", "code"] if FUNCTIONS else []


def main():
    """Give what is typed to `axil run`; a build without it takes the arguments as the input."""
    try:
        from axil_cli.main import main as command
    except ImportError:
        output, _ = loaded().invoke(" ".join(sys.argv[1:]))
        print(output)
        return 0
    arguments = sys.argv[1:]
    if arguments[:1] == ["axil"]:
        return command(arguments[1:], program=NAME)
    return command(["run", target(), *ways(), *arguments], program=NAME)


def loaded():
    import axil_files

    graph = axil_files.python_target(target(), folder=str(FLOWS))
    if graph is not None:
        return graph.load()
    return axil_files.load(target(), functions=FLOWS / FUNCTIONS if FUNCTIONS else None)


if __name__ == "__main__":
    sys.exit(main())
'''

_BOOTSTRAP: Final = '''"""Unpacks what this file holds, and runs it.

Native parts cannot be imported from an archive.
"""

import os
import shutil
import sys
import tempfile
import zipfile

NAME, DIGEST, PACKAGE, PYTHON = {name!r}, {digest!r}, {package!r}, {python!r}


def unpacked():
    usual = os.path.join(os.path.expanduser("~"), ".cache", "axil-build")
    base = os.environ.get("AXIL_BUILD_CACHE") or usual
    place = os.path.join(base, NAME + "-" + DIGEST[:16])
    if not os.path.isdir(place):
        os.makedirs(base, mode=0o700, exist_ok=True)
        new = tempfile.mkdtemp(dir=base)
        try:
            with zipfile.ZipFile(sys.argv[0]) as archive:
                for name in archive.namelist():
                    if name.startswith("site/"):
                        path = archive.extract(name, new)
                        if name.startswith("site/bin/"):
                            os.chmod(path, 0o755)
            try:
                os.rename(new, place)
            except OSError:
                if not os.path.isdir(place):  # else somebody else was quicker
                    raise
        finally:
            shutil.rmtree(new, ignore_errors=True)
    return os.path.join(place, "site")


if sys.version_info[:2] != PYTHON:
    message = "%s was built for Python %d.%d; this is %d.%d."
    sys.exit(message % ((NAME,) + PYTHON + sys.version_info[:2]))
# Nothing that happens to be installed here may take part.
OWN = (sys.base_prefix, sys.base_exec_prefix)
rest = [path for path in sys.path if path.startswith(OWN) and "-packages" not in path]
sys.path[:] = [unpacked(), *rest]
from importlib import import_module

sys.exit(import_module(PACKAGE + ".__main__").main())
'''

_DOCKERFILE: Final = """# {name} {version}: {workflow}
# Built from this folder alone: nothing is fetched but the base image. The same files are made each
# time; for the same image, name the base by its digest, and have the times of its layers set:
#   docker buildx build --build-arg BASE=python@sha256:... \\
#     --build-arg SOURCE_DATE_EPOCH=315532800 \\
#     --output type=image,name={name}:{version},rewrite-timestamp=true .
ARG BASE=python:{python}-slim
FROM ${{BASE}} AS install
ENV PYTHONDONTWRITEBYTECODE=1 PYTHONHASHSEED=0
COPY wheels /wheels
COPY {lock} /{lock}
# compiled files name their source by its hash, and not by its time
RUN python -m venv /app \\
 && /app/bin/pip install --no-cache-dir --no-compile --no-index --find-links /wheels \\
        --require-hashes -r /{lock} \\
 && /app/bin/pip uninstall -y pip \\
 && python -m compileall -q --invalidation-mode unchecked-hash /app/lib

FROM ${{BASE}}
COPY --from=install /app /app
USER 10001:10001
WORKDIR /tmp
ENV PATH=/app/bin:$PATH HOME=/tmp USER=axil PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
ENTRYPOINT ["{script}"]
"""


def lock_text(wheels: Sequence[Wheel]) -> str:
    """Return the lock as pip reads it: every distribution with its version and its wheel's hash."""
    return "".join(
        f"{each.name}=={each.version} --hash=sha256:{each.sha256}\n"
        for each in sorted(wheels, key=lambda each: each.name)
    )


def package_of(plan: Plan) -> str:
    """Return the package that holds the workflows."""
    return f"{re.sub(r'[^a-z0-9]+', '_', plan.name)}_flow"


def main_wheel(plan: Plan, entry: Path, wheels: Sequence[Wheel], into: Path) -> Path:
    """Return a wheel with the workflows and a command, that requires the locked versions and no
    others.
    """
    package, stem = package_of(plan), plan.name.replace("-", "_")
    info = f"{stem}-{plan.version}.dist-info"
    requires = "".join(
        f"Requires-Dist: {each.name}=={each.version}\n"
        for each in sorted(wheels, key=lambda each: each.name)
    )
    head = (
        f"Metadata-Version: 2.3\nName: {plan.name}\nVersion: {plan.version}\n"
        f"Summary: {plan.named(entry)}, with exactly what it needs\n"
    )
    workflow = plan.named(entry)
    functions = plan.inside(plan.functions) if plan.functions is not None else ""
    main = _MAIN.format(name=plan.name, workflow=workflow, functions=functions)
    files = {
        f"{package}/__init__.py": f'"""The workflows of {plan.name}."""\n'.encode(),
        f"{package}/__main__.py": main.encode(),
        **{f"{package}/flows/{plan.inside(file)}": file.read_bytes() for file in plan.files},
        f"{info}/METADATA": f"{head}{requires}".encode(),
        f"{info}/WHEEL": (
            b"Wheel-Version: 1.0\nGenerator: axil-build\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        ),
        f"{info}/entry_points.txt": (
            f"[console_scripts]\n{plan.name} = {package}.__main__:main\n"
        ).encode(),
    }
    files[f"{info}/RECORD"] = record_of(files, f"{info}/RECORD")
    return write_zip(into / f"{stem}-{plan.version}-py3-none-any.whl", files)


def single_file(plan: Plan, wheels: Sequence[Path], python: tuple[int, int], into: Path) -> Path:
    """Write one file that holds everything but Python, and unpacks itself on its first run."""
    files: dict[str, bytes] = {}
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                if not name.endswith("/"):
                    files[f"site/{_placed(name)}"] = archive.read(name)
    digest = hashlib.sha256()
    for name, data in sorted(files.items()):
        digest.update(f"{name} {len(data)} ".encode() + data)
    boot = _BOOTSTRAP.format(
        name=plan.name, digest=digest.hexdigest(), package=package_of(plan), python=python
    )
    path = write_zip(
        into / f"{plan.name}.pyz",
        {**files, "__main__.py": boot.encode()},
        before=b"#!/usr/bin/env python3\n",
    )
    path.chmod(0o755)
    return path


def _placed(name: str) -> str:
    """Return where a wheel's file is put, as installers do it in a folder of one's own:
    ``x.data/purelib/a.py`` is ``a.py``, and ``x.data/scripts/a`` is ``bin/a``.
    """
    parts = name.split("/", 2)
    if len(parts) < 3 or not parts[0].endswith(".data"):
        return name
    below = {"scripts": "bin/", "headers": "include/"}.get(parts[1], "")
    return f"{below}{parts[2]}"


def container(
    plan: Plan, entry: Path, wheels: Sequence[Wheel], python: tuple[int, int], into: Path
) -> Path:
    """Write a folder that ``docker build`` takes as it is: wheels, their lock, and a Dockerfile."""
    folder = into / "container"
    (folder / "wheels").mkdir(parents=True, exist_ok=True)
    for each in wheels:
        (folder / "wheels" / each.path.name).write_bytes(each.path.read_bytes())
    (folder / LOCK).write_text(lock_text(wheels), "utf-8")
    (folder / "Dockerfile").write_text(dockerfile(plan, entry, python), "utf-8")
    (folder / ".dockerignore").write_text(f"*\n!wheels\n!{LOCK}\n", "utf-8")
    return folder


def dockerfile(plan: Plan, entry: Path, python: tuple[int, int]) -> str:
    """Return the Dockerfile: two stages, an unprivileged user, no downloads."""
    version = f"{python[0]}.{python[1]}"
    data = {
        "name": plan.name,
        "version": plan.version,
        "workflow": plan.named(entry),
        "python": version,
        "lock": LOCK,
        "script": plan.name,
    }
    return _DOCKERFILE.format(**data)
