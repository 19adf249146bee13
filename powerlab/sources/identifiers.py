"""One resolver of identifiers for every command: short ones, ambiguous ones, and those of something else."""

from __future__ import annotations

from collections.abc import Sequence

from powerlab.domain.choices import meant
from powerlab.domain.errors import PowerlabError
from powerlab.protocol.identifiers import Identifier, Kind
from powerlab.sources.source import Source, SweepChoice

_LISTS = {
    Kind.RUN: "`powerlab runs list` lists runs",
    Kind.SWEEP: "`powerlab sweep list` lists sweeps",
    Kind.CAMPAIGN: "`powerlab sweep list --json` names the campaign of each sweep",
    Kind.DEVICE: "`powerlab devices list` lists devices",
}
_NEARBY = 4
"""A mistyped identifier is looked for among those with the same first characters."""


def sweep_ids(source: Source, word: str) -> tuple[str, ...]:
    """Return the sweeps that a word means: one, that of a job, or those of a campaign.

    Raises:
        PowerlabError: there is none, the word is ambiguous, or it means something else.
    """
    found = _the_one(source, word, Kind.SWEEP, (Kind.CAMPAIGN, Kind.JOB))
    if found.kind is Kind.CAMPAIGN:
        return tuple(sweep.id for sweep in source.sweeps(SweepChoice(campaign_id=found.id)))
    return (found.sweep_id or found.id,)


def sweep_id(source: Source, word: str) -> str:
    """Return the one sweep that a word means, or that of a job or of a campaign of one sweep.

    Raises:
        PowerlabError: there is none, there are several, or the word means something else.
    """
    found = sweep_ids(source, word)
    if len(found) != 1:
        raise PowerlabError(f"{word} is a campaign of {len(found)} sweeps; name one of them: {', '.join(found)}.")
    return found[0]


def run_id(source: Source, word: str) -> str:
    """Return the run that a word means; raises PowerlabError as :func:`sweep_ids` does."""
    return _the_one(source, word, Kind.RUN).id


def campaign_id(source: Source, word: str) -> str:
    """Return the campaign that a word means; raises PowerlabError as :func:`sweep_ids` does."""
    return _the_one(source, word, Kind.CAMPAIGN).id


def device_id(source: Source, word: str) -> str:
    """Return the device of that name, or whose identifier begins so; raises PowerlabError as :func:`sweep_ids` does."""
    return _the_one(source, word, Kind.DEVICE).id


def _the_one(source: Source, word: str, wanted: Kind, instead: Sequence[Kind] = ()) -> Identifier:
    found = source.identifiers(word)
    exact = [one for one in found if word in {one.id, one.name}]
    for group in (exact, found):
        for kind in (wanted, *instead):
            alike = [one for one in group if one.kind is kind]
            if len(alike) == 1:
                return alike[0]
            if alike:
                raise _ambiguous(word, alike)
    raise _other_kind(word, wanted, found[0]) if found else _unknown(source, word, wanted)


def _ambiguous(word: str, found: Sequence[Identifier]) -> PowerlabError:
    candidates = ", ".join(f"{one.id} ({one.name})" if one.name else one.id for one in found)
    return PowerlabError(f"several {found[0].kind}s begin with {word!r}: {candidates}; give more characters.")


def _other_kind(word: str, wanted: Kind, found: Identifier) -> PowerlabError:
    words = {
        Kind.RUN: f"a run of sweep {found.sweep_id}; `powerlab runs show {word}` shows it",
        Kind.SWEEP: f"a sweep; `powerlab runs list --sweep {word}` lists its runs",
        Kind.POINT: "a point, which many sweeps may have; name a sweep or a run",
        Kind.JOB: f"the job of sweep {found.sweep_id}; `powerlab sweep show {word}` shows that",
        Kind.CAMPAIGN: f"a campaign; `powerlab sweep list --campaign {word}` lists its sweeps",
        Kind.MODEL: f"the model {found.name}; `powerlab models show {word}` shows it",
        Kind.DEVICE: f"the device {found.name}; `powerlab sweep list --device {word}` lists its sweeps",
    }
    return PowerlabError(f"{word} is no {wanted}, but {words[found.kind]}.")


def _unknown(source: Source, word: str, wanted: Kind) -> PowerlabError:
    nearby = [one for one in source.identifiers(word[:_NEARBY]) if one.kind is wanted]
    close = meant(word, [name for one in nearby for name in (one.name, one.id[: len(word)]) if name])
    return PowerlabError(f"there is no {wanted} {word!r} in {source.name}{close}; {_LISTS[wanted]}.")
