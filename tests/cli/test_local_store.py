"""The local database of ``powerlab profile``: what arrives, what happens when it breaks, where it cannot be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from sqlalchemy import text

from powerlab.cli import main
from powerlab.cli.stored.local_database import NO_STORE, StoredSweep, begin, go_on, open_local
from powerlab.domain.errors import PowerlabError
from powerlab.protocol.messages import Finish
from powerlab.store import Store, open_store
from powerlab.store.reads import queries
from powerlab.store.writes import jobs
from server_examples import PLAN, RAIL, capabilities, device, make_run, make_trace, runs_of


@pytest.fixture
def store(tmp_path) -> Iterator[Store]:
    opened = open_store(tmp_path / "local.db")
    yield opened
    opened.close()


@pytest.fixture
def sweep(store) -> StoredSweep:
    return begin(store, device(), capabilities(), PLAN)


def states(store: Store) -> list[tuple[str, str]]:
    with store.session() as session:
        return [(found.state, found.detail or "") for found in queries.list_sweeps(session)]


def test_runs_and_traces_arrive_bit_by_bit(store, sweep):
    runs, trace = runs_of(sweep.sweep_id), make_trace(count=70_000)
    sweep.add(runs[0], (trace,))
    sweep.add(runs[1], ())
    with store.session() as session:
        assert queries.runs_of_sweep(session, sweep.sweep_id) == runs[:2]
        (found,) = queries.power_traces(session, runs[0].id)
    assert found.rail == RAIL
    np.testing.assert_array_equal(found.time_ns, trace.time_ns)
    np.testing.assert_array_equal(found.value, trace.value)
    assert states(store)[0][0] == "running"
    sweep.finish(None)
    assert states(store) == [("done", "")]


def test_a_sweep_that_failed_says_why(store, sweep):
    sweep.finish("the worker could not start.")
    assert states(store) == [("failed", "the worker could not start.")]


def test_a_second_sweep_of_the_same_device_does_not_make_a_second_device(store):
    first, second = (begin(store, device(cores=cores), capabilities(), PLAN) for cores in (4, 6))
    assert first.device_id == second.device_id
    assert first.sweep_id != second.sweep_id
    with store.session() as session:
        (known,) = queries.list_devices(session)
    assert known.device.core_count == 6


def test_two_devices_are_two(store):
    names = {begin(store, device(name), capabilities(), PLAN).device_id for name in ("board-1", "board-2")}
    assert len(names) == 2


def test_a_database_that_breaks_is_told_once_and_keeps_what_it_has(store, sweep, capsys):
    runs = runs_of(sweep.sweep_id)
    sweep.add(runs[0], ())
    with store.engine.begin() as connection:
        connection.execute(text("ALTER TABLE run RENAME TO gone"))
    for run in runs[1:4]:
        sweep.add(run, ())
    said = capsys.readouterr().err
    assert said.count("takes no more of this sweep") == 1
    assert "no such table" in said
    assert "INSERT" not in said
    assert len(said.splitlines()) == 1
    with store.engine.begin() as connection:
        connection.execute(text("ALTER TABLE gone RENAME TO run"))
        assert connection.execute(text("SELECT count(*) FROM run")).scalar() == 1
    sweep.finish(None)
    assert states(store)[0][0] == "running", "a sweep with holes is not called done"
    assert capsys.readouterr().err == ""


def test_a_run_whose_trace_fails_is_not_half_stored(store, sweep, capsys):
    run = make_run(sweep.sweep_id, PLAN.points()[0], 0)
    with store.engine.begin() as connection:
        connection.execute(text("ALTER TABLE trace_chunk RENAME TO gone"))
    sweep.add(run, (make_trace(),))
    assert sweep.broken is not None
    assert capsys.readouterr().err
    with store.session() as session:
        assert queries.runs_of_sweep(session, sweep.sweep_id) == []


def test_no_store_is_none():
    assert open_local(NO_STORE) is None


@pytest.mark.parametrize("command", [("serve", "--port", "0"), ("profile", "resnet50", "--duration", "0.1")])
def test_a_state_folder_that_cannot_be_made_is_one_sentence(tmp_path, monkeypatch, capsys, command):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("POWERLAB_STATE_DIR", str(tmp_path / "file" / "state"))
    assert main(command) == 2
    (sentence,) = capsys.readouterr().err.splitlines()
    assert sentence.startswith("powerlab: ")
    assert str(tmp_path / "file") in sentence
    assert "Not a directory" in sentence


def test_a_database_elsewhere_is_opened_without_the_state_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("POWERLAB_STATE_DIR", "/proc/nowhere")
    opened = open_local(str(tmp_path / "mine.db"))
    assert opened is not None
    opened.close()
    with pytest.raises(PowerlabError, match="POWERLAB_STATE_DIR"):
        open_local(None)


def test_a_sweep_that_is_over_goes_on_under_its_identifier(store, sweep):
    runs = runs_of(sweep.sweep_id)
    for run in runs:
        sweep.add(run, ())
    with store.write() as session:
        jobs.finish(
            session,
            sweep.device_id,
            sweep.job_id,
            Finish(fencing_token=sweep.fencing_token, state="done", detail=""),
            store.clock(),
        )
    held = go_on(store, sweep.sweep_id, device(), capabilities(), 2)
    assert (held.sweep_id, held.device_id) == (sweep.sweep_id, sweep.device_id)
    assert states(store)[0][0] == "running"
    held.add(replace(runs[0], id="00000000-0000-4000-8000-00000000ffff", repeat=PLAN.repeats), ())
    assert held.broken is None
    with store.session() as session:
        assert len(queries.runs_of_sweep(session, sweep.sweep_id)) == len(runs) + 1


def test_a_sweep_that_is_not_in_the_database_is_left_to_its_file(store):
    assert go_on(store, "00000000-0000-4000-8000-000000000000", device(), capabilities(), 3) is None
