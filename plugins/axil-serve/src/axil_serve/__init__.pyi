"""Names of ``axil_serve`` for type checkers; written by ``make manifests``."""

from axil_serve.a2a import A2a as A2a
from axil_serve.access import Access as Access, Caller as Caller, token_digest as token_digest
from axil_serve.agui import AgUi as AgUi
from axil_serve.app import app_of as app_of
from axil_serve.audit import Audit as Audit
from axil_serve.chat import ChatCompletions as ChatCompletions
from axil_serve.guard import Limits as Limits
from axil_serve.responses import Responses as Responses
from axil_serve.service import RunService as RunService
from axil_serve.signin import OidcConfig as OidcConfig, SignIn as SignIn
