"""People as nodes."""

from __future__ import annotations

from masfactory.components.human.human_chat import HumanChat
from masfactory.components.human.human_chat_visual import HumanChatVisual
from masfactory.components.human.human_file_edit import HumanFileEdit
from masfactory.components.human.human_file_edit_visual import HumanFileEditVisual

__all__ = ["HumanChat", "HumanChatVisual", "HumanFileEdit", "HumanFileEditVisual"]
