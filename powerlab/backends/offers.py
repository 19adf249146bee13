"""Refuses what an engine does not offer: nothing asked for is ever replaced by something near it."""

from __future__ import annotations

from collections.abc import Sequence

from powerlab.backends.base import LoadOptions
from powerlab.domain.errors import PowerlabError


def check_offers(
    engine: str, options: LoadOptions, precisions: Sequence[str] = ("fp32",), spins_us: Sequence[int] = ()
) -> None:
    """Refuse a precision or a spin time the engine does not offer; None as spin time is always its own.

    Raises:
        PowerlabError: what it offers instead.
    """
    check_precision(engine, options, precisions)
    if options.spin_us is not None and options.spin_us not in spins_us:
        offered = f"takes {' or '.join(map(str, spins_us))} us alone" if spins_us else "does not let its spin be set"
        raise PowerlabError(
            f"the engine {engine} {offered}, not {options.spin_us} us; leave the spin time out, or choose another "
            "engine."
        )


def check_precision(engine: str, options: LoadOptions, precisions: Sequence[str]) -> None:
    """Refuse a precision the engine does not offer.

    Raises:
        PowerlabError: what it offers instead.
    """
    if options.precision not in precisions:
        raise PowerlabError(
            f"the engine {engine} computes in {' or '.join(precisions)} here, not in {options.precision!r}; "
            "ask for one of these, or choose another engine."
        )


def check_threads(engine: str, requested: int, used: int) -> None:
    """Refuse an engine that says it computes with another number of threads than it was given.

    Raises:
        PowerlabError: both numbers.
    """
    if used != requested:
        raise PowerlabError(
            f"the engine {engine} was given {requested} threads but computes with {used}; leave it out."
        )
