"""Memory for agents: a file or a store (what was said), a blackboard (what a run shares), facts
(what is known), skills (how things are done).
"""

from __future__ import annotations

from axil_memory.blackboard import Blackboard
from axil_memory.facts import FactMemory
from axil_memory.file import FileMemory
from axil_memory.skills import Skills
from axil_memory.stored import MemorySettings, StoreMemory

__all__ = ["Blackboard", "FactMemory", "FileMemory", "MemorySettings", "Skills", "StoreMemory"]
