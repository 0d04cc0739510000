"""Batches of requests: a file of them is uploaded, and files with replies and errors come back."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, cast

from axil_models import Ended, Malformed, ModelError, Outcome, Submitted, reading_reply
from axil_openai.connection import Connection

if TYPE_CHECKING:
    from openai import AsyncOpenAI

_TOKEN: Final = "axil_batch"
"""The entry of a batch's metadata that holds our id of it."""
_ENDED: Final = frozenset({"completed", "failed", "expired", "cancelled"})
_LATER: Final = frozenset({"token_limit_exceeded", "rate_limit_exceeded", "server_error"})
"""Errors of whole batches that pass."""


@dataclass(frozen=True, slots=True)
class OpenAIBatches:
    """The batch API of OpenAI, for the requests to one path with one model."""

    service: Connection
    path: str
    """``/v1/chat/completions`` or ``/v1/responses``."""
    model: str
    most_requests: int = 50_000
    most_bytes: int = 200_000_000
    discount: float = 0.5

    @property
    def place(self) -> str:
        """The service, its account, the path and the model: a file is for one model."""
        config = self.service.config
        account = [self.service.account, config.organization or "", config.project or ""]
        return " ".join([self.service.base_url or "", *account, self.path, self.model])

    def line(self, id: str, body: Mapping[str, Any]) -> bytes:
        """Return a request as a line of the file."""
        asked = {"custom_id": id, "method": "POST", "url": self.path, "body": body}
        return json.dumps(asked, ensure_ascii=False).encode("utf-8", "replace")

    async def submit(self, token: str, lines: Sequence[bytes]) -> str:
        """Upload the requests and make a batch of them."""
        async with self.service.clients.lease() as client:
            content = b"\n".join(lines) + b"\n"
            file = await client.files.create(file=("batch.jsonl", content), purpose="batch")
            path: Any = self.path
            batch = await client.batches.create(
                completion_window="24h",
                endpoint=path,
                input_file_id=file.id,
                metadata={_TOKEN: token},
            )
            return batch.id

    async def find(self, batch: Submitted) -> str:
        """Return the id of the batch with our id in its metadata."""
        async with self.service.clients.lease() as client:
            async for each in client.batches.list(limit=100):
                if (each.metadata or {}).get(_TOKEN) == batch.token:
                    return each.id
                if each.created_at < batch.begun - 86_400:
                    break
        return ""

    async def ended(self, id: str) -> Ended | None:
        """Return what came of a batch."""
        async with self.service.clients.lease() as client:
            batch = await client.batches.retrieve(id)
            if batch.status not in _ENDED:
                return None
            outcomes: dict[str, Outcome] = {}
            for file in filter(None, (batch.output_file_id, batch.error_file_id)):
                with reading_reply():
                    outcomes |= await self._read(client, file)
            return Ended(outcomes=outcomes, rest=self._rest(batch))

    async def _read(self, client: AsyncOpenAI, file: str) -> dict[str, Outcome]:
        text = (await client.files.content(file)).content.decode()
        lines = [json.loads(line) for line in text.split("\n") if line.strip()]
        return {str(line["custom_id"]): self._outcome(line) for line in lines}

    def _outcome(self, line: Mapping[str, Any]) -> Outcome:
        error: Mapping[str, Any] | None = line.get("error")
        response: Mapping[str, Any] | None = line.get("response")
        if response is None:
            code = str((error or {}).get("code") or "")
            said = self.service.clean((error or {}).get("message") or code or "no reply")
            message = f"{self.service.address} did not answer a request of a batch: {said}"
            return ModelError(message, transient=code != "batch_cancelled")
        status, body = int(response["status_code"]), response.get("body")
        if not isinstance(body, Mapping):
            raise Malformed("the reply is no object")
        whole = cast("Mapping[str, Any]", body)
        if status == 200:
            return whole
        return self.service.refused(status, whole, None)

    def _rest(self, batch: Any) -> ModelError:
        """Return the error of the requests of a batch that are in none of its files."""
        named = f"the batch {batch.id} of {self.service.address}"
        if batch.status == "cancelled":
            return ModelError(f"{named} was cancelled.", transient=False)
        if batch.status != "failed":
            reason = "expired" if batch.status == "expired" else "holds no reply to a request"
            return ModelError(f"{named} {reason}.", transient=True)
        errors: list[Any] = list((batch.errors and batch.errors.data) or ())
        said = "; ".join(str(each.message or each.code) for each in errors[:3])
        transient = any(each.code in _LATER for each in errors)
        return ModelError(
            self.service.clean(f"{named} failed: {said or 'no reason is given'}"),
            transient=transient,
        )
