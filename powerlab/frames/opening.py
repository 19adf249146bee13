"""What the readers of frames take as a source, and what of it they read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, Union

from powerlab.client import Client
from powerlab.domain.errors import PowerlabError
from powerlab.domain.layers import LayerProfile
from powerlab.frames.frame import needed
from powerlab.protocol.records import SweepRecord
from powerlab.sources import source as stored
from powerlab.sources.identifiers import sweep_id as whole_sweep_id
from powerlab.sources.opening import open_address
from powerlab.sources.server import ServerSource

if TYPE_CHECKING:
    from powerlab.store import Store

Source: TypeAlias = Union[Client, "Store", str, Path, None]
"""A client or a server's address, an open database, its path or address, a results file; None: as for commands, the
server of POWERLAB_SERVER, else what this machine has measured."""


@contextmanager
def opened(source: Source) -> Iterator[stored.Source]:
    """Open a source, and close at the end what was opened here.

    Raises:
        PowerlabError: there is no such source, it cannot be read, or an extra is missing.
    """
    needed("pyarrow")
    if isinstance(source, Client):
        yield ServerSource(source)
    elif source is None or isinstance(source, str | Path):
        with closing(open_address(None if source is None else str(source))) as found:
            yield found
    else:
        from powerlab.sources.database import DatabaseSource

        yield DatabaseSource(source)


def chosen_sweeps(source: stored.Source, word: str | None) -> Sequence[SweepRecord]:
    """Return the sweep that a word means, whose beginning suffices; without one all sweeps, newest first.

    Raises:
        PowerlabError: there is no such sweep, or there are several.
    """
    if word is None:
        return list(source.sweeps(stored.SweepChoice()))
    return [source.sweep(whole_sweep_id(source, word))]


def chosen_profiles(source: stored.Source, profile_id: str | None) -> list[LayerProfile]:
    """Return the layer profile of that identifier, or all, newest first.

    Raises:
        PowerlabError: there is no such profile.
    """
    found = [profile for profile in source.layer_profiles() if profile_id in {None, profile.id}]
    if profile_id is not None and not found:
        raise PowerlabError(f"there is no layer profile {profile_id!r}; frames.layers() lists them.")
    return found
