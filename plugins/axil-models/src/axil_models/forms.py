"""Forms in which services are asked for structured replies, and what to do where one is refused."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Sequence
from typing import Final, Generic, TypeVar

from axil_models.errors import ModelError
from axil_models.requests import Reply, Request

Form = TypeVar("Form", bound=str)

_OF_FORM: Final = re.compile(
    r"response.?(format|schema|mime)|json.?(schema|mode|object)|output.?(format|config)"
    r"|text\.format|structured|grammar|guided|requested parameters",
    re.IGNORECASE,
)


class Forms(Generic[Form]):
    """The forms that a model's service has refused so far: they are not asked for again."""

    def __init__(self) -> None:
        self._refused: dict[tuple[str, bool], set[Form]] = {}

    async def first_taken(
        self, request: Request, forms: Sequence[Form], ask: Callable[[Form], Awaitable[Reply]]
    ) -> Reply:
        """Return the reply to ``ask`` with the first of the forms that the service takes.

        What it refuses may depend on the schema, and on tools; where no structure is asked for,
        forms do not differ. Raises: what ``ask`` raises.
        """
        if request.output is None:
            return await ask(forms[0])
        key = (request.output.name, bool(request.tools))
        for form in forms[:-1]:
            if form in self._refused.get(key, ()):
                continue
            try:
                return await ask(form)
            except ModelError as error:
                if not _refuses_form(error):
                    raise
                self._refused.setdefault(key, set()).add(form)
        return await ask(forms[-1])


def _refuses_form(error: ModelError) -> bool:
    is_refused = error.status in (400, 404, 422) and not error.transient
    return is_refused and _OF_FORM.search(error.message) is not None
