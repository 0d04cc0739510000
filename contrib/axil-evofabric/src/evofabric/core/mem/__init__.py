"""Memories of agents."""

from evofabric.core.mem.memories import ChatMem, CognitiveMem, MemBase, RetrievalMem, TaskMem
from evofabric.core.mem.prompts import (
    DEFAULT_UPDATE_MEMORY_PROMPT_EN,
    DEFAULT_UPDATE_MEMORY_PROMPT_ZH,
    FACT_RETRIEVAL_PROMPT_EN,
    FACT_RETRIEVAL_PROMPT_ZH,
    FEAT_DEFINE_PROMPT_EN,
    FEAT_DEFINE_PROMPT_ZH,
    TASK_SUMMARY_PROMPT_EN,
    TASK_SUMMARY_PROMPT_ZH,
)

__all__ = [
    "DEFAULT_UPDATE_MEMORY_PROMPT_EN",
    "DEFAULT_UPDATE_MEMORY_PROMPT_ZH",
    "FACT_RETRIEVAL_PROMPT_EN",
    "FACT_RETRIEVAL_PROMPT_ZH",
    "FEAT_DEFINE_PROMPT_EN",
    "FEAT_DEFINE_PROMPT_ZH",
    "TASK_SUMMARY_PROMPT_EN",
    "TASK_SUMMARY_PROMPT_ZH",
    "ChatMem",
    "CognitiveMem",
    "MemBase",
    "RetrievalMem",
    "TaskMem",
]
