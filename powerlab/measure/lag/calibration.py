"""Stored results of ``powerlab calibrate``, used by later sweeps.

A calibration belongs to a board, a kernel and a rail as its source describes it: where any of them is another one, the
sensor may be read in another way, and nothing of the calibration is used.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from powerlab.atomic_file import write_whole
from powerlab.domain.device import Device
from powerlab.domain.errors import PowerlabError
from powerlab.domain.power import Rail, RailQuantity
from powerlab.domain.statistics import NORMAL_95
from powerlab.measure.lag.edges import RailLag
from powerlab.state_dir import state_dir
from powerlab.sysroot import Sysroot

VERSION = 1
_DISAGREES = 1.5
_PART_TIME = 0.8
_LEAST_SHARE = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """The lags of a device's rails.

    Attributes:
        board: the device's board.
        kernel: the kernel that ran.
        simulated: whether the board was a simulated one.
        made_at: UTC, ISO 8601.
        rails: what was seen, with each rail as its source describes it.
        version: of this shape.
    """

    board: str
    kernel: str
    simulated: bool
    made_at: str
    rails: tuple[RailLag, ...]
    version: int = VERSION


def place(device: Device, sysroot: Sysroot) -> Path:
    """Return the file of a device's calibration.

    Simulated boards of a name share one in the user's own directory: theirs last no longer than a sweep.
    """
    kept_in = state_dir() if device.simulated else state_dir(sysroot)
    name = re.sub(r"[^A-Za-z0-9._-]+", "-", f"{'simulated-' * device.simulated}{device.board}")
    return kept_in / "calibrations" / f"{name}.json"


def keep(calibration: Calibration, path: Path) -> None:
    """Write a calibration: the whole of it or, where that fails, nothing.

    Raises:
        PowerlabError: the place cannot be written.
    """
    content = msgspec.json.format(msgspec.json.encode(calibration), indent=2) + b"\n"
    try:
        write_whole(path, content)
    except OSError as error:
        raise PowerlabError(
            f"the calibration cannot be written to {path.parent} ({error.strerror}); free some space there, or name a"
            " writable place in POWERLAB_STATE_DIR."
        ) from None


def kept(path: Path) -> Calibration | None:
    """Return the calibration in a file; None where there is none.

    Raises:
        PowerlabError: the file cannot be read, or holds no calibration.
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=Calibration)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise PowerlabError(
            f"the calibration {path} cannot be read ({error.strerror}); check its permissions."
        ) from None
    except msgspec.MsgspecError:
        raise PowerlabError(
            f"the calibration {path} is damaged or another version's; make a new one with `powerlab calibrate`, or"
            " remove the file."
        ) from None


def updated(made: Calibration, before: Calibration | None) -> Calibration:
    """Return a calibration with the lags that an earlier one of the same device found, and it did not.

    A load on the cores moves no card's rail, and the other way round: calibrations with either add up.
    """
    if before is None or _of(before) != _of(made):
        return made
    found = {one.rail.key: one for one in made.rails}
    earlier = {one.rail.key: one for one in before.rails if one.lag_s is not None}
    merged = {key: earlier[key] if one.lag_s is None and key in earlier else one for key, one in found.items()}
    return replace(made, rails=(*merged.values(), *(one for key, one in earlier.items() if key not in found)))


def _of(calibration: Calibration) -> tuple[int, str, str, bool]:
    return calibration.version, calibration.board, calibration.kernel, calibration.simulated


def fitting(calibration: Calibration | None, device: Device, stated: Iterable[Rail]) -> dict[str, RailLag]:
    """Return, by key, the lags that hold for these rails of this device, as their sources describe them."""
    if calibration is None or calibration.version != VERSION:
        return {}
    if (calibration.board, calibration.kernel, calibration.simulated) != (
        device.board,
        device.kernel,
        device.simulated,
    ):
        return {}
    described = {rail.key: rail for rail in stated}
    return {
        one.rail.key: one
        for one in calibration.rails
        if one.lag_s is not None and described.get(one.rail.key) == one.rail
    }


def with_lags(rails: Sequence[Rail], lags: dict[str, RailLag]) -> tuple[Rail, ...]:
    """Return the rails with their lags, but for those that are now seen to be renewed much less often than then."""
    return tuple(_with_lag(rail, lags.get(rail.key)) for rail in rails)


def _with_lag(rail: Rail, found: RailLag | None) -> Rail:
    if found is None or found.lag_s is None:
        return rail
    then_s = max(found.rail.update_period_s, found.update_period_s or 0.0)
    if rail.update_period_s > _DISAGREES * then_s:
        return rail
    return replace(rail, lag_s=found.lag_s, lag_error_s=found.lag_error_s, seen_share=_seen_share(rail, found))


def _seen_share(rail: Rail, found: RailLag) -> float:
    """Return the share of its time that a counter adds up: less than all where its window is clearly the shorter."""
    window_s, period_s = found.averaging_s, found.update_period_s
    known = rail.seen_share < 1 or period_s is None or rail.update_period_s * _DISAGREES < period_s
    if rail.quantity is not RailQuantity.ENERGY or known or window_s is None or not period_s:
        return rail.seen_share
    clear = window_s + NORMAL_95 * found.averaging_error_s < _PART_TIME * period_s
    return max(window_s / period_s, _LEAST_SHARE) if clear else 1.0
