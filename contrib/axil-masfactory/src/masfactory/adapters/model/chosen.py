"""From what MASFactory takes for a model to what axil's agents ask."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import axil_models
from masfactory.adapters.model.base import Provided


class _Unusable:
    """An object without ``invoke`` and ``reply``, as examples that only observe give one."""

    def __init__(self, given: Any) -> None:
        self.given = given

    async def reply(self, request: axil_models.Request, emit: Any, /) -> axil_models.Reply:
        """Raise a TypeError."""
        del request, emit
        raise TypeError(
            f"the model is a {type(self.given).__name__}, expected an object with "
            "invoke(messages, tools, settings). Give OpenAIModel(…), or a subclass of Model."
        )


class _Invoked:
    """A provider whose ``invoke`` a subclass has made anew: it is what is asked."""

    def __init__(self, model: Any) -> None:
        self.invoke = model.invoke


def askable(model: Any) -> Any:
    """Give the model as axil's agents take it."""
    if model is None or isinstance(model, (str, Mapping)):
        return cast("Any", model)
    if isinstance(model, Provided) and type(model).invoke is not Provided.invoke:
        return _Invoked(model)
    if callable(getattr(model, "reply", None)) or callable(getattr(model, "invoke", None)):
        return model
    return _Unusable(model)
