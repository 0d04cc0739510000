"""Batches of messages: they are sent whole, and their results are read when all have ended."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from axil_models import Ended, ModelError, Outcome, Service, Submitted, reading_reply

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

_STATUSES: Final = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""The statuses that errors have outside of batches."""
_PATH: Final = "/v1/messages/batches"
_SKEW_SECONDS: Final = 300
"""By how much the clock of the service may be behind."""


@dataclass(frozen=True, slots=True)
class AnthropicBatches:
    """The batch API of Anthropic; a batch may be for several models."""

    service: Service[AsyncAnthropic]
    most_requests: int = 100_000
    most_bytes: int = 256_000_000
    discount: float = 0.5

    @property
    def place(self) -> str:
        """The service and its account."""
        return f"{self.service.base_url or ''} {self.service.account} {_PATH}"

    def line(self, id: str, body: Mapping[str, Any]) -> bytes:
        """Return a request as one of a batch."""
        asked = {"custom_id": id, "params": body}
        return json.dumps(asked, ensure_ascii=False).encode("utf-8", "replace")

    async def submit(self, token: str, lines: Sequence[bytes]) -> str:
        """Send the requests; the service keeps no id of ours with them."""
        async with self.service.clients.lease() as client:
            made = await client.messages.batches.create(requests=[json.loads(x) for x in lines])
            return made.id

    async def find(self, batch: Submitted) -> str:
        """Return the id of the oldest batch of as many requests that was made since then.

        If it is another one, it has no results for our requests, and they are sent again.
        """
        found = ""
        async with self.service.clients.lease() as client:
            async for each in client.messages.batches.list(limit=100):
                if each.created_at.timestamp() < batch.begun - _SKEW_SECONDS:
                    break
                counts = each.request_counts.model_dump().values()
                if sum(count for count in counts if isinstance(count, int)) == batch.size:
                    found = each.id
        return found

    async def ended(self, id: str) -> Ended | None:
        """Return what came of a batch."""
        async with self.service.clients.lease() as client:
            batch = await client.messages.batches.retrieve(id)
            if batch.processing_status != "ended":
                return None
            # by its path: the key goes to no other address that an answer names
            text: str = await client.get(f"{_PATH}/{id}/results", cast_to=str)
        outcomes: dict[str, Outcome] = {}
        with reading_reply():
            for line in text.split("\n"):
                if line.strip():
                    result = json.loads(line)
                    outcomes[str(result["custom_id"])] = self._outcome(result["result"], id)
        message = f"the batch {id} of {self.service.address} holds no reply to a request."
        return Ended(outcomes=outcomes, rest=ModelError(message, transient=True))

    def _outcome(self, result: Mapping[str, Any], id: str) -> Outcome:
        kind = result["type"]
        if kind == "succeeded":
            whole: Mapping[str, Any] = result["message"]
            return whole
        named = f"the batch {id} of {self.service.address}"
        if kind == "canceled":
            return ModelError(f"{named} was cancelled.", transient=False)
        if kind == "expired":
            return ModelError(f"{named} expired.", transient=True)
        error: Mapping[str, Any] = result["error"]
        error = error.get("error") or error
        status = _STATUSES.get(str(error.get("type")), 500)
        return self.service.refused(status, error, None)
