"""Writes the power monitor files of a simulated board, as JetPack 4 and as JetPack 5 show them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from powerlab.boards.board import Board
from powerlab.boards.simulator import layout
from powerlab.boards.simulator.physics import BoardState, PowerModel, power_w, quantised
from powerlab.boards.simulator.state import EMC_IDLE_FRACTION

Files = Iterator[tuple[str, str]]

_NO_LIMIT_MA = "32760"


def monitor_files(board: Board, simulation: Mapping[str, Any], jetpack: int) -> Files:
    """Yield path and text of every power monitor file; they hold the readings of an idle board, never 0 W."""
    idle_w = power_w(PowerModel.from_document(simulation), _idle_state(board, simulation))
    for number, chip in enumerate(board.chips):
        for channel, name in enumerate(chip.channels):
            files = layout.sensor_files(jetpack, chip.address, number, channel)
            reading = quantised(idle_w[name], simulation["supply_mv"], simulation["shunt_uohm"])
            for kind, value in reading.values().items():
                if kind in files:
                    yield files[kind], layout.sensor_text(value).decode().rstrip("\n")
            directory = files["current"].rpartition("/")[0]
            describe = _jetpack4_channel if jetpack == 4 else _jetpack5_channel
            yield from describe(simulation, directory, channel, name)


def _idle_state(board: Board, simulation: Mapping[str, Any]) -> BoardState:
    cores, clocks = board.core_count or 1, simulation["cpu_freqs_khz"]
    return BoardState(
        core_khz=(clocks[-1],) * cores,
        idle_khz=(max(clock for clock in clocks if clock <= simulation["cpu_min_khz"]),) * cores,
        busy_threads=0,
        gpu_hz=simulation["gpu_freqs_hz"][-1],
        emc_hz=int(simulation["emc_max_hz"] * EMC_IDLE_FRACTION),
    )


def _jetpack4_channel(_simulation: Mapping[str, Any], directory: str, channel: int, name: str) -> Files:
    yield f"{directory}/rail_name_{channel}", name
    yield f"{directory}/warn_current_limit_{channel}", _NO_LIMIT_MA
    yield f"{directory}/crit_current_limit_{channel}", _NO_LIMIT_MA
    if channel == 0:
        yield f"{directory}/name", "ina3221x"


def _jetpack5_channel(simulation: Mapping[str, Any], directory: str, channel: int, name: str) -> Files:
    number = channel + 1
    yield f"{directory}/in{number}_label", name
    yield f"{directory}/in{number}_enable", "1"
    yield f"{directory}/shunt{number}_resistor", str(simulation["shunt_uohm"])
    yield f"{directory}/in{number + 3}_input", "0"
    for limit in ("max", "crit"):
        yield f"{directory}/curr{number}_{limit}", _NO_LIMIT_MA
        yield f"{directory}/curr{number}_{limit}_alarm", "0"
    if channel == 0:
        yield f"{directory}/name", "ina3221"
        yield f"{directory}/in7_label", "sum of shunt voltages"
        yield f"{directory}/samples", "4"
        yield f"{directory}/update_interval", "2"


def monitor_links(board: Board, jetpack: int) -> Files:
    """Yield path and target of the links that lead to the monitors."""
    if jetpack == 4:
        return
    for number, chip in enumerate(board.chips):
        directory = f"bus/i2c/drivers/ina3221/{chip.address}/hwmon/hwmon{number}"
        yield f"/sys/class/hwmon/hwmon{number}", f"../../{directory}"
        yield f"/sys/{directory}/device", "../.."
