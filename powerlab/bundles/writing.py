"""Makes a bundle of a sweep."""

from __future__ import annotations

import contextlib
import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from powerlab.analysis.summary import summarise
from powerlab.bundles.archive import ArchiveWriter
from powerlab.bundles.environment import identify, this_machine
from powerlab.bundles.manifest import (
    FORMAT,
    MANIFEST,
    PLAN,
    POINTS,
    RUNS,
    VERSION,
    BundledModel,
    Manifest,
    Member,
    traces_member,
)
from powerlab.domain.device import Device
from powerlab.domain.errors import PowerlabError
from powerlab.domain.power import Trace
from powerlab.domain.run import Run, Verdict
from powerlab.domain.sweep import SweepPlan
from powerlab.protocol.chunks import split
from powerlab.protocol.wire import encode


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """A sweep to pack.

    Attributes:
        sweep_id: its identifier.
        device: where it was measured.
        plan: what was asked for.
        runs: in the plan's order.
        recorded: returns all that was recorded with a run, given its identifier.
    """

    sweep_id: str
    device: Device
    plan: SweepPlan
    runs: tuple[Run, ...]
    recorded: Callable[[str], Sequence[Trace]]


def write_bundle(packed: Packed, path: Path, *, with_model: bool = False) -> Manifest:
    """Write a bundle, whole or not at all.

    Args:
        packed: the sweep.
        path: where to.
        with_model: whether model files are packed however large they are.

    Raises:
        PowerlabError: the sweep has no run with figures, samples are not to be had, or the file cannot be written.
    """
    if not any(run.metrics for run in packed.runs):
        raise PowerlabError(
            f"the sweep {packed.sweep_id} has no run with figures, so there is nothing to pack; `powerlab runs list` "
            "shows its runs."
        )
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("w+b") as file:
            writer = ArchiveWriter(file)
            try:
                manifest = _fill(writer, packed, with_model=with_model)
                writer.close()
            except (OSError, PowerlabError):
                writer.abandon()
                raise
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError as error:
        raise PowerlabError(
            f"cannot write the bundle to {path} ({error.strerror}); free some space, or choose another --output."
        ) from error
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
    return manifest


def _fill(writer: ArchiveWriter, packed: Packed, *, with_model: bool) -> Manifest:
    """Write the members in the order of their names, the manifest last: a reader finds it by name."""
    began_s = min(datetime.fromisoformat(run.started_at).timestamp() for run in packed.runs)
    models = tuple(identify(word, with_model=with_model, measured_from_s=began_s) for word in packed.plan.models)
    members: list[Member] = []

    def add(name: str, content: bytes) -> None:
        writer.add(name, content)
        members.append(Member(name=name, size_bytes=len(content), sha256=hashlib.sha256(content).hexdigest()))

    for model in sorted({one.member: one for one in models if one.member}.values(), key=lambda one: one.member):
        writer.add_file(model.member, Path(model.name))
        members.append(_member_of(model))
    add(PLAN, encode(packed.plan))
    add(POINTS, encode(summarise(packed.runs)))
    add(RUNS, b"".join(encode(run) + b"\n" for run in packed.runs))
    for run in sorted(packed.runs, key=lambda one: one.id):
        if run.verdict is not Verdict.FAILED:
            chunks = (chunk for trace in packed.recorded(run.id) for chunk in split(trace))
            add(traces_member(run.id), b"".join(encode(chunk) + b"\n" for chunk in chunks))
    manifest = Manifest(
        format=FORMAT,
        format_version=VERSION,
        sweep_id=packed.sweep_id,
        device=packed.device,
        made_on=this_machine(),
        models=models,
        members=tuple(members),
    )
    writer.add(MANIFEST, encode(manifest))
    return manifest


def _member_of(model: BundledModel) -> Member:
    return Member(name=model.member, size_bytes=model.size_bytes, sha256=model.sha256)
