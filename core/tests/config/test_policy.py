"""Policy: three places to say it, one order of strength, and messages that say who said it."""

from __future__ import annotations

import pytest

from axil import ConfigError
from axil.plugin import ComponentBlocked, Policy, Registry


@pytest.fixture
def settings(tmp_path):
    def write(text: str):
        file = tmp_path / "axil.toml"
        file.write_text(text)
        return file

    return write


def test_a_file_says_all_that_a_policy_can_say(settings, tmp_path):
    file = settings(
        """
        [plugins]
        mode = "listed"
        allow = ["Axil_Control", "node:agent"]
        block = ["nodes:python"]
        hooks = ["trace"]
        index = "site.json"
        [plugins.pins]
        "node:switch" = "Axil.Control"
        """
    )
    assert Policy.from_file(file) == Policy(
        mode="listed",
        allow=frozenset({"axil-control", "nodes:agent"}),
        block=frozenset({"nodes:python"}),
        pins={"nodes:switch": "axil-control"},
        hooks=("trace",),
        index=str(tmp_path / "site.json"),
    )


def test_the_environment_is_stronger_than_the_file_and_blocks_add_up(settings, tmp_path):
    settings('[plugins]\nmode = "listed"\nallow = ["a"]\nblock = ["b"]\nhooks = ["trace"]\n')
    inner = tmp_path / "deep" / "deeper"
    inner.mkdir(parents=True)
    policy = Policy.in_force({"AXIL_PLUGINS": "c", "AXIL_BLOCK": "d"}, inner)
    assert (policy.mode, policy.allow, policy.block, policy.hooks) == (
        "listed",
        {"c"},
        {"b", "d"},
        ("trace",),
    )
    assert policy.origins["allow"] == "AXIL_PLUGINS"
    assert policy.origins["hooks"] == str(tmp_path / "axil.toml")
    assert policy.origins["block"].endswith("axil.toml and AXIL_BLOCK")


@pytest.mark.parametrize("environment", [{"AXIL_CONFIG": ""}, {"AXIL_PLUGINS_MODE": "auto"}])
def test_the_file_can_be_set_aside(settings, tmp_path, environment):
    settings('[plugins]\nmode = "listed"\n')
    assert Policy.in_force(environment, tmp_path).mode == "auto"
    assert Policy.in_force({}, tmp_path).mode == "listed"


def test_a_library_looks_for_no_file(settings, tmp_path, monkeypatch):
    file = settings('[plugins]\nmode = "listed"\n')
    monkeypatch.chdir(tmp_path)
    for name in ("AXIL_CONFIG", "AXIL_PLUGINS_MODE", "AXIL_PLUGINS"):
        monkeypatch.delenv(name, raising=False)
    assert Registry().policy.mode == "auto"
    assert Policy.in_force(folder=".").mode == "listed"
    monkeypatch.setenv("AXIL_CONFIG", str(file))
    assert Registry().policy.mode == "listed"


def test_another_file_can_be_named(settings, tmp_path):
    file = settings('[plugins]\nblock = ["x"]\n').rename(tmp_path / "other.toml")
    assert Policy.in_force({"AXIL_CONFIG": str(file)}, tmp_path).block == {"x"}


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("[plugins\n", "AX311"),
        ("plugins = 3", "expected a table"),
        ("[plugins]\nblok = []\n", 'unknown key "blok". Did you mean "block"?'),
        ('[plugins]\nblock = "x"\n', "expected a list of texts"),
        ("[plugins]\nmode = 3\n", "expected text"),
        ('[plugins]\nmode = "lax"\n', "axil.toml plugins.mode: expected auto or listed"),
        ("[plugins.pins]\nx = 1\n", "expected a table of distributions"),
        ('[plugins.pins]\nx = "y"\n', "axil.toml plugins.pins: expected kind:name"),
    ],
)
def test_settings_without_meaning_are_refused_with_the_file(settings, text, reported):
    with pytest.raises(ConfigError) as caught:
        Policy.from_file(settings(text))
    assert reported in str(caught.value)


def test_all_that_is_wrong_with_a_file_is_said_at_once(settings):
    with pytest.raises(ConfigError) as caught:
        Policy.from_file(settings("[plugins]\nblok = []\nmode = 3\n"))
    assert [problem.id for problem in caught.value.problems] == ["AX135", "AX135"]


def test_a_file_that_is_named_and_missing_is_an_error(tmp_path):
    with pytest.raises(ConfigError, match=r"AX311 .*none\.toml: the settings cannot be read"):
        Policy.in_force({"AXIL_CONFIG": str(tmp_path / "none.toml")}, tmp_path)


def test_a_refusal_says_who_said_so(settings):
    registry = Registry(Policy.from_file(settings('[plugins]\nblock = ["nodes:graph"]\n')))
    with pytest.raises(ComponentBlocked, match=r"the policy blocks nodes:graph \(.*axil\.toml\)"):
        registry.resolve("nodes", "graph")


def test_a_policy_survives_the_way_into_another_process():
    policy = Policy(
        mode="listed",
        allow=frozenset({"a"}),
        block=frozenset({"nodes:b"}),
        pins={"nodes:s": "d"},
        only=frozenset({"a"}),
        hooks=("h",),
    )
    assert Policy.in_force(policy.as_environment()) == policy
    assert Policy.in_force(Policy().as_environment()) == Policy()


def test_policy_is_read_from_the_environment():
    policy = Policy.from_environment(
        {
            "AXIL_PLUGINS": "axil-control, Acme_Flow",
            "AXIL_BLOCK": "node:python",
            "AXIL_PINS": "nodes:switch=Axil_Control",
            "AXIL_ONLY": "",
        }
    )
    assert policy == Policy(
        mode="listed",
        allow=frozenset({"axil-control", "acme-flow"}),
        block=frozenset({"nodes:python"}),
        pins={"nodes:switch": "axil-control"},
        only=frozenset(),
    )
    assert Policy.from_environment({}) == Policy()
    assert (
        Policy.from_environment({"AXIL_PLUGINS_MODE": "auto", "AXIL_PLUGINS": "x"}).mode == "auto"
    )


@pytest.mark.parametrize(
    "environment",
    [{"AXIL_PLUGINS_MODE": "lax"}, {"AXIL_PINS": "switch=x"}, {"AXIL_PINS": "nodes:switch"}],
)
def test_a_policy_without_meaning_is_refused(environment):
    with pytest.raises(ConfigError, match="AX135"):
        Policy.from_environment(environment)
