"""Names of ``axil_agent`` for type checkers; written by ``make manifests``."""

from axil_agent.agent import Agent as Agent, DynamicAgent as DynamicAgent
from axil_agent.cached import Cached as Cached
from axil_agent.context import ContextPolicy as ContextPolicy
from axil_agent.delegate import AgentTool as AgentTool
from axil_agent.errors import (
    PromptError as PromptError,
    ReplayMiss as ReplayMiss,
    ReplyError as ReplyError,
    TurnLimit as TurnLimit,
    WiringError as WiringError,
)
from axil_agent.history import HistoryMemory as HistoryMemory
from axil_agent.human import HumanFileEdit as HumanFileEdit, HumanNode as HumanNode
from axil_agent.judge import Judge as Judge
from axil_agent.measure import measure_text as measure_text
from axil_agent.models import Chosen as Chosen, models_through as models_through
from axil_agent.nodes import AgentConfig as AgentConfig
from axil_agent.prompt import Wiring as Wiring
from axil_agent.replay import Recorder as Recorder, Replay as Replay
from axil_agent.scripted import Scripted as Scripted
from axil_agent.single import SingleAgent as SingleAgent, ask as ask
from axil_agent.stage import Stage as Stage
from axil_agent.switch import AgentSwitch as AgentSwitch
from axil_agent.template import Verbatim as Verbatim
from axil_agent.thinking import (
    Reflection as Reflection,
    Thinking as Thinking,
    converse_with_thinking as converse_with_thinking,
)
from axil_agent.verdict import decided as decided
