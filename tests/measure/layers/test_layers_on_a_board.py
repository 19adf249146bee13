"""Layers measured on a simulated board, whose own account of its energy is the truth.

The board's layers draw different power on purpose (:mod:`powerlab.measure.layers.activity`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest

from powerlab.boards.registry import detect
from powerlab.boards.simulator import simulated_board
from powerlab.domain.sweep import Point
from powerlab.domain.workload import Workload
from powerlab.measure.layers import session
from powerlab.measure.layers.messages import WHOLE
from powerlab.measure.layers.session import LayersFinished, LayersRequest, LayersStarted, WindowDone, measure_layers
from powerlab.measure.layers.window import StepWindow, steady_window
from powerlab.measure.recording.rails import Meter
from powerlab.power.registry import probe_all
from powerlab.power.total import choose_total
from powerlab.sysroot import Sysroot
from simulation_truth import true_energy
from small_network import write_small_network

WINDOW_S = 1.0


class Truth:
    """The board's energy over time, as the board itself writes it."""

    def __init__(self, board: Sysroot) -> None:
        self._board, self._seen, self._over = board, [], threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> Truth:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.is_set():
            self._seen.append(true_energy(self._board))
            time.sleep(0.004)

    def mean_w(self, window_ns: tuple[int, int]) -> float:
        """The true mean power in a window."""
        moments, joules = (np.array(values) for values in zip(*sorted(set(self._seen)), strict=True))
        begin_j, end_j = np.interp([moment - moments[0] for moment in window_ns], moments - moments[0], joules)
        return (end_j - begin_j) / (window_ns[1] - window_ns[0]) * 1e9


@pytest.fixture(scope="module")
def measured(tmp_path_factory) -> Iterator[dict]:
    """One profile, the windows it was made of with the truth of each, and the events on the way."""
    model = write_small_network(tmp_path_factory.mktemp("network") / "small.onnx", side=64)
    windows: list[StepWindow] = []

    def kept(*args: object) -> StepWindow:
        windows.append(steady_window(*args))
        return windows[-1]

    with pytest.MonkeyPatch.context() as patch, simulated_board("jetson-agx-xavier") as board:
        probes = probe_all(board)
        total = choose_total(probes, detect(board))
        rails = {rail.key: rail for probe in probes for rail in probe.rails}
        meter = Meter(sysroot=board, total=total, rails=tuple(rails[key] for key in total.rails), sample_period_s=0.01)
        patch.setattr(session, "steady_window", kept)
        with Truth(board) as truth:
            events = list(
                measure_layers(
                    LayersRequest(
                        point=Point(workload=Workload(model=str(model), batch_size=1), threads=2, mode="current"),
                        device_name="board",
                        meter=meter,
                        no_power="",
                        window_s=WINDOW_S,
                        idle_s=1.0,
                        seed=1,
                        drifted=lambda: None,
                    )
                )
            )
        yield {
            "events": events,
            "profile": events[-1].profile,
            "windows": [(window, truth.mean_w(window.window_ns)) for window in windows],
        }


@pytest.mark.campaign
def test_events_say_how_long_it_takes_and_what_is_done(measured):
    first, *middle, last = measured["events"]
    assert isinstance(first, LayersStarted)
    assert first.window_count == first.layer_count + 3 == len(middle)
    assert first.expected_s >= first.window_count * WINDOW_S
    assert first.longest_s > first.expected_s
    assert all(isinstance(event, WindowDone) for event in middle)
    assert [event.number for event in middle] == list(range(1, len(middle) + 1))
    assert isinstance(last, LayersFinished)


@pytest.mark.campaign
def test_intervals_of_the_power_hold_what_the_board_really_drew(measured):
    held = [
        abs(window.energy.power_w - true_w) <= window.energy.half_width_j / window.energy.duration_s
        for window, true_w in measured["windows"]
        if window.energy is not None
    ]
    assert len(held) >= len(measured["windows"]) - 2  # a busy machine may spoil a window or two
    assert np.mean(held) >= 0.90


def test_layers_really_draw_different_power_and_it_is_seen(measured):
    alone = [(window, true_w) for window, true_w in measured["windows"] if window.step != WHOLE and window.energy]
    true_w = np.array([watts for _, watts in alone])
    seen_w = np.array([window.energy.power_w for window, _ in alone])
    assert np.ptp(true_w) > 0.5
    assert np.corrcoef(true_w, seen_w)[0, 1] > 0.9


def test_the_layers_times_add_up_to_the_whole(measured):
    profile = measured["profile"]
    assert sum(layer.time.value for layer in profile.layers) == pytest.approx(profile.whole.time.value)
    assert all(layer.time.value > 0 and layer.alone.value > 0 for layer in profile.layers)


def test_the_layers_joules_add_up_to_the_whole_within_the_interval(measured):
    profile = measured["profile"]
    if profile.energy_ratio is None:
        pytest.fail("; ".join(finding.detail for layer in profile.layers for finding in layer.findings))
    assert sum(layer.energy.value for layer in profile.layers) == pytest.approx(
        profile.total_of_layers.energy.value, rel=1e-6
    )
    assert profile.total_of_layers.energy.low <= profile.whole.energy.value <= profile.total_of_layers.energy.high


def test_everything_on_a_simulated_board_is_simulated(measured):
    profile = measured["profile"]
    figures = [profile.whole.time, profile.whole.energy, profile.time_ratio, profile.idle_power]
    figures += [figure for layer in profile.layers for figure in (layer.time, layer.alone, layer.power, layer.energy)]
    assert {figure.provenance.value for figure in figures if figure is not None} == {"simulated"}
    assert profile.roof is None
    assert "simulated" in profile.no_roof


def test_shares_are_those_of_the_whole(measured):
    profile = measured["profile"]
    assert sum(layer.share_percent for layer in profile.layers) == pytest.approx(100, abs=10)
    assert profile.model.endswith("small.onnx")
    assert all(0 < layer.share_percent < 100 for layer in profile.layers)
