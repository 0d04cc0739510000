"""Secrets: references to environment variables, resolved when they are needed."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from axil.errors import ConfigError, Problem
from axil.settings.grants import Grants, current_grants
from axil.spec.graph import FromEnvironment

if TYPE_CHECKING:
    from pydantic import SecretStr

_REFERENCE = re.compile(r"\$\{([A-Za-z0-9_]+)\}")


class Secret:
    """A secret in a component's config: a reference, resolved when it is needed, or a value given
    in Python.

    In files: ``{env: OPENAI_API_KEY}`` or ``${OPENAI_API_KEY}``. Neither text form shows a value.

    >>> Secret("${KEY}"), Secret({"env": "KEY"}), Secret("sk-123")
    (Secret(${KEY}), Secret(${KEY}), Secret(**********))
    """

    __slots__ = ("_grants", "_value", "name")

    def __init__(self, value: str | Mapping[str, str] | Secret | SecretStr) -> None:
        self.name = ""
        """The environment variable; empty: the value was given."""
        self._value: str | None = None
        self._grants = current_grants()
        if isinstance(value, Secret):
            self.name, self._value, self._grants = value.name, value._value, value._grants
        elif isinstance(value, Mapping):
            if set(value) != {"env"} or not value["env"]:
                raise ValueError("expected {env: NAME}, ${NAME} or text")
            self.name = value["env"]
        elif isinstance(value, str):
            reference = _REFERENCE.fullmatch(
                value.template if isinstance(value, FromEnvironment) else value
            )
            self.name = reference[1] if reference else ""
            self._value = (
                None if reference and not isinstance(value, FromEnvironment) else str.__str__(value)
            )
        elif hasattr(value, "get_secret_value"):
            self._value = value.get_secret_value()
        else:
            raise ValueError("expected {env: NAME}, ${NAME} or text")
        if self._value is not None and self._grants is not None:  # of a file, or filled into one
            from axil.secrecy import REDACTED, keep_secret

            is_filled = isinstance(value, FromEnvironment)
            keep_secret(self._value, value.template if is_filled else REDACTED)

    @property
    def is_known(self) -> bool:
        """True if the value was given, rather than the name of its variable only."""
        return self._value is not None

    def permit(self, where: str = "", grants: Grants | None = None) -> None:
        """Refuse a variable that the file which names it may not read.

        ``grants``: those in force; without them those of when the secret was made. Raises:
        ConfigError (AX138).
        """
        grants = grants or self._grants
        if grants is not None and self.name and self._value is None:
            message = f"the workflow file tries to read the environment variable {self.name}."
            grants.need(f"env:{self.name}", message, where, later=True)

    def resolve(
        self,
        environment: Mapping[str, str] | None = None,
        where: str = "",
        *,
        permitted: bool = False,
    ) -> SecretStr:
        """Return the value. ``permitted``: the variable may be read whatever the file was granted.

        Raises: ConfigError: AX134 the environment variable is not set; AX138 the file that names it
        may not read it.
        """
        from pydantic import SecretStr

        from axil.secrecy import keep_secret

        if self._value is not None:
            return SecretStr(self._value)
        if not permitted and self._grants is not None:
            message = f"the workflow file tries to read the environment variable {self.name}."
            self._grants.need(f"env:{self.name}", message, where)
        found = (os.environ if environment is None else environment).get(self.name)
        if found is None:
            raise ConfigError(
                Problem(
                    "AX134",
                    where,
                    f"the environment variable {self.name} is not set.",
                    f"Set {self.name}.",
                )
            )
        keep_secret(found, "${" + self.name + "}")
        return SecretStr(found)

    def __repr__(self) -> str:
        return f"Secret({'${' + self.name + '}' if self.name else '**********'})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and (self.name, self._value) == (other.name, other._value)

    def __hash__(self) -> int:
        return hash((self.name, self._value))

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        from typing import Annotated

        from pydantic import PlainSerializer, PlainValidator

        def reference(secret: Secret) -> Any:
            return {"env": secret.name} if secret.name else "**********"

        return handler.generate_schema(
            Annotated[Any, PlainValidator(cls), PlainSerializer(reference, when_used="json")]
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: Any, handler: Any) -> dict[str, Any]:
        variable = {
            "type": "object",
            "properties": {"env": {"type": "string"}},
            "required": ["env"],
            "additionalProperties": False,
        }
        return {"anyOf": [variable, {"type": "string"}], "writeOnly": True, "x-axil-secret": True}


def resolve_secret(
    value: Any, environment: Mapping[str, str] | None = None, where: str = ""
) -> SecretStr:
    """Return the secret that ``value`` is or refers to: ``{env: NAME}``, ``${NAME}``, text, a
    ``Secret`` or a ``SecretStr``.

    Raises: ConfigError (AX134): the environment variable is not set, or ``value`` is none of these.
    """
    try:
        secret = Secret(value)
    except ValueError as error:
        raise ConfigError(Problem("AX134", where, f"{error}.")) from None
    return secret.resolve(environment, where)
