"""What a user writes about a meter: right files, wrong files with one sentence each, and any text at all."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.domain.errors import PowerlabError
from powerlab.power.sources.meter.config import Address, parse_address, parse_config, read_config
from powerlab.sysroot import SIMULATION_MARKER, Sysroot

GOOD = """
address = "serial:///dev/ttyUSB0?baud=9600"
resolution_w = 0.1
relative_error = 0.01
update_period_s = 0.5
covers = "the board at its DC input"
"""


def with_line(line: str) -> str:
    key = line.partition(" ")[0]
    return "\n".join([*(one for one in GOOD.splitlines() if not one.startswith(key)), line])


def test_a_complete_file() -> None:
    config = parse_config(GOOD, "meter.toml")
    assert config.address == Address(kind="serial", device="/dev/ttyUSB0", baud=9600)
    assert (config.resolution_w, config.relative_error, config.update_period_s) == (0.1, 0.01, 0.5)
    assert config.covers == "the board at its DC input"
    assert config.field == "P"
    assert config.current_range_a is config.voltage_range_v is None


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("serial:///dev/ttyACM1", Address(kind="serial", device="/dev/ttyACM1", baud=115200)),
        ("tcp://meter.lan:5025", Address(kind="tcp", host="meter.lan", port=5025)),
        ("tcp://[::1]:5025/", Address(kind="tcp", host="::1", port=5025)),
        ("ptd://192.168.0.7:8888", Address(kind="ptd", host="192.168.0.7", port=8888)),
    ],
)
def test_addresses(text: str, address: Address) -> None:
    assert parse_address(text, "meter.toml") == address


@pytest.mark.parametrize("text", ["serial:///dev/ttyUSB0?baud=9600", "tcp://meter.lan:5025", "ptd://10.0.0.1:8888"])
def test_an_address_is_shown_as_it_is_written(text: str) -> None:
    assert str(parse_address(text, "meter.toml")) == text


@pytest.mark.parametrize(
    "text",
    [
        "/dev/ttyUSB0",
        "serial://ttyUSB0",
        "serial:///dev/ttyUSB0?baud=fast",
        "serial:///dev/ttyUSB0?parity=even",
        "serial:///../etc/passwd",
        "tcp://meter",
        "tcp://:5025",
        "tcp://meter:99999",
        "tcp://meter:5025/path",
        "udp://meter:5025",
        "ptd://[::1:8888",
        "",
    ],
)
def test_a_wrong_address_is_one_sentence_with_the_right_ones(text: str) -> None:
    with pytest.raises(PowerlabError, match=r"meter\.toml: address") as caught:
        parse_address(text, "meter.toml")
    for pattern in ("serial:///dev/", "tcp://HOST:PORT", "ptd://HOST:PORT"):
        assert pattern in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("address = ", ["not valid TOML"]),
        (with_line("adress = 1"), ["no key 'adress'", "address"]),
        (with_line("resolution_w = -0.1"), ["resolution_w = -0.1", "from 0 to 1000"]),
        (with_line("resolution_w = true"), ["resolution_w"]),
        (with_line("resolution_w = nan"), ["resolution_w"]),
        (with_line("relative_error = 5"), ["relative_error = 5", "1 %"]),
        (with_line("update_period_s = 0"), ["update_period_s = 0", "0.001 to 60"]),
        (with_line("covers = ' '"), ["covers", "the board at its DC input"]),
        (with_line("address = 5"), ["address = 5", "serial://"]),
        (with_line("voltage_range_v = 300"), ["PTDaemon alone", "ptd://"]),
    ],
)
def test_a_wrong_file_is_one_sentence_that_names_file_key_and_mend(text: str, words: list[str]) -> None:
    with pytest.raises(PowerlabError) as caught:
        parse_config(text, "meter.toml")
    sentence = str(caught.value)
    assert sentence.startswith("meter.toml")
    assert "\n" not in sentence
    for word in words:
        assert word in sentence


@pytest.mark.parametrize("key", ["address", "resolution_w", "relative_error", "update_period_s", "covers"])
def test_every_key_that_must_be_there_is_asked_for(key: str) -> None:
    text = "\n".join(line for line in GOOD.splitlines() if not line.startswith(key))
    with pytest.raises(PowerlabError, match=f"the key {key} is missing"):
        parse_config(text, "meter.toml")


@given(st.text())
def test_any_text_is_a_configuration_or_a_sentence(text: str) -> None:
    for candidate in (text, GOOD + text):
        try:
            parse_config(candidate, "meter.toml")
        except PowerlabError:
            continue


@given(st.text())
def test_any_address_is_one_or_a_sentence(text: str) -> None:
    for candidate in (text, f"tcp://{text}", f"serial:///dev/{text}"):
        try:
            address = parse_address(candidate, "meter.toml")
        except PowerlabError:
            continue
        assert address.kind in ("serial", "tcp", "ptd")
        assert address.device.startswith("/") or address.port > 0


@pytest.fixture(autouse=True)
def _no_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("POWERLAB_METER", raising=False)


def test_no_file_is_no_meter(tmp_path: Path) -> None:
    assert read_config(Sysroot(tmp_path)) is None


def test_the_file_lies_in_etc_of_the_device(tmp_path: Path) -> None:
    (tmp_path / "etc/powerlab").mkdir(parents=True)
    (tmp_path / "etc/powerlab/meter.toml").write_text(GOOD)
    config = read_config(Sysroot(tmp_path))
    assert config is not None
    assert config.address.device == "/dev/ttyUSB0"


def test_a_user_without_rights_names_a_file_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "mine.toml"
    own.write_text(with_line('address = "tcp://meter:1"'))
    monkeypatch.setenv("POWERLAB_METER", str(own))
    config = read_config(Sysroot(tmp_path))
    assert config is not None
    assert config.address.port == 1


def test_the_hosts_meter_does_not_measure_a_simulated_board(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = tmp_path / "mine.toml"
    own.write_text(GOOD)
    (tmp_path / SIMULATION_MARKER).write_text("{}")
    monkeypatch.setenv("POWERLAB_METER", str(own))
    assert read_config(Sysroot(tmp_path)) is None


def _missing(path: Path) -> None:
    assert not path.exists()


def _directory(path: Path) -> None:
    path.mkdir()


def _binary(path: Path) -> None:
    path.write_bytes(b"\xff\xfe\x00")


@pytest.mark.parametrize("make", [_missing, _directory, _binary])
def test_a_named_file_that_cannot_be_read_is_said_by_name(
    make: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "mine.toml"
    make(own)
    monkeypatch.setenv("POWERLAB_METER", str(own))
    with pytest.raises(PowerlabError, match=r"mine\.toml"):
        read_config(Sysroot(tmp_path))
