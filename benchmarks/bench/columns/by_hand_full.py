"""A commit of SQLite by hand for each step, which all runs share: a row of the text that a step
writes, synced. No task, thread, checksum or graph.
"""

from __future__ import annotations

import json
import sqlite3

TITLE = "SQLite by hand, full sync"
KIND = "baseline"


def durable_in(sync):
    """Return the function of a column whose commits sync so."""

    def durable(case):
        connection = sqlite3.connect(case.folder / "rows.db", isolation_level=None)
        connection.execute("pragma journal_mode = wal")
        connection.execute(f"pragma synchronous = {sync}")
        connection.execute("create table steps (run integer, step integer, body text)")
        case.closing.append(connection.close)

        def go():
            logs = [[] for _ in range(case.runs)]
            for step in range(case.size):
                connection.execute("begin immediate")
                for run, log in enumerate(logs):
                    log.append(case.message)
                    body = json.dumps({"n": step + 1, "log": [case.message]})
                    connection.execute("insert into steps values (?, ?, ?)", (run, step, body))
                connection.execute("commit")
            (n,) = {len(log) for log in logs}
            return n

        return go

    return durable


durable = durable_in("full")
