"""The device a sweep runs on: this machine, or a simulated board behind a sysroot."""

from __future__ import annotations

import platform
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from powerlab.boards.processor import cpu_model
from powerlab.boards.registry import detect
from powerlab.domain.device import Capabilities, Device
from powerlab.domain.order import Stage
from powerlab.domain.phase import RunPhase
from powerlab.domain.temperature import NO_LIMITS, TemperatureLimits
from powerlab.domain.workload import WorkloadKind
from powerlab.modes.controller import ModeController
from powerlab.power.registry import probe_all
from powerlab.power.total import choose_total
from powerlab.sweep.facts import kernel_release, memory_bytes, online_cores, usable_cores
from powerlab.sysroot import Sysroot
from powerlab.throttling.temperatures import watched_zones

if TYPE_CHECKING:
    # With NumPy, which an agent that waits for work would keep 22 MB of.
    from powerlab.measure.labelled_images import LabelledImages
    from powerlab.sweep.cluster.leader import Cluster


def unheard(_phase: RunPhase, _left_s: float | None) -> None:
    """Announce a phase to nobody."""


@dataclass(slots=True, kw_only=True)
class Host:
    """Where a sweep runs.

    Attributes:
        state_dir: where the mode journal lies; it must survive a crash.
        sysroot: the machine itself, or a simulated board.
        name: what people call the device; None takes the host's own name.
        model_files: where the models lie that plans name by their SHA-256, by the plan's word for them.
        labelled_images: images to say the accuracy of every engine and precision with; None where nobody gave any.
        may_reboot: whether somebody reboots the device when a sweep asks for it (:class:`RebootNeeded`).
        temperature_limits: what the device is held to in every sweep, beside what a plan asks for.
        stages: what is left of a sweep that an earlier boot has begun; None where none has.
        refused: power modes that cannot be had in that sweep, and why.
        nodes: the other devices of a cluster that a sweep runs on; None where there are none.
        announce: is told of each phase before it begins, and how long it takes, about, in s (None where nobody can
            say); the phase waits until it returns.
    """

    state_dir: Path
    sysroot: Sysroot = field(default_factory=Sysroot)
    name: str | None = None
    model_files: Mapping[str, str] = field(default_factory=dict)
    labelled_images: LabelledImages | None = None
    may_reboot: bool = False
    temperature_limits: TemperatureLimits = NO_LIMITS
    stages: tuple[Stage, ...] | None = None
    refused: Mapping[str, str] = field(default_factory=dict)
    nodes: Cluster | None = None
    announce: Callable[[RunPhase, float | None], None] = unheard
    controller: ModeController = field(init=False)

    def __post_init__(self) -> None:
        self.controller = ModeController(self.sysroot, self.state_dir)

    def device(self) -> Device:
        """Describe the device: its board, and the cores a sweep may use there."""
        board = detect(self.sysroot)
        simulated = self.sysroot.simulated
        own_cores = board.core_count if simulated else None
        return Device(
            name=self.name or (f"simulated-{board.name}" if simulated else platform.node()),
            board=board.name,
            architecture=platform.machine(),
            cpu_model=cpu_model(self.sysroot),
            core_count=own_cores or usable_cores(self.sysroot),
            memory_bytes=memory_bytes(self.sysroot),
            kernel=kernel_release(self.sysroot),
            simulated=simulated,
        )

    def capabilities(self, named: Iterable[str] = ()) -> Capabilities:
        """Probe every power source and list the modes that can be set now.

        While cores are offline, a mode that switches none has those that are online.

        Args:
            named: modes to list beside those that are offered, for example ``cores=3+cpu-max=1190400kHz``; what the
                device does not know is left out.

        Raises:
            PowerlabError: a named mode is impossible on this device.
        """
        probes = probe_all(self.sysroot)
        modes, online = self.controller.modes(), online_cores(self.sysroot)
        offered = {mode.name for mode in modes}
        more = (self.controller.find(name) for name in named if name not in offered)
        modes += tuple(mode for mode in more if mode is not None)
        if online is not None and online < self.device().core_count:
            modes = tuple(mode if mode.online_cores else replace(mode, online_cores=online) for mode in modes)
        total = choose_total(probes, detect(self.sysroot))
        return Capabilities(
            sources=probes,
            total=total,
            modes=modes,
            may_reboot=self.may_reboot,
            thermal_zones=watched_zones(self.sysroot),
            temperature_limits=self.temperature_limits,
            workloads=tuple(WorkloadKind),
            recomputes=True,
            trains_on_gpu=True,
            knows_queues=True,
            clusters=True,
        )
