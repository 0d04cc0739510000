"""Laws of ``axil check`` and ``axil schema``."""

from __future__ import annotations

import json

import pytest

from axil_cli.command import Exit


def test_a_file_without_problems_is_fine(axil, flow):
    file = flow(["a echo", "b echo"], ["a b"])
    assert axil("check", file) == (0, f"{file}: fine; 2 nodes, 1 edge\n", "")


def test_all_problems_of_all_files_are_said_with_their_place(axil, flow):
    one = flow(["a echo", "b ecko"], ["a b"], name="one.json")
    two = flow(["a echo"], ["a c"], name="two.json")
    done = axil("check", one, two, flow(["a echo"], name="three.json"))
    assert done.code == Exit.MISUSE
    assert "error: AX301" in done.out
    assert "two.json:1" in done.out
    assert "AX104" in done.out
    assert "three.json: fine" in done.out


def test_warnings_are_no_errors(axil, flow):
    done = axil("check", flow(["a echo", "b echo", "c echo"], ["a c", "b c"]))
    assert done.code == 0
    assert "warning: AX113" in done.out
    assert "1 warning; 3 nodes" in done.out


def test_a_misspelt_field_in_a_condition_on_declared_fields_is_a_warning(axil, flow):
    agent = {
        "id": "a",
        "type": "agent",
        "config": {"output": {"category": "spam or ham"}, "model": {"type": "scripted"}},
    }
    routes = {"c": 'message.catgory == "spam"', "d": 'message.category == "ham"'}
    switch = {"id": "b", "type": "switch", "config": {"routes": routes}}
    done = axil(
        "check",
        flow(
            [agent, switch, "c echo", "d echo"],
            ["a b", "b c", "b d"],
            start="a",
            end="c",
            version=1,
        ),
    )
    assert "AX158" in done.out
    read = "message.catgory is read, but the known fields are category."
    assert f'{read} Did you mean "category"?' in done.out
    assert "1 warning" in done.out


def test_cycles_are_shown_with_members_entry_and_limit(axil, flow):
    edges = ["a b", "b a", "b b", "b c"]
    done = axil(
        "check",
        flow(
            ["a echo", "b echo", "c echo"],
            edges,
            cycle_limits={"a": {"rounds": 7}, "*": {"rounds": "unlimited"}},
        ),
    )
    assert done.code == 0
    assert "  cycle(a,b): a, b; entered at a; at most 7 rounds, then limited\n" in done.out
    assert "    cycle(b): b; entered at b; no limit of its own\n" in done.out


def test_a_limit_that_is_an_exit_says_so(axil, flow):
    done = axil(
        "check",
        flow(
            ["a echo", "b echo"],
            ["a a", "a b"],
            cycle_limits={"a": {"rounds": 1, "at_limit": "exit"}},
        ),
    )
    assert "entered at a; at most 1 round, then out" in done.out


def test_a_finding_is_data_too(axil, flow):
    edges = ["a b", "b a", "b c"]
    data = axil("check", flow(["a echo", "b echo", "c echo"], edges), "--format", "json").data
    assert data["fine"] is True
    assert data["files"][0]["problems"] == []
    assert data["files"][0]["cycles"] == [
        {
            "name": "cycle(a,b)",
            "members": ["a", "b"],
            "depth": 1,
            "entries": [{"node": "a", "rounds": 100, "at_limit": "limited"}],
        }
    ]
    done = axil("check", flow(["a ecko"]), "--format", "json")
    assert done.code == Exit.MISUSE
    problem = done.data["files"][0]["problems"][0]
    assert (problem["id"], problem["severity"]) == ("AX301", "error")


def test_a_cycle_that_nothing_enters_is_shown(axil, flow):
    done = axil(
        "check", flow(["a echo", "b echo", "c echo"], ["b c", "c b", "a c"], start=["a"], end=["b"])
    )
    assert "entered at c" in done.out
    done = axil(
        "check", flow(["a echo", "b echo", "c echo"], ["b c", "c b"], start=["a"], end=["a"])
    )
    assert "never entered" in done.out


def test_variables_can_be_set(axil, flow):
    file = flow([{"id": "a", "type": "${KIND}"}])
    assert axil("check", file).code == Exit.MISUSE
    assert axil("check", file, "--set", "KIND=echo").code == 0


def test_the_schema_holds_the_config_of_what_is_installed(axil):
    schema = axil("schema").data
    assert schema["$schema"].startswith("https://json-schema.org/")
    say = next(
        rule
        for rule in schema["$defs"]["nodes"]["allOf"]
        if rule["if"]["properties"]["type"]["const"] == "say"
    )
    assert "text" in str(say["then"])


def test_a_cycle_that_is_surely_entered_twice_is_a_warning(axil, flow):
    edges = ["s a", "s b", {"from": "a", "to": "b", "condition": "yes"}, "b a", "a z"]
    nodes = ["s echo", "a echo", "b echo", "z echo"]
    done = axil("check", flow(nodes, edges))
    assert done.code == 0
    assert "warning: AX402" in done.out
    assert "s -> a, s -> b" in done.out
    edges[0] = {"from": "s", "to": "a", "condition": "yes"}
    done = axil("check", flow(nodes, edges))
    assert "warning" not in done.out
    assert "fails with AX402 if several are taken at once" in done.out


def test_what_may_be_hidden_is_said(axil, flow, tmp_path):
    assert axil("check", flow(["a ecko"])).out.endswith(
        ": 1 error; more may follow once these are mended\n"
    )
    assert axil("check", tmp_path / "none.json").out.endswith(": 1 error\n")


def test_a_number_where_text_is_expected_gets_a_hint_how_to_write_text(axil, flow):
    assert (
        'expected text, found 3. Write "3".'
        in axil("check", flow([{"id": "a", "type": "say", "config": {"text": 3}}])).out
    )


def waiting(flow) -> str:
    """Return a file with a join that waits for both ways of a switch."""
    routes = {"b": "len(text) < 9", "c": "len(text) >= 9"}
    nodes = [
        {"id": "a", "type": "switch", "config": {"routes": routes}},
        "b echo",
        "c echo",
        {"id": "d", "type": "passthrough", "join": "all"},
    ]
    return flow(nodes, ["a b", "a c", "b d", "c d"], version=1, start="a", end="d")


def test_what_is_proved_is_a_warning_with_its_place(axil, flow):
    done = axil("check", waiting(flow))
    assert done.code == 0
    assert "warning: AX180" in done.out
    assert "The shortest way there is @entry -> a -> b -> d." in done.out


def test_findings_as_sarif_have_rule_level_place_and_text(axil, flow):
    sarif = pytest.importorskip("sarif_pydantic")
    file = waiting(flow)
    done = axil("check", file, flow(["a ecko"], name="two.json"), "--format", "sarif")
    assert done.code == Exit.MISUSE
    log = json.loads(done.out)
    [run] = sarif.Sarif.model_validate(log).runs
    assert [rule.id for rule in run.tool.driver.rules] == ["AX180", "AX301"]
    first, second = run.results
    assert (first.rule_id, first.level.value, second.level.value) == ("AX180", "warning", "error")
    place = log["runs"][0]["results"][0]["locations"][0]
    assert place["physicalLocation"]["artifactLocation"]["uri"].endswith("flow.json")
    assert place["physicalLocation"]["region"]["startLine"] >= 1
    assert place["logicalLocations"] == [{"fullyQualifiedName": "nodes[3]"}]
    assert "exclude each other" in first.message.text


def including(flow, folder) -> None:
    """Write a file in ``folder`` that includes one below it with an edge that is never taken."""
    inner = waiting(flow)
    (folder / "a b" / "sub").mkdir(parents=True)
    (folder / inner).rename(folder / "a b" / "sub" / "inner.json")
    use = {"type": "file", "config": {"path": "sub/inner.json"}}
    outer = flow([{"id": "s", "type": "subgraph", "config": use}], [], version=1)
    (folder / outer).rename(folder / "a b" / "outer.json")


def test_a_place_in_an_included_file_is_found_from_the_working_folder(
    axil, flow, tmp_path, monkeypatch
):
    including(flow, tmp_path)
    monkeypatch.chdir(tmp_path)
    inner = "a b/sub/inner.json"
    assert f"warning: AX180 {inner}:" in axil("check", "a b/outer.json").out
    [found] = axil("check", "a b/outer.json", "--format", "json").data["files"]
    assert found["problems"][0]["where"].startswith(f"{inner}:")
    log = axil("check", "a b/outer.json", "--format", "sarif").data
    place = log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == "a%20b/sub/inner.json"
    monkeypatch.chdir("a b")
    assert "warning: AX180 sub/inner.json:" in axil("check", "outer.json").out


def test_a_check_as_data_has_the_most_that_a_run_may_use(axil, flow):
    done = axil("check", waiting(flow), "--format", "json")
    [found] = json.loads(done.out)["files"]
    assert found["most"]["firings"] == {"most": 4, "why": ""}
    assert found["likely"] is None


def test_an_estimate_reads_recorded_runs_and_makes_no_journal(axil, flow, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    agent = {"model": {"type": "scripted", "default": "x"}, "max_repairs": 0}
    file = flow([{"id": "a", "type": "agent", "config": agent}], [], version=1)
    done = axil("check", file, "--estimate")
    assert "at most:" in done.out
    assert "model calls    1\n" in done.out
    assert "tokens         not bounded (no limits.tokens)" in done.out
    assert not (tmp_path / ".axil").exists()
    for _ in range(3):
        assert axil("run", file, "--input", "hello", "--journal", "runs").code == 0
    done = axil("check", file, "--estimate", "--journal", "runs")
    assert "firings        1; likely 1, in 9 of 10 runs up to 1" in done.out
    assert "model calls    1; likely 1, in 9 of 10 runs up to 1" in done.out
    assert "by 3 recorded runs of this version" in done.out
