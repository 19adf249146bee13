"""What an agent keeps: its identity, its lock, its spool; and what it does not import."""

from __future__ import annotations

import stat
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from chunk_joining import join
from powerlab.analysis.summary import searched_figures
from powerlab.domain.errors import PowerlabError
from powerlab.protocol.messages import Lease
from powerlab.sweep.events import RunFinished
from powerlab_agent.main import main
from powerlab_agent.spool import Spool
from powerlab_agent.state import Identity, load_identity, only_agent, save_identity
from server_examples import PLAN, make_run, make_trace

ME = Identity(server="http://x", device_id="d", device_name="n", token="t")
HELD = Lease(job_id="j", sweep_id="s", plan=PLAN, fencing_token=7, lease_s=60.0, done=())


def test_the_token_is_readable_by_its_owner_alone(tmp_path: Path) -> None:
    save_identity(tmp_path / "a", ME)
    file = tmp_path / "a" / "identity.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    file.chmod(0o644)
    save_identity(tmp_path / "a", ME)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert load_identity(tmp_path / "a") == ME


def test_an_agent_that_is_not_enrolled_is_told_how(tmp_path: Path) -> None:
    with pytest.raises(PowerlabError, match="agent enrol"):
        load_identity(tmp_path)


def test_a_damaged_identity_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "identity.json").write_text("{")
    with pytest.raises(PowerlabError, match="Identity"):
        load_identity(tmp_path)


def test_a_state_directory_that_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(PowerlabError, match="cannot be written"):
        save_identity(tmp_path / "file", ME)


def test_one_agent_at_a_time(tmp_path: Path) -> None:
    with only_agent(tmp_path), pytest.raises(PowerlabError, match="another agent"), only_agent(tmp_path):
        pass
    with only_agent(tmp_path):
        pass


def test_the_spool_survives_being_closed(tmp_path: Path) -> None:
    run, trace = make_run("s", PLAN.points()[0], 2), make_trace()
    done = {(run.point.id, 2): searched_figures(run)}
    assert done[run.point.id, 2]
    with closing(Spool(tmp_path / "spool.db")) as spool:
        spool.hold(HELD)
        spool.add(RunFinished(run=run, traces=(trace,), index=1, run_count=1), 7)
    with closing(Spool(tmp_path / "spool.db")) as spool:
        assert spool.held() == HELD
        assert spool.done("s") == done
        spooled = spool.next()
        assert (spooled.run, spooled.fencing_token) == (run, 7)
        assert np.array_equal(join([spool.chunk(number) for number in spooled.chunks]).value, trace.value)
        spool.remove(run.id)
        spool.let_go()
    with closing(Spool(tmp_path / "spool.db")) as spool:
        assert (spool.next(), spool.held()) == (None, None)
        assert spool.done("s") == done
        spool.forget_done("s")
        assert spool.done("s") == {}


def test_a_trace_that_cannot_be_stored_does_not_cost_the_run(tmp_path: Path) -> None:
    run = make_run("s", PLAN.points()[0], 0)
    broken = make_trace()
    broken.value[3] = np.nan
    with closing(Spool(tmp_path / "spool.db")) as spool:
        (complaint,) = spool.add(RunFinished(run=run, traces=(broken, make_trace()), index=1, run_count=1), 1)
        assert "not finite" in complaint
        assert (spool.next().run, len(spool.next().chunks)) == (run, 1)


def test_a_run_that_json_cannot_hold_is_refused_at_once(tmp_path: Path) -> None:
    run = make_run("s", PLAN.points()[0], 0, speed=float("inf"))
    with closing(Spool(tmp_path / "spool.db")) as spool:
        with pytest.raises(PowerlabError, match="not a Run"):
            spool.add(RunFinished(run=run, traces=(), index=1, run_count=1), 1)
        assert spool.next() is None


def test_a_spool_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "spool.db").write_text("x" * 5000)
    with pytest.raises(PowerlabError, match="may hold runs"):
        Spool(tmp_path / "spool.db")


def test_enrolling_with_nobody_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["enrol", "--server", "http://127.0.0.1:1", "--code", "c", "--state", str(tmp_path)]
    assert main(words) == 2
    complaint = capsys.readouterr().err.strip().splitlines()[-1]
    assert complaint.startswith("powerlab-agent: ")
    assert "that the server runs" in complaint


def test_an_agent_loads_neither_a_database_toolkit_nor_a_web_framework() -> None:
    code = (
        "import sys, powerlab_agent.main, powerlab_agent.daemon\n"
        "heavy = {'sqlalchemy', 'alembic', 'psycopg', 'fastapi', 'starlette', 'pydantic', 'uvicorn', 'plotly'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[]\n", "")
