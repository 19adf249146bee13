"""The life of jobs, as agents that may be slow, late or dead and people who change their minds lead it.

The machine does at random what they may do, and knows of every hold what its agent knows. What must hold is said in
terms of that, not of the rows: nobody is given a job that somebody else still holds, every run that was taken is there
once, what is over stays over, and in the end every job comes to an end.
"""

from __future__ import annotations

import uuid
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from itertools import product
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from powerlab.domain.run import Run
from powerlab.domain.sweep import SweepPlan
from powerlab.protocol.messages import EnrolmentCodeRequest, EnrolRequest, Finish, Lease, SweepRequest
from powerlab.protocol.records import OVER, JobRecord, SweepState
from powerlab.store import Store
from powerlab.store.errors import ConflictError, StaleLeaseError
from powerlab.store.reads import queries
from powerlab.store.reads.jobs import JobFilter, list_jobs
from powerlab.store.writes import control, jobs
from powerlab.store.writes.devices import enrol, make_enrolment_code
from powerlab.store.writes.sweeps import submit_sweep
from server_examples import Clock, capabilities, device, make_run
from store_writing import upload

PLACES = st.integers(0, 59)
"""Which device, of however many."""
PLAN = SweepPlan(models=("resnet50",), threads=(1,), duration_s=0.1)
REPEATS = range(PLAN.repeats)
VERBS = {"pause": control.pause, "resume": control.resume, "cancel": control.cancel}


@dataclass(eq=False)
class Hold:
    """A lease as its agent knows it."""

    device_id: str
    lease: Lease
    until: datetime
    done: set[int]
    spool: list[Run] = field(default_factory=list)
    sent: list[Run] = field(default_factory=list)
    let_go: bool = False


class JobMachine(RuleBasedStateMachine):
    """Devices with their queues; one, unless a machine of more derives from it.

    Attributes:
        device_count: how many devices.
    """

    device_count = 1

    def __init__(self, store: Store, clock: Clock) -> None:
        super().__init__()
        self.store, self.clock = store, clock
        self.holds: list[Hold] = []
        self.newest: dict[str, Hold] = {}
        self.taken: dict[str, dict[int, str]] = {}
        self.over: dict[str, SweepState] = {}
        self.served: dict[tuple[str, str], int] = {}
        self.board = f"board-{uuid.uuid4()}"
        self.devices = [self.enrolled(f"{self.board}-{number}") for number in range(self.device_count)]

    def enrolled(self, name: str) -> str:
        with self.store.write() as session:
            code = make_enrolment_code(session, EnrolmentCodeRequest(), self.clock()).code
            session.flush()
            said = replace(device(name), board=self.board)
            request = EnrolRequest(code=code, device=said, capabilities=capabilities())
            return enrol(session, request, self.clock()).device_id

    def queue(self, device_id: str) -> list[JobRecord]:
        with self.store.session() as session:
            return list_jobs(session, JobFilter(device_id=device_id))

    def all_jobs(self) -> list[JobRecord]:
        """Every job once, whoever may take it."""
        return list({job.id: job for device_id in self.devices for job in self.queue(device_id)}.values())

    def may_begin(self, device_id: str, job: JobRecord) -> bool:
        """Whether a device may be given a job that nobody holds."""
        return True

    def must_leave(self, hold: Hold) -> bool:
        """Whether somebody else needs the device now."""
        return False

    @rule(by=st.sampled_from("abc"), priority=st.integers(-1, 1), place=PLACES)
    def submit(self, by: str, priority: int, place: int) -> None:
        self.ask_for(by, SweepRequest(device_id=self.at(place), plan=PLAN, priority=priority))

    def at(self, place: int) -> str:
        return self.devices[place % len(self.devices)]

    def ask_for(self, by: str, request: SweepRequest) -> str:
        self.clock.forward(0.001)
        with self.store.write() as session:
            sweep_id, new = submit_sweep(session, request, self.clock(), by=by, key=str(uuid.uuid4()))
        assert new
        self.taken[sweep_id] = {}
        return sweep_id

    @rule(place=PLACES)
    def lease(self, place: int) -> None:
        self.clock.forward(0.001)
        now, device_id = self.clock(), self.at(place)
        free = [
            job
            for job in self.queue(device_id)
            if job.state is SweepState.QUEUED or (job.state is SweepState.RUNNING and job.held_until < now)
        ]
        free = [job for job in free if self.may_begin(device_id, job)]
        with self.store.write() as session:
            given = jobs.lease(session, device_id, now)
        assert (given is None) == (not free)
        if given is None:
            return
        self.check_order(device_id, free, given)
        before = self.newest.get(given.job_id)
        assert before is None or before.let_go or before.until < now, "two hold the same job"
        assert before is None or given.fencing_token > before.lease.fencing_token
        done = {run.repeat for run in given.done}
        assert done == set(self.taken[given.sweep_id])
        hold = Hold(device_id, given, now + timedelta(seconds=jobs.LEASE_S), done)
        self.holds.append(hold)
        self.newest[given.job_id] = hold

    def check_order(self, device_id: str, free: list[JobRecord], given: Lease) -> None:
        (chosen,) = [job for job in free if job.id == given.job_id]
        urgent = [job for job in free if job.priority == max(one.priority for one in free)]
        assert chosen in urgent
        turns = {job.submitter: self.served.get((device_id, job.submitter), -1) for job in urgent}
        assert turns[chosen.submitter] == min(turns.values())
        assert chosen.created_at == min(job.created_at for job in urgent if job.submitter == chosen.submitter)
        self.served[device_id, chosen.submitter] = max(self.served.values(), default=0) + 1

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
            assert upload(self.store, hold.device_id, hold.lease, run)
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
            assert not upload(self.store, hold.device_id, hold.lease, data.draw(st.sampled_from(hold.sent)))

    @precondition(lambda self: self.holds)
    @rule(data=st.data())
    def heartbeat(self, data: st.DataObject) -> None:
        self.beat(data.draw(st.sampled_from(self.holds)))

    def beat(self, hold: Hold) -> None:
        try:
            with self.store.write() as session:
                state = jobs.heartbeat(session, hold.device_id, *fence(hold), self.clock())
        except StaleLeaseError:
            assert hold.let_go or self.newest[hold.lease.job_id] is not hold or hold.until < self.clock()
            return
        assert self.newest[hold.lease.job_id] is hold
        assert not hold.let_go
        told = {SweepState.QUEUED if self.must_leave(hold) else SweepState.RUNNING}
        assert state in told | {SweepState.PAUSED, SweepState.CANCELLED}
        hold.until = self.clock() + timedelta(seconds=jobs.LEASE_S)

    @precondition(lambda self: self.holds)
    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        hold = data.draw(st.sampled_from(self.holds))
        self.end(hold, lambda session: jobs.release(session, hold.device_id, *fence(hold), self.clock()))

    @precondition(lambda self: self.holds)
    @rule(data=st.data(), fails=st.booleans())
    def finish(self, data: st.DataObject, fails: bool) -> None:
        hold = data.draw(st.sampled_from(self.holds))
        complete = hold.done == set(REPEATS) and not hold.spool
        if complete or fails:
            self.say_finished(hold, "done" if complete else "failed")

    def say_finished(self, hold: Hold, state: Any) -> None:
        message = Finish(fencing_token=hold.lease.fencing_token, state=state)
        self.end(hold, lambda session: jobs.finish(session, hold.device_id, hold.lease.job_id, message, self.clock()))

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
        for job in self.all_jobs():
            assert self.over.get(job.sweep_id, job.state) is job.state
            if job.state in OVER:
                self.over[job.sweep_id] = job.state

    def teardown(self) -> None:
        """Everybody who holds something dies, and one good agent comes: every job reaches an end, with all its runs."""
        for job in self.all_jobs():
            if job.state is SweepState.PAUSED:
                with self.store.write() as session:
                    control.resume(session, job.sweep_id, "somebody", self.clock())
        self.clock.forward(jobs.LEASE_S + 1)
        for place, _ in product(range(len(self.devices)), self.taken):
            self.finish_one(place)
        self.what_was_taken_is_there_once()
        for job in self.all_jobs():
            assert job.state in OVER
            if job.state is SweepState.DONE:
                assert set(self.taken[job.sweep_id]) == set(REPEATS)

    def finish_one(self, place: int) -> None:
        """Let a device carry out what it is given."""
        known = len(self.holds)
        self.lease(place)
        for hold in self.holds[known:]:
            missing = [repeat for repeat in REPEATS if repeat not in hold.done]
            hold.spool += [make_run(hold.lease.sweep_id, PLAN.points()[0], repeat) for repeat in missing]
            while hold.spool:
                self.send(hold)
            self.say_finished(hold, "done")


def fence(hold: Hold) -> tuple[str, int]:
    return hold.lease.job_id, hold.lease.fencing_token
