"""Named baselines: on a server, or in a database that this process may write."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from powerlab.cli.arguments.server import connect
from powerlab.cli.stored.open_source import address_from
from powerlab.protocol.baselines import Baseline, BaselineRequest
from powerlab.sources.opening import SERVERS, default_store, has_database_reader, is_results_file, open_existing

if TYPE_CHECKING:
    from powerlab.store import Store


class BaselineStore(Protocol):
    """What can be done with baselines; every method raises PowerlabError where it cannot be done."""

    def baselines(self) -> Iterator[Baseline]:
        """Yield every baseline, in the order of their names."""
        ...

    def put(self, name: str, request: BaselineRequest) -> Baseline:
        """Make sweeps part of a baseline."""
        ...

    def remove(self, name: str) -> None:
        """Forget a baseline."""
        ...


@contextmanager
def open_baselines(args: argparse.Namespace) -> Iterator[BaselineStore | None]:
    """Open what ``--from`` names; None where that is a results file, or nothing was ever stored here.

    Raises:
        PowerlabError: it cannot be used.
    """
    address = address_from(args)
    if address is not None and address.startswith(SERVERS):
        from powerlab.client.baselines import Baselines

        yield Baselines(connect(address).transport)
        return
    is_file = address is not None and "://" not in address and is_results_file(Path(address))
    nothing = address is None and not (default_store().is_file() and has_database_reader())
    if is_file or nothing:
        yield None
        return
    with closing(open_existing(address)) as store:
        yield DatabaseBaselines(store)


@dataclass(frozen=True, slots=True)
class DatabaseBaselines:
    """Works on a database."""

    store: Store

    def baselines(self) -> Iterator[Baseline]:
        """Yield every baseline."""
        from powerlab.store.reads.baselines import list_baselines

        with self.store.session() as session:
            yield from list_baselines(session)

    def put(self, name: str, request: BaselineRequest) -> Baseline:
        """Make sweeps part of a baseline."""
        from powerlab.store.reads.baselines import baseline
        from powerlab.store.writes.audit import COMMAND_LINE
        from powerlab.store.writes.baselines import put_baseline

        with self.store.write() as session:
            put_baseline(session, name, request, COMMAND_LINE, self.store.clock())
            session.flush()
            return baseline(session, name)

    def remove(self, name: str) -> None:
        """Forget a baseline."""
        from powerlab.store.writes.audit import COMMAND_LINE
        from powerlab.store.writes.baselines import remove_baseline

        with self.store.write() as session:
            remove_baseline(session, name, COMMAND_LINE, self.store.clock())
