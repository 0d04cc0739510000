"""The plugin explains words to an agent, and passes the kit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import axil_files
from axil_models import ContextQuery
from axil_testing.kit import ContextKit
from fern_glossary import Glossary

FLOW = Path(__file__).parent.parent / "examples" / "flow.json"


class TestGlossary(ContextKit):
    component = Glossary

    def make(self) -> Any:
        return Glossary(Glossary.Config(terms={text: text for text in self.texts}))


def test_the_longest_terms_come_first():
    glossary = Glossary(
        Glossary.Config(terms={"leaf": "a blade", "Leaf axil": "an angle", "root": "below"})
    )
    found = [block.text for block in glossary.get_blocks(ContextQuery("what is a LEAF AXIL?"))]
    assert found == ["Leaf axil: an angle", "leaf: a blade"]
    assert glossary.get_blocks(ContextQuery("")) == []


def test_an_agent_is_reported():
    flow = axil_files.load(FLOW)
    assert flow.invoke("what is an axil?")[0] == "An angle."
    assert flow.invoke("what is a root?")[0] == "I do not know."
