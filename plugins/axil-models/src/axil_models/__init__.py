"""Interfaces of models and of what they are given, formatters of messages, budgets and prices."""

from __future__ import annotations

from axil.plugin import lazy_names

_SUBJECTS = {
    "Budgets and prices": {
        "budget.meter": "BudgetMeter",
        "budget.ledger": "Budget Ledger OverBudget Reservation",
        "budget.prices": "Estimate Estimator Price Pricing UnknownPrice",
    },
    "Interfaces": {
        "askers": "Asker asked_by asker",
        "batch_file": "BatchFile Submitted",
        "batches": """
            BatchApi Ended ModelBatches Outcome without_batches
        """,
        "batching": "current_batches use_batches",
        "blocks": """
            block_data block_identity block_key block_of blocks_of fits_filters
            named_providers provider_label takes_context with_provider
        """,
        "clients": "Clients",
        "context": "ContextBlock ContextProvider ContextQuery Index",
        "docstrings": "docstring_of",
        "documents": "Document",
        "embedders": "Embedder vectors_of",
        "errors": """
            AgentError ContextError ModelContract ModelError PartError ToolError
        """,
        "files": "filed filed_result with_files",
        "folders": "entered open_below written_below",
        "formats": "Formatter",
        "forms": "Forms",
        "faults": "validation_text without_titles",
        "functions": "adapter_of tool_of tools_of",
        "given": """
            ContextLike EmbedderLike FormatterLike IndexLike ModelLike ProviderLike
            RerankerLike StoreLike ToolLike Use as_given
        """,
        "memories": """
            Ask ChatMemory Memory Owner SharedMemory Turn TurnMemory
            owner_metadata turn_block turn_id turn_of turn_text
        """,
        "outputs": "citation content_of distinct made_audio made_image refusal_parts",
        "parts": """
            LARGEST_PART_BYTES PART_KINDS PART_SOURCES Part PartNumbers audio
            check_modalities checked_part content_text file image is_content
            is_part is_text_part part_bytes part_label parts_of spread_results
            text_part with_labels
        """,
        "prices": "Prices",
        "provided": """
            ALLOWED PROVIDER_TOOLS ProviderTool check_provider_tools sent_as token_of used_tool
        """,
        "providers": """
            LaterComponent ProviderSettings SingleFlight component_of
            decoded_settings name_and_config
        """,
        "requests": """
            Usage
            Emit Finish Model Reply Request Structure ToolCall ToolSpec
            read_arguments
        """,
        "rerankers": "Reranker scores_of",
        "retries": "Clock Retry Showing on_clock persevere retry_after_seconds",
        "sending": """
            parameters_of_sdk sdk_arguments structure_prompt unsendable valid_text
            with_instruction
        """,
        "service_configs": "Modality RemoteModelConfig ServiceConfig service_config",
        "service_errors": "BrokenOff Malformed reading_reply",
        "services": "Remote Service Usual",
        "settings": "checked_settings",
        "shapes": "held_tools",
        "skills": "LARGEST_SKILL_BYTES SKILL_FILE Skill",
        "stores": "Hit Row Store StoreLost",
        "thoughts": """
            ShownThoughts kept_for reasoning_parts split_thoughts without_thoughts
        """,
        "threads": "call_async in_thread",
        "tokens": "estimated_tokens size_in_characters",
        "tools": """
            Approval Command Refused Tool Toolset is_toolset result_of
            result_text tools_by_name with_approval
        """,
        "values": "as_text plain_data",
        "voice": """
            BYTES_PER_MS SAMPLE_RATE Line Talk TalkingModel current_line heard_part
        """,
    },
    "Formatters": {
        "formatters.json": "Json LenientJson",
        "formatters.markdown": "Markdown",
        "formatters.paragraph": "Paragraph",
        "formatters.tagged": "Tagged",
        "formatters.text": "FormatError",
        "formatters.twins": "Twins",
    },
}

__getattr__, __dir__, __all__ = lazy_names(globals(), _SUBJECTS)

_MOVED = {
    "axil_models.formatters": "axil_formatters",
    "axil_models.functions": "axil_agent.tools",
}
"""Moved places → their names in the digests of runs that were recorded before."""
