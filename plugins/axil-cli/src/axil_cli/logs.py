"""Logs as JSON objects, one a line, with the ids of runs and traces."""

from __future__ import annotations

import io
import json
import logging
import sys
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from axil.plugin import without_secrets
from axil_cli.command import Session
from axil_journals import current_run_id


class JsonLines(logging.Formatter):
    """A formatter of log records as JSON."""

    def format(self, record: logging.LogRecord) -> str:
        """Return one line."""
        data: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if run_id := getattr(record, "run_id", "") or current_run_id():
            data["run_id"] = run_id
        data |= _trace()
        if record.exc_info:
            data["error"] = self.formatException(record.exc_info)
        return json.dumps(without_secrets(data), ensure_ascii=True, default=str)


def _trace() -> dict[str, str]:
    """Return the ids of the current span, where OpenTelemetry is used."""
    trace: Any = sys.modules.get("opentelemetry.trace")
    context = None if trace is None else trace.get_current_span().get_span_context()
    if context is None or not context.is_valid:
        return {}
    return {"trace_id": f"{context.trace_id:032x}", "span_id": f"{context.span_id:016x}"}


class _Reported(io.StringIO):
    """A stream whose lines are records of the log ``axil``."""

    def write(self, text: str) -> int:
        for line in text.splitlines():
            level = logging.WARNING if line.startswith("warning: ") else logging.INFO
            logging.getLogger("axil").log(level, "%s", line.removeprefix("warning: "))
        return len(text)


def log_as_json(session: Session) -> Session:
    """Write all logs of this process to the standard error as JSON lines, from ``info`` on; the
    session that is returned tells what it has to tell there, too.
    """
    handler = logging.StreamHandler()
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=logging.INFO, handlers=[handler], force=True)
    return replace(session, stderr=_Reported())


__all__ = ["JsonLines", "log_as_json"]
