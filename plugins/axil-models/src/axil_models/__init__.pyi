"""Names of ``axil_models`` for type checkers; written by ``make manifests``."""

from axil_models.askers import Asker as Asker, asked_by as asked_by, asker as asker
from axil_models.batch_file import BatchFile as BatchFile, Submitted as Submitted
from axil_models.batches import (
    BatchApi as BatchApi,
    Ended as Ended,
    ModelBatches as ModelBatches,
    Outcome as Outcome,
    without_batches as without_batches,
)
from axil_models.batching import current_batches as current_batches, use_batches as use_batches
from axil_models.blocks import (
    block_data as block_data,
    block_identity as block_identity,
    block_key as block_key,
    block_of as block_of,
    blocks_of as blocks_of,
    fits_filters as fits_filters,
    named_providers as named_providers,
    provider_label as provider_label,
    takes_context as takes_context,
    with_provider as with_provider,
)
from axil_models.budget.ledger import (
    Budget as Budget,
    Ledger as Ledger,
    OverBudget as OverBudget,
    Reservation as Reservation,
)
from axil_models.budget.meter import BudgetMeter as BudgetMeter
from axil_models.budget.prices import (
    Estimate as Estimate,
    Estimator as Estimator,
    Price as Price,
    Pricing as Pricing,
    UnknownPrice as UnknownPrice,
)
from axil_models.clients import Clients as Clients
from axil_models.context import (
    ContextBlock as ContextBlock,
    ContextProvider as ContextProvider,
    ContextQuery as ContextQuery,
    Index as Index,
)
from axil_models.docstrings import docstring_of as docstring_of
from axil_models.documents import Document as Document
from axil_models.embedders import Embedder as Embedder, vectors_of as vectors_of
from axil_models.errors import (
    AgentError as AgentError,
    ContextError as ContextError,
    ModelContract as ModelContract,
    ModelError as ModelError,
    PartError as PartError,
    ToolError as ToolError,
)
from axil_models.faults import validation_text as validation_text, without_titles as without_titles
from axil_models.files import filed as filed, filed_result as filed_result, with_files as with_files
from axil_models.folders import (
    entered as entered,
    open_below as open_below,
    written_below as written_below,
)
from axil_models.formats import Formatter as Formatter
from axil_models.formatters.json import Json as Json, LenientJson as LenientJson
from axil_models.formatters.markdown import Markdown as Markdown
from axil_models.formatters.paragraph import Paragraph as Paragraph
from axil_models.formatters.tagged import Tagged as Tagged
from axil_models.formatters.text import FormatError as FormatError
from axil_models.formatters.twins import Twins as Twins
from axil_models.forms import Forms as Forms
from axil_models.functions import adapter_of as adapter_of, tool_of as tool_of, tools_of as tools_of
from axil_models.given import (
    ContextLike as ContextLike,
    EmbedderLike as EmbedderLike,
    FormatterLike as FormatterLike,
    IndexLike as IndexLike,
    ModelLike as ModelLike,
    ProviderLike as ProviderLike,
    RerankerLike as RerankerLike,
    StoreLike as StoreLike,
    ToolLike as ToolLike,
    Use as Use,
    as_given as as_given,
)
from axil_models.memories import (
    Ask as Ask,
    ChatMemory as ChatMemory,
    Memory as Memory,
    Owner as Owner,
    SharedMemory as SharedMemory,
    Turn as Turn,
    TurnMemory as TurnMemory,
    owner_metadata as owner_metadata,
    turn_block as turn_block,
    turn_id as turn_id,
    turn_of as turn_of,
    turn_text as turn_text,
)
from axil_models.outputs import (
    citation as citation,
    content_of as content_of,
    distinct as distinct,
    made_audio as made_audio,
    made_image as made_image,
    refusal_parts as refusal_parts,
)
from axil_models.parts import (
    LARGEST_PART_BYTES as LARGEST_PART_BYTES,
    PART_KINDS as PART_KINDS,
    PART_SOURCES as PART_SOURCES,
    Part as Part,
    PartNumbers as PartNumbers,
    audio as audio,
    check_modalities as check_modalities,
    checked_part as checked_part,
    content_text as content_text,
    file as file,
    image as image,
    is_content as is_content,
    is_part as is_part,
    is_text_part as is_text_part,
    part_bytes as part_bytes,
    part_label as part_label,
    parts_of as parts_of,
    spread_results as spread_results,
    text_part as text_part,
    with_labels as with_labels,
)
from axil_models.prices import Prices as Prices
from axil_models.provided import (
    ALLOWED as ALLOWED,
    PROVIDER_TOOLS as PROVIDER_TOOLS,
    ProviderTool as ProviderTool,
    check_provider_tools as check_provider_tools,
    sent_as as sent_as,
    token_of as token_of,
    used_tool as used_tool,
)
from axil_models.providers import (
    LaterComponent as LaterComponent,
    ProviderSettings as ProviderSettings,
    SingleFlight as SingleFlight,
    component_of as component_of,
    decoded_settings as decoded_settings,
    name_and_config as name_and_config,
)
from axil_models.requests import (
    Emit as Emit,
    Finish as Finish,
    Model as Model,
    Reply as Reply,
    Request as Request,
    Structure as Structure,
    ToolCall as ToolCall,
    ToolSpec as ToolSpec,
    Usage as Usage,
    read_arguments as read_arguments,
)
from axil_models.rerankers import Reranker as Reranker, scores_of as scores_of
from axil_models.retries import (
    Clock as Clock,
    Retry as Retry,
    Showing as Showing,
    on_clock as on_clock,
    persevere as persevere,
    retry_after_seconds as retry_after_seconds,
)
from axil_models.sending import (
    parameters_of_sdk as parameters_of_sdk,
    sdk_arguments as sdk_arguments,
    structure_prompt as structure_prompt,
    unsendable as unsendable,
    valid_text as valid_text,
    with_instruction as with_instruction,
)
from axil_models.service_configs import (
    Modality as Modality,
    RemoteModelConfig as RemoteModelConfig,
    ServiceConfig as ServiceConfig,
    service_config as service_config,
)
from axil_models.service_errors import (
    BrokenOff as BrokenOff,
    Malformed as Malformed,
    reading_reply as reading_reply,
)
from axil_models.services import Remote as Remote, Service as Service, Usual as Usual
from axil_models.settings import checked_settings as checked_settings
from axil_models.shapes import held_tools as held_tools
from axil_models.skills import (
    LARGEST_SKILL_BYTES as LARGEST_SKILL_BYTES,
    SKILL_FILE as SKILL_FILE,
    Skill as Skill,
)
from axil_models.stores import Hit as Hit, Row as Row, Store as Store, StoreLost as StoreLost
from axil_models.thoughts import (
    ShownThoughts as ShownThoughts,
    kept_for as kept_for,
    reasoning_parts as reasoning_parts,
    split_thoughts as split_thoughts,
    without_thoughts as without_thoughts,
)
from axil_models.threads import call_async as call_async, in_thread as in_thread
from axil_models.tokens import (
    estimated_tokens as estimated_tokens,
    size_in_characters as size_in_characters,
)
from axil_models.tools import (
    Approval as Approval,
    Command as Command,
    Refused as Refused,
    Tool as Tool,
    Toolset as Toolset,
    is_toolset as is_toolset,
    result_of as result_of,
    result_text as result_text,
    tools_by_name as tools_by_name,
    with_approval as with_approval,
)
from axil_models.values import as_text as as_text, plain_data as plain_data
from axil_models.voice import (
    BYTES_PER_MS as BYTES_PER_MS,
    SAMPLE_RATE as SAMPLE_RATE,
    Line as Line,
    Talk as Talk,
    TalkingModel as TalkingModel,
    current_line as current_line,
    heard_part as heard_part,
)
