"""A registry that knows this distribution and the index that its memories usually have, and nothing
else that is installed.
"""

from __future__ import annotations

from typing import Any

import pytest

from axil_testing.members import own_components

INDEXES = {
    "axil.context": {
        "keyword": "axil_context.retrieval.keyword:KeywordRetriever",
        "vector": "axil_context.retrieval.vector:VectorRetriever",
    },
    "axil.formatters": {"twins": "axil_models.formatters.twins:Twins"},
    "axil.embedders": {"lexical": "axil_context.retrieval.lexical:LexicalEmbedder"},
    "axil.stores": {"memory": "axil_context.retrieval.rows:MemoryStore"},
}


@pytest.fixture(autouse=True)
def registry() -> Any:
    """The components of this distribution, and the usual indexes."""
    with own_components(__file__, INDEXES) as made:
        yield made
