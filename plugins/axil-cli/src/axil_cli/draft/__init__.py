"""Drafts of workflow files: from a sentence, or from a text."""

from __future__ import annotations

from axil_draft.errors import DraftError
from axil_draft.files import Draft, draft_of
from axil_draft.record import DraftRecord

__all__ = ["Draft", "DraftError", "DraftRecord", "draft_of"]
