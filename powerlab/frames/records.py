"""What frames are made of, whatever it is read from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from powerlab.analysis.summary import PointSummary
from powerlab.domain.errors import PowerlabError
from powerlab.domain.layers import LayerProfile
from powerlab.domain.power import Trace
from powerlab.domain.run import Run, Verdict

if TYPE_CHECKING:
    import pyarrow as pa  # type: ignore[import-untyped]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunChoice:
    """Which runs; None leaves a filter out."""

    sweep_id: str | None = None
    model: str | None = None
    verdict: Verdict | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredSweep:
    """A sweep, and the name of the device that it ran on."""

    id: str
    device: str


class Records(Protocol):
    """Stored results; every method raises PowerlabError where it cannot answer."""

    def sweeps(self, sweep_id: str | None) -> Sequence[StoredSweep]:
        """Return the sweep of that identifier, or all, newest first."""

    def summaries(self, sweep_id: str) -> Sequence[PointSummary]:
        """Return one summary for each point of a sweep that has runs."""

    def runs(self, choice: RunChoice) -> Iterator[Run]:
        """Yield runs in the order in which they arrived."""

    def run(self, run_id: str) -> Run:
        """Return the run whose identifier begins so."""

    def samples(self, run_id: str) -> pa.Table:
        """Return all that was recorded with a run, a row a sample, not decimated."""

    def recorded(self, run_id: str) -> tuple[Trace, ...]:
        """Return all that was recorded with a run in every part, detailed enough to draw."""

    def layer_profiles(self) -> Iterator[LayerProfile]:
        """Yield layer profiles, newest first."""


def chosen_profiles(records: Records, profile_id: str | None) -> list[LayerProfile]:
    """Return the layer profile of that identifier, or all, newest first.

    Raises:
        PowerlabError: there is no such profile.
    """
    found = [profile for profile in records.layer_profiles() if profile_id in {None, profile.id}]
    if profile_id is not None and not found:
        raise PowerlabError(f"there is no layer profile {profile_id!r}; frames.layers() lists them.")
    return found
