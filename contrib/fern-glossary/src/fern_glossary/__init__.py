"""``fern.glossary``: explains the terms that it hears."""

from __future__ import annotations

from pydantic import BaseModel, Field

from axil_models import ContextBlock, ContextQuery

__all__ = ["Glossary"]


class Glossary:
    """``fern.glossary``: what the terms in the query mean, the longest terms first."""

    passive = True
    active = False
    context_label = "glossary"
    capabilities = ("not_searches",)
    examples = ({"terms": {"axil": "the angle between a stem and a leaf"}},)

    class Config(BaseModel, extra="forbid", frozen=True):
        """The terms that the glossary holds."""

        terms: dict[str, str] = Field(default_factory=dict, description="What each term means.")

    def __init__(self, config: Config) -> None:
        self.config = config

    def get_blocks(self, query: ContextQuery, top_k: int = 8) -> list[ContextBlock]:
        """Return the terms that occur in the query, with what they mean; ``score`` is how much of
        the query a term is.
        """
        heard = query.query_text.casefold()
        terms = sorted(
            (term for term in self.config.terms if term and term.casefold() in heard),
            key=lambda term: (-len(term), term),
        )
        return [
            ContextBlock(
                text=f"{term}: {self.config.terms[term]}",
                uri="glossary:",
                chunk_id=term,
                score=len(term) / len(heard),
                metadata={"provider": "fern.glossary"},
            )
            for term in terms[: max(0, top_k)]
        ]
