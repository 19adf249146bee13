"""The ``tegrastats`` of a simulated board; a copy lies in each Jetson's tree as ``usr/bin/tegrastats``.

It prints what the tree's own sensor files hold, in the form of the tree's JetPack: 4 without unit, 5 in ``mW``, 6 also
with a date at the head. It imports nothing of powerlab, so that it starts fast and the tree can be moved.
"""

import json
import re
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CPU = "sys/devices/system/cpu"
DEFAULT_INTERVAL_MS = 1000
EXIT_ERROR = 1


def read(path: Path) -> str:
    """Return a file's first line; the empty text where it is missing or its sensor does not answer."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            return file.readline().strip("\0 \n")
    except OSError:
        return ""


def number(path: Path) -> int:
    """Return the number in a file, 0 where there is none."""
    text = read(path)
    return int(text) if re.fullmatch(r"-?[0-9]+", text) else 0


def natural(path: Path) -> list[tuple[int, str]]:
    """Return a sort key that puts 9 before 10."""
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.findall(r"[0-9]+|[^0-9]+", str(path))]


def rails_mw() -> dict[str, int]:
    """Return the present power of every connected rail in mW, in the order of the chips' addresses."""
    found: dict[str, int] = {}
    drivers = ROOT / "sys/bus/i2c/drivers"
    for chip in sorted(drivers.glob("ina3221x/*/iio:device*"), key=natural):
        for index in range(3):
            found[read(chip / f"rail_name_{index}")] = number(chip / f"in_power{index}_input")
    for chip in sorted(drivers.glob("ina3221/*/hwmon/hwmon*"), key=natural):
        for index in (1, 2, 3):
            current_ma = number(chip / f"curr{index}_input")
            found[read(chip / f"in{index}_label")] = number(chip / f"in{index}_input") * current_ma // 1000
    return {name: power for name, power in found.items() if name not in ("", "NC")}


def cores() -> str:
    """Return ``[0%@1190,off]``: each core's load and clock in MHz. As many are busy as the workers say they keep."""
    directories = sorted((ROOT / CPU).glob("cpu[0-9]*"), key=natural)
    clocks: dict[str, int] = {}
    for policy in (ROOT / CPU / "cpufreq").glob("policy*"):
        for core in read(policy / "related_cpus").split():
            clocks[f"cpu{core}"] = number(policy / "scaling_cur_freq") // 1000
    busy = sum(int((read(path).split() or ["0"])[0]) for path in (ROOT / "simulation/load").glob("[0-9]*"))
    shown = []
    for directory in directories:
        if read(directory / "online") == "0":
            shown.append("off")
            continue
        shown.append(f"{100 if busy > 0 else 0}%@{clocks.get(directory.name, 0)}")
        busy -= 1
    return f"[{','.join(shown)}]"


def memory() -> str:
    """Return ``RAM used/allMB``; what is used is no part of the simulation, so a tenth of all is shown."""
    all_mb = int((read(ROOT / "proc/meminfo").split() or ["", "0"])[1]) // 1024
    return f"RAM {all_mb // 10}/{all_mb}MB (lfb 3x4MB) SWAP 0/{all_mb // 2}MB (cached 0MB)"


def temperatures() -> str:
    """Return ``CPU@36.5C`` for each thermal zone."""
    zones = sorted((ROOT / "sys/class/thermal").glob("thermal_zone*"), key=natural)
    named = ((re.sub(r"[-_]therm(al)?$", "", read(zone / "type")), number(zone / "temp")) for zone in zones)
    return " ".join(f"{name}@{value / 1000:g}C" for name, value in named if name)


def line(jetpack: int, powers_mw: dict[str, int], means_mw: dict[str, int]) -> str:
    """Return one line."""
    clock = time.localtime(time.time() + number(ROOT / "simulation/clock-offset"))
    head = time.strftime("%m-%d-%Y %H:%M:%S ", clock) if jetpack >= 6 else ""
    unit = "mW" if jetpack >= 5 else ""
    rails = " ".join(f"{name} {power}{unit}/{means_mw[name]}{unit}" for name, power in powers_mw.items())
    return f"{head}{memory()} CPU {cores()} EMC_FREQ 0% GR3D_FREQ 0% {temperatures()} {rails}"


def main(arguments: list[str]) -> int:
    """Print a line every interval until nobody reads."""
    interval_ms = DEFAULT_INTERVAL_MS
    if len(arguments) == 2 and arguments[0] == "--interval" and arguments[1].isdecimal() and int(arguments[1]) > 0:
        interval_ms = int(arguments[1])
    elif arguments:
        sys.stdout.write("usage: tegrastats [--interval <millisec>]\n")
        return EXIT_ERROR
    jetpack = int(json.loads((ROOT / "simulated-board.json").read_text(encoding="utf-8"))["jetpack"])
    sums_mw: dict[str, int] = {}
    count = 0
    try:
        while True:
            time.sleep(interval_ms / 1000)
            powers_mw = rails_mw()
            count += 1
            sums_mw = {name: sums_mw.get(name, 0) + power for name, power in powers_mw.items()}
            means_mw = {name: total // count for name, total in sums_mw.items()}
            sys.stdout.write(line(jetpack, powers_mw, means_mw) + "\n")
            sys.stdout.flush()
    except (BrokenPipeError, KeyboardInterrupt):
        return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
