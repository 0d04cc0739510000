"""Pages of runs, and the runs that are forgotten: each by an index, however many there are.

The rows of runs that a process holds change with each entry, and are few. So the index of the
others, ``runs_by_status``, is not written while a run is at work; a page is merged from the newest
rows of each status and from the runs that are held.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from operator import itemgetter
from typing import Any, Final

FACTS: Final = "run, graph, status, thread, begun, touched, next, forked_from, due"
IS_HELD: Final = (
    "(holder <> 0 and exists (select from holders where holders.id = runs.holder "
    "and until > now()))"
)
_COLUMNS: Final = f"{FACTS}, id, holder"
_PRUNING: Final = 158_119_002
"""With a number of the schema, the advisory lock of the process that forgets runs."""
_KINDS: Final = """
with recursive known(status) as (
    select min(status) from runs where holder = 0
    union all
    select (select min(status) from runs where holder = 0 and runs.status > known.status)
    from known where known.status is not null
),
kinds as (
    select status from known where status is not null and (%(all)s or case
        when status in ('open', 'running') then 'open' else status end
        = any(%(status)s::text[]))
)
"""
"""The statuses that there are and that are wanted; one probe of the index for each."""
NAMED: Final = "select run from runs where run ~>=~ %s order by run using ~<~ limit %s"
"""The ids from one on, in the order of bytes."""
COUNTS: Final = """
select queue, graph, 'due', count(*), min(case when due = 0 then touched else due end)
from runs where holder = 0 and due is not null and due <= %(now)s group by 1, 2
union all
select queue, graph, 'held', count(*), min(touched) from runs where holder <> 0 group by 1, 2
union all
select queue, graph, case when status = 'parked' then 'parked' else 'waiting' end, count(*),
    min(touched)
from runs where holder = 0 and status in ('open', 'paused', 'parked')
    and (due is null or due > %(now)s)
group by 1, 2, 3 order by 1, 2, 3
"""
"""The runs that have not ended, by queue, graph and state: by the indexes of runs without a holder,
of which the ended ones are left out."""
PRUNE: Final = f"""
with recursive kinds as (select unnest(%s::text[]) as status),
old as (
    select old.id from kinds cross join lateral (
        select id, touched from runs
        where holder = 0 and runs.status = kinds.status and touched < %s
        order by touched, id limit %s
    ) old order by old.touched, old.id limit %s
)
delete from runs where id in (
    select id from runs where id in (select id from old) and holder = 0 for update skip locked
)
returning {FACTS}
"""


@cache
def listing(*, is_after: bool, is_before: bool) -> str:
    """Return the statement of a page of runs, the last touched first."""
    narrowed = ""
    if is_after:
        narrowed += " and (touched, id) < (%(touched)s, %(id)s)"
    if is_before:
        narrowed += " and touched < %(before)s"
    order = "order by touched desc, id desc limit %(most)s"
    effective = (
        f"case when status not in ('open', 'running') then status when {IS_HELD} "
        "then 'running' else 'open' end"
    )
    wanted = f"(%(all)s or {effective} = any(%(status)s::text[]))"
    return f"""{_KINDS}
    select {FACTS}, {IS_HELD} from (
        select each.* from kinds cross join lateral (
            select {_COLUMNS} from runs
            where holder = 0 and runs.status = kinds.status{narrowed} {order}
        ) each
        union all
        select {_COLUMNS} from runs where holder <> 0 and {wanted}{narrowed}
    ) runs {order}"""


def pruned(
    connection: Any, given: tuple[float, Sequence[str], int], *, is_waiting: bool = True
) -> list[Any]:
    """Delete runs that no process holds, the oldest first, and return their facts.

    One process at a time does it, in one schema.

    Args:
        given: the time before which they were last touched, their statuses, the most.
        is_waiting: whether to wait for another process that does it; False: none is deleted then.
    """
    before, status, most = given
    with connection.transaction():
        number = "hashtext(current_schema())"
        if is_waiting:
            connection.execute(f"select pg_advisory_xact_lock({_PRUNING}, {number})")
        else:
            sql = f"select pg_try_advisory_xact_lock({_PRUNING}, {number})"
            if not connection.execute(sql).fetchone()[0]:
                return []
        # one that a dead process had says still that it runs
        kinds = [*{*status} - {"running"}, *(["running"] if "open" in status else [])]
        found = connection.execute(PRUNE, (kinds, before, most, most)).fetchall()
        return sorted(found, key=itemgetter(5))
