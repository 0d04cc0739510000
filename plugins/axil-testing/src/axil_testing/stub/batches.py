"""The batch APIs of OpenAI and Anthropic, as the stub has them: files, batches, results."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email import message_from_bytes
from typing import Any

from axil_testing.stub.act import Act
from axil_testing.stub.dialects import Dialect


@dataclass(slots=True, kw_only=True)
class Batch:
    """A batch that was submitted."""

    id: str
    lines: list[Mapping[str, Any]]
    """Its requests: ``custom_id``, and ``body`` or ``params``."""
    about: Mapping[str, Any]
    """The body of the request that made it."""
    made: float
    polls: int = 0
    """The number of times that it was asked after."""


@dataclass(slots=True)
class Batches:
    """The batches of a stub. It answers when a batch has been asked after ``polls`` times, and
    ``held`` is False.
    """

    dialect: Dialect
    answer: Callable[[Any], Act | str] | None = None
    """Given the body of a request, its answer; without it, the stub's acts in order. The finish
    ``expired`` or ``cancelled`` of an act: the request was not answered.
    """
    polls: int = 1
    held: bool = False
    failure: Mapping[str, str] | None = None
    """``code`` and ``message`` of batches that fail as a whole; OpenAI only."""
    drops: int = 0
    """So many batches are made, and the connection is dropped before the answer."""
    faults: list[Act] = field(default_factory=list[Act])
    """The errors of the next requests for files or batches."""
    made: list[Batch] = field(default_factory=list[Batch])
    """The batches, in order."""
    _files: dict[str, bytes] = field(default_factory=dict[str, bytes])

    @property
    def requests(self) -> list[str]:
        """The ids of all requests in all batches."""
        return [str(line["custom_id"]) for batch in self.made for line in batch.lines]

    def takes(self, path: str) -> bool:
        """Return whether a path is one of the batch API."""
        parts = path.partition("?")[0].split("/")
        return "batches" in parts or "files" in parts

    def respond(
        self, method: str, path: str, body: Any, next_act: Callable[[], Act]
    ) -> tuple[int, Any, Mapping[str, str]] | None:
        """Return the status, the body (bytes: a file) and the headers; None: the connection is
        dropped.
        """
        if self.faults:
            act = self.faults.pop(0)
            return act.status, self.dialect.error(act), act.headers
        parts = path.partition("?")[0].strip("/").split("/")
        if method == "POST" and parts[-1] == "files":
            self._files[id := f"file-{len(self._files)}"] = body
            data = {"object": "file", "bytes": len(body), "created_at": 0, "purpose": "batch"}
            return 200, {"id": id, "filename": "batch.jsonl", "status": "processed", **data}, {}
        if parts[-1] == "content":
            return 200, self._files[parts[-2]], {}
        if method == "POST":
            batch = self._begin(body)
            if self.drops:
                self.drops -= 1
                return None
            return 200, self._shown(batch), {}
        if parts[-1] == "batches":
            data = [self._shown(batch) for batch in reversed(self.made)]
            return 200, {"object": "list", "data": data, "has_more": False}, {}
        id = parts[-2] if parts[-1] == "results" else parts[-1]
        batch = next((each for each in self.made if each.id == id), None)
        if batch is None:
            return 404, self.dialect.error(Act(message=f"no batch {id}")), {}
        if parts[-1] == "results":
            results = [self._result(line, next_act) for line in batch.lines]
            return 200, _lines(results), {}
        batch.polls += 1
        return 200, self._shown(batch, next_act), {}

    def _begin(self, body: Any) -> Batch:
        uploaded = self._files[body["input_file_id"]] if "input_file_id" in body else b""
        lines = body["requests"] if "requests" in body else _read(uploaded)
        id = f"batch_{len(self.made) + 1}"
        batch = Batch(id=id, lines=list(lines), about=body, made=time.time())
        self.made.append(batch)
        return batch

    def _is_ended(self, batch: Batch) -> bool:
        return not self.held and batch.polls >= self.polls

    def _shown(self, batch: Batch, next_act: Callable[[], Act] = Act) -> dict[str, Any]:
        if "requests" in batch.about:
            return self._shown_by_anthropic(batch)
        shown: dict[str, Any] = {
            "id": batch.id,
            "object": "batch",
            "endpoint": batch.about["endpoint"],
            "completion_window": batch.about["completion_window"],
            "input_file_id": batch.about["input_file_id"],
            "created_at": int(batch.made),
            "metadata": batch.about.get("metadata"),
            "status": "in_progress",
        }
        if not self._is_ended(batch):
            return shown
        if self.failure is not None:
            errors = {"object": "list", "data": [{**self.failure, "line": None, "param": None}]}
            return {**shown, "status": "failed", "errors": errors}
        if f"out-{batch.id}" not in self._files:
            results = [self._result(line, next_act) for line in batch.lines]
            for kind, are_good in (("out", True), ("err", False)):
                found = [each for each in results if _is_good(each) == are_good]
                self._files[f"{kind}-{batch.id}"] = _lines(found)
        files = {"output_file_id": f"out-{batch.id}", "error_file_id": f"err-{batch.id}"}
        there = {key: id if self._files[id] else None for key, id in files.items()}
        is_expired = b"batch_expired" in self._files[f"err-{batch.id}"]
        return {**shown, **there, "status": "expired" if is_expired else "completed"}

    def _shown_by_anthropic(self, batch: Batch) -> dict[str, Any]:
        made = datetime.fromtimestamp(batch.made, UTC).isoformat()
        is_ended, size = self._is_ended(batch), len(batch.lines)
        counts = {"canceled": 0, "errored": 0, "expired": 0, "processing": 0, "succeeded": 0}
        return {
            "id": batch.id,
            "type": "message_batch",
            "processing_status": "ended" if is_ended else "in_progress",
            "request_counts": {**counts, "succeeded" if is_ended else "processing": size},
            "created_at": made,
            "expires_at": made,
            "results_url": f"https://elsewhere.example/{batch.id}/results" if is_ended else None,
        }

    def _result(self, line: Mapping[str, Any], next_act: Callable[[], Act]) -> dict[str, Any]:
        body = line["params"] if "params" in line else line["body"]
        act = next_act() if self.answer is None else Act.of(self.answer(body))
        named = {"custom_id": line["custom_id"]}
        if "params" in line:
            if act.finish in ("expired", "cancelled"):
                return {**named, "result": {"type": act.finish.replace("ll", "l")}}
            if act.status != 200:
                return {**named, "result": {"type": "errored", "error": self.dialect.error(act)}}
            message = self.dialect.whole(act, body)
            return {**named, "result": {"type": "succeeded", "message": message}}
        named["id"] = f"batch_req_{line['custom_id']}"
        if act.finish in ("expired", "cancelled"):
            error = {"code": f"batch_{act.finish}", "message": f"This request {act.finish}."}
            return {**named, "response": None, "error": error}
        whole = self.dialect.whole(act, body) if act.status == 200 else self.dialect.error(act)
        response = {"status_code": act.status, "request_id": "r", "body": whole}
        return {**named, "response": response, "error": None}


def uploaded(kind: str, data: bytes) -> bytes:
    """Return the file in a form that was posted."""
    form = message_from_bytes(b"content-type: " + kind.encode() + b"\r\n\r\n" + data)
    files = [part for part in form.walk() if part.get_filename()]
    content: Any = files[0].get_payload(decode=True)
    return bytes(content)


def _is_good(result: Mapping[str, Any]) -> bool:
    return result["response"] is not None and result["response"]["status_code"] == 200


def _lines(values: list[dict[str, Any]]) -> bytes:
    return b"".join(json.dumps(value, ensure_ascii=False).encode() + b"\n" for value in values)


def _read(data: bytes) -> list[Mapping[str, Any]]:
    return [json.loads(line) for line in data.split(b"\n") if line.strip()]
