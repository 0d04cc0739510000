"""The parameters of a connection, as libpq takes them.

What a connection string leaves out libpq looks for in variables (``PGPASSWORD`` …), in files of the
user's home (``.pgpass``, ``.postgresql``) and in a service. For a string that a workflow file
chose, each parameter is given, so that the server gets nothing else of the user's. Three settings
without a secret have variables and no parameter: ``PGTZ``, ``PGDATESTYLE``, ``PGGEQO``.
"""

from __future__ import annotations

import os
from typing import Final

from axil import ConfigError, Problem

_NOWHERE: Final = os.path.join(os.devnull, "none")
"""A path at which there never is a file; an empty one would mean the usual file."""
_OWN: Final = frozenset(
    {
        *("host", "port", "user", "password", "dbname", "options", "application_name"),
        *("sslmode", "sslnegotiation", "sslrootcert", "sslsni", "channel_binding"),
        *("connect_timeout", "client_encoding", "target_session_attrs", "load_balance_hosts"),
        *("keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count"),
    }
)
"""The parameters that a workflow file may give."""
_EXPLICIT: Final = {
    "application_name": "axil",
    "connect_timeout": "0",
    "gssencmode": "disable",
    "max_protocol_version": "3.0",
    "min_protocol_version": "3.0",
    "passfile": _NOWHERE,
    "require_auth": "none,password,md5,scram-sha-256",  # neither Kerberos nor OAuth
    "sslcert": _NOWHERE,
    "sslcertmode": "disable",
    "sslcrl": _NOWHERE,
    "sslcrldir": _NOWHERE,
    "sslkey": _NOWHERE,
    "sslrootcert": _NOWHERE,
}
"""The values of parameters that a file leaves out, where they are not what libpq was made with."""
_UNSAID: Final = frozenset(
    {
        *("service", "servicefile", "scram_client_key", "scram_server_key", "tcp_user_timeout"),
        *("keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count"),
    }
)
"""The parameters that cannot be given an empty value. None but the service has a variable, and a
service, too, says only what was left out.
"""


def parameters(dsn: str, *, is_of_a_file: bool) -> dict[str, str]:
    """Return the parameters that a connection string means.

    Raises: ConfigError (AX131): it is none; it has parameters that a workflow file may not give.
    """
    import psycopg
    from psycopg.conninfo import conninfo_to_dict

    try:
        given = {name: str(value) for name, value in conninfo_to_dict(dsn).items()}
    except psycopg.Error:
        # the error would show parts of the string, perhaps its password
        given = None
    if given is None:
        raise _unfit("expected a connection string", "Write postgresql://USER@HOST/NAME.")
    return _explicit(given) if is_of_a_file else given


def hosts(given: dict[str, str]) -> list[str]:
    """Return the hosts of a connection."""
    return [each.lower().rstrip(".") for each in given["host"].split(",")]


def _explicit(given: dict[str, str]) -> dict[str, str]:
    from psycopg import pq

    if strange := sorted(given.keys() - _OWN):
        raise _unfit(
            f"a workflow file may not give {', '.join(strange)}",
            f"Leave it out; possible are: {', '.join(sorted(_OWN))}.",
        )
    for name in ("host", "user"):
        if not given.get(name) or "" in given[name].split(","):
            raise _unfit(f"the {name} is missing", "Write postgresql://USER@HOST/NAME.")
    if any(each.startswith(("/", "@", ".")) or os.sep in each for each in given["host"].split(",")):
        raise _unfit(
            "a workflow file may not name a socket, at which the server knows its user",
            "Write the name of a host.",
        )
    if given.get("sslrootcert", "system") != "system":
        raise _unfit("sslrootcert names a file", "Write sslrootcert=system.")
    usual = {o.keyword.decode(): (o.compiled or b"").decode() for o in pq.Conninfo.get_defaults()}
    explicit = {
        name: _EXPLICIT.get(name, value) for name, value in usual.items() if name not in _UNSAID
    }
    if given.get("sslmode", "").startswith("verify"):
        explicit["sslrootcert"] = "system"
    return {**explicit, "dbname": given["user"], **given}


def _unfit(message: str, hint: str) -> ConfigError:
    return ConfigError(Problem("AX131", "dsn", f"{message}.", hint))
