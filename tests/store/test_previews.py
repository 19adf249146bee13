"""What a preview promises: the sweep's points and runs, its time with what it is worked out from, all complaints."""

from __future__ import annotations

from dataclasses import replace

import pytest

from powerlab.domain.order import visits
from powerlab.measure.duration import expected_s
from powerlab.measure.recording.margins import margin_s
from powerlab.protocol.messages import SweepRequest
from powerlab.protocol.records import SweepPreview
from powerlab.store import Store
from powerlab.store.errors import NotFoundError
from powerlab.store.reads import queries
from powerlab.store.reads.previews import MOST_POINTS, preview
from server_examples import PLAN, RAIL, make_run
from store_writing import take, upload


def looked_at(store: Store, device_id: str, **changes: object) -> SweepPreview:
    priority = changes.pop("priority", 0)
    with store.session() as session:
        request = SweepRequest(device_id=device_id, plan=replace(PLAN, **changes), priority=priority)
        return preview(session, request, store.clock())


def test_a_preview_counts_and_stores_nothing(store: Store, device_id: str) -> None:
    seen = looked_at(store, device_id)
    assert (seen.device_name, seen.simulated, seen.complaints) == ("board-1", False, ())
    assert seen.points == PLAN.points()
    assert (seen.point_count, seen.run_count) == (len(PLAN.points()), 3 * len(PLAN.points()))
    margin = margin_s([RAIL], PLAN.sample_period_s)
    assert seen.expected_s == pytest.approx(expected_s(PLAN, visits(PLAN), margin))
    assert seen.longest_s > seen.expected_s
    assert "no run of these points on this device is stored" in seen.basis
    with store.session() as session:
        assert queries.list_sweeps(session) == []


def test_stored_runs_say_how_slow_a_model_is(store: Store, device_id: str, other_id: str, sweep_id: str) -> None:
    plan = PLAN
    alone = looked_at(store, device_id)
    held = take(store, device_id)
    slow = plan.points()[0]
    for repeat in (0, 1):
        upload(store, device_id, held, make_run(sweep_id, slow, repeat, speed=0.5))  # two seconds an image
    seen = looked_at(store, device_id)
    assert "stored runs of 1 of the 8 points on this device" in seen.basis
    longer_s = plan.min_inferences * 2.0 - plan.duration_s
    assert seen.expected_s == pytest.approx(alone.expected_s + plan.repeats * longer_s)
    assert looked_at(store, other_id).expected_s == pytest.approx(alone.expected_s)
    small = {"threads": (slow.threads,), "batch_sizes": (1,), "modes": (slow.mode,)}
    assert "stored runs of every point on this device" in looked_at(store, device_id, **small).basis


def test_every_complaint_is_a_sentence_of_its_own(store: Store, device_id: str) -> None:
    changes = {"threads": (9,), "modes": ("TURBO",), "repeats": 2, "duration_s": 0.0, "engines": ("abacus",)}
    seen = looked_at(store, device_id, **changes, priority=5000)
    words = ("2 repeats", "the duration is 0", "'abacus'", "4 cores", "'TURBO'", "the priority is 5000")
    assert len(seen.complaints) == len(words)
    for sentence, word in zip(seen.complaints, words, strict=True):
        assert word in sentence
        assert sentence.endswith(".")
    assert (seen.expected_s, seen.longest_s, seen.points, seen.basis) == (None, None, (), "")


@pytest.mark.parametrize("changes", [{"threads": ()}, {"repeats": 10**30}, {"batch_sizes": (1, 10**400)}])
def test_plans_that_cannot_be_reckoned_with(store: Store, device_id: str, changes: dict[str, object]) -> None:
    seen = looked_at(store, device_id, **changes)
    assert len(seen.complaints) == 1
    assert seen.expected_s is None


def test_models_that_are_not_there_are_told_one_by_one(store: Store, device_id: str) -> None:
    models = ("resnet50", f"mine@sha256:{'0' * 64}", "mine@sha256:17")
    seen = looked_at(store, device_id, models=models)
    assert ["names no model" in seen.complaints[0], "there is no model" in seen.complaints[1]] == [True, True]
    assert len(seen.complaints) == 2


def test_of_many_points_the_first_are_shown(store: Store, device_id: str) -> None:
    seen = looked_at(store, device_id, batch_sizes=tuple(range(1, 501)))
    assert (len(seen.points), seen.point_count) == (MOST_POINTS, 2000)


def test_a_device_that_is_not_there(store: Store) -> None:
    with pytest.raises(NotFoundError):
        looked_at(store, "nobody")
