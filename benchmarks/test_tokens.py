"""The table of tokens: that the page says what is counted, and the shape of the costs."""

from __future__ import annotations

import pytest

from .tokens import PAGE, Tally, kept, measured, table


@pytest.fixture(scope="module")
def now() -> dict[str, Tally]:
    """The counts of all applications."""
    return measured()


def test_the_page_has_the_table_of_what_is_counted(now: dict[str, Tally]):
    assert table(kept(), now) in PAGE.read_text("utf-8")


def test_what_agents_send_again_stands_at_the_front(now: dict[str, Tally]):
    shares = {name: tally.share for name, tally in now.items() if tally.share is not None}
    assert shares["an agent, ten calls of a tool"] == 1
    assert shares["team: debate"] == 1
    assert shares["team: company"] >= 0.9
    assert min(shares.values()) >= 0.8


def test_nothing_costs_more_than_before(now: dict[str, Tally]):
    def dear(tally: Tally) -> float:
        """Tokens, where a cached one costs a tenth."""
        return tally.tokens - 0.9 * tally.cached

    before = kept()
    assert [name for name, tally in now.items() if dear(tally) > dear(before[name])] == []
    saved = {name: dear(before[name]) / dear(tally) for name, tally in now.items()}
    assert saved["thirty rounds, the last twenty messages sent; `drop: 10`"] > 2.5
    calls = now["five branches that ask the same; model `cache`"].calls
    assert calls == 1
