"""Laws of approval: what a person did not allow is not called, and what is called is what was
shown.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from axil import MISSING, NodeFailed, RootGraph
from axil_agent import Agent, Scripted
from axil_journals import MemoryJournal
from axil_models import Approval, Tool, ToolError
from axil_testing import VirtualClock


class Person:
    """A channel with its answers."""

    def __init__(self, *answers: Any) -> None:
        self.left, self.asked = list(answers), list[Any]()

    async def ask(self, question: Any) -> Any:
        self.asked.append(question)
        return self.left.pop(0) if self.left else MISSING


def calls(*arguments: Any, name: str = "pay") -> dict[str, Any]:
    return {"tool_calls": [{"name": name, "arguments": each} for each in arguments]}


def built(model: Any, *tools: Any, **settings: Any) -> RootGraph:
    graph = RootGraph("g")
    node = graph.create_node(Agent, name="w", model=model, tools=list(tools), **settings)
    graph.edge_from_entry(node)
    graph.edge_to_exit(node, ["o"])
    return graph.build()


def reported(model: Scripted, call: int = -1) -> list[str]:
    return [m["content"] for m in model.requests[call].messages if m["role"] == "tool"]


@pytest.fixture
def paid():
    return []


@pytest.fixture
def pay(paid):
    def pay(amount: int, to: str = "Ada") -> str:
        """Pay."""
        paid.append((amount, to))
        return f"paid {amount}"

    pay.needs_approval = True
    return pay


def invoke(graph: RootGraph, person: Person) -> Any:
    return graph.invoke({"message": "x"}, channel=person)[0]


def test_what_is_allowed_is_called_as_it_was_shown(pay, paid):
    person, model = Person("allow"), Scripted([calls({"amount": 5}), '{"o": 1}'])
    assert invoke(built(model, pay), person) == {"o": 1}
    assert paid == [(5, "Ada")]
    (question,) = person.asked
    assert (question.kind, question.options) == ("tool_approval", ("allow", "deny", "edit"))
    assert question.data == {
        "tool": "pay",
        "arguments": {"amount": 5},
        "does": "Pay.",
        "changes": "What it changes, it changes once: a second call changes nothing more.",
    }
    assert '"amount": 5' in question.text


@pytest.mark.parametrize(
    "answer", ["deny", "no", False, "deny: too much", {"answer": "deny", "reason": "too much"}]
)
def test_what_is_denied_is_not_called_and_the_model_hears_why(pay, paid, answer):
    model = Scripted([calls({"amount": 5}), '{"o": 1}'])
    invoke(built(model, pay), Person(answer))
    assert paid == []
    assert (
        reported(model)[0]
        == f"Error: the call was not allowed{': too much' if 'too much' in str(answer) else '.'}"
    )


@pytest.mark.parametrize(
    "answers", [("edit", '{"amount": 3}'), ({"answer": "edit", "arguments": {"amount": 3}},)]
)
def test_edited_arguments_are_used_and_reported_to_the_model(pay, paid, answers):
    model = Scripted([calls({"amount": 5}), '{"o": 1}'])
    invoke(built(model, pay), Person(*answers))
    assert paid == [(3, "Ada")]
    assert reported(model) == ['[a person changed the arguments to {"amount": 3}]\npaid 3']


def test_edited_arguments_that_do_not_fit_are_asked_for_again(pay, paid):
    person = Person("edit", "3 dollars", "edit", '{"amount": "much"}', "allow")
    invoke(built(Scripted([calls({"amount": 5}), '{"o": 1}']), pay), person)
    assert paid == [(5, "Ada")]
    assert person.asked[2].text.startswith("The arguments have to be a JSON object.")
    assert person.asked[4].text.startswith("The arguments do not fit: amount:")


def test_an_answer_that_cannot_be_understood_allows_nothing(pay, paid):
    model = Scripted([calls({"amount": 5}), '{"o": 1}'])
    invoke(built(model, pay), Person("hm", "maybe", 7, "allow"))
    assert paid == []
    assert "no answer could be understood" in reported(model)[0]


def test_only_calls_with_such_arguments_are_asked_about(pay, paid):
    pay.needs_approval = lambda arguments: arguments["amount"] > 10
    person = Person("deny")
    invoke(built(Scripted([calls({"amount": 5}, {"amount": 50}), '{"o": 1}']), pay), person)
    assert paid == [(5, "Ada")]
    assert len(person.asked) == 1


def test_a_predicate_that_fails_lets_nothing_through(pay, paid):
    pay.needs_approval = lambda arguments: arguments["nothing"]
    person = Person("deny")
    invoke(built(Scripted([calls({"amount": 5}), '{"o": 1}']), pay), person)
    assert (paid, len(person.asked)) == ([], 1)


def test_a_call_that_cannot_be_made_is_not_asked_about(pay):
    person, model = Person(), Scripted([calls({"amount": "x"}), '{"o": 1}'])
    invoke(built(model, pay), person)
    assert person.asked == []
    assert reported(model)[0].startswith("Error: wrong arguments: amount:")


@pytest.mark.parametrize("approve", [["find"], ["*"]])
def test_an_agent_can_be_configured_to_ask_about_some_tools(approve):
    def find(q: str) -> str:
        return "found"

    person = Person("deny")
    invoke(
        built(Scripted([calls({"q": "x"}, name="find"), '{"o": 1}']), find, approve=approve), person
    )
    assert [question.data["tool"] for question in person.asked] == ["find"]


def test_approving_a_tool_that_is_not_there_is_an_error(pay):
    with pytest.raises(Exception, match="AX885") as caught:
        invoke(built(Scripted(['{"o": 1}']), pay, approve=["pai"]), Person())
    assert isinstance(caught.value.__cause__, ToolError)
    assert 'Did you mean "pay"?' in str(caught.value)


def test_what_needs_approval_has_to_be_said_clearly(pay):
    pay.needs_approval = "yes"
    with pytest.raises(ToolError, match="AX657"):
        Agent(tools=[pay])


def test_a_tool_object_says_it_itself():
    done: list[Any] = []
    tool = Tool(
        name="pay",
        description="",
        parameters={},
        call=lambda **given: done.append(given),
        needs_approval=True,
    )
    invoke(built(Scripted([calls({}), '{"o": 1}']), tool), Person("deny"))
    assert done == []


def test_each_call_has_a_question_of_its_own_across_pauses(pay, paid):
    """An answer is never taken for the answer to a later question, though what came before it is
    not asked again.
    """

    async def wonder(about: str, ctx: Any) -> str:
        ctx.now()
        return str(await ctx.ask(about))

    model = Scripted(
        [calls({"about": "first?"}, name="wonder"), calls({"amount": 1}, {"amount": 2}), '{"o": 1}']
    )
    graph = built(model, pay, wonder)

    async def run() -> list[list[Any]]:
        journal, shown = MemoryJournal(), list[list[Any]]()
        result = await graph.run({"message": "x"}, run_id="r", journal=journal)
        for answer in ("allow", "allow", "deny"):
            assert result.status == "paused"
            shown.append([question.text.partition("\n")[0] for question in result.questions])
            result = await graph.resume(
                "r", journal=journal, answers={result.questions[0].id: answer}
            )
        assert result.output == {"o": 1}
        return shown

    # the calls of one reply are asked about together
    assert [len(each) for each in asyncio.run(run())] == [1, 2, 1]
    assert paid == [(1, "Ada")]
    assert reported(model) == ["allow", "paid 1", "Error: the call was not allowed."]
    assert len(model.requests) == 3


class Absent:
    """A channel without answers."""

    async def ask(self, question: Any) -> Any:
        await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("late", "message", "came"),
    [("deny", "no answer came in time", []), ("allow", "paid 5", [(5, "Ada")])],
)
def test_the_default_for_a_late_answer_is_stated_beforehand(pay, paid, late, message, came):
    model, clock = Scripted([calls({"amount": 5}), '{"o": "done"}']), VirtualClock()
    graph = built(model, pay, approval=Approval(within_seconds=60, late=late))
    assert graph.invoke({"message": "x"}, channel=Absent(), clock=clock)[0] == {"o": "done"}
    assert (message in reported(model)[0], paid, clock.now()) == (True, came, 60)


def test_an_approval_that_has_to_be_given_fails_the_node_when_it_is_late(pay, paid):
    graph = built(
        Scripted([calls({"amount": 5}), '{"o": "done"}']),
        pay,
        approval=Approval(within_seconds=60, late="fail"),
    )
    with pytest.raises(NodeFailed, match="AX520"):
        graph.invoke({"message": "x"}, channel=Absent(), clock=VirtualClock())
    assert paid == []


def test_arguments_that_are_not_edited_in_time_are_not_used(pay, paid):
    class Hesitant(Person):
        async def ask(self, question: Any) -> Any:
            return await super().ask(question) if self.left else await asyncio.Event().wait()

    model = Scripted([calls({"amount": 5}), '{"o": "done"}'])
    graph = built(model, pay, approval=Approval(within_seconds=60))
    graph.invoke({"message": "x"}, channel=Hesitant("edit"), clock=VirtualClock())
    assert (paid, "no answer came in time" in reported(model)[0]) == ([], True)


def test_an_approval_that_is_late_is_denied_in_another_process_too(pay, paid):
    async def go() -> None:
        journal = MemoryJournal()
        graph = built(
            Scripted([calls({"amount": 5}), '{"o": "done"}']),
            pay,
            approval=Approval(within_seconds=60),
        )
        paused = await graph.run(
            {"message": "x"}, run_id="r", journal=journal, clock=VirtualClock(0)
        )
        assert paused.questions[0].due == 60
        assert (await graph.resume("r", journal=journal, clock=VirtualClock(61))).output == {
            "o": "done"
        }

    asyncio.run(go())
    assert paid == []
