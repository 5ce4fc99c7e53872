"""kdump query without a JVM: what the embedded engine answers is what Spark answers; what may differ is Spark's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kdump.spark import query
from kdump.spark.embedded_engine import Unlike, translate
from kdump.tables.declarations import RESULTS
from tests.conftest import FIXTURES, SEED, sample
from tests.spark.test_docs import PAGE, SQL, kdump

BOTH = (
    "select * from findings order by file, code, position, offset, message",
    "select topic, code, count(*), count(distinct FILE), min(Offset), sum(size) from findings group by topic, code "
    "order by topic desc, code",
    "select key, value, headers, control from records where topic = 'ledger' order by source, offset limit 30",
    "select cast(key as string) as key, cast(offset as string) as text from records where topic = 'payments' "
    "order by topic, partition, source, offset limit 20",
    "select distinct isr, replicas, size(isr) as n, size(errors) as e from partitions p left join segments "
    "using (source, topic, partition) order by n nulls first, e desc limit 9",
    "select offset / 7 as a, offset % 7 as b, -offset * 2 + 1 as c, offset <=> null as d, not isControlBatch as e "
    "from records where time > '2026-11-21 07:59' and offset between 3 and 9 order by source, topic, partition, offset",
    "select source, max(maxTime) - interval 90 minute as t, case when max(magic) > 1 then 'new' else null end as m "
    "from batches where maxTime < now() group by all having count(*) > 2 order by source",
    "select topic, n, rank() over (order by n desc) as r, sum(n) over (partition by topic) as s from "
    "(select topic, source, count(*) as n from batches group by topic, source) b order by topic, n, r",
    "with a as (select topic, size from segments where topic like 'p%' or startswith(topic, '__')) "
    "select topic from a where size > (select min(size) from a) except select 'payments' order by topic",
    "select topic as TOPIC, Topic from segments s where exists (select 1 from batches b where b.topic = s.topic) "
    "and partition in (select partition from records) and coalesce(s.size, -1) >= 0 order by 1, s.file limit 5",
    "select topic, null as nothing, if(partition > 0, 'more', 'first') as p, substring(file, 2, 9) as f from "
    "segments where state = 'live' union all select 'x', 1, topic, null from batches order by topic, p, f limit 7",
    "select isControlBatch as c, sum(if(isControlBatch, 1, 0)) as s, count(key) as k from records "
    "where time - interval '1' day < timestamp'2026-11-21T07:59:00Z' + interval 3 seconds group by 1 order by c",
    "select scan, finished, paths, versions from scans",
)
ONLY_SPARK = (
    "show tables",
    "select 1",
    "select avg(size) as a from segments",
    "select offset / offset as a from records",
    "select 1.5 as a",
    "select max_by(topic, size) as a from segments",
    "select cast(topic as int) as a from segments",
    "select topic from segments where partition = '0'",
    "select topic from segments where topic = 0",
    "select size(isr) + 1 as a from partitions order by isr",
    "select 'a\\nb' as a",
    "select sum(size) as size from segments having size > 3",
    "select topic as t from segments where t = 'x'",
    "select a.*, b.topic from segments a, batches b",
    "select topic from segments tablesample (1 rows)",
    "select topic from segments limit all",
    "select control.type as a from records",
    "select not array_contains(leaderEpochs, 1) as a from replica_differences",
    "select regexp_replace(topic, 'a', 'b') as a from segments",
    "select row_number() over (order by topic) + 2147483648 as a from segments",
    "select topic from nowhere",
    "select case when null then 1 end as a from segments",
    "select distinct topic from segments order by partition",
    "select topic from segments a join batches b on a.topic = b.topic",
)


@pytest.mark.sampled
def test_both_answer_the_same(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = str(tmp_path / "fleet")
    disks = [str(FIXTURES / name) for name in ("clean-1", "diverged-1", "diverged-2")]
    named = [f"--broker={disk}={number}" for disk, number in zip(disks[1:], (11, 12))]
    kdump("scan", *disks, *named, "--out", out, "--records", "--quiet", status=1)
    of_page = [block[1] for block in SQL.finditer(PAGE.read_text().partition("## Query the tables")[2])]
    embedded = query._embedded
    answered: list[Any] = []

    def used(*given: Any) -> Any:
        answered.append(embedded(*given))
        return answered[-1]

    def by(engine: Any, sql: str, *more: str) -> str:
        monkeypatch.setattr(query, "_embedded", engine)
        return kdump("query", out, sql, *more)

    for number, sql in enumerate((*BOTH, *sample(of_page, 8, "of the page"))):
        more = ("--json", "--as-of", "1") if number % 2 else ()
        translated = by(used, sql, *more)
        if answered[-1] is not None and (SEED or number % 6 == 1):  # Spark takes a second for one
            assert translated == by(lambda *given: None, sql, *more), sql
    assert None not in answered[: len(BOTH)]
    assert len(answered) < len(BOTH) + len(of_page) or sum(each is not None for each in answered) - len(BOTH) >= 11


def test_what_may_differ_is_left_to_spark() -> None:
    tables = {name: [column[:2] for column in table.columns] for name, table in RESULTS.items()}
    for sql in ONLY_SPARK:
        with pytest.raises(Unlike):
            translate(sql, tables)
