"""The ``ipmitool`` of a simulated server; a copy lies in its tree as ``usr/bin/ipmitool``.

It answers ``dcmi power reading`` as the real one prints it, from what the simulated controller leaves in
``/simulation/ipmi``: whether it measures, and its present, least, most and mean power in W. It imports nothing of
powerlab, so that the tree can be moved.
"""

import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
QUESTION = ["dcmi", "power", "reading"]
TITLES = (
    "Instantaneous power reading:",
    "Minimum during sampling period:",
    "Maximum during sampling period:",
    "Average power reading over sample period:",
)
EXIT_ERROR = 1


def main(arguments: list[str]) -> int:
    """Print the power reading."""
    if arguments != QUESTION:
        sys.stdout.write("Invalid command: a simulated controller knows `dcmi power reading` alone\n")
        return EXIT_ERROR
    if not (ROOT / "dev/ipmi0").exists():
        sys.stderr.write(
            "Could not open device at /dev/ipmi0 or /dev/ipmi/0 or /dev/ipmidev/0: No such file or directory\n"
        )
        return EXIT_ERROR
    state, *powers_w = (ROOT / "simulation/ipmi").read_text(encoding="utf-8").partition("\n")[0].split()
    lines = [f"    {title:<41} {int(power):8d} Watts" for title, power in zip(TITLES, powers_w, strict=True)]
    lines += [
        f"    {'IPMI timestamp:':<41} {time.strftime('%m/%d/%Y %H:%M:%S UTC', time.gmtime())}",
        f"    {'Sampling period:':<41} 00000001 Seconds.",
        f"    {'Power reading state is:':<41} {state}",
    ]
    sys.stdout.write("\n" + "\n".join(lines) + "\n\n\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
