"""``axil serve`` and ``axil view``: a server of workflows, and a page that shows kept runs."""

from __future__ import annotations

import argparse
import asyncio
import errno
import importlib.util
import json
import os
import re
import socket
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from axil import AxilError, run_sync
from axil.plugin import install_advice
from axil_cli import (
    add_shared_arguments,
    add_watched_arguments,
    bounded_protocol,
    log_as_json,
    opened_for_many,
    problems_of,
    table_lines,
)
from axil_files import python_target
from axil_journals import Bucket, RunObjects
from axil_serve.access import RIGHTS, Access, Caller, Right, new_token
from axil_serve.audit import AUDIT, Audit
from axil_serve.errors import Unserved

if TYPE_CHECKING:
    from axil import Workflow
    from axil_serve.service import RunService
    from axil_serve.signin import SignIn

TOKEN: Final = "AXIL_SERVE_TOKEN"
RUNS: Final = "axil-runs"
"""The folder for the folders of runs, as of ``axil run``."""
_FILES: Final = (".yaml", ".yml", ".json")
_COLUMNS: Final = ("n", "at", "who", "action", "run", "from", "before")
_HEADER: Final = re.compile(r"[A-Za-z0-9-]+")
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TAKEN: Final = ("authorization", "content-length", "content-type", "cookie", "host", "origin")
"""Headers that say something else."""


class Serve:
    """Serve workflows over HTTP: an API, other protocols, and a page.

    A token is printed when the server starts, unless AXIL_SERVE_TOKEN or --tokens gives it. Runs
    are kept in a journal: a server that is started again resumes them.
    """

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add the arguments."""
        parser.add_argument(
            "targets",
            nargs="*",
            metavar="WORKFLOW",
            help="a workflow file, a folder of workflow files, or a graph in Python, as "
            "module:graph",
        )
        parser.add_argument(
            "--edit",
            metavar="PATH",
            help="a folder, or a workflow file, that the page may edit; a token of --tokens needs "
            'the right "edit"',
        )
        _listening(parser, 8766)
        parser.add_argument(
            "--tokens", metavar="FILE", help="a JSON file of callers with their tokens and rights"
        )
        parser.add_argument(
            "--oidc",
            metavar="FILE",
            help="a JSON file of a provider of OpenID Connect, by which people sign in, with the "
            "rights of its groups",
        )
        parser.add_argument(
            "--caller-secret",
            action="append",
            default=[],
            metavar="HEADER=NAME",
            help="a header in which callers may give a secret along with a run; the run's MCP "
            "servers and tools have it as NAME",
        )
        parser.add_argument(
            "--protocol",
            action="append",
            default=None,
            metavar="NAME",
            help="a protocol to serve in addition to the API; the default is all that are "
            "installed; 'off' serves none",
        )
        parser.add_argument(
            "--body-bytes",
            type=int,
            default=1_000_000,
            metavar="N",
            help="the largest request body",
        )
        parser.add_argument(
            "--file-bytes",
            type=int,
            default=32 << 20,
            metavar="N",
            help="the largest file that is uploaded",
        )
        parser.add_argument(
            "--push-url",
            action="append",
            default=[],
            metavar="URL",
            help="an address below which clients of a2a may have notifications sent; none",
        )
        parser.add_argument(
            "--objects",
            default="",
            metavar="URL",
            help="where the files of runs are kept for all servers and workers, too: file:///…, "
            "s3://…, gs://…, az://…",
        )
        parser.add_argument(
            "--keep-days",
            type=float,
            default=None,
            metavar="N",
            help="remove runs that have ended, with their folders, and uploads after N days",
        )
        parser.add_argument(
            "--prompts",
            choices=("off", "digests", "whole"),
            default="off",
            help="keep what models are asked, for the page (off)",
        )
        parser.add_argument(
            "--requests-per-minute", type=float, default=600.0, metavar="N", help="for each token"
        )
        parser.add_argument(
            "--queue",
            default="",
            metavar="NAME",
            help="the queue of the runs that are started; callers take turns in it",
        )
        add_watched_arguments(parser)
        add_shared_arguments(parser, "--workflow")

    def run(self, options: argparse.Namespace, session: Any) -> int:
        """Serve until the process is asked to end."""
        from axil_serve.app import app_of
        from axil_serve.files import RunFiles
        from axil_serve.guard import Limits
        from axil_serve.service import RunService

        terminal = session
        if options.log == "json":
            session = log_as_json(session)
        if not options.targets and not options.edit:
            raise Unserved("AX960", "no workflow is named.", "Name one, or a folder with --edit.")
        reading = session.reading(options)
        allow = reading["allow"]
        served = _served(options, session, reading)
        access, token = _access(options)
        sign_in = _sign_in(options, access)
        secrets = _caller_secrets(options.caller_secret)
        journal = session.journal(options, "axil serve")
        try:
            service = RunService(
                journal,
                **served,
                reopen=lambda kept, words: session.reopened(kept, allow | words),
                around=session.around,
                leave=session.granted,
                files=RunFiles(options.files, file_bytes=options.file_bytes),
                push_urls=options.push_url,
                keep_seconds=None if options.keep_days is None else options.keep_days * 86_400,
                loaded=options.concurrency,
                queue=options.queue,
                status=options.status,
                prompts=options.prompts,
                allow=allow,
                objects=_objects(options, journal),
                audit=Audit(Path(options.files) / AUDIT),
                secrets=secrets.values(),
            )
            app = app_of(
                service,
                access,
                limits=Limits(
                    body_bytes=options.body_bytes,
                    file_bytes=options.file_bytes,
                    requests_per_minute=options.requests_per_minute,
                ),
                hosts=[*options.allow_host, *_names(options.host)],
                origins=options.allow_origin,
                protocols=_protocols(options.protocol, session),
                editor=_editor(options, session, reading),
                sign_in=sign_in,
                secrets=secrets,
            )
            _serve(app, options, lambda url: _tell(terminal if token else session, url, token))
        finally:
            journal.close()
        return 0


def _served(options: argparse.Namespace, session: Any, reading: Any) -> dict[str, Any]:
    """Return the workflows to serve with their origins, and what is wrong with the others."""
    workflows: dict[str, Workflow] = {}
    origins: dict[str, Any] = {}
    broken: dict[str, list[str]] = {}
    for target in _targets(options.targets):
        try:
            workflow: Workflow = opened_for_many(session, target, **reading)
            name = _name(target, workflow.plan.graph.spec.id)
        except AxilError as error:
            if target in options.targets:
                raise
            # one of a folder, perhaps a draft: it does not keep the others from being served
            broken[_name(target, "")] = findings = [str(each) for each in problems_of(error)]
            session.tell("\n".join([f"Not served: {target}", *(f"    {f}" for f in findings)]))
            continue
        if name in workflows:
            message = f'two workflows have the name "{name}"; one of them is {target}.'
            raise Unserved("AX960", message, "Rename one of them.")
        workflows[name], origins[name] = workflow, session.origin(target, workflow, reading)
    return {"workflows": workflows, "origins": origins, "broken": broken}


def _objects(options: argparse.Namespace, journal: Any) -> RunObjects | None:
    """Return where the files of runs are kept; they are encrypted where the journal is."""
    if not options.objects:
        return None
    return RunObjects(Bucket(options.objects), cipher=getattr(journal, "cipher", None))


class View:
    """Show kept runs, and those at work, in a browser; nothing is executed or changed.

    RUN is a run's id; without it the page lists the runs.
    """

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add the arguments."""
        parser.add_argument("run", nargs="?", default="", metavar="RUN", help="the run to show")
        parser.add_argument(
            "--edit", metavar="PATH", help="a workflow file, or a folder, that the page may edit"
        )
        _listening(parser, 0)
        add_shared_arguments(parser, "--workflow")

    def run(self, options: argparse.Namespace, session: Any) -> int:
        """Serve until the process is asked to end."""
        from axil_serve.app import app_of

        access, token = _access(options)
        journal = session.journal(options, "axil view")
        try:
            service = _viewing(journal, session, frozenset[str](options.allow), options.files)
            hosts = [*options.allow_host, *_names(options.host)]
            editor = _editor(options, session, session.reading(options))
            app = app_of(service, access, hosts=hosts, origins=options.allow_origin, editor=editor)
            _serve(app, options, lambda url: _tell(session, url, token, options.run))
        finally:
            journal.close()
        return 0

    def export(self, journal: Any, run_id: str, session: Any, allow: frozenset[str]) -> str:
        """Return a run as one page of HTML that needs no server."""
        from axil_serve.export import page_of

        return run_sync(page_of(_viewing(journal, session, allow), run_id))


class AuditTrail:
    """Show who did what on servers with this folder of files, the last act first.

    With --check it says whether a line was changed or taken out; the number and the digest of the
    last line, kept elsewhere, show whether lines were taken off the end.
    """

    def configure(self, parser: argparse.ArgumentParser) -> None:
        """Add the arguments."""
        parser.add_argument(
            "--files",
            default=RUNS,
            metavar="DIR",
            help=f"the folder of the server's files ({RUNS})",
        )
        parser.add_argument("--run", default="", metavar="RUN", help="acts on this run alone")
        parser.add_argument("--who", default="", metavar="NAME", help="acts of this caller alone")
        parser.add_argument("--action", default="", metavar="WORD", help="these acts alone")
        parser.add_argument("--limit", type=int, default=100, metavar="N", help="at most so many")
        parser.add_argument("--check", action="store_true", help="check that no line was changed")
        parser.add_argument(
            "--format", choices=("text", "json"), default="text", help="how they are shown"
        )

    def run(self, options: argparse.Namespace, session: Any) -> int:
        """Show the acts; 1: with --check, a line is not as it was written."""
        audit = Audit(Path(options.files) / AUDIT)
        if not audit.path.exists():
            message = f"there is no audit at {audit.path}."
            raise Unserved("AX960", message, "Name the folder of the server's files: --files DIR.")
        if options.check:
            lines, digest, wrong = audit.check()
            session.say(f"{lines} lines, the last one {digest}")
            for number in wrong:
                session.say(f"line {number} is not as it was written, or follows another one")
            return 1 if wrong else 0
        wanted = {name: getattr(options, name) for name in ("who", "action", "run")}
        acts, _ = audit.read(limit=max(1, options.limit), **wanted)
        if options.format == "json":
            session.say(json.dumps(acts, ensure_ascii=False, indent=2))
            return 0
        rows = [
            (
                datetime.fromtimestamp(act["at"], UTC).isoformat(" ", "seconds"),
                act["who"],
                act["action"],
                act["run"],
                act["from"],
                " ".join(f"{n}={act[n]}" for n in act if n not in _COLUMNS),
            )
            for act in acts
        ]
        for line in table_lines([("WHEN", "WHO", "DID", "RUN", "FROM", "MORE"), *rows]):
            session.say(line)
        return 0


def _viewing(journal: Any, session: Any, allow: frozenset[str], folder: str = RUNS) -> RunService:
    from axil_serve.files import RunFiles
    from axil_serve.service import RunService

    def reopen(kept: Mapping[str, Any], words: frozenset[str]) -> Workflow:
        return session.reopened(kept, allow)

    return RunService(journal, reopen=reopen, files=RunFiles(folder), watch_only=True)


# ------------------------------------------------------------------------------------ options


def _listening(parser: argparse.ArgumentParser, port: int) -> None:
    add_shared_arguments(parser, "--journal")
    parser.add_argument(
        "--files",
        default=RUNS,
        metavar="DIR",
        help=f"the folder of uploads and of the folders of runs ({RUNS})",
    )
    parser.add_argument("--host", default="127.0.0.1", help="the address to listen at")
    parser.add_argument(
        "--port", type=int, default=port, help=f"the port; 0 uses any free port ({port})"
    )
    parser.add_argument(
        "--token-env",
        default=TOKEN,
        metavar="NAME",
        help=f"the environment variable with the token ({TOKEN}); without it a token is made",
    )
    parser.add_argument(
        "--allow-host",
        action="append",
        default=[],
        metavar="NAME",
        help="a host name of this server",
    )
    parser.add_argument(
        "--allow-origin",
        action="append",
        default=[],
        metavar="ORIGIN",
        help="an origin of web pages that may send requests",
    )


def _targets(given: list[str]) -> list[str]:
    """Return the workflows: folders as the workflow files in them. Raises: Unserved (AX960)."""
    targets: list[str] = []
    for each in given:
        path = Path(each)
        if not path.is_dir():
            targets.append(each)
            continue
        found = sorted(str(file) for file in path.iterdir() if file.suffix in _FILES)
        if not found:
            raise Unserved("AX960", f"the folder {each} has no workflow files.", "Name another.")
        targets += found
    return targets


def _name(target: str, graph: str) -> str:
    """Return the name of a workflow: that of its file, or of a graph in Python its own.

    >>> _name("flows/letter.yaml", "g"), _name("app.py:graph", "refund"), _name("a:make", "")
    ('letter', 'refund', 'make')
    """
    if python_target(target) is None:
        return Path(target).stem
    return graph or target.rpartition(":")[2]


def _access(options: argparse.Namespace) -> tuple[Access, str]:
    """Return the callers, and the token that is printed; empty: none was made."""
    if getattr(options, "tokens", None):
        return Access.from_file(options.tokens), ""
    if getattr(options, "oidc", None) and options.token_env not in os.environ:
        return Access([]), ""
    rights: list[Right] = [*RIGHTS, "limits", "audit", *(["edit"] if options.edit else [])]
    caller = Caller(name="local", sees_all=True, rights=frozenset(rights))
    given = os.environ.get(options.token_env, "")
    token = given or new_token()
    return Access.of_token(token, caller), "" if given else token


def _sign_in(options: argparse.Namespace, access: Access) -> SignIn | None:
    """Return what lets people in who have no token; None: nothing does.

    Raises: Unserved (AX960); ConfigError.
    """
    if not options.oidc:
        return None
    if any(importlib.util.find_spec(name) is None for name in ("httpx", "joserfc", "pydantic")):
        hint = f"Install it: {install_advice('axil-serve[oidc]')}"
        raise Unserved("AX960", "--oidc needs a library that is not installed.", hint)
    from axil_serve.sessions import SESSIONS
    from axil_serve.signin import OidcConfig, SignIn

    try:
        found: Any = json.loads(Path(options.oidc).read_text("utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        message = f"the file {options.oidc} cannot be read: {error}."
        raise Unserved("AX960", message, "Write a JSON file of a provider.") from error
    config = OidcConfig.from_data(found, options.oidc)
    return SignIn(config, Path(options.files) / SESSIONS, taken=access.names)


def _caller_secrets(given: list[str]) -> dict[str, str]:
    """Return the names of callers' secrets by their headers. Raises: Unserved (AX960)."""
    found: dict[str, str] = {}
    for each in given:
        header, _, name = each.partition("=")
        is_header = _HEADER.fullmatch(header) and header.lower() not in _TAKEN
        if not (is_header and _VARIABLE.fullmatch(name)) or name in found.values():
            message = f"--caller-secret {each:.100}: expected HEADER=NAME, each once."
            raise Unserved("AX960", message, "Write X-Github-Token=GITHUB_TOKEN.")
        if name in os.environ:
            message = f"{name} is a variable of this server, and would be a secret of callers."
            raise Unserved("AX960", message, "Give one of them another name.")
        found[header.lower()] = name
    return found


def _editor(options: argparse.Namespace, session: Any, reading: Mapping[str, Any]) -> Any:
    """Return the editor of ``--edit``; None: nothing may be edited."""
    if not options.edit:
        return None
    from axil_serve.editor import Editor, Tools

    def workflow(path: str) -> tuple[Workflow, Mapping[str, Any]]:
        found = session.workflow(path, **reading)
        return found, session.origin(path, found, reading)

    def check(path: str, *, texts: dict[str, str]) -> Any:
        from axil_journals import check_workflow

        return check_workflow(
            lambda: session.workflow(path, texts=texts, **reading), session.registry
        )

    return Editor(options.edit, Tools(registry=session.registry, check=check, workflow=workflow))


def _protocols(wanted: list[str] | None, session: Any) -> Mapping[str, Any]:
    if wanted == ["off"]:
        return {}
    names = session.registry.names("protocols") if wanted is None else wanted
    protocols: dict[str, Any] = {}
    for name in names:
        try:
            protocols[name] = session.registry.resolve("protocols", name, "--protocol")()
        except Unserved as missing:
            if wanted is not None:
                raise
            session.tell(f"Not served: {missing}")
    return protocols


def _names(host: str) -> list[str]:
    return [f"[{host}]" if ":" in host else host]


def _tell(session: Any, url: str, token: str, run_id: str = "") -> None:
    place = f"#run={run_id}" if run_id else "#"
    if token:
        session.tell(f"Token, printed once: {token}")
        session.tell(f"Page: {url}/{place}{'&' if run_id else ''}token={token}")
    else:
        session.tell(f"Page: {url}/{place if run_id else ''}")
    session.tell("Ctrl+C ends the server; runs stay in the journal.")


def _serve(app: Any, options: argparse.Namespace, listening: Callable[[str], None]) -> None:
    """Serve until the process is asked to end. Raises: Unserved (AX960)."""
    import uvicorn

    host = options.host
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, options.port), family=family)
    except OSError as error:
        message = f"cannot listen at {host}:{options.port}: {error.strerror or error}."
        hint = "Choose another port; 0 uses any free port."
        if error.errno in (errno.EADDRNOTAVAIL, socket.EAI_NONAME, socket.EAI_AGAIN):
            hint = "Give --host an address of this machine: 127.0.0.1, or 0.0.0.0 for all."
        raise Unserved("AX960", message, hint) from error

    async def serving() -> None:
        settings = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            lifespan="on",
            http=bounded_protocol(),
            server_header=False,
            timeout_graceful_shutdown=2,
        )
        shown = f"[{host}]" if ":" in host else host
        listening(f"http://{shown}:{listener.getsockname()[1]}")
        await uvicorn.Server(settings).serve(sockets=[listener])

    with listener:
        asyncio.run(serving())


__all__ = ["AuditTrail", "Serve", "View"]
