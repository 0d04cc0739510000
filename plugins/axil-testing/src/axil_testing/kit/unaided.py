"""The lines that an author would write for a kit, where the component itself says enough for them.

* ``path`` and ``folder`` of the config of a context provider or a store are where it keeps what it
  is given; a provider that takes no texts knows those of its example.
* A model adapter says in ``capabilities`` what its service speaks, as ``speaks_chat``, and is sent
  to a stub by ``base_url`` and ``api_key`` of its config; or that it asks none: ``offline``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import Any, Final, cast

from axil.plugin import make_component
from axil_testing.kit.base import Kit

SPEAKS: Final = "speaks_"
_REACHED_BY: Final = ("base_url", "api_key")
_KEPT_IN: Final = ("path", "folder")
_WRITTEN_BY: Final = ("put", "learn", "insert", "notes")


def model_kit(component: Any, config: Mapping[str, Any]) -> tuple[type[Kit], dict[str, Any], str]:
    """Return the kit of a model adapter, what it has to be given, and why it can only be held to
    the laws of every kind; empty: it need not.
    """
    texts = [str(word) for word in getattr(component, "capabilities", ())]
    spoken = [word.removeprefix(SPEAKS) for word in texts if word.startswith(SPEAKS)]
    if "offline" in texts:
        from axil_testing.kit.answers import AnswerKit

        return AnswerKit, {}, ""
    if not spoken:
        return (
            Kit,
            {},
            f'it says neither what its service speaks ("{SPEAKS}chat" in capabilities), '
            'nor that it asks none ("offline")',
        )
    if any(
        name not in getattr(getattr(component, "Config", None), "model_fields", {})
        for name in _REACHED_BY
    ):
        return (
            Kit,
            {},
            f"its Config has no {' and '.join(_REACHED_BY)}, by which it could be sent to a stub",
        )
    from axil_testing.kit.models import ModelKit
    from axil_testing.stub.dialects import DIALECTS

    def made(self: Any, server: Any) -> Any:
        return make_component(component, {**config, "base_url": server.url, "api_key": server.key})

    if spoken[0] == "realtime":
        if find_spec("websockets") is None:
            return Kit, {}, "websockets is not installed: axil-testing[realtime]"
        from axil_testing.kit.talks import TalkKit

        return TalkKit, {"make": made}, ""
    if spoken[0] not in DIALECTS:
        return Kit, {}, f'the stub does not speak "{spoken[0]}", but {", ".join(sorted(DIALECTS))}'

    return ModelKit, {"dialect": spoken[0], "make": made}, ""


def provider_lines(component: Any, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the lines that make a context provider in each test's folder, and the texts that it
    searches where the kit cannot give it its own.
    """
    return {**store_lines(component, config), **_known_texts(component, config)}


def store_lines(component: Any, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the line that makes a component in each test's folder."""
    kept = [name for name in _KEPT_IN if isinstance(config.get(name), str) and config[name]]

    def made(self: Any) -> Any:
        return make_component(
            component, {**config, **{name: str(self.folder / config[name]) for name in kept}}
        )

    return {"make": made}


def _known_texts(component: Any, config: Mapping[str, Any]) -> dict[str, Any]:
    texts = tuple(_texts(config))
    is_reported = any(hasattr(component, way) for way in _WRITTEN_BY) or "not_searches" in getattr(
        component, "capabilities", ()
    )
    return {"texts": texts} if texts and not is_reported else {}


def _texts(value: Any) -> Iterator[str]:
    """Texts of several words, wherever they are."""
    if isinstance(value, str):
        if len(value.split()) > 1:
            yield value
    elif isinstance(value, Mapping):
        for each in cast("Mapping[str, Any]", value).values():
            yield from _texts(each)
    elif isinstance(value, (list, tuple)):
        for each in cast("list[Any]", value):
            yield from _texts(each)
