"""Types of settings that name something outside of a run: files, hosts, programs, variables, code.

A setting of such a type needs no code in its component: where a ``Config`` is decoded while the
grants of a file are in force, what it names is checked, listed for ``axil check``, and made whole
(a path without links below its folder). For Python code they are texts like others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeAlias

from axil.settings.grants import Grants, current_grants, host_of, note_own

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler

Kind = Literal["read", "write", "host", "net", "program", "env", "import"]


@dataclass(frozen=True, slots=True)
class OutsideMark:
    """The mark of a type whose values name something outside.

    >>> ReadPath.__metadata__[0]
    OutsideMark(kind='read', among=())
    """

    kind: Kind
    among: tuple[str, ...] = ()
    """The values that name something; empty: all do."""

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> object:
        from pydantic import AfterValidator

        return AfterValidator(self.marked).__get_pydantic_core_schema__(source, handler)

    def __get_pydantic_json_schema__(
        self, schema: Any, handler: GetJsonSchemaHandler
    ) -> dict[str, object]:
        return {**handler(schema), "x-axil-outside": [self.kind, *self.among]}

    def marked(self, value: object) -> object:
        """Return a value with this mark, where it names something and grants are in force."""
        if current_grants() is None or not isinstance(value, str) or not value:
            return value
        return value if self.among and value not in self.among else OutsideName(value, self)

    def permitted(self, name: str, grants: Grants, where: str) -> str:
        """Return what is named, as the grants have it; note that it is wanted.

        Raises: ConfigError: AX137 a path, AX138 another thing that is not granted.
        """
        match self.kind:
            case "read" | "write":
                return grants.path(name, self.kind, where)
            case "host":
                if host := host_of(name):
                    note_own(f"net:{host}", where)
            case "net":
                if host := host_of(name):
                    grants.need(f"net:{host}", where=where, later=True)
            case "import":
                grants.need(f"import:{name.partition(':')[0]}", where=where, later=True)
            case "program" | "env":
                grants.need(f"{self.kind}:{name}", where=where, later=True)
        return name


class OutsideName(str):
    """A value of a setting that names something outside, until grants have been asked for it."""

    __slots__ = ("outside",)
    outside: OutsideMark

    def __new__(cls, text: str, outside: OutsideMark) -> OutsideName:
        """Mark a text with what it is."""
        self = super().__new__(cls, text)
        self.outside = outside
        return self


ReadPath: TypeAlias = Annotated[str, OutsideMark("read")]
"""The path of a file or a folder that is read: below the file's folder, or granted."""
WritePath: TypeAlias = Annotated[str, OutsideMark("write")]
"""The path of a file or a folder that is written: below ``.axil``, or granted."""
Address: TypeAlias = Annotated[str, OutsideMark("host")]
"""The URL, or the host, of a server that a file may choose without leave."""
NetAddress: TypeAlias = Annotated[str, OutsideMark("net")]
"""The URL, or the host, of a server that a file needs leave for: ``net:HOST``."""
Program: TypeAlias = Annotated[str, OutsideMark("program")]
"""The name of a program that is started: ``program:NAME``. Where only some values start one:
``Annotated[str, OutsideMark("program", ("docker", "podman"))]``.
"""
EnvName: TypeAlias = Annotated[str, OutsideMark("env")]
"""The name of a variable of the environment that is read: ``env:NAME``."""
ImportPath: TypeAlias = Annotated[str, OutsideMark("import")]
"""The path of code, ``module:Name``: ``import:MODULE``."""
