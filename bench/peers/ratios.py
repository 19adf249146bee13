"""What the turns of engines say: each peer's time over the built-in engine's beside it, and what all cells say.

A ratio above 1 means that the built-in engine is the faster one.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from powerlab.domain.workload import Processor

OURS = "builtin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """One model in one configuration: answering, or trained by an optimizer."""

    model: str
    batch_size: int
    threads: int
    precision: str = "fp32"
    processor: Processor = Processor.CPU
    optimizer: str = ""

    def __str__(self) -> str:
        return f"{self.model} batch {self.batch_size} threads {self.threads}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """The median of paired ratios and the quartiles around it."""

    low: float
    median: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What was seen in a cell.

    Attributes:
        cell: where.
        turns_ms: engine -> the latency of each of its turns, in the order of the rounds; the built-in one among them.
        least_ms: engine -> its shortest counted inference.
        differences: peer -> largest difference of its outputs from the built-in engine's, as a share of the largest.
        absent: engine -> why it takes no part, in a sentence.
        others_cores: cores that other programs kept busy meanwhile.
        one_at_a_time: whether engines were loaded anew for their turns, because the memory does not hold all of them.
    """

    cell: Cell
    turns_ms: Mapping[str, Sequence[float]]
    least_ms: Mapping[str, float]
    differences: Mapping[str, float] = field(default_factory=dict)
    absent: Mapping[str, str] = field(default_factory=dict)
    others_cores: float = 0.0
    one_at_a_time: bool = False

    @property
    def rounds(self) -> int:
        """How many turns every engine had."""
        return min(map(len, self.turns_ms.values()), default=0)

    @property
    def ratios(self) -> dict[str, Ratio]:
        """Peer -> its time over ours; empty where the built-in engine took no part."""
        if OURS not in self.turns_ms:
            return {}
        ours = self.turns_ms[OURS]
        return {peer: paired_ratio(ours, theirs) for peer, theirs in self.turns_ms.items() if peer != OURS}

    @property
    def best(self) -> tuple[str, Ratio] | None:
        """The fastest peer and its ratio; None where there is nothing to compare."""
        return min(self.ratios.items(), key=lambda item: item[1].median, default=None)


def paired_ratio(ours: Sequence[float], theirs: Sequence[float]) -> Ratio:
    """Return the ratio of turns of the same round; what slows the machine down for a while slows both of a pair.

    Raises:
        ValueError: the engines had another number of turns, or none.
    """
    ratios = [peer / own for own, peer in zip(ours, theirs, strict=True)]
    if not ratios:
        raise ValueError("no round was measured")
    if len(ratios) == 1:
        return Ratio(low=ratios[0], median=ratios[0], high=ratios[0])
    low, median, high = statistics.quantiles(ratios, n=4, method="inclusive")
    return Ratio(low=low, median=median, high=high)


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """All cells against the best peer of each.

    Attributes:
        cells: how many could be compared.
        geometric_mean: of their ratios.
        smallest: the cell in which the built-in engine does worst.
        smallest_peer: who is the best peer there.
        smallest_ratio: against that peer.
        largest_difference: of any peer's outputs in any cell.
    """

    cells: int
    geometric_mean: float
    smallest: Cell
    smallest_peer: str
    smallest_ratio: Ratio
    largest_difference: float


def summary(measured: Sequence[Measured]) -> Summary | None:
    """Return what all cells say together; None where none could be compared."""
    best = [(one, *one.best) for one in measured if one.best is not None]
    if not best:
        return None
    worst, peer, ratio = min(best, key=lambda item: item[2].median)
    return Summary(
        cells=len(best),
        geometric_mean=math.exp(statistics.fmean(math.log(ratio.median) for _, _, ratio in best)),
        smallest=worst.cell,
        smallest_peer=peer,
        smallest_ratio=ratio,
        largest_difference=max(difference for one, _, _ in best for difference in one.differences.values()),
    )
