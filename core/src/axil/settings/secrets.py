"""Secrets: references to environment variables, resolved when they are needed."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Generator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from hashlib import sha256
from typing import TYPE_CHECKING, Any, TypeAlias

from axil.errors import ConfigError, Problem
from axil.settings.grants import Grants, current_grants
from axil.spec.graph import FromEnvironment

if TYPE_CHECKING:
    from pydantic import SecretStr

SecretLike: TypeAlias = "Secret | SecretStr | str | Mapping[str, str]"
"""The value of a secret: a text, or a reference to the environment variable that holds it."""
_REFERENCE = re.compile(r"\$\{([A-Za-z0-9_]+)\}")


class Secret:
    """A secret in a component's config: a reference, resolved when it is needed, or a value given
    in Python.

    In files: ``{env: OPENAI_API_KEY}`` or ``${OPENAI_API_KEY}``. Neither text form shows a value.

    >>> Secret("${KEY}"), Secret({"env": "KEY"}), Secret("sk-123")
    (Secret(${KEY}), Secret(${KEY}), Secret(**********))
    """

    __slots__ = ("_grants", "_value", "name")

    def __init__(self, value: SecretLike) -> None:
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
        for_run: bool = False,
    ) -> SecretStr:
        """Return the value.

        Args:
            permitted: the variable may be read whatever the file was granted.
            for_run: the value is used in this run alone, and so may be the caller's own.
        Raises: ConfigError: AX134 the environment variable is not set; AX138 the file that names it
            may not read it; AX994 the caller of the run gave none, or it would outlive the run.
        """
        from pydantic import SecretStr

        from axil.secrecy import keep_secret

        if self._value is not None:
            return SecretStr(self._value)
        if not permitted and self._grants is not None:
            message = f"the workflow file tries to read the environment variable {self.name}."
            self._grants.need(f"env:{self.name}", message, where)
        given = _of_caller.get()
        if given is not None and self.name in given.names:
            return given.secret(self.name, where, for_run=for_run)
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
    def __get_pydantic_core_schema__(cls, source: object, handler: Any) -> object:
        from typing import Annotated

        from pydantic import PlainSerializer, PlainValidator

        def reference(secret: Secret) -> Any:
            return {"env": secret.name} if secret.name else "**********"

        return handler.generate_schema(
            Annotated[Any, PlainValidator(cls), PlainSerializer(reference, when_used="json")]
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: object, handler: object) -> dict[str, object]:
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


class CallerSecrets:
    """Secrets that the caller of a run gave along with it, by name, in memory alone.

    In the run such a name means the caller's value, and never a variable of the environment.

    >>> CallerSecrets({"GITHUB_TOKEN"}, {"GITHUB_TOKEN": "ghp-1"})
    CallerSecrets(GITHUB_TOKEN)
    """

    __slots__ = ("_values", "names")

    def __init__(self, names: Collection[str], values: Mapping[str, str]) -> None:
        """``names``: all that callers may give; ``values``: what this one gave."""
        self.names = frozenset(names)
        self._values = {name: values[name] for name in sorted(self.names & values.keys())}
        self.keep()

    def keep(self) -> None:
        """Let them be found by value wherever text leaves the process."""
        from axil.secrecy import keep_secret

        for name, value in self._values.items():
            keep_secret(value, "${" + name + "}")

    @property
    def given(self) -> tuple[str, ...]:
        """The names that have values."""
        return tuple(self._values)

    def secret(self, name: str, where: str = "", *, for_run: bool = True) -> SecretStr:
        """Return a value.

        Raises: ConfigError (AX994): the caller gave none, or ``for_run`` is false.
        """
        from pydantic import SecretStr

        if name in self._values and for_run:
            return SecretStr(self._values[name])
        fault, hint = f'the caller of the run gave no secret "{name}".', "Send it with the request."
        if not for_run:
            fault = f'"{name}" is a secret of the caller, and this component serves all callers.'
            hint = "Use it for an MCP server, or in a tool with caller_secret."
        raise ConfigError(Problem("AX994", where, fault, hint))

    def digest(self, names: Collection[str]) -> str:
        """Return what is equal for callers that gave the same values of these names alone; empty:
        none of them is a caller's.
        """
        found = [(name, self._values.get(name)) for name in sorted(self.names & {*names})]
        return sha256(repr(found).encode("utf-8", "surrogatepass")).hexdigest() if found else ""

    def __repr__(self) -> str:
        return f"CallerSecrets({', '.join(self._values)})"


_of_caller: ContextVar[CallerSecrets | None] = ContextVar("axil.caller", default=None)


@contextmanager
def given_by_caller(secrets: CallerSecrets | None) -> Generator[None]:
    """Execute a run with the secrets of its caller; for what serves callers."""
    if secrets is not None:
        secrets.keep()
    token = _of_caller.set(secrets)
    try:
        yield
    finally:
        _of_caller.reset(token)


def callers_secrets() -> CallerSecrets | None:
    """Return the secrets of the caller of the run in which this is called; None: it gave none."""
    return _of_caller.get()


def caller_secret(name: str, where: str = "") -> SecretStr:
    """Return a secret of the caller of the run, for a tool that acts on the caller's behalf.

    Where no server declares the name, it is a variable of the environment: its user is the caller.
    Raises: ConfigError: AX994 the caller gave none; AX138 the workflow file may not read it.
    """
    return Secret({"env": name}).resolve(None, where, for_run=True)
