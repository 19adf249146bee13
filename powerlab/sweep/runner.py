"""Run a plan on a host, as a stream of events."""

from __future__ import annotations

import threading
from collections import Counter, defaultdict
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial

from powerlab.analysis.precision import percent_text
from powerlab.analysis.summary import searched_figures
from powerlab.backends.registry import BACKENDS
from powerlab.domain.errors import PowerlabError
from powerlab.domain.order import Done, ModeVisit, Stage, visits, visits_again
from powerlab.domain.preflight import check_plan
from powerlab.domain.run import Run, Verdict
from powerlab.domain.sweep import Point, SweepPlan
from powerlab.measure.duration import expected_s, longest_s
from powerlab.measure.heat.guard import TooHotError
from powerlab.measure.labelled_images import LabelCheck, check_labels
from powerlab.measure.output_check import OutputCheck, check_outputs
from powerlab.measure.recording.rails import IdleBaseline, Meter
from powerlab.measure.run import Measured, RunRequest, failed_run, measure_run
from powerlab.measure.worker.cores import check_present
from powerlab.measure.worker.process import WorkerError
from powerlab.search.searcher import Searcher
from powerlab.sweep.adaptive import ended_words, searcher_for
from powerlab.sweep.advice import advice
from powerlab.sweep.cooling import Cooled, Refusal, wait_until_cool
from powerlab.sweep.events import (
    CoolingDown,
    RebootNeeded,
    RunFinished,
    RunStarted,
    SearchEnded,
    SweepEvent,
    SweepExtended,
    SweepFinished,
    SweepStarted,
)
from powerlab.sweep.host import Host
from powerlab.sweep.meter import calibrated_meter, choose_meter, watch_s, watched_meter
from powerlab.sweep.model_check import check_models
from powerlab.sweep.stages import stages_of
from powerlab.sweep.until import check_until, still_wide, widest_percent
from powerlab.throttling.zones import Zones


def run_sweep(
    plan: SweepPlan,
    sweep_id: str,
    host: Host,
    done: Done | None = None,
    stop: threading.Event | None = None,
) -> Generator[SweepEvent, None, None]:
    """Carry out a plan; a run that fails is recorded and the sweep goes on.

    A plan whose modes need reboots, on a host that may be rebooted, ends with ``RebootNeeded`` in the place of
    ``SweepFinished``; after the reboot it is called again with ``done`` and the host's ``stages``.

    The power mode is restored when the generator ends, is closed, or raises.

    Args:
        plan: what to run.
        sweep_id: stored with every run.
        host: where to run it.
        done: runs measured before; they are left out, and a search learns from their figures.
        stop: when set, the sweep ends after the run in progress.

    Yields:
        events in the order in which things happen.

    Raises:
        PowerlabError: the plan cannot be carried out here (raised before the first event).
    """
    done = done or {}
    host.controller.recover()
    capabilities = host.capabilities(plan.modes)
    check_plan(plan, host.device(), capabilities, tuple(BACKENDS))
    if plan.nodes > 1 and host.nodes is None:
        raise PowerlabError(
            "several devices train together as one sweep of a server: `powerlab sweep create --devices`."
        )
    plan = plan.held_to(host.temperature_limits)
    for cores in plan.cores:
        check_present(cores, host.sysroot)
    meter = choose_meter(host.sysroot, capabilities, plan.sample_period_s, plan.processors)
    check_until(plan, meter)
    models = check_models(plan, meter, host.model_files)
    outputs = check_outputs(plan, meter, host.model_files)
    labels = check_labels(plan, meter, host.labelled_images, host.model_files)
    order = visits(plan, done)
    sweep = _Sweep(
        plan=plan, sweep_id=sweep_id, host=host, meter=meter, done=done, stop=stop, outputs=outputs, labels=labels
    )
    stages = host.stages or (stages_of(plan, host.controller) if host.may_reboot else (Stage(modes=plan.modes),))
    sweep.run_count = sum(len(visit.points) for visit in order)
    if sweep.run_count:
        watched = watched_meter(meter, watch_s(plan.duration_s))
        sweep.meter = calibrated_meter(watched, meter.rails, host.device())
        if host.nodes is not None:
            sweep.meter = host.nodes.joined(sweep.meter)
    waiting = plan if Zones(host.sysroot).names else replace(plan, cool_down_s=0.0)  # without zones nobody waits
    known = filter(None, (models.words, advice(plan, sweep.meter), outputs.words)) if sweep.run_count else ()
    yield SweepStarted(
        sweep_id=sweep_id,
        run_count=sweep.run_count,
        expected_s=expected_s(waiting, order, sweep.meter.margin_s, models.inference_s),
        longest_s=longest_s(waiting, order, sweep.meter.margin_s, models.inference_s),
        advice=" ".join(known),
    )
    for number, stage in enumerate(stages):
        here = [visit for visit in order if visit.mode in stage.modes]
        if sweep.needs_reboot(stage, here):
            yield RebootNeeded(stages=stages[number:])
            return
        if plan.search_percent:
            yield from sweep.search(searcher_for(plan, stage, host, {**done, **sweep.figures()}), here)
        else:
            yield from sweep.carry_out(here)
            yield from sweep.go_on(stage)
    yield sweep.finished()


@dataclass(slots=True, kw_only=True)
class _Sweep:
    """What every run of a sweep shares, and what came of the runs so far."""

    plan: SweepPlan
    sweep_id: str
    host: Host
    meter: Meter
    done: Done
    stop: threading.Event | None
    outputs: OutputCheck
    labels: LabelCheck
    run_count: int = 0
    made: int = 0
    verdicts: Counter[Verdict] = field(default_factory=Counter)
    runs: defaultdict[str, list[Run]] = field(default_factory=lambda: defaultdict(list))
    start_c: dict[str, float] = field(default_factory=dict)
    """How warm the first run in each mode began."""
    searcher: Searcher | None = None

    def stopped(self) -> bool:
        """Whether the sweep should end."""
        return self.stop is not None and self.stop.is_set()

    def finished(self) -> SweepFinished:
        """Return the last event."""
        return SweepFinished(
            sweep_id=self.sweep_id,
            valid_count=self.verdicts[Verdict.VALID],
            flagged_count=self.verdicts[Verdict.FLAGGED],
            void_count=self.verdicts[Verdict.VOID],
            failed_count=self.verdicts[Verdict.FAILED],
            stopped=self.made < self.run_count or (self.stopped() and bool(self._wide())),
        )

    def figures(self) -> Done:
        """Return what a search learns from the runs so far."""
        return {(key, run.repeat): searched_figures(run) for key, runs in self.runs.items() for run in runs}

    def carry_out(self, order: Sequence[ModeVisit]) -> Iterator[CoolingDown | RunStarted | RunFinished]:
        """Make runs in an order, until told to stop."""
        for visit in order:
            if self.stopped():
                return
            yield from self._visit(visit.mode, ((point, visit.repeat) for point in visit.points))

    def search(
        self, searcher: Searcher, order: Sequence[ModeVisit]
    ) -> Iterator[SearchEnded | CoolingDown | RunStarted | RunFinished]:
        """Make the runs that a search names, one after the other, until it names none.

        Args:
            searcher: of the points that can be measured within this boot.
            order: the runs that it may choose from.
        """
        self.searcher, before = searcher, self.made
        while not self.stopped():
            pick = searcher.next()
            if pick is None:
                self.run_count -= sum(len(visit.points) for visit in order) - (self.made - before)
                yield SearchEnded(run_count=self.run_count, detail=ended_words(searcher, self.plan))
                return
            yield from self._visit(pick[0].mode, _in_one_mode(searcher, pick))

    def needs_reboot(self, stage: Stage, order: Sequence[ModeVisit]) -> bool:
        """Say whether there is something to measure in a stage and it takes a reboot, which has not failed before."""
        if stage.reboot_into is None or self.stopped() or not (order or self._wide(stage)):
            return False
        mode = stage.modes[0]
        return mode not in self.host.refused and self.host.controller.reboot_target(mode) is not None

    def go_on(self, stage: Stage) -> Iterator[SweepExtended | CoolingDown | RunStarted | RunFinished]:
        """Repeat the points of a stage that are not known as well as the plan wants, block after block."""
        for repeat in range(self.plan.repeats, self.plan.most_repeats):
            wide = () if self.stopped() else self._wide(stage)
            if not wide:
                return
            order = visits_again(self.plan, wide, repeat, self.done)
            self.run_count += sum(len(visit.points) for visit in order)
            yield SweepExtended(run_count=self.run_count, detail=self._why(wide, repeat))
            yield from self.carry_out(order)

    def _wide(self, stage: Stage | None = None) -> tuple[Point, ...]:
        wide = still_wide(self.plan, self.runs, self.done)
        return wide if stage is None else tuple(point for point in wide if point.mode in stage.modes)

    def _why(self, wide: Sequence[Point], repeat: int) -> str:
        points = "1 point" if len(wide) == 1 else f"{len(wide)} points"
        percent = widest_percent(wide, self.runs)
        known = "not known yet" if percent is None else f"known to ±{percent_text(percent)} %"
        return (
            f"Repeat {repeat + 1} of {points} whose img/s/W is {known} at worst, because "
            f"±{self.plan.until_percent:g} % are wanted."
        )

    def _visit(self, mode: str, runs: Iterable[tuple[Point, int]]) -> Iterator[CoolingDown | RunStarted | RunFinished]:
        """Set the mode, run every point between idle baselines, restore the mode.

        A device that is too hot is left to cool before the mode is set, for no mode is set while heat holds clocks
        down, and again before each run. One that does not cool down fails the rest of the visit, which gives the mode
        back: waiting for hours before every run would help nobody.

        Args:
            mode: the power mode.
            runs: points of that mode with the number of their repeat; the next one is asked for when one is made.
        """
        idle: IdleBaseline | None = None
        refusal = self._refused(mode)
        if refusal is None:
            refusal = (yield from self._cooled()).refusal
        with ExitStack() as stack:
            try:
                if refusal is None and not self.stopped():
                    stack.enter_context(self.host.controller.applied(mode))
            except PowerlabError as error:
                refusal = Refusal("mode-not-ready", str(error))
            for point, repeat in runs:
                if refusal is None:
                    cooled = yield from self._cooled()
                    refusal, idle = cooled.refusal, None if cooled.waited else idle
                if self.stopped():
                    return
                index = self.made + 1
                yield RunStarted(point=point, repeat=repeat, index=index, run_count=self.run_count)
                measured = _measured_or_failed(self._request(point, repeat, idle), refusal)
                idle = measured.idle_after
                self._note(measured, given_up=refusal is not None)
                yield RunFinished(run=measured.run, traces=measured.traces, index=index, run_count=self.run_count)

    def _refused(self, mode: str) -> Refusal | None:
        sentence = self.host.refused.get(mode)
        return None if sentence is None else Refusal("mode-not-ready", sentence)

    def _cooled(self) -> Generator[CoolingDown, None, Cooled]:
        return wait_until_cool(self.host.sysroot, self.plan, self.stop)

    def _note(self, measured: Measured, *, given_up: bool) -> None:
        run = measured.run
        if self.searcher is not None:
            self.searcher.note(run)
            if given_up:
                self.searcher.known.give_up(run.point.mode)
        self.made += 1
        self.verdicts[run.verdict] += 1
        self.runs[run.point.id].append(run)
        if measured.start_c is not None:
            self.start_c.setdefault(run.point.mode, measured.start_c)

    def _request(self, point: Point, repeat: int, idle: IdleBaseline | None) -> RunRequest:
        return RunRequest(
            sweep_id=self.sweep_id,
            plan=self.plan,
            point=point,
            repeat=repeat,
            meter=self.meter,
            idle=idle,
            drifted=partial(self.host.controller.drifted, point.mode),
            like_c=self.start_c.get(point.mode),
            output_difference=self.outputs.of(point),
            output_accuracy=self.outputs.accuracy_of(point),
            labelled_accuracy=self.labels.of(point),
            model_files=self.host.model_files,
            announce=self.host.announce,
        )


def _in_one_mode(searcher: Searcher, first: tuple[Point, int]) -> Iterator[tuple[Point, int]]:
    """Yield a search's runs as long as they stay in the first one's power mode."""
    pick: tuple[Point, int] | None = first
    while pick is not None and pick[0].mode == first[0].mode:
        yield pick
        pick = searcher.next(first[0].mode)


def _measured_or_failed(request: RunRequest, refusal: Refusal | None) -> Measured:
    if refusal is not None:
        return Measured(run=failed_run(request, refusal.rule, refusal.sentence))
    try:
        return measure_run(request)
    except TooHotError as error:
        return Measured(run=failed_run(request, error.rule, str(error)))
    except WorkerError as error:
        return Measured(run=failed_run(request, "worker-failed", str(error)))
    except PowerlabError as error:
        return Measured(run=failed_run(request, "refused", str(error)))
