"""Texts as words, the same for all searches."""

from __future__ import annotations

import re
import unicodedata

_WORD = re.compile(r"[^\W_]+")
_UNSPACED = re.compile(
    "([\u0e00-\u0eff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])"
)
"""Letters of scripts that put no space between words: Thai, Lao, kana, Han.

Each counts as a word.
"""


def words(text: str) -> list[str]:
    """Return the words of a text, folded: without case, in one Unicode form, without accents;
    punctuation is left out.

    >>> words("Café-Crème, 2½ l; 日本")
    ['cafe', 'creme', '21', '2', 'l', '日', '本']
    """
    folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKC", text).casefold())
    bare = "".join(sign for sign in folded if not unicodedata.combining(sign))
    return _WORD.findall(_UNSPACED.sub(r" \1 ", bare))
