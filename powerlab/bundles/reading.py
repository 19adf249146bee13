"""Reads a bundle, and nothing of it before every hash was checked."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path

import numpy as np

from powerlab.analysis.summary import PointSummary
from powerlab.bundles.archive import ArchiveReader, reading
from powerlab.bundles.manifest import FORMAT, MANIFEST, MODELS, PLAN, POINTS, RUNS, VERSION, Manifest, traces_member
from powerlab.domain.errors import PowerlabError
from powerlab.domain.power import Trace
from powerlab.domain.run import Run
from powerlab.domain.sweep import SweepPlan
from powerlab.protocol.chunks import payload_of, samples_of
from powerlab.protocol.messages import TraceChunk
from powerlab.protocol.wire import decode, reader

_READ_CHUNK = reader(TraceChunk)


class Bundle:
    """An open bundle whose hashes are right.

    Attributes:
        path: where it is.
        manifest: what it says of itself.
        plan: the sweep's plan.
        runs: its runs, in the plan's order.
        points: the summaries of its points, as they were when the bundle was made.
    """

    def __init__(self, path: Path, archive: ArchiveReader) -> None:
        self.path, self._archive = path, archive
        self.manifest = _manifest(path, archive.read(MANIFEST))
        self._check()
        self.plan = decode(archive.read(PLAN), SweepPlan)
        self.points = decode(archive.read(POINTS), tuple[PointSummary, ...])
        lines = archive.read(RUNS).decode(errors="replace").splitlines()
        self.runs = tuple(map(reader(Run), lines))

    def _check(self) -> None:
        """Hold every member against the manifest, then the archive against its seal."""
        said = {member.name: member for member in self.manifest.members}
        for name, member in said.items():
            with open(os.devnull, "wb") as nowhere:
                if self._archive.copy(name, nowhere) != member.sha256:
                    raise self._archive.damaged(name)
        more = set(self._archive.names()) - {*said, MANIFEST}
        if more:
            raise self._archive.damaged(f"its list of members ({', '.join(sorted(more))} was added)")
        if not self._archive.sealed:
            raise self._archive.damaged("the archive around its members")

    def recorded(self, run_id: str) -> tuple[Trace, ...]:
        """Return all that was recorded with a run; raises PowerlabError where a chunk is damaged or missing."""
        lines = self._archive.read(traces_member(run_id)).decode(errors="replace").splitlines()
        chunks = [_READ_CHUNK(line) for line in lines]
        groups = groupby(chunks, key=lambda chunk: (chunk.rail, chunk.part))
        return tuple(_joined(list(members)) for _, members in groups)

    def unpack_models(self, folder: Path) -> dict[str, str]:
        """Write the models that are in the bundle into a folder; returns their paths by the plan's words for them."""
        found = {}
        for model in self.manifest.models:
            if model.member:
                path = folder / Path(model.member.removeprefix(MODELS)).name
                with path.open("wb") as file:
                    self._archive.copy(model.member, file)
                found[model.name] = str(path)
        return found


@contextmanager
def open_bundle(path: Path) -> Iterator[Bundle]:
    """Open a bundle.

    Raises:
        PowerlabError: it cannot be read, is none, is of a newer powerlab, or was changed after it was made.
    """
    with reading(path) as archive:
        yield Bundle(path, archive)


def _manifest(path: Path, content: bytes) -> Manifest:
    try:
        found = decode(content, Manifest)
    except PowerlabError as error:
        raise PowerlabError(f"{path} is no bundle: its manifest cannot be read ({error})") from error
    if found.format != FORMAT or found.format_version > VERSION:
        raise PowerlabError(
            f"{path} is a {found.format} of version {found.format_version}, and this powerlab reads {FORMAT} up to "
            f"version {VERSION}; update powerlab."
        )
    return found


def _joined(chunks: Sequence[TraceChunk]) -> Trace:
    if [chunk.position for chunk in chunks] != list(range(len(chunks))):
        raise PowerlabError(f"the bundle lacks a chunk of {chunks[0].rail.key}; make it again from its source.")
    samples = [samples_of(chunk, payload_of(chunk), chunk.codec) for chunk in chunks]
    return Trace(
        rail=chunks[0].rail,
        time_ns=np.concatenate([time_ns for time_ns, _ in samples]),
        value=np.concatenate([value for _, value in samples]),
        read_cost_ns=chunks[0].read_cost_ns,
        part=chunks[0].part,
    )
