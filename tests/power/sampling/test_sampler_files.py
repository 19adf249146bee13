"""The native sampler and the ways in which a sensor's file goes away, comes back, or is no file at all."""

from __future__ import annotations

import os
import socket
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from powerlab.native import _native  # type: ignore[attr-defined]

PERIOD_NS = 200_000
CHECK_PERIODS = 50_000_000 // PERIOD_NS + 2
"""After so many periods the sampler has looked whether a plain file was replaced; files of sysfs say so themselves."""
TIMEOUT_S = 20.0


class Watched:
    """A sampler of some files; ``record`` runs steps, each seen by the sampler in full rounds before the next."""

    def __init__(self, *channels: list[Path]) -> None:
        self.sampler = _native.sampler.Sampler([[str(path) for path in paths] for paths in channels], PERIOD_NS)

    def wait(self, rounds: int = 3) -> None:
        """Wait until the sampler has looked for replaced files, and has then read every file that often."""
        checked = self._periods() + CHECK_PERIODS
        self._wait_until(lambda: self._periods() >= checked)
        read = self.sampler.rounds + rounds
        self._wait_until(lambda: self.sampler.rounds >= read)

    def _periods(self) -> int:
        return int(self.sampler.rounds + self.sampler.missed_deadlines)

    @staticmethod
    def _wait_until(condition: Callable[[], bool]) -> None:
        deadline = time.monotonic() + TIMEOUT_S
        while not condition():
            assert time.monotonic() < deadline, "waited in vain"
            time.sleep(0.0005)

    def record(self, *steps: Callable[[], object]) -> list[tuple[Any, Any, Any, int]]:
        """Return what was sampled before, between and after the steps."""
        self.sampler.start()
        self.wait()
        for step in steps:
            step()
            self.wait()
        self.sampler.stop()
        return list(self.sampler.take())


def put(path: Path, text: str) -> Callable[[], object]:
    """Return a step that puts another file in a file's place, as a driver that is loaded again does."""

    def step() -> None:
        fresh = path.with_suffix(".new")
        fresh.write_text(text)
        fresh.rename(path)

    return step


@pytest.fixture
def sensor(tmp_path: Path) -> Path:
    path = tmp_path / "power1_input"
    path.write_text("42\n")
    return path


def runs_of(values: Any) -> list[int]:
    """Return the values without repeats of the one before."""
    return [int(value) for index, value in enumerate(values) if index == 0 or value != values[index - 1]]


def test_a_file_that_is_replaced_again_and_again_is_followed(sensor: Path) -> None:
    ((_, value, _, failed),) = Watched([sensor]).record(*(put(sensor, f"{number}\n") for number in (43, 44, 45)))
    assert runs_of(value) == [42, 43, 44, 45]
    assert failed == 0


def test_a_file_that_is_rewritten_in_place_is_read_afresh(sensor: Path) -> None:
    def rewrite(text: str) -> Callable[[], object]:
        def step() -> None:
            with sensor.open("r+b", buffering=0) as handle:
                os.pwrite(handle.fileno(), text.encode(), 0)

        return step

    ((_, value, _, failed),) = Watched([sensor]).record(rewrite("43\n"), rewrite("44\n"))
    assert runs_of(value) == [42, 43, 44]
    assert failed == 0


def test_an_emptied_file_is_a_gap_until_it_is_filled_again(sensor: Path) -> None:
    ((_, value, _, failed),) = Watched([sensor]).record(lambda: os.truncate(sensor, 0), put(sensor, "7\n"))
    assert runs_of(value) == [42, 7]
    assert failed >= 2


def test_a_directory_that_is_taken_away_and_comes_back_is_found_again(tmp_path: Path) -> None:
    folder = tmp_path / "hwmon3"
    folder.mkdir()
    sensor = folder / "power1_input"
    sensor.write_text("1\n")

    def take_away() -> None:
        sensor.unlink()
        folder.rmdir()

    def bring_back() -> None:
        other = tmp_path / "fresh"
        other.mkdir()
        (other / "power1_input").write_text("2\n")
        other.rename(folder)

    ((time_ns, value, _, failed),) = Watched([sensor]).record(take_away, bring_back)
    assert runs_of(value) == [1, 2]
    assert failed >= 2
    assert (np.diff(time_ns) > 0).all()


def test_a_file_that_may_no_longer_be_read_is_a_gap_until_it_may() -> None:
    """Another file takes the sensor's place, without the right to be read; root, who may read all, becomes nobody."""
    me = os.geteuid()
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o777)
        sensor, fresh = Path(folder, "power1_input"), Path(folder, "fresh")
        sensor.write_text("42\n")

        def forbid() -> None:
            fresh.write_text("43\n")
            fresh.chmod(0)
            if me == 0:
                os.seteuid(65534)
            fresh.rename(sensor)

        def allow() -> None:
            os.seteuid(me)
            sensor.chmod(0o400)

        try:
            ((_, value, _, failed),) = Watched([sensor]).record(forbid, allow)
        finally:
            os.seteuid(me)
    assert runs_of(value) == [42, 43]
    assert failed >= 2


def test_losing_the_right_does_not_stop_a_recording_that_has_the_file_open(sensor: Path) -> None:
    """The kernel asks for the right at opening alone."""
    ((_, value, _, failed),) = Watched([sensor]).record(lambda: sensor.chmod(0))
    assert set(value) == {42}
    assert failed == 0


def test_a_pipe_or_a_directory_in_the_sensors_place_is_a_gap_and_no_hang(sensor: Path) -> None:
    def become_pipe() -> None:
        sensor.unlink()
        os.mkfifo(sensor)

    def become_directory() -> None:
        sensor.unlink()
        sensor.mkdir()

    ((_, value, _, failed),) = Watched([sensor]).record(become_pipe, become_directory)
    assert set(value) == {42}
    assert failed >= 4


def test_what_cannot_be_opened_at_all_is_an_error_that_names_it(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        with pytest.raises(OSError, match="socket"):
            Watched([path])


def test_a_link_to_another_sensor_is_followed_when_its_target_goes(tmp_path: Path) -> None:
    one, other, link = tmp_path / "hwmon1", tmp_path / "hwmon2", tmp_path / "power1_input"
    one.write_text("1\n")
    other.write_text("2\n")
    link.symlink_to(one)

    def turn() -> None:
        fresh = tmp_path / "fresh"
        fresh.symlink_to(other)
        fresh.rename(link)
        one.unlink()

    ((_, value, _, failed),) = Watched([link]).record(turn)
    assert runs_of(value) == [1, 2]
    assert failed == 0


def test_one_broken_file_leaves_the_other_channels_whole(sensor: Path, tmp_path: Path) -> None:
    other, amps = tmp_path / "other", tmp_path / "amps"
    other.write_text("5\n")
    amps.write_text("2\n")
    broken, good = Watched([sensor, amps], [other]).record(amps.unlink)
    assert set(broken[1]) == {84}
    assert broken[3] >= 1
    assert set(good[1]) == {5}
    assert good[3] == 0
    assert len(good[1]) > len(broken[1])


def test_a_product_is_missing_while_either_factor_is(sensor: Path, tmp_path: Path) -> None:
    amps = tmp_path / "amps"
    amps.write_text("2\n")
    ((_, value, _, failed),) = Watched([sensor, amps]).record(
        put(sensor, "N/A\n"), put(amps, "-\n"), put(sensor, "10\n"), put(amps, "3\n")
    )
    assert runs_of(value) == [84, 30], "never one rail's new volts with a made-up current"
    assert failed >= 9


def test_every_round_is_a_sample_or_a_failed_read(sensor: Path) -> None:
    watched = Watched([sensor], [sensor, sensor])
    for time_ns, value, cost_ns, failed in watched.record(sensor.unlink, put(sensor, "1\n")):
        assert len(time_ns) == len(value) == len(cost_ns)
        assert len(value) + failed == watched.sampler.rounds


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=st.one_of(st.text(max_size=30), st.integers(-(2**70), 2**70).map(str)))
def test_a_reading_is_the_integer_that_stands_there_or_none(sensor: Path, text: str) -> None:
    """Python's own reading of the digits is the judge; signs other than a minus and other scripts' digits are none."""
    stripped = text.strip(" \n\t\r\0")
    digits = stripped.removeprefix("-")
    wanted = int(stripped) if digits.isascii() and digits.isdecimal() else None
    if wanted is not None and not -(2**63) <= wanted < 2**63:
        wanted = None
    raw = text.encode(errors="replace")
    sensor.write_bytes(raw)
    watched = Watched([sensor])
    watched.sampler.start()
    watched.sampler.stop()
    ((_, value, _, failed),) = watched.sampler.take()
    assert set(value) == (set() if wanted is None or len(raw) >= 64 else {wanted})
    assert (failed > 0) == (len(value) == 0)
