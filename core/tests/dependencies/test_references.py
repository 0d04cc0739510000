"""References in settings to other components."""

from __future__ import annotations

from axil.dependencies.references import settings_at


def test_pointers_lead_to_every_member():
    config = {"a/b": [{"type": "x"}, "y"], "c": {"p": 1, "q": 2}}
    assert list(settings_at(config, "/a~1b/*/type")) == [(("a/b", 0, "type"), "x")]
    assert list(settings_at(config, "/c/*")) == [(("c", "p"), 1), (("c", "q"), 2)]
    assert list(settings_at(config, "/a~1b/1")) == [(("a/b", 1), "y")]
    assert list(settings_at(config, "/nowhere/*")) == []
