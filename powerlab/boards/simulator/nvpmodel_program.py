"""The ``nvpmodel`` of a simulated board; a copy lies in each tree as ``usr/sbin/nvpmodel`` and works on that tree.

It says and does what the real one was seen to do: ``-q`` prints the mode after a warning about the fan, ``-m ID``
sets it, and a mode that changes the GPU's power-gating mask asks for a reboot; ``--boot`` is what the board's own
service does at each start. It imports nothing of powerlab, so that it starts fast and the tree can be moved.
"""

import os
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CPU = "/sys/devices/system/cpu"
FAULTS = "/simulation/faults"
REBOOT_FAULT = "reboot-prompt"
REBOOT = "/simulation/reboot"
STATUS = "/var/lib/nvpmodel/status"
MASK_ARGUMENT = "TPC_PG_MASK"
EXIT_ERROR = 255

Parameters = dict[tuple[str, str], str]
Values = list[tuple[str, str, str]]


def inside(path: str) -> Path:
    """Return where a path of the board lies."""
    return ROOT / path.lstrip("/")


def read(path: str) -> str:
    """Return a file's first line."""
    return inside(path).read_text(encoding="utf-8").partition("\n")[0].strip()


def write(path: str, value: str) -> None:
    """Write a file in place, as sysfs takes it: a reader never finds it empty."""
    handle = os.open(inside(path), os.O_WRONLY)
    try:
        os.ftruncate(handle, os.pwrite(handle, f"{value}\n".encode(), 0))
    finally:
        os.close(handle)


def parse(text: str) -> tuple[Parameters, dict[int, tuple[str, Values]]]:
    """Return the paths by (parameter, argument), and name and values of each mode by its number."""
    parameters: Parameters = {}
    modes: dict[int, tuple[str, Values]] = {}
    section, values = "", Values()
    for line in text.splitlines():
        if header := re.match(r"<\s*(PARAM|POWER_MODEL|PM_CONFIG)\s+(.*?)\s*>", line):
            fields = dict(field.split("=", 1) for field in header[2].split())
            section, values = fields.get("NAME", ""), []
            if header[1] == "POWER_MODEL":
                modes[int(fields["ID"])] = (section, values)
        elif (words := line.split()) and not line.startswith("#"):
            if len(words) == 2:
                parameters[section, words[0]] = words[1]
            else:
                values.append((words[0], words[1], words[2]))
    return parameters, modes


def nearest_not_above(path: str, value: str) -> str:
    """Return a clock of the table, as the kernel rounds a cap; -1 is the highest."""
    clocks = sorted(int(clock) for clock in read(path).split())
    allowed = [clock for clock in clocks if clock <= int(value)]
    return str(clocks[-1] if value == "-1" else allowed[-1] if allowed else clocks[0])


def follow_hotplug() -> None:
    """Bring the kernel's own lists of online cores up to date."""
    cores = sorted(int(path.name[3:]) for path in inside(CPU).glob("cpu[0-9]*"))
    # A core that cannot be taken offline has no such file.
    online = [c for c in cores if not inside(f"{CPU}/cpu{c}/online").exists() or read(f"{CPU}/cpu{c}/online") == "1"]
    write(f"{CPU}/online", ",".join(map(str, online)))
    write(f"{CPU}/offline", ",".join(str(core) for core in cores if core not in online))
    for policy in inside(f"{CPU}/cpufreq").glob("policy*"):
        related = read(f"{CPU}/cpufreq/{policy.name}/related_cpus").split()
        write(f"{CPU}/cpufreq/{policy.name}/affected_cpus", " ".join(c for c in related if int(c) in online))


def say(*lines: str) -> None:
    """Print lines."""
    sys.stdout.write("".join(line + "\n" for line in lines))


def present() -> int:
    """Return the number of the mode the board is in, -1 where none is set."""
    return int(read(STATUS).partition(":")[2] or -1)


def query(modes: dict[int, tuple[str, Values]]) -> int:
    """Print the mode the board is in."""
    say("NVPM WARN: fan mode is not set!")
    number = present()
    if number not in modes:
        say("NVPM ERROR: power mode is not set!")
        return EXIT_ERROR
    say(f"NV Power Mode: {modes[number][0]}", str(number))
    return 0


def set_mode(number: int, parameters: Parameters, modes: dict[int, tuple[str, Values]]) -> int:
    """Set a mode; the state that survives a boot is written last."""
    if number not in modes:
        say(f"NVPM ERROR: power mode {number} is not defined in /etc/nvpmodel.conf")
        return EXIT_ERROR
    values = modes[number][1]
    masked = (
        argument == MASK_ARGUMENT and read(parameters[name, argument]) != value for name, argument, value in values
    )
    if any(masked) or (REBOOT_FAULT in inside(FAULTS).read_text().split() and number != present()):
        say(
            "NVPM WARN: Golden image context is already created",
            "NVPM WARN: Reboot required for changing to this power mode: 1",
            "NVPM WARN: DO YOU WANT TO REBOOT NOW? enter YES/yes to confirm:",
        )
        if sys.stdin.readline().strip() not in {"YES", "yes"}:
            say("NVPM ERROR: optMask is 1, no request for power mode")
            return EXIT_ERROR
        write(STATUS, f"pmode:{number:04d}")
        inside(REBOOT).touch()
        return 0
    apply(values, parameters)
    write(STATUS, f"pmode:{number:04d}")
    return 0


def apply(values: Values, parameters: Parameters) -> None:
    """Write what a mode sets."""
    for name, argument, value in values:
        table = parameters.get((name, "FREQ_TABLE"))
        write(parameters[name, argument], nearest_not_above(table, value) if table else value)
    follow_hotplug()


def main(arguments: list[str]) -> int:
    """Do what the real program does for ``-q`` and ``-m ID``, and its service at a start."""
    parameters, modes = parse(inside("/etc/nvpmodel.conf").read_text(encoding="utf-8"))
    if arguments == ["--boot"]:
        apply(modes.get(present(), ("", []))[1], parameters)
        return 0
    if arguments == ["-q"]:
        return query(modes)
    if len(arguments) == 2 and arguments[0] == "-m" and arguments[1].isdigit():
        return set_mode(int(arguments[1]), parameters, modes)
    say("usage: nvpmodel -q | -m <mode id>")
    return EXIT_ERROR


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
