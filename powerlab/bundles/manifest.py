"""The manifest of a bundle: what it holds, under which hashes, and where it was made."""

from __future__ import annotations

from dataclasses import dataclass

from powerlab.domain.device import Device

FORMAT = "powerlab-bundle"
VERSION = 1
MANIFEST, PLAN, RUNS, POINTS = "manifest.json", "plan.json", "runs.ndjson", "points.json"
TRACES, MODELS = "traces/", "models/"


def traces_member(run_id: str) -> str:
    """Return the name of the member with a run's traces: a chunk a line."""
    return f"{TRACES}{run_id}.ndjson"


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A file in the bundle.

    Attributes:
        name: its path there.
        size_bytes: before compression.
        sha256: of its content, in hex.
    """

    name: str
    size_bytes: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BundledModel:
    """A model of the plan.

    Attributes:
        name: the plan's word for it.
        kind: ``zoo`` (built by powerlab, its weights seeded), ``file`` or ``server``.
        sha256: of its bytes; empty for a zoo model, and for a file that was gone when the bundle was made.
        size_bytes: of the file; 0 where nobody knows.
        member: where it is in the bundle; empty where it is not.
        remark: in a sentence, what is to be known of it; empty where nothing is.
    """

    name: str
    kind: str
    sha256: str = ""
    size_bytes: int = 0
    member: str = ""
    remark: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """The machine that made the bundle: the one that measured, or one that only read.

    Attributes:
        powerlab: its version.
        python: its version.
        packages: ``name==version`` of everything installed there.
        kernel: its release.
        architecture: as the kernel names it.
        processor: as it names itself.
    """

    powerlab: str
    python: str
    packages: tuple[str, ...]
    kernel: str
    architecture: str
    processor: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a bundle says of itself.

    Attributes:
        format: :data:`FORMAT`.
        format_version: :data:`VERSION` of the powerlab that made it.
        sweep_id: the sweep.
        device: the device that was measured.
        made_on: the machine that made the bundle; software and clocks of the device itself are in each run.
        models: the models of the plan.
        members: every file but this one, by name.
    """

    format: str
    format_version: int
    sweep_id: str
    device: Device
    made_on: Environment
    models: tuple[BundledModel, ...]
    members: tuple[Member, ...]
