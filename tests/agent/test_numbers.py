"""``powerlab agent`` with numbers that mean nothing: one sentence, exit code 2, and nothing is begun."""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from powerlab import cli
from powerlab_agent import main as agent_main
from powerlab_agent.state import Identity, save_identity

NO_WHOLE_NUMBERS = ("0", "-1", "1.5", "", "text", "nan", "inf", "1e99", "1" + 20 * "0", "1" + 5000 * "0")
NO_TEMPERATURES = ("-41", "151", "1e99", "nan", "inf")
Said = Callable[..., str]


@pytest.fixture(params=["powerlab agent", "powerlab-agent"])
def said(request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]) -> Said:
    """Refuses a command line, as either of both programs; returns the sentence."""

    def refused(*words: str) -> str:
        program, _, own = str(request.param).partition(" ")
        status = cli.main([own, *words]) if own else agent_main.main(words)
        out, err = capsys.readouterr()
        assert (status, out, err.count("\n")) == (2, "", 1), err
        assert err.startswith(f"{program}: ")
        assert err.endswith(".\n")
        return err.removeprefix(f"{program}: ")

    return refused


@pytest.mark.parametrize(
    ("option", "most", "values"),
    [
        ("--spool-size", 4194304, (*NO_WHOLE_NUMBERS, "4194305")),
        ("--models-mb", 4194304, (*NO_WHOLE_NUMBERS, "4194305")),
        ("--metrics-port", 65535, (*NO_WHOLE_NUMBERS, "65536")),
    ],
)
def test_what_is_no_such_number(said: Said, option: str, most: int, values: Sequence[str], tmp_path: Path) -> None:
    for value in values:
        sentence = said("run", "--state", str(tmp_path / "agent"), option, value)
        assert sentence.startswith(f"argument {option}: {value!r} is not an integer from 1 to {most}; `powerlab")
        assert "agent run --help` shows how it is called." in sentence
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("option", "names"),
    [
        ("--max-temperature-c", "highest temperature"),
        ("--start-below-temperature-c", "temperature to begin below"),
    ],
)
def test_what_is_no_temperature_of_a_device(said: Said, option: str, names: str, tmp_path: Path) -> None:
    for value in NO_TEMPERATURES:
        sentence = said("run", "--state", str(tmp_path / "agent"), option, value)
        assert sentence == f"the {names} is {float(value):g} °C; give one from -40 to 150 °C, or none.\n"
    for value in ("", "warm"):
        assert f"argument {option}: {value!r} is not a number; " in said("run", option, value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("option", ["--spool-size", "--models-mb", "--metrics-port", "--max-temperature-c"])
def test_an_option_without_its_number(said: Said, option: str) -> None:
    assert said("run", option).startswith(f"argument {option}: expected one argument; `powerlab")


@pytest.mark.parametrize(
    "words",
    [
        ("--spool-size", "1", "--models-mb", "1", "--metrics-port", "1"),
        ("--spool-size", "4194304", "--models-mb", "4194304", "--metrics-port", "65535"),
        ("--max-temperature-c", "150", "--start-below-temperature-c", "-40"),
    ],
)
def test_the_least_and_the_most_are_taken(said: Said, words: Sequence[str], tmp_path: Path) -> None:
    state = tmp_path / "agent"
    assert said("run", "--state", str(state), *words).startswith(f"no agent is enrolled under {state}; ")


def test_an_address_with_no_such_port(said: Said, tmp_path: Path) -> None:
    for port in ("65536", "-1", "http"):
        words = ("--server", f"http://127.0.0.1:{port}", "--code", "x", "--board", "laptop")
        assert "is not a server address; write http://host:port." in said(
            "enrol", "--state", str(tmp_path / "agent"), *words
        )
    assert list(tmp_path.iterdir()) == []


def test_metrics_at_a_port_that_somebody_has(said: Said, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_main, "heed_signals", lambda _: None)
    nobody = Identity(server="http://127.0.0.1:1", device_id="d", device_name="d", token="t", board="laptop")
    save_identity(tmp_path / "agent", nobody)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        sentence = said("run", "--once", "--state", str(tmp_path / "agent"), "--metrics-port", port)
    assert sentence.startswith(f"the metrics cannot be served on port {port} of '127.0.0.1' (Address already in use); ")
