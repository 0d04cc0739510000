"""Names of ``axil_control`` for type checkers; written by ``make manifests``."""

from axil_control.channels import Replies as Replies
from axil_control.code import Python as Python
from axil_control.errors import (
    BindingError as BindingError,
    ControlError as ControlError,
    ExpressionError as ExpressionError,
    InputError as InputError,
)
from axil_control.fans import Map as Map, Tree as Tree
from axil_control.loop_graph import Loop as Loop
from axil_control.switches import LogicSwitch as LogicSwitch
from axil_control.templates import (
    Factory as Factory,
    NodeTemplate as NodeTemplate,
    Shared as Shared,
    Strength as Strength,
    TemplateTarget as TemplateTarget,
    copied as copied,
    scoped as scoped,
    template_defaults as template_defaults,
    template_defaults_for as template_defaults_for,
    template_overrides as template_overrides,
    template_overrides_for as template_overrides_for,
)
