"""The kits of importers and of the nodes of imported workflows."""

from __future__ import annotations

from typing import Any

from .dify_app import EVERYTHING
from .test_crewai import CREW
from .test_n8n import CHAT, EVERYTHING as N8N_EVERYTHING

from axil_importers.crewai import CrewAI
from axil_importers.dify.importer import Dify
from axil_importers.n8n.importer import N8n
from axil_importers.steps import Assign, CallTool, Retrieve, Script
from axil_testing.kit import ImporterKit, NodeKit


class TestDify(ImporterKit):
    component = Dify
    documents = (EVERYTHING,)


class TestN8n(ImporterKit):
    component = N8n
    documents = (CHAT, N8N_EVERYTHING)


class TestCrewAI(ImporterKit):
    component = CrewAI
    documents = (CREW,)


class TestAssign(NodeKit):
    component = Assign
    config: Any = {"fields": {"a": "{b} and {c.d}", "e": {"first": ["b", "c"], "take": 1}}}


class TestCallTool(NodeKit):
    component = CallTool
    config: Any = {"tool": "current_time", "field": "now"}


class TestRetrieve(NodeKit):
    component = Retrieve
    config: Any = {"provider": {"type": "keyword", "documents": ["a"]}, "field": "found"}


class TestScript(NodeKit):
    component = Script
    config: Any = {"code": "print('{}')", "fields": {"a": ""}}
    runs_code = True
