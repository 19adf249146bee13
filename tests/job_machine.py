"""The life of jobs, as agents that may be slow, late or dead and people who change their minds lead it.

The machine does at random what they may do, and knows of every hold what its agent knows. What must hold is said in
terms of that, not of the rows: nobody is given a job that somebody else still holds, every run that was taken is there
once, what is over stays over, and in the end every job comes to an end.
"""

from __future__ import annotations

import uuid
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from powerlab.domain.run import Run
from powerlab.domain.sweep import SweepPlan
from powerlab.protocol.messages import EnrolmentCodeRequest, EnrolRequest, Finish, Lease, SweepRequest
from powerlab.protocol.records import OVER, JobRecord, SweepState
from powerlab.store import Store, queries
from powerlab.store.errors import ConflictError, StaleLeaseError
from powerlab.store.job_queries import JobFilter, list_jobs
from powerlab.store.writes import control, jobs
from powerlab.store.writes.devices import enrol, make_enrolment_code
from powerlab.store.writes.sweeps import submit_sweep
from server_examples import Clock, capabilities, device, make_run
from store_writing import upload

PLAN = SweepPlan(models=("resnet50",), threads=(1,), duration_s=0.1)
REPEATS = range(PLAN.repeats)
VERBS = {"pause": control.pause, "resume": control.resume, "cancel": control.cancel}


@dataclass(eq=False)
class Hold:
    """A lease as its agent knows it."""

    lease: Lease
    until: datetime
    done: set[int]
    spool: list[Run] = field(default_factory=list)
    sent: list[Run] = field(default_factory=list)
    let_go: bool = False


class JobMachine(RuleBasedStateMachine):
    """One device with its queue."""

    def __init__(self, store: Store, clock: Clock) -> None:
        super().__init__()
        self.store, self.clock = store, clock
        self.holds: list[Hold] = []
        self.newest: dict[str, Hold] = {}
        self.taken: dict[str, dict[int, str]] = {}
        self.over: dict[str, SweepState] = {}
        self.served: dict[str, int] = {}
        name = f"board-{uuid.uuid4()}"
        with store.write() as session:
            code = make_enrolment_code(session, EnrolmentCodeRequest(), clock()).code
            session.flush()
            request = EnrolRequest(code=code, device=device(name), capabilities=capabilities())
            self.device_id = enrol(session, request, clock()).device_id

    def queue(self) -> list[JobRecord]:
        with self.store.session() as session:
            return list_jobs(session, JobFilter(device_id=self.device_id))

    @rule(by=st.sampled_from("abc"), priority=st.integers(-1, 1))
    def submit(self, by: str, priority: int) -> None:
        self.clock.forward(0.001)
        request = SweepRequest(device_id=self.device_id, plan=PLAN, priority=priority)
        with self.store.write() as session:
            sweep_id, new = submit_sweep(session, request, self.clock(), by=by, key=str(uuid.uuid4()))
        assert new
        self.taken[sweep_id] = {}

    @rule()
    def lease(self) -> None:
        self.clock.forward(0.001)
        now = self.clock()
        free = [
            job
            for job in self.queue()
            if job.state is SweepState.QUEUED or (job.state is SweepState.RUNNING and job.held_until < now)
        ]
        with self.store.write() as session:
            given = jobs.lease(session, self.device_id, now)
        assert (given is None) == (not free)
        if given is None:
            return
        self.check_order(free, given)
        before = self.newest.get(given.job_id)
        assert before is None or before.let_go or before.until < now, "two hold the same job"
        assert before is None or given.fencing_token > before.lease.fencing_token
        done = {run.repeat for run in given.done}
        assert done == set(self.taken[given.sweep_id])
        hold = Hold(given, now + timedelta(seconds=jobs.LEASE_S), done)
        self.holds.append(hold)
        self.newest[given.job_id] = hold

    def check_order(self, free: list[JobRecord], given: Lease) -> None:
        (chosen,) = [job for job in free if job.id == given.job_id]
        urgent = [job for job in free if job.priority == max(one.priority for one in free)]
        assert chosen in urgent
        turns = {job.submitter: self.served.get(job.submitter, -1) for job in urgent}
        assert turns[chosen.submitter] == min(turns.values())
        assert chosen.created_at == min(job.created_at for job in urgent if job.submitter == chosen.submitter)
        self.served[chosen.submitter] = max(self.served.values(), default=0) + 1

    @precondition(lambda self: self.holds)
    @rule(data=st.data())
    def measure(self, data: st.DataObject) -> None:
        hold = data.draw(st.sampled_from(self.holds))
        missing = [repeat for repeat in REPEATS if repeat not in hold.done]
        if missing:
            hold.done.add(missing[0])
            hold.spool.append(make_run(hold.lease.sweep_id, PLAN.points()[0], missing[0]))

    @precondition(lambda self: any(hold.spool for hold in self.holds))
    @rule(data=st.data())
    def upload(self, data: st.DataObject) -> None:
        hold = data.draw(st.sampled_from([hold for hold in self.holds if hold.spool]))
        self.send(hold)

    def send(self, hold: Hold) -> None:
        run, taken = hold.spool.pop(0), self.taken[hold.lease.sweep_id]
        hold.sent.append(run)
        newest = self.newest[hold.lease.job_id] is hold
        try:
            assert upload(self.store, self.device_id, hold.lease, run)
        except StaleLeaseError:
            assert not newest
        except ConflictError:
            assert newest
            assert run.repeat in taken
        else:
            assert newest
            assert run.repeat not in taken
            taken[run.repeat] = run.id

    @precondition(lambda self: any(hold.sent for hold in self.holds))
    @rule(data=st.data())
    def upload_again(self, data: st.DataObject) -> None:
        hold = data.draw(st.sampled_from([hold for hold in self.holds if hold.sent]))
        with suppress(ConflictError):
            assert not upload(self.store, self.device_id, hold.lease, data.draw(st.sampled_from(hold.sent)))

    @precondition(lambda self: self.holds)
    @rule(data=st.data())
    def heartbeat(self, data: st.DataObject) -> None:
        hold = data.draw(st.sampled_from(self.holds))
        try:
            with self.store.write() as session:
                state = jobs.heartbeat(session, self.device_id, *fence(hold), self.clock())
        except StaleLeaseError:
            assert hold.let_go or self.newest[hold.lease.job_id] is not hold or hold.until < self.clock()
            return
        assert self.newest[hold.lease.job_id] is hold
        assert not hold.let_go
        assert state in (SweepState.RUNNING, SweepState.PAUSED, SweepState.CANCELLED)
        hold.until = self.clock() + timedelta(seconds=jobs.LEASE_S)

    @precondition(lambda self: self.holds)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        hold = data.draw(st.sampled_from(self.holds))
        self.end(hold, lambda session: jobs.release(session, self.device_id, *fence(hold), self.clock()))

    @precondition(lambda self: self.holds)
    @rule(data=st.data(), fails=st.booleans())
    def finish(self, data: st.DataObject, fails: bool) -> None:
        hold = data.draw(st.sampled_from(self.holds))
        complete = hold.done == set(REPEATS) and not hold.spool
        if complete or fails:
            self.say_finished(hold, "done" if complete else "failed")

    def say_finished(self, hold: Hold, state: Any) -> None:
        message = Finish(fencing_token=hold.lease.fencing_token, state=state)
        self.end(hold, lambda session: jobs.finish(session, self.device_id, hold.lease.job_id, message, self.clock()))

    def end(self, hold: Hold, say: Any) -> None:
        try:
            with self.store.write() as session:
                say(session)
        except StaleLeaseError:
            assert self.newest[hold.lease.job_id] is not hold
        hold.let_go = True

    @precondition(lambda self: self.taken)
    @rule(data=st.data(), verb=st.sampled_from(sorted(VERBS)))
    def change(self, data: st.DataObject, verb: str) -> None:
        sweep_id = data.draw(st.sampled_from(list(self.taken)))
        try:
            with self.store.write() as session:
                VERBS[verb](session, sweep_id, "somebody", self.clock())
        except ConflictError:
            assert sweep_id in self.over
            return
        wanted = {"pause": [SweepState.PAUSED], "resume": [SweepState.QUEUED, SweepState.RUNNING]}
        assert self.state(sweep_id) in wanted.get(verb, [SweepState.CANCELLED])

    @rule(seconds=st.sampled_from([1.0, jobs.LEASE_S / 2, jobs.LEASE_S + 1]))
    def wait(self, seconds: float) -> None:
        self.clock.forward(seconds)

    def state(self, sweep_id: str) -> SweepState:
        with self.store.session() as session:
            return queries.sweep(session, sweep_id).state

    @invariant()
    def what_was_taken_is_there_once(self) -> None:
        with self.store.session() as session:
            for sweep_id, taken in self.taken.items():
                runs = queries.runs_of_sweep(session, sweep_id)
                assert [(run.repeat, run.id) for run in runs] == sorted(taken.items())

    @invariant()
    def what_is_over_stays_over(self) -> None:
        for job in self.queue():
            assert self.over.get(job.sweep_id, job.state) is job.state
            if job.state in OVER:
                self.over[job.sweep_id] = job.state

    def teardown(self) -> None:
        """Everybody who holds something dies, and one good agent comes: every job reaches an end, with all its runs."""
        for job in self.queue():
            if job.state is SweepState.PAUSED:
                with self.store.write() as session:
                    control.resume(session, job.sweep_id, "somebody", self.clock())
        self.clock.forward(jobs.LEASE_S + 1)
        for _ in self.taken:
            self.lease()
            hold = self.holds[-1] if self.holds else None
            if hold is not None and not hold.let_go and self.newest[hold.lease.job_id] is hold:
                hold.spool += [
                    make_run(hold.lease.sweep_id, PLAN.points()[0], repeat)
                    for repeat in REPEATS
                    if repeat not in hold.done
                ]
                while hold.spool:
                    self.send(hold)
                self.say_finished(hold, "done")
        self.what_was_taken_is_there_once()
        for job in self.queue():
            assert job.state in OVER
            if job.state is SweepState.DONE:
                assert set(self.taken[job.sweep_id]) == set(REPEATS)


def fence(hold: Hold) -> tuple[str, int]:
    return hold.lease.job_id, hold.lease.fencing_token
