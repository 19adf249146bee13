"""Sweeps that any of several devices may take, and campaigns of one on each; on both databases."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import select, text
from sqlalchemy.exc import IntegrityError

from powerlab.domain.errors import PowerlabError
from powerlab.domain.mode import CURRENT_MODE
from powerlab.domain.selector import Selector, parse_label
from powerlab.domain.sweep import SweepPlan
from powerlab.protocol.labs import CampaignRequest, Each
from powerlab.protocol.messages import CloneRequest, Description, EnrolmentCodeRequest, EnrolRequest, SweepRequest
from powerlab.protocol.records import SweepRecord
from powerlab.store import Store
from powerlab.store.errors import ConflictError, NotFoundError
from powerlab.store.reads import queries
from powerlab.store.reads.campaigns import campaign
from powerlab.store.reads.jobs import JobFilter, list_jobs
from powerlab.store.reads.previews import preview
from powerlab.store.tables import PointRow, SweepCandidateRow
from powerlab.store.writes import control, devices, jobs, labels
from powerlab.store.writes.campaigns import submit_campaign
from powerlab.store.writes.clones import cloned
from powerlab.store.writes.sweeps import submit_sweep
from server_examples import PLAN, SLOW, capabilities, device, make_run
from store_writing import take, upload
from tests.store.test_races import at_once

ANY = SweepRequest(any_of=Selector(), plan=replace(PLAN, modes=("SLOW", "cores=2", "current"), batch_sizes=(1,)))


def enrolled(store: Store, name: str, board: str = "generic", **change: Any) -> str:
    with store.write() as session:
        code = devices.make_enrolment_code(session, EnrolmentCodeRequest(), store.clock()).code
        session.flush()
        said = replace(device(name), board=board)
        request = EnrolRequest(code=code, device=said, capabilities=replace(capabilities(), **change))
        return devices.enrol(session, request, store.clock()).device_id


@pytest.fixture
def nanos(store: Store) -> list[str]:
    """Three devices whose modes have other numbers, and one of another board."""
    found = [
        enrolled(store, "nano-1"),
        enrolled(store, "nano-2", modes=(SLOW, CURRENT_MODE)),
        enrolled(store, "nano-3"),
    ]
    enrolled(store, "tx2-1", board="jetson-tx2", modes=(CURRENT_MODE,))
    return found


NANO = replace(ANY, any_of=Selector(board="generic"))


def submit(store: Store, request: SweepRequest, **more: Any) -> SweepRecord:
    with store.write() as session:
        sweep_id, _ = submit_sweep(session, request, store.clock(), **{"by": "ada", **more})
    return sweep(store, sweep_id)


def sweep(store: Store, sweep_id: str) -> SweepRecord:
    with store.session() as session:
        return queries.sweep(session, sweep_id)


def given(store: Store, device_id: str) -> str | None:
    with store.write() as session:
        held = jobs.lease(session, device_id, store.clock())
    return held and held.sweep_id


def modes_of_points(store: Store, sweep_id: str) -> set[tuple[str, bool]]:
    """Return the names of the points' modes, and whether all lie in the sweep's own snapshot."""
    with store.session() as session:
        points = session.scalars(select(PointRow).where(PointRow.sweep_id == sweep_id)).all()
        (snapshot_id,) = session.scalars(text("SELECT snapshot_id FROM sweep WHERE id = :id").bindparams(id=sweep_id))
        return {(one.power_mode.name, one.power_mode.snapshot_id == snapshot_id) for one in points}


def test_the_first_free_device_takes_it_for_good(store: Store, nanos: list[str]) -> None:
    asked = submit(store, NANO)
    assert (asked.candidates, asked.device_id, asked.any_of) == (("nano-1", "nano-2", "nano-3"), nanos[0], NANO.any_of)
    held = take(store, nanos[1])
    taken = sweep(store, asked.id)
    assert (taken.candidates, taken.device_name, taken.any_of) == ((), "nano-2", NANO.any_of)
    assert held.sweep_id == asked.id
    assert modes_of_points(store, asked.id) == {(mode, True) for mode in NANO.plan.modes}
    run = make_run(asked.id, NANO.plan.points()[0], 0)
    assert upload(store, nanos[1], held, run)
    with store.write() as session:
        jobs.release(session, nanos[1], held.job_id, held.fencing_token, store.clock())
    assert [given(store, one) for one in (nanos[0], nanos[2])] == [None, None]
    again = take(store, nanos[1])
    assert [(done.point_id, done.repeat) for done in again.done] == [(run.point.id, 0)]


def test_one_that_does_not_match_is_never_given_it(store: Store, nanos: list[str]) -> None:
    submit(store, NANO)
    with store.session() as session:
        tx2 = next(one.id for one in queries.list_devices(session) if one.device.name == "tx2-1")
        assert not jobs.is_waiting(session, tx2, store.clock())
        assert jobs.is_waiting(session, nanos[2], store.clock())
    assert given(store, tx2) is None


def test_it_stands_in_the_queue_of_each(store: Store, nanos: list[str]) -> None:
    asked = submit(store, NANO)
    with store.session() as session:
        for one in nanos:
            (job,) = list_jobs(session, JobFilter(device_id=one))
            assert (job.sweep_id, job.candidates) == (asked.id, ("nano-1", "nano-2", "nano-3"))
    take(store, nanos[2])
    with store.session() as session:
        assert list_jobs(session, JobFilter(device_id=nanos[0])) == []


def test_priorities_hold_between_own_sweeps_and_those_of_any(store: Store, nanos: list[str]) -> None:
    own = submit(store, replace(NANO, any_of=None, device_id=nanos[1]))
    urgent = submit(store, replace(NANO, priority=5))
    assert [take(store, nanos[1]).sweep_id for _ in range(2)] == [urgent.id, own.id]


def test_a_cancelled_or_paused_one_is_given_to_nobody(store: Store, nanos: list[str]) -> None:
    asked = submit(store, NANO)
    with store.write() as session:
        control.pause(session, asked.id, "ada", store.clock())
    assert [given(store, one) for one in nanos] == [None, None, None]
    with store.write() as session:
        control.resume(session, asked.id, "ada", store.clock())
        control.cancel(session, asked.id, "ada", store.clock())
    assert [given(store, one) for one in nanos] == [None, None, None]


def test_what_a_device_was_checked_for_is_what_it_gets(store: Store, nanos: list[str]) -> None:
    """A description that comes between asking and taking changes nothing of the sweep: its agent checks again."""
    asked = submit(store, NANO)
    said = Description(device=device("nano-2"), capabilities=replace(capabilities(), modes=(CURRENT_MODE,)))
    with store.write() as session:
        devices.describe(session, nanos[1], said, store.clock())
    assert take(store, nanos[1]).sweep_id == asked.id
    assert modes_of_points(store, asked.id) == {(mode, True) for mode in NANO.plan.modes}


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (ANY, "tx2-1 is one of the devices that are chosen, but: tx2-1 has no power mode 'SLOW'"),
        (replace(NANO, any_of=Selector(board="jetson-nano")), "no device is chosen by board jetson-nano"),
        (replace(NANO, device_id="x"), "give one of the two"),
        (replace(NANO, any_of=None), "give one of the two"),
        (replace(NANO, any_of=Selector(labels=("a b",))), "not a valid label key"),
    ],
)
def test_what_not_every_device_can_do_is_refused(
    store: Store, nanos: list[str], request_: SweepRequest, words: str
) -> None:
    with pytest.raises(PowerlabError, match=words):
        submit(store, request_)
    with store.session() as session:
        assert queries.list_sweeps(session) == []
        assert session.scalars(select(SweepCandidateRow)).all() == []


def test_a_group_that_is_none(store: Store, nanos: list[str]) -> None:
    with pytest.raises(NotFoundError, match="no group 'x'"):
        submit(store, replace(NANO, any_of=Selector(group="x")))


def test_asking_twice_is_asking_once_before_and_after_it_was_taken(store: Store, nanos: list[str]) -> None:
    first = submit(store, NANO, key="night")
    take(store, nanos[1])
    assert submit(store, NANO, key="night").id == first.id
    for other in (replace(NANO, any_of=None, device_id=nanos[1]), replace(NANO, any_of=Selector(labels=("x",)))):
        with pytest.raises(ConflictError):
            submit(store, other, key="night")


def test_a_clone_waits_for_any_device_again(store: Store, nanos: list[str]) -> None:
    asked = submit(store, NANO)
    take(store, nanos[1])
    with store.session() as session:
        assert cloned(session, asked.id, CloneRequest()) == NANO
        there = cloned(session, asked.id, CloneRequest(device_id=nanos[0]))
    assert there == replace(NANO, any_of=None, device_id=nanos[0])


def test_labels_that_change_later_change_nothing_of_what_was_asked_for(store: Store, nanos: list[str]) -> None:
    with store.write() as session:
        labels.set_label(session, nanos[1], parse_label("rack=3"), "ada", store.clock())
    asked = submit(store, replace(NANO, any_of=Selector(labels=("rack=3",))))
    with store.write() as session:
        labels.remove_label(session, nanos[1], "rack", "ada", store.clock())
        labels.set_label(session, nanos[0], parse_label("rack=3"), "ada", store.clock())
    assert given(store, nanos[0]) is None
    assert take(store, nanos[1]).sweep_id == asked.id


def test_a_preview_speaks_of_every_device(store: Store, nanos: list[str]) -> None:
    with store.session() as session:
        good = preview(session, NANO, store.clock())
        bad = preview(session, ANY, store.clock())
    assert [one.device_name for one in good.candidates] == ["nano-1", "nano-2", "nano-3"]
    assert good.expected_s == max(one.expected_s for one in good.candidates)
    assert good.complaints == ()
    assert {one.device_name: bool(one.complaints) for one in bad.candidates}["tx2-1"]
    assert bad.complaints[0].startswith("tx2-1: tx2-1 has no power mode 'SLOW'")
    assert (bad.expected_s, bad.points) == (None, ())


EVERYWHERE = SweepPlan(models=("resnet50",), threads=(1,))


def ask_campaign(store: Store, each: Each, key: str | None = None, **request: Any) -> Any:
    with store.write() as session:
        request = CampaignRequest(each=each, of=Selector(**request), plan=EVERYWHERE, priority=3)
        campaign_id, new = submit_campaign(session, request, store.clock(), by="ada", key=key)
        session.flush()
        return campaign(session, campaign_id), new


def test_a_campaign_has_a_sweep_on_each_device(store: Store, nanos: list[str]) -> None:
    made, new = ask_campaign(store, Each.DEVICE)
    assert new
    assert [one.device_name for one in made.sweeps] == ["nano-1", "nano-2", "nano-3", "tx2-1"]
    assert {(one.campaign_id, one.candidates, one.priority, one.submitter) for one in made.sweeps} == {
        (made.id, (), 3, "ada")
    }
    assert take(store, nanos[2]).sweep_id == made.sweeps[2].id


def test_a_campaign_has_a_sweep_on_one_of_each_board(store: Store, nanos: list[str]) -> None:
    made, _ = ask_campaign(store, Each.BOARD)
    assert [one.candidates for one in made.sweeps] == [("nano-1", "nano-2", "nano-3"), ("tx2-1",)]
    assert take(store, nanos[1]).sweep_id == made.sweeps[0].id
    assert given(store, nanos[0]) is None


def test_a_campaign_is_asked_for_once(store: Store, nanos: list[str]) -> None:
    first, new = ask_campaign(store, Each.BOARD, "night")
    again, newer = ask_campaign(store, Each.BOARD, "night")
    assert (first, new, newer) == (again, True, False)
    with pytest.raises(ConflictError, match="another campaign"):
        ask_campaign(store, Each.DEVICE, "night")


def test_a_campaign_is_whole_or_not_at_all(store: Store, nanos: list[str]) -> None:
    enrolled(store, "zz-small", modes=())
    with pytest.raises(PowerlabError, match="zz-small is one of the devices that are chosen, but"):
        ask_campaign(store, Each.DEVICE)
    with store.session() as session:
        assert queries.list_sweeps(session) == []
    with pytest.raises(NotFoundError), store.session() as session:
        campaign(session, "nothing")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE sweep SET campaign_id = 'nothing'",
        "UPDATE sweep_candidate SET device_id = 'nobody'",
        "UPDATE sweep_candidate SET snapshot_id = 4711",
        "INSERT INTO sweep_candidate SELECT * FROM sweep_candidate",
    ],
)
def test_the_database_itself_refuses_nonsense(store: Store, nanos: list[str], statement: str) -> None:
    submit(store, NANO)
    with pytest.raises(IntegrityError), store.write() as session:
        session.execute(text(statement))


def test_of_devices_that_ask_at_once_one_is_given_it(store: Store, nanos: list[str]) -> None:
    asked = submit(store, NANO)
    found = at_once(3, lambda number: given(store, nanos[number]))
    assert Counter(found) == {asked.id: 1, None: 2}
    assert sweep(store, asked.id).candidates == ()
