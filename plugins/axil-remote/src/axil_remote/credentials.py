"""Credentials of an OpenAPI document's security schemes."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from axil.plugin import Secret
from axil_remote.document import Operation
from axil_remote.schemas import Unclear, followed


@dataclass(slots=True)
class Credentials:
    """The credentials that are sent with one request."""

    headers: dict[str, str] = field(default_factory=dict[str, str], repr=False)
    query: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]], repr=False)
    cookies: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]], repr=False)


def schemes_for(
    operation: Operation, given: Mapping[str, Secret], has_own: bool
) -> tuple[str, ...]:
    """Return the schemes to use: the first alternative for which all secrets are given.

    ``has_own``: the user gave headers, which may be what the service takes. Raises: Unclear: a
    secret is missing.
    """
    for names in operation.security:
        if names and all(name in given for name in names):
            return names
    if not operation.security or () in operation.security or has_own:
        return ()
    wanted = " or ".join(" and ".join(names) for names in operation.security)
    raise Unclear(f"it needs a secret for {wanted}, in auth")


def kind_of(document: Mapping[str, Any], name: str) -> tuple[str, str]:
    """Return where a scheme's secret is sent: ``bearer``, ``basic``, ``header``, ``query`` or
    ``cookie``, and the name of the value. Raises: Unclear: it is not known.
    """
    components: Any = document.get("components") or {}
    schemes: Any = components.get("securitySchemes") or {}
    if name not in schemes:
        raise Unclear(f'there is no security scheme "{name}"')
    scheme = followed(document, schemes[name], f'the security scheme "{name}"')
    kind = str(scheme.get("type"))
    if kind == "apiKey" and scheme.get("in") in ("header", "query", "cookie"):
        return str(scheme["in"]), str(scheme.get("name") or "")
    if kind in ("oauth2", "openIdConnect"):
        return "bearer", ""
    way = str(scheme.get("scheme") or "").lower()
    if kind == "http" and way in ("bearer", "basic"):
        return way, ""
    raise Unclear(f'the security scheme "{name}" is {kind} {way}'.rstrip())


def credentials_of(
    document: Mapping[str, Any], names: tuple[str, ...], given: Mapping[str, Secret], where: str
) -> Credentials:
    """Return what is sent. Raises: ConfigError (AX134): a variable is not set; Unclear."""
    made = Credentials()
    for name in names:
        place, key = kind_of(document, name)
        value = given[name].resolve(None, f"{where}, auth {name}").get_secret_value()
        if place == "bearer":
            made.headers["Authorization"] = f"Bearer {value}"
        elif place == "basic":
            made.headers["Authorization"] = "Basic " + base64.b64encode(value.encode()).decode()
        elif place == "header":
            made.headers[key] = value
        else:
            (made.query if place == "query" else made.cookies).append((key, value))
    return made
