"""A source of stored sweeps and runs: a server, a database, or results files; the same questions to all."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from powerlab.domain.device import Device
from powerlab.domain.errors import PowerlabError
from powerlab.domain.run import Run, Verdict
from powerlab.protocol.identifiers import Identifier
from powerlab.protocol.records import SweepRecord, SweepState

if TYPE_CHECKING:
    from powerlab.analysis.summary import PointSummary
    from powerlab.domain.layers import LayerProfile
    from powerlab.domain.power import Trace
    from powerlab.measure.audit.audit import Audit

Format = Literal["csv", "ndjson", "parquet"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunChoice:
    """Which runs; None leaves a filter out, and identifiers are whole."""

    sweep_id: str | None = None
    model: str | None = None
    verdict: Verdict | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepChoice:
    """Which sweeps; None leaves a filter out, and identifiers are whole."""

    device_id: str | None = None
    state: SweepState | None = None
    model: str | None = None
    campaign_id: str | None = None


class Source(ABC):
    """Answers questions about what is stored; every method raises PowerlabError where it cannot.

    Attributes:
        name: what it is, in words, such as ``database /home/me/runs.db``.
    """

    name: str

    @abstractmethod
    def identifiers(self, beginning: str) -> Sequence[Identifier]:
        """Return what has an identifier that begins so, and devices and models whose name does."""

    @abstractmethod
    def sweeps(self, choice: SweepChoice) -> Iterator[SweepRecord]:
        """Yield sweeps, newest first."""

    @abstractmethod
    def sweep(self, sweep_id: str) -> SweepRecord:
        """Return one sweep."""

    @abstractmethod
    def summaries(self, sweep_id: str) -> Sequence[PointSummary]:
        """Return one summary for each point of a sweep that has runs."""

    @abstractmethod
    def runs(self, choice: RunChoice) -> Iterator[Run]:
        """Yield runs in the order in which they arrived."""

    @abstractmethod
    def run(self, run_id: str) -> Run:
        """Return one run."""

    @abstractmethod
    def audit(self, run_id: str) -> Audit:
        """Recompute a run from its record."""

    @abstractmethod
    def traces(self, format_: Format, sweep_id: str | None, run_id: str | None) -> Iterator[bytes]:
        """Yield the traces of a sweep or a run as a table, in pieces."""

    @abstractmethod
    def device(self, sweep_id: str) -> Device:
        """Return the device of a sweep, as it describes itself."""

    @abstractmethod
    def recorded(self, run_id: str) -> Sequence[Trace]:
        """Return all that was recorded with a run, every sample of it."""

    @abstractmethod
    def layer_profiles(self) -> Iterator[LayerProfile]:
        """Yield layer profiles, newest first."""

    def table_of_runs(self, format_: Format, choice: RunChoice) -> Iterator[bytes]:
        """Yield runs as a table, in pieces."""
        return written_runs(format_, self.runs(choice))

    def close(self) -> None:  # noqa: B027 - most sources have nothing to close
        """Let go of what is open."""


def written_runs(format_: Format, runs: Iterable[Run]) -> Iterator[bytes]:
    """Yield runs as a table, in pieces."""
    from powerlab.protocol.export import FIGURE_COLUMNS, csv_lines, figure_rows, ndjson_lines

    if format_ == "parquet":
        from powerlab.store.reads.parquet import rows_as_parquet

        return rows_as_parquet(FIGURE_COLUMNS, figure_rows(runs))
    return encoded(csv_lines(runs) if format_ == "csv" else ndjson_lines(runs))


def encoded(lines: Iterable[str]) -> Iterator[bytes]:
    """Yield lines in UTF-8."""
    return (line.encode() for line in lines)


def not_in_a_file(what: str) -> PowerlabError:
    """Return what to raise where a results file was asked for what only a database holds."""
    return PowerlabError(f"results files hold no {what}; read a database or a server instead.")
