"""Laws of the commands that messages give: they fit the environment and the kernel's origin."""

from __future__ import annotations

import json
import shlex
import sys
import zipfile
from importlib import metadata

import pytest

from axil.plugin import install_advice


class Kernel:
    """The metadata of a kernel that was installed from somewhere."""

    def __init__(self, url: str = "") -> None:
        self.url = url

    def read_text(self, name: str) -> str | None:
        return json.dumps({"url": self.url}) if self.url else None


class Only:
    """An environment that has a kernel, and of others what is named."""

    def __init__(self, url: str, *others: str) -> None:
        self.names = {"axil-core", *others}
        self.kernel = Kernel(url)

    def __call__(self, name: str) -> Kernel:
        if name not in self.names:
            raise metadata.PackageNotFoundError(name)
        return self.kernel


@pytest.fixture
def prefix(tmp_path, monkeypatch):
    """An environment that nothing has marked, with a kernel from an index."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "env"))
    monkeypatch.setattr(metadata, "distribution", lambda name: Kernel())
    (tmp_path / "env").mkdir()
    return tmp_path / "env"


@pytest.fixture
def checkout(tmp_path, monkeypatch, prefix):
    """A checkout with a plugin and one of contrib, which the kernel is installed from."""
    root = tmp_path / "src"
    for folder in ("core", "plugins/axil-chroma", "contrib/axil-gemini"):
        (root / folder).mkdir(parents=True)
        (root / folder / "pyproject.toml").touch()
    url = (root / "core").as_uri()
    monkeypatch.setattr(metadata, "distribution", lambda name: Kernel(url))
    return root


def test_a_published_kernel_has_published_plugins(prefix):
    assert install_advice("axil-chroma") == "pip install axil-chroma"
    wanted = install_advice("axil-chroma[sentence-transformers]", "acme>=1", how="upgrade")
    assert wanted == 'pip install --upgrade "axil-chroma[sentence-transformers]" "acme>=1"'


@pytest.mark.parametrize(
    ("file", "text", "how", "command"),
    [
        ("pyvenv.cfg", "home = /usr\nuv = 0.9.1\n", "install", "uv pip install acme"),
        ("pyvenv.cfg", "uv = 0.9.1\n", "reinstall", "uv pip install --reinstall acme"),
        ("pyvenv.cfg", "home = /usr/uv\n", "reinstall", "pip install --force-reinstall acme"),
        ("pipx_metadata.json", "{}", "install", "pipx inject env acme"),
        ("pipx_metadata.json", "{}", "upgrade", "pipx runpip env install --upgrade acme"),
        ("uv-receipt.toml", "", "install", "uv tool install env --with acme"),
    ],
)
def test_the_command_is_that_of_the_environments_installer(prefix, file, text, how, command):
    (prefix / file).write_text(text, "utf-8")
    assert install_advice("acme", how=how) == command


def test_a_tool_of_uv_gets_each_requirement_by_an_option_of_its_own(prefix):
    (prefix / "uv-receipt.toml").touch()
    assert install_advice("a", "b") == "uv tool install env --with a --with b"


@pytest.mark.parametrize(
    "text", ["$(touch x)", "`touch x`", '"; touch x; "', "$HOME", "a\nb", "\\"]
)
def test_a_shell_runs_nothing_of_what_is_wanted(prefix, text):
    command = install_advice(f"acme>=1{text}")
    assert shlex.split(command) == ["pip", "install", f"acme>=1{text}"]
    assert "'" in command


def test_in_a_checkout_the_projects_own_come_from_it(checkout, monkeypatch):
    monkeypatch.chdir(checkout)
    assert install_advice("axil-core") == "pip install ./core"
    assert install_advice("Axil_Chroma>=0.1") == "pip install ./plugins/axil-chroma"
    assert install_advice("axil-chroma[x]", "acme") == (
        'pip install "./plugins/axil-chroma[x]" acme'
    )
    monkeypatch.chdir(checkout.parent.parent)
    assert install_advice("axil-gemini").endswith("/src/contrib/axil-gemini")


def test_what_a_member_of_a_checkout_needs_and_lacks_comes_from_the_checkout(checkout, monkeypatch):
    monkeypatch.setattr(metadata, "distribution", Only((checkout / "core").as_uri(), "axil-here"))
    monkeypatch.chdir(checkout)
    for folder, needed in {
        "plugins/axil-chroma": '"axil-core>=0.1", "acme>=1"',
        "contrib/axil-gemini": '"axil-chroma[x]>=0.1", "axil-here"',
        "plugins/axil-draw": '"Axil_Gemini>=0.1", "axil-chroma"',
    }.items():
        (checkout / folder).mkdir(exist_ok=True)
        text = f'[project]\nname = "{folder[8:]}"\ndependencies = [{needed}]\n'
        (checkout / folder / "pyproject.toml").write_text(text, "utf-8")
    assert install_advice("axil-draw") == (
        "pip install ./plugins/axil-draw ./contrib/axil-gemini ./plugins/axil-chroma"
    )


@pytest.mark.parametrize("wanted", ["axil-far", "axil-chroma==0.0.9"])
def test_a_name_that_the_origin_does_not_have_is_not_looked_up_anywhere(checkout, wanted):
    assert install_advice("acme", wanted) == f"get {wanted} from where you got axil-core"


def test_a_kernel_from_a_repository_says_nothing_of_names_in_an_index(monkeypatch, prefix):
    monkeypatch.setattr(metadata, "distribution", lambda name: Kernel("https://example.org/a.git"))
    assert install_advice("axil-chroma") == "get axil-chroma from where you got axil-core"
    assert install_advice("acme") == "pip install acme"


def test_beside_a_wheel_the_others_are_wheels(tmp_path, monkeypatch, prefix):
    for name in ("axil_core", "axil_chroma", "axil_evals"):
        with zipfile.ZipFile(tmp_path / f"{name}-0.1.0-py3-none-any.whl", "w") as wheel:
            needed = "Requires-Dist: axil-chroma>=0.1\n" if name == "axil_evals" else ""
            needed += 'Requires-Dist: axil-far; extra == "far"\n'
            wheel.writestr(f"{name}-0.1.0.dist-info/METADATA", f"Name: {name}\n{needed}\n")
    url = (tmp_path / "axil_core-0.1.0-py3-none-any.whl").as_uri()
    monkeypatch.setattr(metadata, "distribution", lambda name: Kernel(url))
    monkeypatch.chdir(tmp_path)
    found = install_advice("axil-chroma[x]")
    assert found == 'pip install "./axil_chroma-0.1.0-py3-none-any.whl[x]"'
    assert install_advice("axil-far") == "get axil-far from where you got axil-core"
    monkeypatch.setattr(metadata, "distribution", Only(url))
    wheels = [f"./axil_{name}-0.1.0-py3-none-any.whl" for name in ("evals", "chroma")]
    assert install_advice("axil-evals") == f"pip install {' '.join(wheels)}"
