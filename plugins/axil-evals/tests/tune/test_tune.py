"""Tuning: edits of files, parameters, searches, evidence, the command."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest
import yaml

from axil_agent import models_through
from axil_evals import LEVEL, Case, Dataset, Search, Tuned, TuneError, parameters, tune, weigh
from axil_evals.tuning.parameters import data_of, ends
from axil_evals.tuning.search import split
from axil_files import load
from axil_journals import MemoryJournal
from axil_models import Reply, Usage

FLOW = """\
# The capitals of countries.
version: 1
graph:
  start: [answer]   # the only one
  limits:   # a call costs 1
    pricing: {models: {small: {input: 0, output: 1000000}}}
    estimate: {output_tokens: 1}
  nodes:
    - id: answer
      type: agent
      config:
        model: {type: scripted, name: small}   # in place
        # what it is asked
        instructions: Name a capital.   # short
        max_turns: 3
"""
COUNTRIES = [f"country{n}" for n in range(24)]


def cases() -> Dataset:
    """Return questions whose answers are the questions in capitals."""
    made = tuple(Case(name=name, inputs=name, expected=name.upper()) for name in COUNTRIES)
    return Dataset(name="capitals", cases=made, scorers=("exact",))


class Knowing:
    """A model that answers rightly a share of what it is asked, by its instructions; and proposes
    instructions.
    """

    name = "small"

    def __init__(self, rules: dict[str, float], proposals: tuple[str, ...] = ()) -> None:
        self.rules, self.proposals = rules, proposals
        self.asked = 0

    async def reply(self, request, emit):
        self.asked += 1
        system, user = (str(message["content"]) for message in request.messages[:2])
        known = f"{system} {dict(request.settings)}"
        if system.startswith("You improve"):
            number = sum(text in user for text in self.proposals)
            return self.said(self.proposals[number % len(self.proposals)])
        share = sum(share for text, share in self.rules.items() if text in known)
        draw = random.Random(f"{known}/{user}")
        return self.said(user.upper() if draw.random() < share else "no idea")

    def said(self, text: str) -> Reply:
        return Reply(text=text, usage=Usage(input_tokens=1, output_tokens=1), model="small")


def tuned(model: Knowing, search: Search, text: str = FLOW, **given) -> Tuned:
    with models_through(lambda meant, written: model):
        return asyncio.run(tune(text, "flow.yaml", cases(), search, opened, **given))


def opened(text: str):
    return load("flow.yaml", texts={"flow.yaml": text})


# ------------------------------------------------------------------ what a file has


def test_a_file_that_is_neither_yaml_nor_json_is_not_tuned():
    with pytest.raises(TuneError, match="AX985"):
        data_of("a = 1", "f.toml")


def test_parameters_have_the_names_of_their_nodes():
    data = yaml.safe_load("""
        templates: {critic: {type: agent, config: {instructions: C.}}}
        graph:
          end: out
          cycle_limits: {look: {rounds: 3}}
          nodes:
            - {id: look, type: agent, config: {instructions: "${TEXT}", model: m}}
            - {id: out, type: agent, config: {instructions: O.}}
            - id: part
              type: subgraph
              config: {type: config, config: {nodes: [{id: in, config: {instructions: I.}}]}}
        """)
    found = parameters(data)
    assert {each.name: each.kind for each in found} == {
        "critic.instructions": "instructions",
        "look.rounds": "rounds",
        "look.model": "model",
        "out.instructions": "instructions",
        "part/in.instructions": "instructions",
    }
    assert [each.name for each in ends(data, found)] == ["out.instructions"]


# ------------------------------------------------------------------ searches


def test_a_planted_better_instruction_is_found_and_written():
    model = Knowing({"Name": 0.2, "in capitals": 1.0}, ("Guess.", "Answer in capitals.", "Hm."))
    found = tuned(model, Search(budget=1e6))
    assert found.outcome == "better"
    assert found.evidence is not None
    assert found.evidence.after.mean == 1.0
    assert found.text == FLOW.replace("Name a capital.", "Answer in capitals.")
    assert not set(found.split[0]) & set(found.split[1])
    assert len(found.tried) > 5  # examples, too


def test_where_nothing_is_better_it_says_so_and_the_file_stays():
    model = Knowing({"": 0.5}, ("Guess.", "Think.", "Hm."))
    found = tuned(model, Search(budget=1e6))
    assert found.outcome == "no better"
    assert found.text == FLOW
    worse = Knowing({"Name": 1.0}, ("Guess.",))
    assert tuned(worse, Search(budget=1e6, examples=())).evidence is None


def test_own_tries_and_changes_that_help_together_are_combined():
    model = Knowing({"Name": 0.1, "in capitals": 0.4, "'temperature': 0.5": 0.5})
    tries = [
        {"node": "answer", "key": "model", "values": [{"type": "scripted", "name": "small"}]},
        {"node": "answer", "key": "instructions", "values": ["Name in capitals.", "Name it."]},
        {"node": "answer", "key": "model_settings.temperature", "values": [0.5, 0.7]},
        {"node": "answer", "key": "no_such_setting", "values": [1]},
    ]
    found = tuned(model, Search(budget=1e6, tries=tries, proposals=0, examples=()))
    assert sorted(each.described() for each in found.variant) == [
        "answer.instructions = Name in capitals.",
        "answer.model_settings.temperature = 0.5",
    ]
    assert "        max_turns: 3\n        model_settings: {temperature: 0.5}\n" in found.text
    assert any("no_such_setting" in note for note in found.notes)
    with pytest.raises(TuneError, match=r'AX986.*Did you mean "answer"'):
        tuned(model, Search(budget=1, tries=[{"node": "anwser", "key": "k", "values": []}]))


def test_the_same_search_goes_on_where_it_broke_off_and_does_the_same():
    class Breaking(Knowing):
        async def reply(self, request, emit):
            if self.asked == 40:
                raise KeyboardInterrupt
            return await super().reply(request, emit)

    rules, proposals = {"Name": 0.2, "in capitals": 1.0}, ("Guess.", "Answer in capitals.")
    search, journal = Search(budget=1e6, concurrency=1, examples=()), MemoryJournal()
    whole = Knowing(rules, proposals)
    expected = tuned(whole, search)
    with pytest.raises(KeyboardInterrupt):
        tuned(Breaking(rules, proposals), search, journal=journal, run_id="t")
    rest = Knowing(rules, proposals)
    assert tuned(rest, search, journal=journal, run_id="t") == expected
    assert whole.asked - 40 <= rest.asked <= whole.asked - 39
    again = Knowing(rules, proposals)
    assert tuned(again, search, journal=journal, run_id="t") == expected
    assert again.asked == 0


def test_a_budget_is_not_passed_and_what_is_left_is_for_the_held_out_part():
    for budget in (60, 90, 200):
        model = Knowing({"Name": 0.2, "in capitals": 1.0}, ("Guess.", "Answer in capitals."))
        found = tuned(model, Search(budget=budget, examples=()))
        assert model.asked == found.spent <= budget  # a call costs 1
        assert found.evidence is not None or found.tried[-1].gain <= 0
    with pytest.raises(TuneError, match="AX987"):
        tuned(Knowing({"Name": 0.2}), Search(budget=20))


def test_too_few_cases_are_refused_before_anything_is_spent():
    few = Dataset(name="few", cases=cases().cases[:8], scorers=("exact",))
    with pytest.raises(TuneError, match=r"AX986.*no difference could be told from chance"):
        split(few, Search(budget=1))
    training, held = split(few, Search(budget=1, repeats=2))
    assert len(training.cases) == len(held.cases) == 4


# ------------------------------------------------------------------ evidence


@pytest.mark.parametrize(("finalists", "repeats"), [(1, 1), (3, 1), (2, 2)])
def test_a_variant_that_is_no_better_is_called_better_as_rarely_as_the_level_says(
    finalists, repeats
):
    """Every variant answers as the file does; several are tested on the same answers of it."""
    searches, wrong = 400 // repeats**2, 0
    for seed in range(searches):
        draw = random.Random(seed)

        def drawn(draw=draw) -> dict[str, list[float]]:
            return {str(n): [float(draw.random() < 0.5) for _ in range(repeats)] for n in range(12)}

        before = drawn()
        tested = [
            {n: (before[n], values) for n, values in drawn().items()} for _ in range(finalists)
        ]
        wrong += any(each.is_better for each in weigh(tested))
    spread = (searches * LEVEL * (1 - LEVEL)) ** 0.5
    assert 0 < wrong <= LEVEL * searches + 3 * spread


# ------------------------------------------------------------------ the command


def test_the_command_writes_the_file_and_its_evidence(tmp_path, monkeypatch, capsys):
    from axil_cli.main import main

    monkeypatch.chdir(tmp_path)
    model = """{type: scripted, default: no idea, rules: [
          {match: {system_contains: You improve}, replies: [Repeat it.]},
          {match: {system_contains: Repeat}, replies: [{text: "A"}]}]}"""
    flow = FLOW.replace("{type: scripted, name: small}", model)
    flow = "".join(
        line
        for line in flow.splitlines(keepends=True)
        if not any(word in line for word in ("limits", "pricing", "estimate"))
    )
    Path("flow.yaml").write_text(flow)
    Path("cases.csv").write_text(
        "".join(["question,expected\n", *(f"c{n},A\n" for n in range(12))])
    )
    typed = ["tune", "flow.yaml", "cases.csv", "--budget", "2.00", "--journal", "kept"]
    code = main([*typed, "--proposals", "1"])
    said = capsys.readouterr()
    assert code == 0, said
    assert "Better: 0.000" in said.out
    assert "instructions: Repeat it.   # short" in Path("flow.tuned.yaml").read_text()
    assert "p, of one side" in Path("flow.tuned.md").read_text()
    assert main([*typed, "--proposals", "0", "--out", "none.yaml"]) == 1
    assert "better on the training part" in capsys.readouterr().out
    assert not Path("none.yaml").exists()
    assert main([*typed, "--held-out", "0.2"]) == 2
    assert "AX986" in capsys.readouterr().err
