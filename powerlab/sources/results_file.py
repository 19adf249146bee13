"""Stored sweeps and runs of results files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from powerlab.analysis.summary import PointSummary, summarise
from powerlab.domain.device import Device
from powerlab.domain.errors import PowerlabError
from powerlab.domain.layers import LayerProfile
from powerlab.domain.order import in_plan_order
from powerlab.domain.power import Trace
from powerlab.domain.run import Run
from powerlab.measure.audit.audit import Audit
from powerlab.protocol.identifiers import Identifier, Kind
from powerlab.protocol.records import SweepRecord
from powerlab.protocol.sweep_file import SweepFile, read_sweep_file
from powerlab.sources.source import Format, RunChoice, Source, SweepChoice, not_in_a_file


class FileSource(Source):
    """Reads one or more results files whole."""

    def __init__(self, paths: Sequence[Path], name: str | None = None) -> None:
        self.name = name or f"file {', '.join(map(str, paths))}"
        self._files = {file.sweep_id: file for file in map(read_sweep_file, paths)}

    def identifiers(self, beginning: str) -> Sequence[Identifier]:
        """Look at every sweep, run, point and device of the files."""
        found: dict[tuple[Kind, str], Identifier] = {}
        for one in self._identifiers():
            if beginning and one.id.startswith(beginning):
                found.setdefault((one.kind, one.id), one)
        return tuple(found.values())

    def _identifiers(self) -> Iterator[Identifier]:
        for file in self._files.values():
            yield Identifier(kind=Kind.SWEEP, id=file.sweep_id)
            yield Identifier(kind=Kind.DEVICE, id=file.device.name, name=file.device.name)
            for run in file.runs:
                yield Identifier(kind=Kind.RUN, id=run.id, sweep_id=file.sweep_id)
                yield Identifier(kind=Kind.POINT, id=run.point.id)

    def sweeps(self, choice: SweepChoice) -> Iterator[SweepRecord]:
        """Yield the sweeps of the files, newest first."""
        records = (file.record for file in self._files.values())
        for record in sorted(records, key=lambda record: record.created_at, reverse=True):
            if (
                choice.device_id in {None, record.device_id}
                and choice.state in {None, record.state}
                and (choice.model is None or choice.model in record.plan.models)
                and choice.campaign_id is None
            ):
                yield record

    def sweep(self, sweep_id: str) -> SweepRecord:
        """Return one sweep."""
        return self._file(sweep_id).record

    def _file(self, sweep_id: str) -> SweepFile:
        if sweep_id not in self._files:
            raise PowerlabError(f"there is no sweep {sweep_id!r} in {self.name}; it holds: {', '.join(self._files)}.")
        return self._files[sweep_id]

    def summaries(self, sweep_id: str) -> Sequence[PointSummary]:
        """Compute the summaries."""
        file = self._file(sweep_id)
        runs = list(file.runs)
        in_plan_order(runs, file.plan)
        return summarise(runs)

    def runs(self, choice: RunChoice) -> Iterator[Run]:
        """Yield runs in the order in which they are in the files."""
        files = self._files.values() if choice.sweep_id is None else [self._file(choice.sweep_id)]
        for run in (run for file in files for run in file.runs):
            if choice.model in {None, run.point.workload.model} and choice.verdict in {None, run.verdict}:
                yield run

    def run(self, run_id: str) -> Run:
        """Return one run."""
        for run in self.runs(RunChoice()):
            if run.id == run_id:
                return run
        raise PowerlabError(f"there is no run {run_id!r} in {self.name}; `powerlab runs list` shows its runs.")

    def audit(self, run_id: str) -> Audit:  # noqa: ARG002
        """Refuse: nothing can be recomputed without samples."""
        raise not_in_a_file("samples to recompute a run from")

    def device(self, sweep_id: str) -> Device:
        """Return what the file begins with."""
        return self._file(sweep_id).device

    def recorded(self, run_id: str) -> Sequence[Trace]:
        """Refuse: there is nothing."""
        raise not_in_a_file(f"samples of run {run_id}")

    def traces(self, format_: Format, sweep_id: str | None, run_id: str | None) -> Iterator[bytes]:  # noqa: ARG002
        """Refuse: there are none."""
        raise not_in_a_file("traces")

    def layer_profiles(self) -> Iterator[LayerProfile]:
        """Refuse: there are none."""
        raise not_in_a_file("layer profiles")
