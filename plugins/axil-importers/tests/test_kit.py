"""The kit of importers, on those of this distribution."""

from __future__ import annotations

from axil_importers.crewai import CrewAI
from axil_importers.dify.importer import Dify
from axil_importers.n8n.importer import N8n
from axil_testing.kit import ImporterKit

from .dify_app import EVERYTHING
from .test_crewai import CREW
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
