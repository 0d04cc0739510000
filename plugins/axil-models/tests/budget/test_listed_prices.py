"""Prices of a table that is kept, of reads and writes of caches, and discounts; reserved before."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from genai_prices import Usage as Used, calc_price

from axil import ConfigError, Limits, RootGraph, SpecError, run_sync
from axil_models import Price, Prices, Pricing, Usage

CLAUDE, GPT = "claude-sonnet-4-5", "gpt-4.1-mini"
TABLE = Pricing(table="genai_prices")


def test_reads_and_writes_of_caches_have_their_price():
    price = Price(input=4, output=10, cached=1, cache_write=5)
    assert price.of(1_000_000, 100_000, 400_000, 200_000) == 1.6 + 0.4 + 1.0 + 1.0
    usage = Usage(input_tokens=1000, output_tokens=100, cached_tokens=400, cache_write_tokens=200)
    stated = Prices(input=4, output=10, cached=1, cache_write=5)
    assert stated.priced(usage).cost == pytest.approx(0.004)
    without = Price(input=4, output=10)
    assert without.of(1_000_000, 0, 400_000, 200_000) == 4


@pytest.mark.parametrize("name", [CLAUDE, GPT, f"openai/{GPT}", f"anthropic/{CLAUDE}"])
def test_a_model_costs_what_the_table_says(name):
    price = TABLE.price([name])
    assert price is not None
    used = Used(
        input_tokens=300_000, output_tokens=2_000, cache_read_tokens=1_000, cache_write_tokens=500
    )
    expected = calc_price(used, name.rpartition("/")[2]).total_price
    assert price.of(300_000, 2_000, 1_000, 500) == pytest.approx(float(expected))


def test_own_prices_come_before_the_tables():
    pricing = Pricing(models={GPT: Price(input=1, output=1)}, table="genai_prices")
    assert pricing.price([GPT]) == Price(input=1, output=1)


def test_a_model_that_the_table_does_not_have_is_unknown():
    assert TABLE.price(["my-own-model", ""]) is None
    with pytest.raises(ValueError, match=r"AX418|has no price"):
        TABLE.needed(["my-own-model"])


def test_the_table_is_part_of_a_file():
    data = {"models": {GPT: {"input": 1.0, "output": 2.0, "cache_write": 3.0}}}
    pricing = Pricing.read({**data, "table": "genai_prices"})
    assert pricing.plain() == {**data, "unknown": "refuse", "table": "genai_prices"}
    with pytest.raises(SpecError, match=r"AX128.*pricing\.table"):
        Pricing.read({"table": "mine"})


def test_the_table_knows_what_transcripts_cost_by_tokens_and_by_time():
    by_tokens, by_time = TABLE.price(["gpt-4o-mini-transcribe"]), TABLE.price(["whisper-1"])
    assert by_tokens is not None
    assert by_time is not None
    assert by_tokens.of(600, 100, 0, 0, (600, 0, 0)) > by_tokens.of(600, 100) > 0
    assert by_time.of(600, 100, audio_seconds=90.5) == pytest.approx(90.5 / 3600 * 0.36)


def test_without_the_library_the_table_is_an_error(monkeypatch):
    monkeypatch.setitem(sys.modules, "genai_prices.data_snapshot", None)
    with pytest.raises(ConfigError, match=r"(?s)AX301.*genai-prices.*\[prices\]"):
        TABLE.price([GPT])


def graph_of(**used: Any) -> Any:
    async def ask(inputs: Any, ctx: Any) -> Any:
        with await ctx.reserve(model=CLAUDE, input_tokens=1000, output_tokens=1000) as reservation:
            reservation.settle(model=CLAUDE, input_tokens=1000, output_tokens=1000, **used)
        return {"text": "done"}

    graph = RootGraph("g")
    graph.create_node(ask, name="ask")
    graph.edge_from_entry("ask", ["question"])
    graph.edge_to_exit("ask", ["text"])
    return graph.build()


def cost(limit: float = 1.0, **used: Any) -> tuple[str, float]:
    limits = Limits(cost=limit, pricing=TABLE)
    result = run_sync(graph_of(**used).run({"question": "?"}, limits=limits))
    return result.status, result.usage.cost


def test_a_run_costs_what_the_table_says():
    whole = float(calc_price(Used(input_tokens=1000, output_tokens=1000), CLAUDE).total_price)
    assert cost() == ("done", pytest.approx(whole))
    assert cost(discount=0.5) == ("done", pytest.approx(whole / 2))
    assert cost(cost=0.25) == ("done", 0.25)
    written = Used(input_tokens=1000, output_tokens=1000, cache_write_tokens=800)
    price = float(calc_price(written, CLAUDE).total_price)
    assert cost(cache_write_tokens=800) == ("done", pytest.approx(price))


def test_a_call_is_reserved_at_its_dearest_before_it_is_made():
    dearest = Used(input_tokens=1000, output_tokens=1000, cache_write_tokens=1000)
    most = float(calc_price(dearest, CLAUDE).total_price)
    assert cost(most * 1.001)[0] == "done"
    assert cost(most * 0.999) == ("limited", 0)


def test_tokens_of_audio_have_a_price_of_their_own():
    price = TABLE.price(["gpt-realtime"])
    assert price is not None
    audio = (800, 60, 100)  # input, output, and of the input those of the cache
    wanted = 200 * 4 + 700 * 32 + 100 * 0.4 + 40 * 16 + 60 * 64
    assert price.of(1000, 100, 100, 0, audio) == pytest.approx(wanted / 1e6)
    stated = Price(input=4, output=16, cached=0.4, audio_input=32, audio_output=64)
    assert stated.of(1000, 100, 100, 0, audio) == pytest.approx(wanted / 1e6)
