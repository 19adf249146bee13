"""Whether every job was done once and every result is there once: the database against what the agents were told."""

from __future__ import annotations

from collections import Counter
from contextlib import closing

from sqlalchemy import func, select

from bench.service.ledger import Ledger
from bench.service.recordings import CHUNKS, PLAN, SAMPLES
from powerlab.store import open_store
from powerlab.store.reads.queries import recorded
from powerlab.store.tables import AuditEventRow, DeviceTallyRow, JobRow, PointRow, RunRow, TraceChunkRow

RUNS_A_JOB = len(PLAN.points()) * PLAN.repeats


def faults(address: str, ledger: Ledger) -> list[str]:
    """Return in sentences what was lost or doubled; empty where nothing was."""
    found: list[str] = []
    with closing(open_store(address)) as store, store.session() as session:
        states = Counter(dict(session.execute(select(JobRow.state, func.count()).group_by(JobRow.state)).all()))
        if states != Counter({"done": len(ledger.submitted)}):
            found.append(f"{len(ledger.submitted)} jobs were submitted; the database has {dict(states)}")
        finishes = select(AuditEventRow.subject, func.count()).where(AuditEventRow.action == "finish")
        twice = [job for job, count in session.execute(finishes.group_by(AuditEventRow.subject)) if count != 1]
        if twice:
            found.append(f"{len(twice)} jobs were finished more than once")
        rows = session.execute(
            select(RunRow.id, RunRow.sweep_id, PointRow.key, RunRow.repeat).join(
                PointRow, PointRow.id == RunRow.point_id
            )
        ).all()
        places = Counter((sweep_id, key, repeat) for _, sweep_id, key, repeat in rows)
        if len(places) != len(rows) or len(rows) != RUNS_A_JOB * len(ledger.submitted):
            found.append(f"{RUNS_A_JOB * len(ledger.submitted)} runs were due; {len(rows)} are there")
        kept = {run_id: (sweep_id, key, repeat) for run_id, sweep_id, key, repeat in rows}
        for place, run_ids in ledger.runs.items():
            if len(run_ids) != 1 or kept.get(next(iter(run_ids))) != place:
                found.append(f"the server confirmed {run_ids} as the run of {place}, and does not have just that")
        counts = dict(session.execute(select(TraceChunkRow.run_id, func.count()).group_by(TraceChunkRow.run_id)).all())
        for run_id in kept:
            confirmed, there = ledger.chunks.get(run_id), counts.get(run_id, 0)
            # Traces that were never confirmed went down with a device's disk, or arrived and the answer did not.
            if there not in ((len(CHUNKS),) if confirmed else (0, len(CHUNKS))):
                found.append(f"run {run_id} has {there} chunks; {confirmed} were confirmed")
        samples = session.scalar(select(func.sum(TraceChunkRow.sample_count))) or 0
        if samples != SAMPLES * len(counts):
            found.append(f"{SAMPLES * len(counts)} samples were due in {len(counts)} runs; {samples} are there")
        tally = session.execute(select(func.sum(DeviceTallyRow.run_count), func.sum(DeviceTallyRow.sample_count))).one()
        if tuple(tally) != (len(rows), samples):
            found.append(f"the fleet's counts say {tuple(tally)}, the tables {(len(rows), samples)}")
        for run_id in list(counts)[:1]:
            read = sum(trace.value.size for trace in recorded(session, run_id))
            if read != SAMPLES:
                found.append(f"{read} of a run's {SAMPLES} samples can be read back")
    return found
