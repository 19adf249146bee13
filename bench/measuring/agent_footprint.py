"""What an idle agent takes: memory and processor time of a real agent that waits at a real server.

    python -m bench.measuring.agent_footprint [--seconds 60] [--sweep]

Prints resident set, proportional set and processor time as the kernel counts them (proc_pid_smaps(5) and
proc_pid_stat(5)). The bounds are 45 MB resident and 0.1 % of a core. ``--sweep`` lets the agent measure a short sweep
of a simulated board first, for what it keeps of that: at most 70 MB.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

BOUND_MB, BOUND_AFTER_SWEEP_MB, BOUND_PERCENT = 45.0, 70.0, 0.1
_POWERLAB = [sys.executable, "-m", "powerlab.cli"]


@contextmanager
def idle_agent(folder: Path, sweep: bool = False) -> Iterator[psutil.Process]:
    """Yield an agent of a simulated board that has told the server of itself, and has nothing to do."""
    from powerlab.boards.simulator.process import running
    from powerlab.boards.simulator.tree import create_tree

    create_tree("jetson-agx-xavier", folder / "tree")
    database = ["--database", str(folder / "powerlab.db")]
    with (
        subprocess.Popen([*_POWERLAB, "serve", "--port", "0", *database], stdout=subprocess.PIPE, text=True) as server,
        running(folder / "tree") as sysroot,
    ):
        agent = None
        try:
            address = _said(server).split()[-1]
            code = _said(server).split()[-1]
            state = ["--state", str(folder / "state")]
            enrol = [
                "agent",
                "enrol",
                "--server",
                address,
                "--code",
                code,
                "--sysroot",
                str(sysroot.base),
                "--name",
                "x",
            ]
            subprocess.run([*_POWERLAB, *enrol, *state], check=True, capture_output=True)
            log = subprocess.PIPE
            agent = subprocess.Popen([*_POWERLAB, "agent", "run", *state], stderr=log, text=True)
            _wait_for(agent, "check helper")
            if sweep:
                plan = ["mobilenetv2", "--threads", "1", "--duration", "0.5", "--warm-up", "0.1", "--idle", "0.2"]
                create = ["sweep", "create", *plan, "--device", "x", "--server", address]
                subprocess.run([*_POWERLAB, *create], check=True, capture_output=True)
                _wait_for(agent, " is done")
            time.sleep(0.5)
            yield psutil.Process(agent.pid)
        finally:
            for process in filter(None, (agent, server)):
                process.kill()
            if agent is not None:
                agent.communicate()


def _said(process: subprocess.Popen[str]) -> str:
    return process.stdout.readline() if process.stdout else ""


def _wait_for(agent: subprocess.Popen[str], words: str) -> None:
    """Read the agent's log until it says something."""
    read: list[str] = []
    while agent.stderr and (line := agent.stderr.readline()):
        read.append(line)
        if words in line:
            return
    raise RuntimeError(f"the agent ended: {''.join(read)}")


def memory_mb(process: psutil.Process) -> dict[str, float]:
    """Return the resident and the proportional set, in MB of 1,000,000 bytes."""
    text = Path(f"/proc/{process.pid}/smaps_rollup").read_text()
    found = {name: re.search(rf"^{name}:\s+(\d+) kB", text, re.MULTILINE) for name in ("Rss", "Pss")}
    return {name.lower(): int(match[1]) * 1024 / 1e6 for name, match in found.items() if match}


def cpu_s(process: psutil.Process) -> float:
    """Return the processor time of all threads so far."""
    times = process.cpu_times()
    return times.user + times.system


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seconds", type=float, default=60.0, help="how long to watch (default: 60)")
    parser.add_argument("--sweep", action="store_true", help="after a short sweep")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    bound_mb = BOUND_AFTER_SWEEP_MB if args.sweep else BOUND_MB
    with tempfile.TemporaryDirectory() as folder, idle_agent(Path(folder), args.sweep) as agent:
        before_s, began_s = cpu_s(agent), time.monotonic()
        time.sleep(args.seconds)
        used_s, passed_s = cpu_s(agent) - before_s, time.monotonic() - began_s
        memory = memory_mb(agent)
    percent = 100 * used_s / passed_s
    if args.json:
        print(json.dumps({"rss_mb": memory["rss"], "pss_mb": memory["pss"], "cpu_s": used_s, "cpu_percent": percent}))
    else:
        print(f"resident      {memory['rss']:.1f} MB (bound: {bound_mb:g})")
        print(f"proportional  {memory['pss']:.1f} MB")
        print(f"processor     {used_s:.3f} s in {passed_s:.1f} s, {percent:.3f} % of a core (bound: {BOUND_PERCENT:g})")
    return 0 if memory["rss"] <= bound_mb and percent <= BOUND_PERCENT else 1


if __name__ == "__main__":
    sys.exit(main())
