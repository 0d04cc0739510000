"""``pylock.toml`` of a lock: its distributions for installers, with addresses and hashes.

What a lock says of an installed distribution is not enough to install it: the file that it came
from is in an index. pip is asked for that, for this platform and with the index that it is set up
with; it installs nothing.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, Final, cast
from urllib.parse import unquote, urlsplit

from axil import ConfigError, Problem
from axil.plugin import canonical_name

VERSION: Final = "1.0"
"""The version of the format."""
_ASKING: Final = (
    *("-P", "-m", "pip", "install", "--dry-run", "--ignore-installed", "--no-deps", "--quiet"),
    *("--only-binary", ":all:", "--disable-pip-version-check", "--report", "-"),
)


def pylock_of(distributions: Mapping[str, Mapping[str, Any]], place: str) -> str:
    """Return the text of a ``pylock.toml`` for the distributions of a lock.

    An editable one is a folder, ``source`` of what the lock says of it. One that came from no
    index, by ``direct``, is not asked for in one: who has its name there may be somebody else.

    Raises: ConfigError (AX739): pip is not there, or does not find a distribution.
    """
    found = {
        name: _given(name, each["direct"], place)
        for name, each in distributions.items()
        if each.get("direct") and not each["source"]
    }
    wanted = [
        f"{name}=={each['version']}"
        for name, each in distributions.items()
        if not each["source"] and name not in found
    ]
    found.update(_wheels(wanted, place) if wanted else ())
    lines = [f'lock-version = "{VERSION}"', 'created-by = "axil lock"', ""]
    for name, each in distributions.items():
        lines += ["[[packages]]", f"name = {json.dumps(name)}"]
        if each["source"]:
            folder = json.dumps(each["source"], ensure_ascii=False)
            lines += [f"directory = {{ path = {folder}, editable = true }}", ""]
            continue
        lines += [f"version = {json.dumps(each['version'])}", f"wheels = [{found[name]}]", ""]
    return "\n".join(lines)


def _wheels(wanted: Sequence[str], place: str) -> Iterator[tuple[str, str]]:
    """Yield the name of each distribution and its wheel, as TOML."""
    done = subprocess.run(
        [sys.executable, *_ASKING, *wanted], capture_output=True, text=True, check=False
    )
    if done.returncode:
        why = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        message = f"pip does not find the distributions: {why.removeprefix('ERROR: ')}."
        hint = "pip has to be installed beside axil, and set up with an index that has them."
        raise ConfigError(Problem("AX739", place, message, hint))
    for each in cast("list[dict[str, Any]]", json.loads(done.stdout)["install"]):
        source, url = each["download_info"], str(each["download_info"]["url"])
        digest = str(source["archive_info"]["hashes"]["sha256"])
        yield canonical_name(each["metadata"]["name"]), _wheel(url, digest)


def _given(name: str, direct: Mapping[str, Any], place: str) -> str:
    """Return the wheel that a distribution came from, as TOML.

    Raises: ConfigError (AX739): it came from something else, or its hash is not known.
    """
    url = str(direct.get("url", ""))
    digest = direct.get("archive_info", {}).get("hashes", {}).get("sha256", "")
    if not urlsplit(url).path.endswith(".whl") or not digest:
        message = f"{name} came from no index, and not from a wheel whose hash is known."
        hint = f"Install {name} from a wheel, or in place."
        raise ConfigError(Problem("AX739", place, message, hint))
    return _wheel(url, str(digest))


def _wheel(url: str, digest: str) -> str:
    file = PurePosixPath(unquote(urlsplit(url).path)).name
    parts = (
        ("name", json.dumps(file)),
        ("url", json.dumps(url)),
        ("hashes", f"{{ sha256 = {json.dumps(digest)} }}"),
    )
    toml = ", ".join(f"{key} = {value}" for key, value in parts)
    return f"{{ {toml} }}"
