"""Recorded runs: journals, their inspection, and the engine that owns many runs."""

from __future__ import annotations

from axil.plugin import lazy_names

_SUBJECTS = {
    "Journals": {
        "journal": """
            ChangeSignal Cipher Compactor DUE_NOW ENDED Entry Journal JournalWriter
            RunCount RunInfo RunMail SharedJournal claimed_error due_of_end question_due
            unknown_error
        """,
        "memory": "MemoryJournal",
        "objects": "Bucket ObjectStore RunObjects list_of",
        "queues": """
            Place Queue QueueState RULES RunExists STATE Spent chosen place_of read_queues
            take_by_priority
        """,
        "threads": "admit_run left_behind_error overtaken_error",
        "writers": "GroupCommit RunPart RunWriter",
    },
    "Records as plain data": {
        "rows": """
            Cut Damage EntryRow damage_of damaged_error data_without_secrets entry_row find_cut
            joined_row row_entries run_info
        """,
        "sealing": "RowCodec about_row",
        "values": "decode_delta decode_value encode_delta encode_value",
    },
    "Recorders": {
        "recorder": "Recording JournalRecorder answer_entry",
    },
    "Proofs before a run": {
        "analysis.bounds": """
            Bound Bounds Estimate Likely NodeBound bound_data bound_lines bounds_of estimate
        """,
        "analysis.findings": "findings",
    },
    "Inspection of runs": {
        "deadlines": "format_time open_questions",
        "inspection.breakpoints": "Breakpoints",
        "inspection.checks": "CheckResult check_workflow want_lines want_rows",
        "inspection.forks": "Edit fork",
        "inspection.inputs": "input_schema",
        "inspection.snapshots": "DueFiring Snapshot snapshot",
        "inspection.steps": "Difference RunStep differences steps",
        "migrations": "adapt_entries graph_of_frame recorded_graph",
        "pictures.drawing": """
            as_mermaid as_text escaped join_name mermaid_picture svg_picture
            text_picture
        """,
        "pictures.outlines": "Outline OutlineNode outline",
        "pictures.picture": "Picture PictureEdge picture_of",
        "pictures.scopes": """
            PlanScope cycle_bounds edge_label plan_scopes shortened use_label walk_plan
        """,
        "prompts": "Prompt prompts_of",
        "records": "record_graph version_changes",
        "replay": "ReplayIndex",
    },
    "Engines": {
        "deadlines": "accept_answers",
        "engine.loading": "ResumedStatus check_run_options lasting_executor resume_run",
        "engine.local": "LocalEngine",
        "engine.managed": "ManagedRun",
        "engine.metrics": """
            METRICS EngineTally current_run_id journal_metrics process_metrics
        """,
        "engine.protocol": """
            AroundRun Engine FindWorkflow PASSING_ERRORS RunLeave RunStatus
        """,
        "engine.status": "with_recorded_end",
        "engine.triggers": "TriggerSettings TriggeredRuns read_triggers",
    },
    "Encryption": {
        "aes": "Aes",
    },
}

__getattr__, __dir__, __all__ = lazy_names(globals(), _SUBJECTS)

_MOVED = {
    "axil_journals.aes": "axil_encryption.aes",
}
"""Moved places → their names in the digests of runs that were recorded before."""
