"""How long to wait before trying again."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random, SystemRandom


@dataclass(slots=True)
class Backoff:
    """Full jitter: a random part of a span that doubles, so that a fleet does not come back all at once.

    https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/
    """

    first_s: float = 0.5
    longest_s: float = 30.0
    random: Random = field(default_factory=SystemRandom)
    _failures: int = 0

    def failed(self) -> float:
        """Return how long to wait after one more failure, in seconds."""
        span = min(self.longest_s, self.first_s * 2.0 ** min(self._failures, 16))
        self._failures += 1
        return self.random.uniform(0.0, span)

    def worked(self) -> None:
        """Start again from the shortest span."""
        self._failures = 0
