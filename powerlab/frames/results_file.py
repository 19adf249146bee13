"""Results in a file that ``powerlab profile`` wrote: one sweep with its runs, and nothing that was sampled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from powerlab.analysis.summary import PointSummary, summarise
from powerlab.domain.errors import PowerlabError
from powerlab.domain.layers import LayerProfile
from powerlab.domain.power import Trace
from powerlab.domain.run import Run
from powerlab.frames.records import RunChoice, StoredSweep
from powerlab.protocol.sweep_file import read_sweep_file

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]


class FileRecords:
    """Reads a file whole."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file = read_sweep_file(path)

    def sweeps(self, sweep_id: str | None) -> Sequence[StoredSweep]:
        """Return the file's only sweep."""
        if sweep_id not in {None, self._file.sweep_id}:
            raise PowerlabError(f"there is no sweep {sweep_id!r} in {self._path}; its sweep is {self._file.sweep_id}.")
        return [StoredSweep(id=self._file.sweep_id, device=self._file.device.name)]

    def summaries(self, sweep_id: str) -> Sequence[PointSummary]:
        """Compute the summaries, in plan order."""
        self.sweeps(sweep_id)
        place = {point.id: index for index, point in enumerate(self._file.plan.points())}
        return summarise(sorted(self._file.runs, key=lambda run: (place[run.point.id], run.repeat)))

    def runs(self, choice: RunChoice) -> Iterator[Run]:
        """Yield runs in the order in which they are in the file."""
        self.sweeps(choice.sweep_id)
        for run in self._file.runs:
            if choice.model in {None, run.point.workload.model} and choice.verdict in {None, run.verdict}:
                yield run

    def run(self, run_id: str) -> Run:
        """Return one run."""
        found = [run for run in self._file.runs if run_id and run.id.startswith(run_id)]
        if len(found) != 1:
            raise PowerlabError(
                f"{len(found) or 'no'} runs in {self._path} begin with {run_id!r}; give a run_id of frames.runs."
            )
        return found[0]

    def samples(self, run_id: str) -> pa.Table:
        """Refuse: there are none."""
        raise self._without(f"traces of run {run_id}")

    def recorded(self, run_id: str) -> tuple[Trace, ...]:
        """Refuse: there are none."""
        raise self._without(f"traces of run {run_id}")

    def layer_profiles(self) -> Iterator[LayerProfile]:
        """Refuse: there are none."""
        raise self._without("layer profiles")

    def _without(self, what: str) -> PowerlabError:
        return PowerlabError(f"the results file {self._path} holds no {what}; read a database or a server.")
