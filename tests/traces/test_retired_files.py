"""Files of months that are kept no longer: gone with their rows, wherever they lie, and never another database's."""

from __future__ import annotations

from pathlib import Path

import pytest

from powerlab.domain.errors import PowerlabError
from powerlab.store.errors import UnavailableError
from powerlab.store.maintenance.retention import Retired, retire
from powerlab.store.tables.retirement import Kind
from powerlab.store.traces import compaction
from powerlab.store.traces.compaction import Compacted, compact
from server_examples import RAIL, Clock, make_trace, runs_of
from store_writing import upload
from trace_lab import Lab

MONTH_S = 31 * 24 * 3600


def fill(lab: Lab) -> list[str]:
    """Store traces of two runs in January and of one in April; return what lies there of April."""
    for run in (0, 1):
        assert all(lab.send(run, make_trace(RAIL, 900, run)))
    january = set(lab.keys)
    assert isinstance(lab.store.clock, Clock)
    lab.store.clock.forward(3 * MONTH_S)
    run = runs_of(lab.held.sweep_id)[len(lab.run_ids)]
    upload(lab.store, lab.device_id, lab.held, run)
    lab.run_ids.append(run.id)
    assert all(lab.send(-1, make_trace(RAIL, 900, 2)))
    return [key for key in lab.keys if key not in january]


def counted(done: Retired) -> tuple[int, int]:
    return done.row_count, done.file_count


@pytest.mark.campaign
def test_files_go_with_their_month(on_both: Lab) -> None:
    kept = fill(on_both)
    assert compact(on_both.store, on_both.files, fewest=2) == Compacted(merged_count=9, made_count=2)
    assert counted(retire(on_both.store, Kind.TRACES, 2)) == (6, 7)
    assert set(kept) < set(on_both.keys)
    assert all(key.startswith("month=2026-04/") for key in on_both.keys)
    assert on_both.files.objects.folders() == ["month=2026-04"]
    assert compact(on_both.store, on_both.files).damaged == ()
    assert counted(retire(on_both.store, Kind.TRACES, 2)) == (0, 0)


def test_objects_go_with_their_month(remote: Lab) -> None:
    kept = fill(remote)
    assert counted(retire(remote.store, Kind.TRACES, 2)) == (6, 6)
    assert remote.keys == kept
    assert not any(remote.send(0, make_trace(RAIL, 900, 0)))
    assert remote.keys == kept


def test_files_that_could_not_be_removed_go_the_next_time(filed: Lab) -> None:
    kept = fill(filed)
    root = Path(filed.files.objects.root)
    away = root.rename(root.with_name("away"))
    root.write_text("in the way")
    with pytest.raises(UnavailableError, match="try again later"):
        retire(filed.store, Kind.TRACES, 2)
    root.unlink()
    away.rename(root)
    assert counted(retire(filed.store, Kind.TRACES, 2)) == (0, 6)
    assert filed.keys == kept


def test_files_of_another_database_stay(filed: Lab) -> None:
    fill(filed)
    (Path(filed.files.objects.root) / "powerlab-database").write_text("somebody else's")
    filed.files._claimed = False
    with pytest.raises(PowerlabError, match="belong to another database"):
        retire(filed.store, Kind.TRACES, 2)
    assert len(filed.keys) == 9


def test_what_goes_while_files_are_put_together_is_not_damaged(filed: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(filed)
    rows_of = compaction._rows_of

    def late(*given: object) -> object:
        retire(filed.store, Kind.TRACES, 2)
        return rows_of(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(compaction, "_rows_of", late)
    done = compact(filed.store, filed.files, fewest=2)
    assert done.damaged == ()
    assert not any(key.startswith("month=2026-01/") for key in filed.keys)
