"""The audit of one run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from powerlab.domain.power import Trace
from powerlab.domain.run import Run
from powerlab.measure.audit.compare import Compared, compared
from powerlab.measure.audit.mlperf import Case, Ruled, Ruling, ask_mlperf, in_one_word
from powerlab.measure.audit.recompute import recompute


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """What an audit found.

    Attributes:
        run: the run as it is stored.
        sample_count: samples, latencies and temperatures that were read again.
        equal: whether the record gives everything that the run says.
        compared: everything the run says of itself beside the same worked out again.
        mlperf_ruling: what MLPerf Power would say of the run as a whole; None where the record is damaged.
        mlperf: what it would say, rule by rule; empty where the record is damaged.
    """

    run: Run
    sample_count: int
    equal: bool
    compared: tuple[Compared, ...]
    mlperf_ruling: Ruling | None
    mlperf: tuple[Ruled, ...]

    @property
    def different(self) -> tuple[Compared, ...]:
        """What the record does not give."""
        return tuple(one for one in self.compared if not one.equal)


def audit(run: Run, traces: Sequence[Trace], checks: Sequence[Compared] = ()) -> Audit:
    """Work out everything again and ask MLPerf's rules.

    Args:
        run: as it is stored.
        traces: all that was recorded with it.
        checks: what was compared already, of how it is stored.

    Raises:
        PowerlabError: the record is not enough to audit the run, with what is missing.
    """
    timed, evidence, figures = recompute(run, traces)
    said = (*checks, *compared(run, timed, figures))
    mlperf = ask_mlperf(Case(run=run, evidence=evidence, figures=figures))
    return Audit(
        run=run,
        sample_count=sum(trace.time_ns.size for trace in traces),
        equal=all(one.equal for one in said),
        compared=said,
        mlperf_ruling=in_one_word(mlperf),
        mlperf=mlperf,
    )


def audit_of_damaged(run: Run, checks: Sequence[Compared]) -> Audit:
    """Return the audit of a run whose record cannot be relied on; nothing is worked out from it."""
    return Audit(run=run, sample_count=0, equal=False, compared=tuple(checks), mlperf_ruling=None, mlperf=())
