"""The kit of importers, on those of this distribution."""

from __future__ import annotations

from axil_importers.agentspec.importer import AgentSpec
from axil_importers.crewai import CrewAI
from axil_importers.dify.importer import Dify
from axil_importers.flowise.importer import Flowise
from axil_importers.langflow import Langflow
from axil_importers.n8n.importer import N8n
from axil_testing.kit import ImporterKit

from .dify_app import EVERYTHING
from .test_agentspec import CLERK, LOOPING as SPEC_LOOPING, PARTS as SPEC_PARTS, TEAM as SPEC_TEAM
from .test_crewai import CREW
from .test_flowise import CHAT as FLOWISE_CHAT, LOOPING, PARTS as FLOWISE_PARTS, TEAM
from .test_langflow import CHAT as LANGFLOW_CHAT, PARTS
from .test_n8n import CHAT, EVERYTHING as N8N_EVERYTHING


class TestDify(ImporterKit):
    component = Dify
    documents = (EVERYTHING,)


class TestN8n(ImporterKit):
    component = N8n
    documents = (CHAT, N8N_EVERYTHING)


class TestCrewAI(ImporterKit):
    component = CrewAI
    documents = (CREW,)


class TestLangflow(ImporterKit):
    component = Langflow
    documents = (LANGFLOW_CHAT, PARTS)


class TestFlowise(ImporterKit):
    component = Flowise
    documents = (LOOPING, FLOWISE_PARTS, FLOWISE_CHAT, TEAM)


class TestAgentSpec(ImporterKit):
    component = AgentSpec
    documents = (SPEC_LOOPING, SPEC_PARTS, CLERK, SPEC_TEAM)
