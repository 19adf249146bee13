"""``powerlab doctor`` in words and as JSON."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from powerlab.cli import EXIT_OK, EXIT_USAGE, main
from powerlab.cli.commands.doctor.document import document
from powerlab.cli.commands.doctor.report import print_report
from powerlab.sweep.host import Host
from powerlab.sysroot import Sysroot

Machine = Callable[[str], Sysroot]


def report(sysroot: Sysroot, width: int = 100) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    print_report(document(Host(sysroot=sysroot, state_dir=sysroot.path("/var/lib/powerlab"))), console)
    output = console.file
    assert isinstance(output, io.StringIO)
    return output.getvalue()


def doctor_json(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    assert main(["doctor", "--json", *arguments]) == EXIT_OK
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def test_denied_counters_come_with_a_command_that_can_be_copied(machine: Machine, deny: Callable[[str], None]) -> None:
    deny("/energy_uj")
    text = report(machine("xeon"), width=60)
    assert "! denied" in text
    assert "sudo chmod a+r /sys/class/powercap/intel-rapl:*/energy_uj" in text


def test_a_machine_with_nothing_says_that_there_will_be_no_watts(machine: Machine) -> None:
    text = report(machine("nothing"))
    assert "no watts" in text
    assert "never 0 W" in text


def test_rails_show_step_error_and_provenance(machine: Machine) -> None:
    text = report(machine("xeon"))
    line = next(line for line in text.splitlines() if "rapl:package-0/dram" in line)
    assert "61 µJ" in line
    assert "±20.0%" in line
    assert "1 ms" in line
    assert "measured" in line


def test_many_rails_are_cut_short_and_counted(machine: Machine) -> None:
    sysroot = machine("altra")
    for number in range(13, 30):
        for name, text in (("label", f"Core Energy {number:03d}"), ("input", "5")):
            sysroot.path(f"/sys/class/hwmon/hwmon2/energy{number}_{name}").write_text(text)
    assert "17 more" in report(sysroot)


def test_the_word_estimated_stands_beside_an_estimate(machine: Machine) -> None:
    text = report(machine("bare"))
    line = next(line for line in text.splitlines() if "estimate:host" in line)
    assert "estimated" in line
    assert "±60.0%" in line
    assert "memory of the host, estimated" in text


def test_json_of_this_machine(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    found = doctor_json(capsys)
    assert {"ina3221", "rapl", "hwmon", "nvml", "estimate"} <= {source["source"] for source in found["sources"]}
    assert {"nvpmodel", "cpufreq"} <= {knob["knob"] for knob in found["knobs"]}
    assert found["modes"][0]["name"] == "current"
    assert found["engine"]["tier"]
    assert found["device"]["simulated"] is False


def test_a_simulated_board_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    found = doctor_json(capsys, "--board", "jetson-agx-xavier")
    assert found["device"]["simulated"] is True
    assert found["total_provenance"] == "simulated"
    assert len(found["total"]["rails"]) == 6
    assert "MAXN" in {mode["name"] for mode in found["modes"]}


def test_a_system_root(capsys: pytest.CaptureFixture[str], machine: Machine) -> None:
    assert main(["doctor", "--sysroot", str(machine("orin").base)]) == EXIT_OK
    out = capsys.readouterr().out
    assert "jetson-agx-orin" in out
    assert "VDD_GPU_SOC" in out


@pytest.mark.parametrize("arguments", [["--board", "no-such-board"], ["--sysroot", "/no/such/folder"]])
def test_bad_requests_are_one_sentence(capsys: pytest.CaptureFixture[str], arguments: list[str]) -> None:
    assert main(["doctor", *arguments]) == EXIT_USAGE
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert arguments[1] in captured.err
