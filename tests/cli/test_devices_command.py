"""``powerlab devices``: labels and groups through a server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from powerlab import cli
from powerlab.cli.commands.devices.actions import waiting
from powerlab.protocol.messages import Backlog, EnrolmentCodeRequest, EnrolRequest
from powerlab.protocol.records import BacklogRecord
from powerlab.store import Store
from powerlab.store.reads import queries
from powerlab.store.writes import backlogs
from powerlab.store.writes.devices import enrol, make_enrolment_code
from quick_server import quick_server
from server_examples import capabilities, device


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Store]]:
    with quick_server(tmp_path_factory.mktemp("devices") / "powerlab.db") as (url, store):
        for name in ("nano-1", "nano-2", "xavier-1"):
            with store.write() as session:
                code = make_enrolment_code(session, EnrolmentCodeRequest(), store.clock()).code
                session.flush()
                enrol(session, EnrolRequest(code=code, device=device(name), capabilities=capabilities()), store.clock())
        yield url, store


@pytest.fixture(autouse=True)
def server(served: tuple[str, Store], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POWERLAB_SERVER", served[0])


def run(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> str:
    assert cli.main(["devices", *words]) == status
    out, err = capsys.readouterr()
    said = "".join(line for line in err.splitlines(keepends=True) if not line.startswith("source: server http://"))
    assert (said == "") == (status == 0)
    return out or said


def names(capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    return [one["device"]["name"] for one in json.loads(run(capsys, "list", "--json", *words))]


def test_labels_choose_devices(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "label", "nano-1", "rack=3", "fan") == "labels of nano-1: fan rack=3\n"
    assert run(capsys, "label", "nano-2", "rack=3") == "labels of nano-2: rack=3\n"
    assert names(capsys, "--label", "rack=3") == ["nano-1", "nano-2"]
    assert names(capsys, "--label", "rack", "--label", "fan", "--board", "generic") == ["nano-1"]
    assert "fan rack=3" in run(capsys, "list")
    assert run(capsys, "unlabel", "nano-1", "fan", "rack") == "labels of nano-1: none\n"
    assert names(capsys, "--label", "rack") == ["nano-2"]


def test_groups_have_names(capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, "label", "xavier-1", "big")
    said = run(capsys, "group", "large", "--board", "generic", "--label", "big")
    assert said == "group large: board generic, label big; currently xavier-1\n"
    assert names(capsys, "--group", "large") == ["xavier-1"]
    assert names(capsys, "--group", "large", "--board", "jetson-tx2") == []
    assert "large" in run(capsys, "groups")
    assert json.loads(run(capsys, "groups", "--json"))[0]["selector"]["labels"] == ["big"]
    assert run(capsys, "ungroup", "large") == "deleted group large\n"
    assert json.loads(run(capsys, "groups", "--json")) == []


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("label", "nano-1", "rack 3"), "'rack 3' is not a valid label key"),
        (("label", "nano-1", "rack="), "'' is not a valid label value"),
        (("label", "nobody", "rack"), "there is no device 'nobody' in server"),
        (("label", "nano", "rack"), "several devices begin with 'nano'"),
        (("label", "nano-3", "rack"), "(did you mean nano-"),
        (("unlabel", "nano-1", "nothing"), "has no label 'nothing'"),
        (("group", "all"), "chooses every device"),
        (("group", "a/b", "--label", "x"), "there is nothing at"),
        (("ungroup", "nothing"), "there is no group 'nothing'"),
        (("list", "--group", "nothing"), "there is no group 'nothing'"),
    ],
)
def test_what_cannot_be_done_is_one_sentence(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], sentence: str
) -> None:
    said = run(capsys, *words, status=2)
    assert sentence in said
    assert said.count("\n") == 1


def sweep(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> str:
    assert cli.main(["sweep", *words]) == status
    out, err = capsys.readouterr()
    return out or err


def test_a_sweep_for_any_and_for_each(capsys: pytest.CaptureFixture[str]) -> None:
    said = sweep(capsys, "create", "resnet50", "--threads", "1", "--any", "--board", "generic")
    assert said.endswith("3 runs queued for any of nano-1, nano-2, xavier-1\n")
    assert "any of nano-1, nano-2, xavier-1" in sweep(capsys, "list")
    said = sweep(capsys, "create", "resnet50", "--threads", "1,2", "--any", "--board", "generic", "--search")
    assert said.endswith(": at most 6 runs queued for any of nano-1, nano-2, xavier-1\n")
    previewed = sweep(capsys, "preview", "resnet50", "--threads", "1", "--any")
    assert "(the slowest) or" in previewed
    assert previewed.startswith("3 runs of 1 point on")
    assert sweep(capsys, "preview", "resnet50", "--any", "--search").startswith("at most ")
    made = sweep(capsys, "create", "resnet50", "--threads", "1", "--each", "device", "--json")
    campaign = json.loads(made)
    listed = json.loads(sweep(capsys, "list", "--campaign", campaign["id"], "--json"))
    assert sorted(one["device_name"] for one in listed) == ["nano-1", "nano-2", "xavier-1"]
    boards = sweep(capsys, "preview", "resnet50", "--threads", "1", "--each", "board")
    assert boards.count(" runs of ") == 1
    said = sweep(capsys, "create", "resnet50", "--threads", "1", "--each", "board")
    assert said.startswith("campaign ")
    assert said.endswith("queued for any of nano-1, nano-2, xavier-1\n")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--any", "--each", "board"), "give only one of them"),
        (("--any", "--device", "nano-1"), "give only one of them"),
        (("--label", "rack"), "add --any or --each"),
        (("--any", "--board", "jetson-tx2"), "no device matches board jetson-tx2"),
        (("--any", "--modes", "TURBO"), "but: nano-1 has no power mode 'TURBO'"),
    ],
)
def test_words_that_contradict_each_other(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], sentence: str
) -> None:
    assert sentence in sweep(capsys, "create", "resnet50", "--threads", "1", *words, status=2)


def test_devices_are_booked(capsys: pytest.CaptureFixture[str]) -> None:
    times = ("--from", "2099-01-31T08:00+00:00", "--to", "2099-01-31T12:00+01:00")
    said = run(capsys, "reserve", "nano-1", *times, "--for", "ada", "--reason", "night shift")
    number = said.split()[1].rstrip(":")
    assert said.endswith("nano-1, reservation for ada from 2099-01-31 08:00 to 2099-01-31 11:00 UTC\n")
    assert f"(booking {number})" in run(capsys, "reserve", "nano-1", *times, status=2)
    assert "maintenance from" in run(capsys, "maintain", "nano-1", "--to", "2099-01-31T12:00")
    listed = run(capsys, "bookings", "--device", "nano-1")
    assert "night shift" in listed
    assert "maintenance from" in listed
    assert run(capsys, "bookings", "--device", "nano-2", "--json") == "[]\n"
    assert run(capsys, "unbook", number) == f"cancelled booking {number}\n"
    assert "'tomorrow': write a time" in run(capsys, "maintain", "nano-1", "--to", "tomorrow", status=2)


def test_the_list_says_what_waits_on_each_device(capsys: pytest.CaptureFixture[str], served: tuple[str, Store]) -> None:
    _, store = served
    said = Backlog(runs=3, refused_runs=1, chunks=12, size_bytes=5000, oldest_age_s=None, shed_runs=2)
    with store.session() as session:
        ids = {one.device.name: one.id for one in queries.list_devices(session)}
    with store.write() as session:
        backlogs.note(session, ids["nano-1"], said, store.clock())
        empty = replace(said, runs=0, refused_runs=0, chunks=0, size_bytes=0, shed_runs=0)
        backlogs.note(session, ids["nano-2"], empty, store.clock())
    lines = {line.split()[0]: line for line in run(capsys, "list").splitlines()[1:] if line.strip()}
    assert "3, 1 rejected, 2 without traces" in lines["nano-1"]
    assert " 0 " in lines["nano-2"]
    assert "unknown" in lines["xavier-1"]
    told = {one["device"]["name"]: one["backlog"] for one in json.loads(run(capsys, "list", "--json"))}
    assert told["xavier-1"] is None
    assert (told["nano-1"]["runs"], told["nano-1"]["oldest_since"]) == (3, None)


def test_a_backlog_in_words() -> None:
    record = BacklogRecord(
        said_at=datetime(2026, 1, 2, tzinfo=UTC),
        runs=7,
        refused_runs=0,
        chunks=9,
        size_bytes=1,
        oldest_since=datetime(2026, 1, 1, 8, 30, tzinfo=UTC),
        shed_runs=0,
    )
    assert waiting(record) == "7 since 2026-01-01 08:30 UTC"
    assert waiting(None) == "unknown"
