"""Names of ``axil_cli`` for type checkers; written by ``make manifests``."""

from axil_cli.arguments import add_shared_arguments as add_shared_arguments
from axil_cli.batch.batch import Batch as Batch, RowResult as RowResult
from axil_cli.batch.errors import BatchError as BatchError
from axil_cli.batch.statistics import Statistics as Statistics
from axil_cli.batch.tables import Row as Row, read_table as read_table, write_table as write_table
from axil_cli.command import (
    Command as Command,
    Exit as Exit,
    Session as Session,
    equipped as equipped,
    problems_of as problems_of,
)
from axil_cli.connections import HOST as HOST, bounded_protocol as bounded_protocol
from axil_cli.draft.errors import DraftError as DraftError
from axil_cli.draft.files import Draft as Draft, draft_of as draft_of
from axil_cli.draft.record import DraftRecord as DraftRecord
from axil_cli.logs import log_as_json as log_as_json
from axil_cli.plain import as_json as as_json, table_lines as table_lines
from axil_cli.probes import answered_probes as answered_probes
from axil_cli.progress import Progress as Progress
from axil_cli.record import find_run as find_run
from axil_cli.wants import opened_for_many as opened_for_many
from axil_cli.worker import (
    Submit as Submit,
    Worker as Worker,
    add_watched_arguments as add_watched_arguments,
)
