"""Memories: what agents are reminded of, and what is noted."""

from __future__ import annotations

import json
import uuid
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, cast

from evofabric.core.factory import BaseComponent
from evofabric.core.mem import prompts
from evofabric.core.typing import DBItem, LLMChatResponse, UserMessage
from evofabric.logger import get_logger


class MemBase(BaseComponent, ABC):
    """A memory of an agent."""

    @abstractmethod
    async def retrieval_update(self, messages: list[Any], **kwargs: Any) -> list[Any]:
        """Give the messages, with what is remembered."""

    @abstractmethod
    async def add_messages(self, messages: list[Any], **kwargs: Any) -> None:
        """Note messages."""

    @abstractmethod
    async def clear(self) -> None:
        """Forget everything."""


class RetrievalMem(MemBase):
    """Texts of a store, which conversations do not change."""

    vectorstore: Any
    reranker: Any = None
    use_rerank: bool = True
    message_rounds: int = 1

    async def retrieval_update(self, messages: list[Any], **kwargs: Any) -> list[Any]:
        """Give the messages, behind the texts that fit the last of them."""
        del kwargs
        query = "\n".join(
            f"{each.role}: {each.content}" for each in messages[-self.message_rounds :]
        )
        texts = [each.text for each in await self.vectorstore.similarity_search(query)]
        if texts and self.use_rerank and self.reranker is not None:
            texts = [texts[position] for position in await self.reranker.rank(query, texts)]
        return [UserMessage(content=str(texts)), *messages] if texts else messages

    async def add_messages(self, messages: list[Any], **kwargs: Any) -> None:
        """Do nothing."""

    async def add_texts(self, texts: list[str]) -> None:
        """Add texts to the store."""
        items = [DBItem(text=text, metadata={}, ids=str(uuid.uuid4())) for text in texts]
        await self.vectorstore.add_texts(items)
        await self.save()

    async def save(self) -> None:
        """Keep the store."""
        await self.vectorstore.persist()

    async def clear(self) -> None:
        """Empty the store."""
        await self.vectorstore.clear_db()


class CognitiveMem(MemBase):
    """The base of memories that note what they make of a conversation."""

    zh_mode: bool = True
    """Write Chinese around what is remembered; else English."""
    message_rounds: int = 100
    vectorstore: Any

    @abstractmethod
    async def _mem_feat_extract(self, context: str) -> list[Any]:
        """Give what is worth noting."""

    @abstractmethod
    async def _mem_update(self, context: str, feats: list[Any]) -> list[Any]:
        """Note it."""

    @abstractmethod
    async def _summary(self, feats: list[Any]) -> str:
        """Give notes as one text."""

    @abstractmethod
    async def _context_update(self, summary: str, messages: list[Any]) -> list[Any]:
        """Give the messages, with the text."""

    def _select_messages(self, messages: list[Any]) -> list[Any]:
        return messages[-self.message_rounds :]

    def _message_to_text(self, messages: Sequence[Any]) -> str:
        names = {"user": "用户", "assistant": "助手", "tool": "工具", "system": "系统"}
        lines = [
            f"{names.get(each.role, each.role) if self.zh_mode else each.role}: {each.content}"
            for each in messages
        ]
        return "\n".join(["上下文信息：" if self.zh_mode else "Context info: ", *lines])

    async def _retrival_text(self, question: str) -> list[str]:
        found = await self.vectorstore.similarity_search(question)
        return [f"content: {each.text}" for each in found]

    async def add_messages(self, messages: list[Any], **kwargs: Any) -> None:
        """Note what is worth it."""
        del kwargs
        context = self._message_to_text(self._select_messages(messages))
        await self._mem_update(context, await self._mem_feat_extract(context))

    async def retrieval_update(self, messages: list[Any], **kwargs: Any) -> list[Any]:
        """Give the messages, with what is remembered."""
        del kwargs
        found = await self._retrival_text(self._message_to_text(self._select_messages(messages)))
        return await self._context_update(await self._summary(found), messages)

    async def clear(self) -> None:
        """Empty the store."""
        await self.vectorstore.clear_db()


class _Reminding(CognitiveMem):
    async def _context_update(self, summary: str, messages: list[Any]) -> list[Any]:
        return [UserMessage(content=summary), *messages]


class ChatMem(_Reminding):
    """Facts that a model notes of conversations, and brings up to date."""

    chat_client: Any
    user_extract_prompt: str = ""
    user_update_prompt: str = ""
    feat_define_prompt: str | None = None

    def model_post_init(self, context: Any, /) -> None:
        del context
        chinese = self.zh_mode
        if not self.user_extract_prompt:
            self.user_extract_prompt = (
                prompts.FACT_RETRIEVAL_PROMPT_ZH if chinese else prompts.FACT_RETRIEVAL_PROMPT_EN
            )
        if not self.user_update_prompt:
            self.user_update_prompt = (
                prompts.DEFAULT_UPDATE_MEMORY_PROMPT_ZH
                if chinese
                else prompts.DEFAULT_UPDATE_MEMORY_PROMPT_EN
            )
        if self.feat_define_prompt is not None:
            place = "[记忆信息]" if chinese else "[Memory Information]"
            self.user_extract_prompt = self.user_extract_prompt.replace(
                place, self.feat_define_prompt
            )

    async def _mem_feat_extract(self, context: str) -> list[Any]:
        return _list_in(await answer_of(self.chat_client, self.user_extract_prompt + context))

    async def _mem_update(self, context: str, feats: list[Any]) -> list[Any]:
        held = await self.vectorstore.similarity_search(str(feats))
        if held:
            notes = [{"id": number, "text": each.text} for number, each in enumerate(held)]
            told = (
                f"旧记忆：\n{notes}\n提取的新记忆：{feats}\n输出：\n"
                if self.zh_mode
                else f"Old Memory: \n{notes}\nNew facts: {feats}\nOutput:\n"
            )
            steps = _list_in(
                await answer_of(self.chat_client, self.user_update_prompt + context + told)
            )
        else:
            steps = [{"id": n, "text": text, "event": "ADD"} for n, text in enumerate(feats)]
        for step in steps:
            await self._do(step, held)
        return steps

    async def _do(self, step: dict[str, Any], held: Sequence[Any]) -> None:
        event = step.get("event")
        if event in ("UPDATE", "DELETE"):
            await self.vectorstore.delete_by_ids([held[int(step["id"])].id])
        if event in ("ADD", "UPDATE"):
            await self.vectorstore.add_texts([DBItem(text=str(step["text"]))])

    async def _summary(self, feats: list[Any]) -> str:
        return ("已知的记忆信息为：" if self.zh_mode else "Known memory info: ") + str(feats)


class TaskMem(_Reminding):
    """Attempts at tasks, with how well they went."""

    chat_client: Any
    user_summary_prompt: str | None = None
    eval_fuc: Callable[[list[Any]], Awaitable[tuple[bool, float, str]]]
    """Gives whether an attempt was right, its score, and what is to be said of it."""

    async def _mem_feat_extract(self, context: str) -> list[Any]:
        del context
        return []

    async def add_messages(self, messages: list[Any], **kwargs: Any) -> None:
        """Note an attempt, unless the same task failed and is known."""
        del kwargs
        chosen = self._select_messages(messages)
        first = next((each for each in chosen if each.content is not None), None)
        right, score, said = await self.eval_fuc(chosen)
        context = self._message_to_text(chosen)
        await self._mem_update(
            context,
            [
                {
                    "context": context,
                    "task": "" if first is None else str(first.content),
                    "task_id": getattr(first, "msg_id", None) or str(uuid.uuid4()),
                    "score": score,
                    "correctness": right,
                    "critic": said,
                }
            ],
        )

    async def _mem_update(self, context: str, feats: list[Any]) -> list[Any]:
        held = await self.vectorstore.similarity_search(context)
        known = {_data(each).get("task_id") for each in held}
        added = [each for each in feats if each["correctness"] or each["task_id"] not in known]
        for each in added:
            await self.vectorstore.add_texts([DBItem(text=each["context"], metadata=each)])
        return added

    async def _retrival_text(self, question: str) -> list[str]:
        found = await self.vectorstore.similarity_search(question)
        names = ("correctness", "score", "critic")
        return [
            ", ".join([f"content: {each.text}", *(f"{n}: {_data(each).get(n)}" for n in names)])
            for each in found
        ]

    async def _summary(self, feats: list[Any]) -> str:
        usual = prompts.TASK_SUMMARY_PROMPT_ZH if self.zh_mode else prompts.TASK_SUMMARY_PROMPT_EN
        asked = self.user_summary_prompt or usual
        told = f"{asked}{feats}{'输出：' if self.zh_mode else 'Output:'}"
        return await answer_of(self.chat_client, told)


def _data(found: Any) -> dict[str, Any]:
    return found.metadata or {}


async def answer_of(client: Any, text: str) -> str:
    """Give what a client answers to one message."""
    async for chunk in client.create_on_stream([UserMessage(content=text)]):
        if isinstance(chunk, LLMChatResponse):
            return chunk.content
    return ""


def _list_in(text: str) -> list[Any]:
    """Give the list that is in a model's answer; what cannot be read is none, and logged."""
    begin, end = text.find("["), text.rfind("]")
    for read in (text[begin : end + 1], text[begin : end + 1].replace("'", '"')):
        try:
            found = json.loads(read)
        except ValueError:
            continue
        return cast("list[Any]", found) if isinstance(found, list) else []
    get_logger().error("A memory's model gave no list: %s", text[:200])
    return []
