"""``powerlab calibrate``: measure the lag of the power sensors, and store it for sweeps."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from powerlab.analysis.rounding import interval_decimals
from powerlab.cli import EXIT_INCOMPLETE, EXIT_OK
from powerlab.cli.arguments.host import add_host_arguments, open_host
from powerlab.cli.output.console import plain_table, print_neatly, table_console
from powerlab.cli.output.sweep_table import ABSENT, format_number
from powerlab.cli.process.interrupts import orderly_ends
from powerlab.domain.errors import PowerlabError
from powerlab.domain.statistics import NORMAL_95
from powerlab.domain.workload import Processor
from powerlab.measure.lag.calibration import Calibration, keep, kept, place, updated
from powerlab.measure.lag.edges import RailLag
from powerlab.measure.lag.step_load import SAMPLE_PERIOD_S, StepLoad, level_s, measured_lags
from powerlab.measure.recording.rails import Meter
from powerlab.sweep.meter import LONGEST_WATCH_S, card_rails_beside, choose_meter, watched_meter

DESCRIPTION = """\
Measure the lag of every power rail, with its uncertainty, by switching a load on and off at random times. Later sweeps
of this board under this kernel correct their readings for it. Lock the clocks first if you can (powerlab modes): clocks
that ramp up slowly look like sensor lag.
"""

EPILOG = """\
exit status: 0 success; 1 no rail follows the load, so nothing is stored; 2 invalid request

examples:
  powerlab calibrate
  powerlab calibrate --board nvidia-grace --cycles 12
  powerlab calibrate --board h100-workstation --processor gpu
  powerlab calibrate --forget
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the command's options."""
    add_host_arguments(parser)
    parser.add_argument("--cycles", metavar="N", type=int, default=8, help="number of load steps (default: 8)")
    parser.add_argument(
        "--processor",
        choices=[str(one) for one in Processor],
        default=str(Processor.CPU),
        help="what computes the load; gpu also calibrates every figure of the graphics cards (default: cpu)",
    )
    parser.add_argument("--seed", metavar="N", type=int, default=0, help="seed of the random times (default: 0)")
    parser.add_argument("--forget", action="store_true", help="delete the stored calibration and measure nothing")
    parser.add_argument("--json", action="store_true", help="print JSON")


def run(args: argparse.Namespace) -> int:
    """Run the command."""
    return forget(args) if args.forget else calibrate(args)


_MIN_CYCLES, _MAX_CYCLES = 4, 200
WINDOWS_A_LEVEL = 2.5
"""The first half of a level must show the whole of a card's longest average."""


def calibrate(args: argparse.Namespace) -> int:
    """Run the step load, print and store the lags, and return the exit status."""
    if not _MIN_CYCLES <= args.cycles <= _MAX_CYCLES:
        raise PowerlabError(
            f"invalid --cycles {args.cycles}: give {_MIN_CYCLES} to {_MAX_CYCLES}; the lag is the mean over that many"
            " load steps."
        )
    with orderly_ends(), open_host(args) as host:
        host.controller.recover()
        device = host.device()
        processor, capabilities = Processor(args.processor), host.capabilities()
        stated = choose_meter(host.sysroot, capabilities, SAMPLE_PERIOD_S, (processor,))
        if not stated.rails:
            raise PowerlabError("no power source can be read here; `powerlab doctor` says what to do.")
        meter = watched_meter(stated, LONGEST_WATCH_S)
        length_s = level_s(meter)
        if processor is Processor.GPU:
            others = card_rails_beside(stated, capabilities)
            stated, meter = (replace(one, rails=(*one.rails, *others)) for one in (stated, meter))
            length_s = max([length_s, *(WINDOWS_A_LEVEL * rail.update_period_s for rail in others)])
        threads = device.core_count if processor is Processor.CPU else 1
        load = StepLoad(threads=threads, cycles=args.cycles, level_s=length_s, seed=args.seed, processor=processor)
        print(f"powerlab: {load.cycles} load steps, about {load.expected_s:.0f} s.", file=sys.stderr)
        lags = _as_stated(stated, measured_lags(meter, load))
    calibration = Calibration(
        board=device.board,
        kernel=device.kernel,
        simulated=device.simulated,
        made_at=datetime.now(UTC).isoformat(timespec="seconds"),
        rails=lags,
    )
    found = any(lag.lag_s is not None for lag in lags)
    path = place(device, host.sysroot)
    if found:
        keep(updated(calibration, kept(path)), path)
    if args.json:
        print(msgspec.json.format(msgspec.json.encode(calibration), indent=2).decode())
    else:
        _print(lags)
    print(_outcome(path, found=found), file=sys.stderr)
    return EXIT_OK if found else EXIT_INCOMPLETE


def forget(args: argparse.Namespace) -> int:
    """Delete the stored calibration of a device."""
    with open_host(args) as host:
        path = place(host.device(), host.sysroot)
    try:
        path.unlink()
    except FileNotFoundError:
        print(f"powerlab: no calibration is stored in {path}.", file=sys.stderr)
    except OSError as error:
        raise PowerlabError(f"cannot delete the calibration {path} ({error.strerror}).") from error
    else:
        print(f"powerlab: deleted {path}; sweeps no longer correct for sensor lag.", file=sys.stderr)
    return EXIT_OK


def _as_stated(stated: Meter, lags: Sequence[RailLag]) -> tuple[RailLag, ...]:
    """Return the lags with the rails as their sources describe them, by which a sweep finds them."""
    return tuple(replace(lag, rail=rail) for lag, rail in zip(lags, stated.rails, strict=True))


def _print(lags: Sequence[RailLag]) -> None:
    titles = ("lag ms", "rise ms", "update period ms", "averages over ms", "step W", "edges", "provenance")
    table = plain_table("rail", *titles)
    for lag in lags:
        table.add_row(
            lag.rail.key,
            _with_interval_ms(lag.lag_s, lag.lag_error_s),
            _in_ms(lag.rise_s),
            _in_ms(lag.update_period_s),
            _with_interval_ms(lag.averaging_s, lag.averaging_error_s),
            format_number(lag.step_w, 3) if lag.edges else ABSENT,
            str(lag.edges),
            lag.rail.provenance,
        )
    console = table_console()
    print_neatly(console, table)
    for lag in lags:
        if lag.problem:
            print(lag.problem)


def _with_interval_ms(found_s: float | None, error_s: float) -> str:
    """Return a time with the half-width of its 95 % interval."""
    if found_s is None:
        return ABSENT
    half_width_ms = 1e3 * NORMAL_95 * error_s
    places = interval_decimals(half_width_ms) or 0
    return f"{1e3 * found_s:.{places}f} ±{half_width_ms:.{places}f}"


def _in_ms(seconds: float | None) -> str:
    return ABSENT if seconds is None else format_number(1e3 * seconds, 3)


def _outcome(path: Path, *, found: bool) -> str:
    if not found:
        return "powerlab: no rail follows the load, so nothing was stored; `powerlab doctor` lists the sensors."
    return f"powerlab: stored in {path}; sweeps of this board under this kernel use it (--forget deletes it)."
