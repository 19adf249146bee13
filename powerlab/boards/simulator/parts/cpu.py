"""The CPU's knobs: hotplug, cpufreq policies, idle states (kernel, admin-guide/cputopology, pm/cpufreq, pm/cpuidle)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from powerlab.boards.board import Board
from powerlab.boards.simulator import layout
from powerlab.boards.simulator.clusters import Policy, core_numbers, policies_of
from powerlab.boards.simulator.parts.base import Files, Moment, Part
from powerlab.boards.simulator.parts.cpu_time import PATH, CpuTime
from powerlab.boards.simulator.start import start_settings
from powerlab.boards.simulator.state import PolicyState

CPUFREQ = f"{layout.CPU}/cpufreq"


class Cpu(Part):
    """Hotplug, clocks and idle states.

    Table: ``clusters``, ``governors``, ``governor``, ``driver``; where the board has them ``preferences`` and
    ``preference`` (of energy), ``idle_states``, ``table = false`` for a driver that lists no clocks, and
    ``fixed_cores``, which cannot be taken offline.
    """

    def __init__(self, board: Board, table: Mapping[str, Any], variant: str) -> None:
        """Boot."""
        super().__init__(board, table, variant)
        self._time = CpuTime(core_numbers(layout.simulation_of(board.name)))

    def files(self, idle_w: Mapping[str, float]) -> Files:  # noqa: ARG002
        """Yield the files under ``/sys/devices/system/cpu``, and the processor time."""
        simulation = layout.simulation_of(self.board.name)
        settings = start_settings(self.board, simulation, self.jetpack)
        cores, online = core_numbers(simulation), settings.online_cores
        yield PATH, self._time.text(online)
        yield f"{layout.CPU}/online", _listed(online)
        yield f"{layout.CPU}/offline", _listed(core for core in cores if core not in online)
        yield f"{layout.CPU}/present", f"{cores[0]}-{cores[-1]}"
        yield f"{layout.CPU}/possible", f"{cores[0]}-{cores[-1]}"
        for state in settings.policies:
            for position, core in enumerate(state.policy.cores):
                yield from self._core_files(state, position, core)
            yield from self._policy_files(state)

    def _core_files(self, state: PolicyState, position: int, core: int) -> Files:
        directory = f"{layout.CPU}/cpu{core}"
        if core not in self.table.get("fixed_cores", ()):
            yield f"{directory}/online", str(int(core in state.online_cores))
        yield f"{directory}/topology/core_id", str(position)
        yield f"{directory}/topology/physical_package_id", str(state.policy.cluster.package)
        for number, name in enumerate(self.table.get("idle_states", ())):
            yield f"{directory}/cpuidle/state{number}/name", name
            yield f"{directory}/cpuidle/state{number}/disable", "0"

    def _policy_files(self, state: PolicyState) -> Files:
        policy, clocks = state.policy, state.policy.cluster.freqs_khz
        directory = f"{CPUFREQ}/{policy.name}"
        low_khz = min(policy.cluster.low_khz, state.busy_khz)
        yield f"{directory}/affected_cpus", " ".join(map(str, state.online_cores))
        yield f"{directory}/related_cpus", " ".join(map(str, policy.cores))
        yield f"{directory}/cpuinfo_min_freq", str(clocks[0])
        yield f"{directory}/cpuinfo_max_freq", str(clocks[-1])
        yield f"{directory}/cpuinfo_transition_latency", "300000"
        if self.table.get("table", True):
            yield f"{directory}/scaling_available_frequencies", " ".join(map(str, clocks))
        yield f"{directory}/scaling_available_governors", " ".join(self.table["governors"])
        yield f"{directory}/scaling_cur_freq", str(state.idle_khz)
        yield f"{directory}/scaling_driver", self.table["driver"]
        yield f"{directory}/scaling_governor", self.table["governor"]
        yield f"{directory}/scaling_min_freq", str(low_khz)
        yield f"{directory}/scaling_max_freq", str(state.busy_khz)
        yield f"{directory}/scaling_setspeed", "<unsupported>"
        if "preferences" in self.table:
            yield f"{directory}/energy_performance_available_preferences", " ".join(self.table["preferences"])
            yield f"{directory}/energy_performance_preference", self.table["preference"]

    def links(self) -> Iterator[tuple[str, str]]:
        """Yield each core's link to its policy."""
        for policy in policies_of(layout.simulation_of(self.board.name)):
            for core in policy.cores:
                yield f"{layout.CPU}/cpu{core}/cpufreq", f"../cpufreq/{policy.name}"

    def tick(self, moment: Moment) -> None:
        """Count processor time, keep the kernel's own lists of online cores up to date, and show the clocks."""
        online = moment.settings.online_cores
        in_order = [core for state in moment.settings.policies for core in state.online_cores]
        self._time.pass_time(in_order, moment.state, moment.passed_s)
        if not moment.looked:
            return
        layout.rewrite(self.sysroot.path(PATH), self._time.text(online))
        policies = moment.settings.policies
        cores = sorted(core for state in policies for core in state.policy.cores)
        layout.put(self.sysroot, f"{layout.CPU}/online", _listed(online))
        layout.put(self.sysroot, f"{layout.CPU}/offline", _listed(core for core in cores if core not in online))
        cores_left = moment.state.busy_threads
        for state in policies:
            working = min(cores_left, len(state.online_cores))
            cores_left -= working
            layout.put(self.sysroot, _file(state.policy, "affected_cpus"), " ".join(map(str, state.online_cores)))
            clock_khz = state.busy_khz if working else state.idle_khz
            layout.put(self.sysroot, _file(state.policy, "scaling_cur_freq"), str(clock_khz))


def _file(policy: Policy, name: str) -> str:
    return f"{CPUFREQ}/{policy.name}/{name}"


def _listed(cores: Iterator[int] | tuple[int, ...]) -> str:
    return ",".join(map(str, cores))
