"""The hooks: how they are found, frozen, called, and dropped."""

from __future__ import annotations

import contextlib
import inspect
import logging

import pytest

from axil import Graph, RootGraph, hookimpl
from axil.builder.workflow import Workflow
from axil.compiler.planner import CompileOptions
from axil.contract.decisions import DECIDING_HOOKS
from axil.contract.hooks import Hooks, hook_manager
from axil.contract.observers import OBSERVER_HOOKS, PARAMETERS, Observers
from axil.errors import PluginContract, Problem, SpecError
from axil.runtime.run import run_sync
from axil_journals import MemoryJournal
from axil_testing.specs import graph, workflow

MAKING = {"register", "check", "wrap_body", "plan_compiled"}


def flow_with(*plugins, nodes=("a",), edges=("in a", "a out")) -> Workflow:
    return Workflow(graph(list(nodes), list(edges)), CompileOptions(hooks=hook_manager(plugins)))


def test_there_are_twenty_hooks_and_each_says_what_it_is_for():
    hooks = {name for name, value in vars(Hooks).items() if callable(value)}
    assert hooks == {*MAKING, *OBSERVER_HOOKS, *DECIDING_HOOKS}
    assert len(hooks) == 20
    assert all(getattr(Hooks, name).__doc__ for name in hooks)


def test_an_observer_receives_the_arguments_that_its_hook_names():
    named = {
        name: tuple(inspect.signature(getattr(Hooks, name)).parameters)[1:]
        for name in OBSERVER_HOOKS
    }
    for name, parameters in PARAMETERS.items():
        of_run = () if "run_id" in parameters else ("run_id",)
        assert named[name] == (*parameters, *of_run)


def test_an_observer_of_a_plugin_receives_the_run_where_it_asks_for_it():
    seen: list[tuple] = []

    class Listener:
        @hookimpl
        def firing_started(self, run_id, activation, kind):
            seen.append(("started", run_id, activation.node, kind))

        @hookimpl
        def firing_finished(self, activation, run_id):
            seen.append(("finished", run_id, activation.node))

    hooks = hook_manager([Listener()])
    for name in ("r", "s"):
        run_sync(flow_with().start({}, hooks=hooks, run_id=name).result())
    assert seen == [
        word
        for name in ("r", "s")
        for word in (("started", name, "a", "node"), ("finished", name, "a"))
    ]


def test_without_observers_there_is_nothing_to_call():
    for observers in (Observers.freeze(None), Observers.freeze(hook_manager())):
        assert [getattr(observers, name) for name in OBSERVER_HOOKS] == [None] * 12


@pytest.mark.parametrize(
    ("listened", "heard"),
    [
        ("firing_skipped", ["firing_skipped"]),
        # what may be the beginning of a secret is held back until the firing ends
        ("chunk", ["chunk", "firing_finished", "firing_failed"]),
    ],
)
def test_one_listener_leaves_the_other_hooks_empty(listened, heard):
    class Listener:
        @hookimpl
        def listens(self):
            """Listens."""

    setattr(Listener, listened, Listener.__dict__["listens"])
    del Listener.listens
    observers = Observers.freeze(hook_manager([Listener()]))
    assert [name for name in OBSERVER_HOOKS if getattr(observers, name) is not None] == heard


def test_an_observer_sees_the_steps_that_are_taken_and_none_that_is_read_from_the_record():
    seen: list[tuple] = []

    class Listener:
        @hookimpl
        def step_started(self, activation, step, request, run_id):
            seen.append(("started", run_id, activation.node, step, dict(request)))
            request["n"] = "changed"

        @hookimpl
        def step_finished(self, step, result):
            seen.append(("finished", step, result))

        @hookimpl
        def step_failed(self, step, error):
            seen.append(("failed", step, str(error)))

    sent = {"n": 1}

    async def body(inputs, ctx):
        async def call():
            return dict(sent)

        async def fails():
            raise ValueError("no line")

        result = await ctx.step("ask", call, request=lambda: sent)
        with contextlib.suppress(ValueError):
            await ctx.step("fail", fails, request={})
        await ctx.ask("Which?", name="which")
        return result

    built = RootGraph("steps")
    node = built.create_node(body, name="a")
    built.edge_from_entry(node, {})
    built.edge_to_exit(node, ["n"])
    flow, journal = built.build(), MemoryJournal()
    options = {"journal": journal, "run_id": "r", "hooks": hook_manager([Listener()])}
    paused = run_sync(flow.start({}, **options).result())
    failed = [("started", "r", "a", "fail", {}), ("failed", "fail", "no line")]
    assert seen == [
        ("started", "r", "a", "ask", {"n": 1}),
        ("finished", "ask", {"n": 1}),
        *failed,
    ]
    seen.clear()
    answers = {paused.questions[0].id: "this"}
    result = run_sync(flow.start({}, **options, resuming=True, answers=answers).result())
    assert result.output == {"n": 1}
    assert seen == failed  # an error is not recorded: the step was taken again


def test_an_observer_sees_a_run_from_beginning_to_end():
    seen: list[tuple] = []

    class Listener:
        @hookimpl
        def run_started(self, run_id, plan):
            seen.append(("run_started", plan.graph.spec.id))

        @hookimpl
        def firing_started(self, activation, kind):
            seen.append(("started", str(activation), kind))

        @hookimpl
        def firing_finished(self, activation, kind, output):
            seen.append(("finished", str(activation), output))

        @hookimpl
        def firing_skipped(self, activation, kind):
            seen.append(("skipped", str(activation)))

        @hookimpl
        def run_finished(self, run_id, result):
            seen.append(("run_finished", result.status))

    flow_with(Listener(), nodes=("a", "b", "c"), edges=("in a", "a out", "b c")).invoke({})
    assert seen[0] == ("run_started", "g")
    assert seen[-1] == ("run_finished", "done")
    assert sorted(map(str, seen[1:-1])) == [
        "('finished', 'a', {'by': 'a'})",
        "('skipped', 'b')",
        "('skipped', 'c')",
        "('started', 'a', 'node')",
    ]


def test_arguments_are_given_by_name_in_any_order_and_any_number():
    seen: list = []

    class Listener:
        @hookimpl
        def firing_finished(self, output, activation):
            seen.append((output, str(activation)))

        @hookimpl
        def run_finished(self):
            seen.append("end")

    flow_with(Listener()).invoke({})
    assert seen == [({"by": "a"}, "a"), "end"]


def test_an_observer_object_may_name_arguments_in_any_order_too():
    seen: list = []

    class Listener:
        def firing_finished(self, output, kind, activation):
            seen.append((output, kind, str(activation)))

    workflow(["a"], ["in a", "a out"]).invoke({}, observers=[Listener()])
    assert seen == [({"by": "a"}, "node", "a")]


def test_an_observer_may_have_parameters_of_its_own_before_the_events():
    seen: list = []

    class Listener:
        def firing_finished(self, mark="!", activation=None):
            seen.append((str(activation), mark))

        def firing_started(self, *, activation):
            seen.append(str(activation))

    workflow(["a"], ["in a", "a out"]).invoke({}, observers=[Listener()])
    assert seen == ["a", ("a", "!")]


def test_listeners_are_called_in_pluggys_order_and_objects_after_them():
    seen: list[str] = []

    def listener(name, **how):
        class Listener:
            @hookimpl(**how)
            def run_started(self):
                seen.append(name)

        return Listener()

    class Plain:
        def run_started(self, run_id):
            seen.append("object")

    hooks = [
        listener("a"),
        listener("last", trylast=True),
        listener("b"),
        listener("first", tryfirst=True),
    ]
    flow_with(*hooks).invoke({}, observers=[Plain()])
    assert seen == ["first", "b", "a", "last", "object"]


def test_an_observer_that_raises_is_logged_and_dropped_and_changes_nothing(caplog):
    calls: list[str] = []

    class Broken:
        @hookimpl
        def firing_started(self, activation):
            calls.append(str(activation))
            raise RuntimeError("not my day")

        @hookimpl
        def run_finished(self):
            calls.append("never")

    class Sound:
        @hookimpl
        def firing_started(self, activation):
            calls.append(f"sound {activation}")

    hooks = hook_manager()
    hooks.register(Broken(), name="broken-plugin")
    hooks.register(Sound())
    flow = Workflow(graph(["a", "b"], ["in a", "a b", "b out"]), CompileOptions(hooks=hooks))
    with caplog.at_level(logging.ERROR, "axil.hooks"):
        assert flow.invoke({}) == ({"by": "b"}, {})
    assert sorted(calls) == ["a", "sound a", "sound b"]
    assert "broken-plugin" in caplog.text
    assert "not my day" in caplog.text


def test_an_observer_dropped_in_one_run_is_back_in_the_next(caplog):
    calls: list[str] = []

    class Broken:
        @hookimpl
        def run_started(self, run_id):
            calls.append(run_id)
            raise RuntimeError("no")

    flow = flow_with(Broken())
    for _ in range(2):
        flow.invoke({})
    assert len(calls) == 2


def test_a_failure_is_shown_with_what_was_raised():
    seen: list = []

    class Listener:
        @hookimpl
        def firing_failed(self, activation, kind, error):
            seen.append((str(activation), kind, type(error)))

    from axil_testing.specs import node

    flow = Workflow(
        graph([node("a", lambda task, ctx: 1 / 0)], ["in a"]),
        CompileOptions(hooks=hook_manager([Listener()])),
    )
    with pytest.raises(Exception, match="ZeroDivisionError"):
        flow.invoke({})
    assert seen == [("a", "node", ZeroDivisionError)]


def test_a_plugins_check_is_reported_with_all_other_problems():
    class Strict:
        @hookimpl
        def check(self, spec):
            return [Problem("XX001", "here", f"{spec.id} is not to my liking.")]

    flow = flow_with(Strict(), nodes=("a",), edges=("in a", "a nowhere"))
    with pytest.raises(SpecError) as error:
        flow.plan  # noqa: B018  # compiled when it is first asked for
    assert {p.id for p in error.value.problems} == {"AX104", "XX001"}


def test_wrap_body_makes_an_onion_once_when_the_plan_is_made():
    order: list[str] = []

    def wrapper(name):
        class Wrapper:
            @hookimpl
            def wrap_body(self, spec, body):
                order.append(f"wrap {name} {spec.id}")

                class Around:
                    mode = body.mode
                    wants_ctx = True

                    def __call__(self, task, ctx):
                        order.append(f"in {name}")
                        try:
                            return body(task, ctx)
                        finally:
                            order.append(f"out {name}")

                return Around()

        return Wrapper()

    flow = flow_with(wrapper("inner"), wrapper("outer"))
    flow.plan  # noqa: B018  # compiled when it is first asked for
    wrapped = list(order)
    assert len(wrapped) == 2
    for _ in range(2):
        order.clear()
        assert flow.invoke({}) == ({"by": "a"}, {})
        assert order[0].removeprefix("in ") == order[-1].removeprefix("out ")
        assert len(order) == 4


def test_wrap_body_may_leave_a_body_as_it_is():
    class Leaves:
        @hookimpl
        def wrap_body(self, spec):
            return None

    assert flow_with(Leaves()).invoke({}) == ({"by": "a"}, {})


def test_plan_compiled_receives_the_plan():
    plans: list = []

    class Listener:
        @hookimpl
        def plan_compiled(self, plan):
            plans.append(plan)

    flow = flow_with(Listener())
    assert flow.plan is plans[0]


@pytest.mark.parametrize("is_named", [True, False])
def test_a_hook_that_does_not_exist_or_lacks_an_argument_is_refused(is_named):
    class Misspelt:
        @hookimpl
        def run_begun(self):
            """There is no such hook."""

    class Greedy:
        @hookimpl
        def run_started(self, weather):
            """Ask for what the hook does not give."""

    for plugin, fault in (Misspelt(), "unknown hook 'run_begun'"), (Greedy(), "weather"):
        with pytest.raises(PluginContract, match=r"AX305.*does not fit.*run_started") as caught:
            hook_manager([plugin], ["mine"] if is_named else [])
        assert fault in str(caught.value)
        assert ('"mine"' if is_named else type(plugin).__name__) in str(caught.value)


def test_a_root_graph_may_be_given_its_hooks():
    seen: list[str] = []

    class Listener:
        @hookimpl
        def run_started(self, run_id):
            seen.append(run_id)

    g = RootGraph("g", hooks=hook_manager([Listener()]))
    a = g.create_node(lambda inputs: {"message": "hi"}, name="a")
    g.edge_from_entry(a, {})
    g.edge_to_exit(a)
    g.build().invoke({}, run_id="mine")
    assert seen == ["mine"]


def test_an_observer_receives_inputs_and_what_each_edge_carries():
    seen: list[tuple] = []

    class Listener:
        @hookimpl
        def run_started(self, inputs):
            seen.append(("run", inputs))

        @hookimpl
        def firing_received(self, activation, payloads):
            received = [(each.edge, dict(each.payload)) for each in payloads]
            seen.append(("received", activation.path, *received))

        @hookimpl
        def firing_sent(self, activation, payloads):
            sent = [(each.target, dict(each.payload)) for each in payloads]
            seen.append(("sent", activation.path, *sent))
            for each in payloads:
                each.payload["n"] = "changed"

    def twice(inputs):
        return {"n": inputs["n"] * 2}

    inner = Graph("inner")
    c = inner.create_node(twice, name="c")
    inner.edge_from_entry(c, ["n"])
    inner.edge_to_exit(c, ["n"])
    root = RootGraph("root", hooks=hook_manager([Listener()]))
    a, b = (root.create_node(twice, name=name) for name in "ab")
    sub = root.create_node(inner, name="sub")
    root.edge_from_entry(a, ["n"])
    root.create_edge(a, b, ["n"])
    root.create_edge(a, sub, ["n"])
    root.edge_to_exit(b, ["n"])
    root.edge_to_exit(sub, ["n"])
    output, _ = root.build().invoke({"n": 1})
    assert output["n"] == [4, 4]
    assert seen[:3] == [
        ("run", {"n": 1}),
        ("sent", "@entry", ("a", {"n": 1})),
        ("received", "a", ("@entry->a", {"n": 1})),
    ]
    assert ("sent", "a", ("b", {"n": 2}), ("sub", {"n": 2})) in seen
    assert ("received", "sub", ("a->sub", {"n": 2})) in seen
    assert ("sent", "sub/@entry", ("c", {"n": 2})) in seen
    assert ("received", "sub/c", ("@entry->c", {"n": 2})) in seen
    assert ("sent", "sub", ("@exit", {"n": 4})) in seen


def test_an_observer_of_edges_hears_each_way_a_round_is_taken():
    """Short ways of the machine report as long ways do: in memory, and where it is recorded."""

    def heard(**options) -> list[tuple]:
        seen: list[tuple] = []

        class Listener:
            def firing_received(self, activation, payloads):
                seen.append((str(activation), "in", [each.edge for each in payloads]))

            def firing_sent(self, activation, payloads):
                seen.append((str(activation), "out", [each.edge for each in payloads]))

        flow = workflow(["a", "b", "c", "d"], ["in a", "a b", "a c", "b d", "c d", "d out"])
        run_sync(flow.start({}, observers=[Listener()], **options).result())
        return sorted(seen)

    assert heard() == heard(journal=MemoryJournal())
    assert ("d", "in", ["b->d", "c->d"]) in heard()


def test_a_step_says_what_it_calls():
    seen: list[tuple] = []

    class Listener:
        def step_started(self, step, kind):
            seen.append((step, kind))

        def step_finished(self, kind, result):
            seen.append((result, kind))

    async def body(inputs, ctx):
        async def call():
            return 1

        await ctx.step("ask", call, kind="model")
        await ctx.step("other", call)
        return {}

    root = RootGraph("steps")
    node = root.create_node(body, name="n")
    root.edge_from_entry(node, {})
    root.edge_to_exit(node, {})
    root.build().invoke({}, observers=[Listener()])
    assert seen == [("ask", "model"), (1, "model"), ("other", ""), (1, "")]
