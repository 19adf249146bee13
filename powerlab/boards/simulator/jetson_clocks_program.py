"""The ``jetson_clocks`` of a simulated Jetson; a copy lies in each tree as ``usr/bin/jetson_clocks`` and works on it.

It does what NVIDIA documents: without an option it raises the lower limit of every clock to its upper one, forbids the
CPU's idle states and pins the memory clock; ``--store`` keeps the settings in a file, ``--restore`` puts them back,
``--show`` prints them. It imports nothing of powerlab, so that it starts fast and the tree can be moved.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CPU = "/sys/devices/system/cpu"
DEFAULT_FILE = "/root/l4t_dfs.conf"
EMC_CAPS = ("/sys/kernel/nvpmodel_clk_cap/emc", "/sys/kernel/nvpmodel_emc_cap/emc_iso_cap")
BPMP = "/sys/kernel/debug/bpmp/debug/clk/emc"
CLK = "/sys/kernel/debug/clk"
BWMGR = "/sys/kernel/debug/tegra_bwmgr"
EMC_FILES = (
    {"min": f"{BPMP}/min_rate", "max": f"{BPMP}/max_rate", "now": f"{BPMP}/rate", "set": f"{BPMP}/rate",
     "pin": f"{BPMP}/mrq_rate_locked"},
    {"min": f"{BWMGR}/emc_min_rate", "max": f"{BWMGR}/emc_max_rate", "now": f"{CLK}/emc/clk_rate",
     "set": f"{CLK}/override.emc/clk_update_rate", "pin": f"{CLK}/override.emc/clk_state"},
)  # fmt: skip
EXIT_ERROR = 1


def inside(path: str) -> Path:
    """Return where a path of the board lies."""
    return ROOT / path.lstrip("/")


def read(path: str) -> str:
    """Return a file's first line."""
    return inside(path).read_text(encoding="utf-8").partition("\n")[0].strip("\0 ")


def write(path: str, value: str) -> None:
    """Write a file in place, as sysfs takes it: a reader never finds it empty."""
    handle = os.open(inside(path), os.O_WRONLY)
    try:
        os.ftruncate(handle, os.pwrite(handle, f"{value}\n".encode(), 0))
    finally:
        os.close(handle)


def say(*lines: str) -> None:
    """Print lines."""
    sys.stdout.write("".join(line + "\n" for line in lines))


def numbered(pattern: str) -> list[str]:
    """Return the paths that match, by their number."""
    found = ["/" + str(path.relative_to(ROOT)) for path in ROOT.glob(pattern.lstrip("/"))]
    return sorted(found, key=lambda path: [int(number) for number in re.findall(r"\d+", path)])


def cores() -> list[str]:
    """Return the directories of all cores."""
    return numbered(f"{CPU}/cpu[0-9]*")


def policies() -> list[str]:
    """Return the clusters' directories."""
    return numbered(f"{CPU}/cpufreq/policy[0-9]*")


def gpus() -> list[str]:
    """Return the directories of the GPUs' clocks."""
    return numbered("/sys/class/devfreq/*.g*")


def emc() -> dict[str, str]:
    """Return the memory clock's files by what they do; none where this kernel shows none."""
    return next((files for files in EMC_FILES if inside(files["pin"]).exists()), {})


def settings() -> list[str]:
    """Return every file that the program changes, limits in an order in which they can be put back."""
    found = [f"{core}/online" for core in cores() if inside(f"{core}/online").exists()]
    found += [path for core in cores() for path in numbered(f"{core}/cpuidle/state*/disable")]
    found += [f"{policy}/scaling_{name}" for policy in policies() for name in ("min_freq", "max_freq", "governor")]
    found += [f"{gpu}/{name}_freq" for gpu in gpus() for name in ("min", "max")]
    return found + [emc()[name] for name in ("set", "pin") if emc()]


def pin() -> int:
    """Raise every clock to the highest that its limits allow and forbid idle states."""
    for policy in policies():
        write(f"{policy}/scaling_min_freq", read(f"{policy}/scaling_max_freq"))
    for core in cores():
        for disable in numbered(f"{core}/cpuidle/state*/disable"):
            write(disable, "1")
    for gpu in gpus():
        write(f"{gpu}/min_freq", read(f"{gpu}/max_freq"))
    if files := emc():
        caps = [int(read(path)) for path in EMC_CAPS if inside(path).exists()]
        most = min([int(read(files["max"])), *(cap for cap in caps if cap > 0)])
        write(files["set"], str(most))
        write(files["pin"], "1")
    return 0


def store(file: Path) -> int:
    """Keep the settings; an existing file is only replaced when somebody says so."""
    if file.exists():
        sys.stdout.write(f"File {file} already exists. Can I overwrite it? Y/N:")
        sys.stdout.flush()
        if sys.stdin.readline().strip().lower() not in {"y", "yes"}:
            say("", "Error: file is not saved!")
            return EXIT_ERROR
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(f"{path}:{read(path)}\n" for path in settings()), encoding="utf-8")
    return 0


def restore(file: Path) -> int:
    """Put kept settings back."""
    if not file.exists():
        say(f"Error: {file} file not found !")
        return EXIT_ERROR
    for line in file.read_text(encoding="utf-8").splitlines():
        path, _, value = line.rpartition(":")
        if path and inside(path).exists():
            write(path, value)
    return 0


def show() -> int:
    """Print the settings as the real program does."""
    compatible = (ROOT / "proc/device-tree/compatible").read_text(encoding="utf-8").split("\0")
    soc = next((text for text in reversed(compatible) if "tegra" in text), "nvidia,unknown")
    say(f"SOC family:{soc.removeprefix('nvidia,')}  Machine:{read('/proc/device-tree/model')}")
    say(f"Online CPUs: {read(f'{CPU}/online')}, Offline CPUs: {read(f'{CPU}/offline')}")
    for core in cores():
        states = " ".join(
            f"{read(path.replace('disable', 'name'))}={1 - int(read(path))}"
            for path in numbered(f"{core}/cpuidle/state*/disable")
        )
        limits = limits_of(f"{core}/cpufreq/scaling_", "min_freq", "max_freq", "cur_freq")
        governor = read(f"{core}/cpufreq/scaling_governor")
        say(f"{core.rpartition('/')[2]}:  Governor={governor} {limits} IdleStates: {states}")
    for gpu in gpus():
        say(f"GPU {limits_of(f'{gpu}/', 'min_freq', 'max_freq', 'cur_freq')}")
    if files := emc():
        say(f"EMC {limits_of('', files['min'], files['max'], files['now'])} FreqOverride={read(files['pin'])}")
    query = subprocess.run([inside("/usr/sbin/nvpmodel"), "-q"], capture_output=True, text=True, check=False)
    say(*(line for line in query.stdout.splitlines() if line.startswith("NV Power Mode")))
    return 0


def limits_of(stem: str, low: str, high: str, now: str) -> str:
    """Return a clock's limits and what it runs at, in the driver's unit."""
    return f"MinFreq={read(stem + low)} MaxFreq={read(stem + high)} CurrentFreq={read(stem + now)}"


def main(arguments: list[str]) -> int:
    """Do what the real program does for no option, ``--show``, ``--store [FILE]`` and ``--restore [FILE]``."""
    option, *rest = arguments or [""]
    file = Path(rest[0]) if rest else inside(DEFAULT_FILE)
    if option in {"", "--fan"} and not rest:
        return pin()
    if option == "--show" and not rest:
        return show()
    if option in {"--store", "--restore"} and len(rest) <= 1:
        return store(file) if option == "--store" else restore(file)
    say("usage: jetson_clocks [--show | --store [FILE] | --restore [FILE] | --fan]")
    return EXIT_ERROR


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
