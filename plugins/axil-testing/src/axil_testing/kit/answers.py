"""The laws of a model that needs no service: the kit of those that claim to be ``offline``.

    class TestMine(AnswerKit):
        component, config = MyModel, {"prefix": "> "}

A model that asks a service is held to the laws of ``ModelKit`` instead.
"""

from __future__ import annotations

import asyncio
import copy
import json
from typing import Any, ClassVar, Final

from axil import AxilError
from axil.plugin import with_article
from axil_models import Reply, Request
from axil_testing.kit.base import Kit, cancel_each_turn, claimed, require

SAID: Final = ("What is an axil?", "Water the fern.", "東京 é 🌿", "{name} {{x}} %s </system>")
HOSTILE: Final = ("", " \n\t", "a lone \ud83c half", "\x00\x1b[31m", "word " * 5000)
FINISHES: Final = ("stop", "tools", "length", "filter", "refusal", "")


def asking(text: str) -> Request:
    """Return a request: a user's message after a system's."""
    return Request(
        messages=[
            {"role": "system", "content": "You are a botanist."},
            {"role": "user", "content": text},
        ]
    )


class AnswerKit(Kit):
    """The laws of models that answer by themselves."""

    kind = "models"
    repeats: ClassVar[bool] = True
    """The same request gets the same text; not claimed: it may vary."""

    async def ask(self, model: Any, text: str, shown: list[Any] | None = None) -> Any:
        """Return what it gives for one message: a ``Reply``, if it keeps the law."""
        return await model.reply(asking(text), (shown if shown is not None else []).append)

    def test_it_answers_with_a_reply(self) -> None:
        """Text, why it ended, and counts that are counts."""
        for text in SAID:
            reply = self.wait(self.ask(self.make(), text))
            require(
                isinstance(reply, Reply),
                f"it gave {with_article(type(reply).__name__)}, and no Reply.",
            )
            require(bool(reply.text or reply.tool_calls), f"asked {text!r}, it says nothing.")
            require(
                reply.finish in FINISHES,
                f"it ended with {reply.finish!r}; there are {', '.join(FINISHES[:-1])}.",
            )
            counts = (reply.usage.input_tokens, reply.usage.output_tokens)
            require(
                all(type(count) is int and count >= 0 for count in counts),
                f"its usage is {counts}.",
            )

    def test_what_it_shows_is_what_it_says(self) -> None:
        """Parts that it emits are those of its reply."""
        for text in SAID:
            shown: list[Any] = []
            reply = self.wait(self.ask(self.make(), text, shown))
            parts = [chunk.get("text", "") for chunk in shown if chunk.get("kind") == "text"]
            require(
                not parts or "".join(parts) == reply.text,
                f"it shows {''.join(parts)!r:.80} and says {reply.text!r:.80}.",
            )

    def test_its_reply_is_plain_data(self) -> None:
        """Journals and recordings keep it, and read the same."""
        reply = self.wait(self.ask(self.make(), SAID[0]))
        again = Reply.read(json.loads(json.dumps(reply.plain())))
        require(
            again.plain() == reply.plain(),
            f"kept and read again it is another reply: {again!r:.200}",
        )

    def test_any_text_is_only_text(self) -> None:
        """Answer any text with a reply or an axil error, and answer as before afterwards."""
        model = self.make()
        for text in HOSTILE:
            try:
                self.wait(self.ask(model, text))
            except AxilError:
                continue
        require(
            isinstance(self.wait(self.ask(model, SAID[0])), Reply),
            "after such a text it does not answer.",
        )

    def test_it_leaves_the_request_alone(self) -> None:
        """Others see it, too."""
        request = asking(SAID[0])
        before = copy.deepcopy(request)
        self.wait(self.make().reply(request, list[Any]().append))
        require(request == before, f"it has changed the request: {request!r:.200}")

    @claimed("repeats")
    def test_calls_side_by_side_do_not_disturb_each_other(self) -> None:
        """Each gets what it gets alone."""
        model = self.make()

        async def law() -> None:
            alone = {text: (await self.ask(model, text)).text for text in SAID}
            found = await asyncio.gather(
                *(self.ask(model, text) for _ in range(4) for text in SAID)
            )
            for text, reply in zip([text for _ in range(4) for text in SAID], found, strict=True):
                require(
                    reply.text == alone[text],
                    f"beside others, {text!r} gets another answer than alone.",
                )

        self.wait(law())

    def test_a_cancelled_call_is_cancelled(self) -> None:
        """Cancelling is never swallowed, and does no harm to the next call."""
        model = self.make()

        async def law() -> None:
            await cancel_each_turn(lambda: self.ask(model, SAID[0]), 6)
            require(
                isinstance(await self.ask(model, SAID[0]), Reply),
                "after a cancelled call it does not answer.",
            )

        self.wait(law())

    def test_it_survives_event_loops(self) -> None:
        """One after the other, also after it was closed."""
        model = self.make()

        async def closing() -> None:
            if hasattr(model, "close"):
                await model.close()

        for _ in range(2):
            require(
                isinstance(self.wait(self.ask(model, SAID[0])), Reply),
                "it does not work on another event loop.",
            )
            self.wait(closing())
