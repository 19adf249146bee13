"""Carries out ``powerlab layers``: host, modes, progress, profiles, answer."""

from __future__ import annotations

import argparse
import json
import sys
from contextlib import closing, nullcontext
from functools import partial
from pathlib import Path

import msgspec

from powerlab.analysis.chrome_trace import chrome_trace
from powerlab.analysis.roofline import roofline
from powerlab.backends.registry import BACKENDS
from powerlab.cli import EXIT_INCOMPLETE, EXIT_INTERRUPTED, EXIT_OK
from powerlab.cli.arguments.host import open_host
from powerlab.cli.arguments.output_file import writable
from powerlab.cli.arguments.plan import ALL_MODES, named_modes, processor_of
from powerlab.cli.commands.layers.table import layer_table, layer_words
from powerlab.cli.output.console import print_neatly, table_console
from powerlab.cli.output.progress import measuring
from powerlab.cli.process.interrupts import orderly_ends, uninterrupted
from powerlab.cli.stored.local_database import keep_layer_profile, open_local
from powerlab.domain.device import Capabilities, Device
from powerlab.domain.errors import PowerlabError
from powerlab.domain.layers import LayerProfile
from powerlab.domain.preflight import check_plan
from powerlab.domain.run import Verdict
from powerlab.domain.sweep import Point, SweepPlan
from powerlab.domain.training import OPTIMIZERS
from powerlab.domain.workload import WorkloadKind
from powerlab.engine.frontend.load import load_graph
from powerlab.measure.layers.session import (
    LayersFinished,
    LayersRequest,
    LayersStarted,
    WindowDone,
    measure_layers,
)
from powerlab.measure.recording.rails import Meter
from powerlab.measure.worker.process import WorkerError
from powerlab.sweep.advice import enough_s
from powerlab.sweep.host import Host
from powerlab.sweep.meter import choose_meter, watch_s, watched_meter

DEFAULT_WINDOW_S = 2.0
NO_POWER = "no power source can be read here; `powerlab doctor` says what to do about it"


def layers(args: argparse.Namespace) -> int:
    """Measure every layer in every mode asked for and print what they cost; returns the exit status."""
    with orderly_ends(), open_host(args) as host:
        device, capabilities = host.device(), host.capabilities(named_modes(args))
        plan = _plan(args, device, capabilities)
        check_plan(plan, device, capabilities, tuple(BACKENDS))
        load_graph(args.model, batch_size=plan.batch_sizes[0])
        output, trace = writable("--output", args.output), writable("--trace", args.trace)
        trains = plan.workload is WorkloadKind.TRAIN
        store = None if trains else open_local(args.database)
        host.controller.recover()
        meter = choose_meter(host.sysroot, capabilities, plan.sample_period_s)
        if meter.rails:
            meter = watched_meter(meter, watch_s(plan.duration_s))
        window_s = _window_s(args, plan, meter)
        profiles: list[LayerProfile] = []
        interrupted = False
        with nullcontext() if store is None else closing(store):
            try:
                for point in plan.points():
                    profile = _profile(plan, point, host, meter, window_s)
                    with uninterrupted():
                        profiles.append(profile)
                        if store is not None:
                            keep_layer_profile(store, device, capabilities, profile)
            except KeyboardInterrupt:
                interrupted = True
    kept = f", kept in {store.address}" if store is not None and profiles else ""
    print(
        f"powerlab: {'interrupted; ' * interrupted}{len(profiles)} of {len(plan.points())} profiles made{kept}.",
        file=sys.stderr,
    )
    document = msgspec.json.format(msgspec.json.encode(layers_document(profiles, plan.optimizers)), indent=2).decode()
    _write(output, document)
    _write(trace, json.dumps(chrome_trace(profiles)))
    if args.json:
        print(document)
    else:
        for profile in profiles:
            print_neatly(table_console(), layer_table(profile, plan.optimizers), *layer_words(profile))
    if interrupted:
        return EXIT_INTERRUPTED
    return EXIT_OK if all(map(_usable, profiles)) else EXIT_INCOMPLETE


def _write(path: Path | None, text: str) -> None:
    if path is not None:
        path.write_text(f"{text}\n", encoding="utf-8")


def layers_document(profiles: list[LayerProfile], optimizers: tuple[str, ...] = ()) -> dict[str, object]:
    """Return the profiles as ``--json`` prints them, each layer's place under the roof beside its profile."""
    return {
        **({"optimizer": optimizers[0]} if optimizers else {}),
        "profiles": [
            {**msgspec.to_builtins(profile), "roofline": msgspec.to_builtins(roofline(profile))} for profile in profiles
        ],
    }


def _plan(args: argparse.Namespace, device: Device, capabilities: Capabilities) -> SweepPlan:
    """Return the request in the words of a plan, which knows what a device can carry out."""
    modes = named_modes(args)
    if args.modes.strip() == ALL_MODES:
        modes = tuple(mode.name for mode in capabilities.modes if not mode.requires_reboot)
    online = [mode.online_cores for mode in capabilities.modes if mode.name in modes and mode.online_cores is not None]
    kind = WorkloadKind(args.workload)
    trained = (args.optimizer or OPTIMIZERS[0],) if kind is WorkloadKind.TRAIN or args.optimizer else ()
    return SweepPlan(
        models=(args.model,),
        workload=kind,
        optimizers=trained,
        threads=(min([device.core_count, *online]) if args.threads is None else args.threads,),
        processors=(processor_of(args.processor),),
        batch_sizes=(args.batch,),
        modes=modes,
        seed=args.seed,
        duration_s=DEFAULT_WINDOW_S if args.seconds_per_layer is None else args.seconds_per_layer,
        idle_s=args.idle,
    )


def _window_s(args: argparse.Namespace, plan: SweepPlan, meter: Meter) -> float:
    """Return how long each window lasts; by default, long enough for the slowest sensor."""
    period_s = max((max(rail.update_period_s, meter.sample_period_s) for rail in meter.rails), default=0.0)
    needed_s = enough_s(period_s)
    if args.seconds_per_layer is None:
        return max(DEFAULT_WINDOW_S, needed_s)
    if plan.duration_s < needed_s:
        print(
            f"powerlab: the slowest sensor has a new value every {period_s:g} s, so a layer wants {needed_s:g} s; "
            f"with {plan.duration_s:g} s its power is rather uncertain, or may not be used at all.",
            file=sys.stderr,
        )
    return plan.duration_s


def _profile(plan: SweepPlan, point: Point, host: Host, meter: Meter, window_s: float) -> LayerProfile:
    """Set the point's mode, measure every layer in it, and put the device back."""
    with host.controller.applied(point.mode):
        request = LayersRequest(
            point=point,
            device_name=host.device().name,
            meter=meter,
            no_power="" if meter.total is not None else NO_POWER,
            window_s=window_s,
            idle_s=plan.idle_s,
            seed=plan.seed,
            drifted=partial(host.controller.drifted, point.mode),
        )
        try:
            return _followed(request)
        except WorkerError as error:
            raise PowerlabError(f"the layers of {point.workload.model} could not be measured: {error}") from error


def _followed(request: LayersRequest) -> LayerProfile:
    """Measure with a progress bar on standard error."""
    with measuring() as progress, closing(measure_layers(request)) as events:
        task = progress.add_task("loading the model", total=None)
        for event in events:
            if isinstance(event, LayersStarted):
                progress.update(task, total=event.window_count)
                progress.print(_before(event, request.point.mode))
            elif isinstance(event, WindowDone):
                progress.update(task, description=event.name, completed=event.number)
            elif isinstance(event, LayersFinished):
                return event.profile
    raise AssertionError("the last event is the profile")


def _before(event: LayersStarted, mode: str) -> str:
    return (
        f"{event.layer_count} layers and the whole in mode {mode}: {event.window_count} windows, about "
        f"{_duration(event.expected_s)}, at most {_duration(event.longest_s)} where power is slow to settle"
    )


def _duration(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.1f} min"


def _usable(profile: LayerProfile) -> bool:
    void = [finding for layer in profile.layers for finding in layer.findings if finding.verdict is Verdict.VOID]
    return not void and all(finding.verdict is not Verdict.VOID for finding in profile.findings)
