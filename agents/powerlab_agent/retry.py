"""Back-off between retries."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random, SystemRandom

LONGEST_ASKED_S = 60.0
"""What a server asks for beyond this is a mistake of somebody's, and must not lose a device for a day."""


@dataclass(slots=True)
class Backoff:
    """Full jitter: a random part of a span that doubles, so that a fleet does not come back all at once.

    https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/
    """

    first_s: float = 0.5
    longest_s: float = 30.0
    random: Random = field(default_factory=SystemRandom)
    _failures: int = 0

    def failed(self, asked_s: float = 0.0) -> float:
        """Return how long to wait after one more failure, in seconds.

        Args:
            asked_s: for how long the server wants to be left alone. That is waited for, and up to as long again: agents
                that were all told the same come back one after the other.
        """
        asked_s = min(asked_s, LONGEST_ASKED_S)
        span = min(self.longest_s, self.first_s * 2.0 ** min(self._failures, 16))
        self._failures += 1
        return asked_s + self.random.uniform(0.0, max(span, asked_s))

    def worked(self) -> None:
        """Start again from the shortest span."""
        self._failures = 0
