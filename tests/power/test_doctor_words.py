"""What the doctor says at first sight, what it says last, and that it says the same again."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from powerlab.cli import EXIT_OK, EXIT_USAGE, main
from powerlab.cli.commands.doctor import document as doctor_document
from powerlab.cli.commands.doctor.document import document
from powerlab.cli.commands.doctor.report import print_report
from powerlab.cli.output.page import counted, scaled, some
from powerlab.modes.undo.journal import Entry, Journal, place_of
from powerlab.sweep.host import Host
from powerlab.sysroot import Sysroot

Machine = Callable[[str], Sysroot]
Tree = Callable[[Mapping[str, object]], Sysroot]
WIDTH = 100


def host(sysroot: Sysroot) -> Host:
    return Host(sysroot=sysroot, state_dir=sysroot.path("/var/lib/powerlab"), name="bench-7")


def report(sysroot: Sysroot, watch_s: float | None = None, width: int = WIDTH, *, everything: bool = False) -> str:
    output = io.StringIO()
    print_report(document(host(sysroot), watch_s), Console(file=output, width=width), everything=everything)
    return output.getvalue()


def section(text: str, title: str) -> list[str]:
    """Return the lines of a section; one that begins without indentation ends it."""
    lines = iter(text.splitlines())
    for line in lines:
        if line == title:
            break
    found = []
    for line in lines:
        if line and not line.startswith(" "):
            break
        found.append(line)
    return found


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("xeon", "Power is measured here."),
        ("bare", "Power is only estimated here, because no sensor can be read."),
        ("nothing", "Nothing here can be read for power: runs will carry no watts, and never 0 W."),
    ],
)
def test_the_first_sentence_says_where_watts_come_from(machine: Machine, name: str, words: str) -> None:
    assert words in " ".join(report(machine(name)).split())


def test_a_card_in_a_virtual_machine_is_told_of_beside_the_estimate(machine: Machine) -> None:
    """As rented servers are: the host keeps its counters to itself, the card does not."""
    machine("bare")
    text = " ".join(report(machine("amdgpu")).split())
    assert "The host's power is only estimated here; that of its graphics cards is measured" in text
    assert "estimated from load: no sensor of it can be read; without graphics cards" in text
    assert "on cards amdgpu:GPU0: graphics cards alone, as their own sensors say" in text


def test_graphics_inside_a_processor_are_no_card(machine: Machine) -> None:
    machine("bare")
    text = " ".join(report(machine("apu")).split())
    assert "APU0" in text
    assert "Power is only estimated here" in text
    assert "on cards" not in text


def test_what_could_work_is_counted_at_the_top_and_told_at_the_end(
    machine: Machine, deny: Callable[[str], None]
) -> None:
    deny("/energy_uj")
    text = report(machine("xeon"))
    assert "1 thing could work and does not: see the end." in text
    assert section(text, "What you can do")[0].startswith("  rapl: ")


def test_a_line_of_the_owners_modes_that_cannot_be_used_is_one_of_those_things(
    machine: Machine, deny: Callable[[str], None]
) -> None:
    deny("/energy_uj")
    sysroot = machine("xeon")
    sysroot.path("/etc/powerlab").mkdir(parents=True)
    sysroot.path("/etc/powerlab/modes.toml").write_text('[modes]\nquiet = "warp=9"\n')
    text = report(sysroot)
    assert "2 things could work and do not: see the end." in " ".join(text.split())
    assert section(text, "What you can do")[-1].startswith("  power modes: fix /etc/powerlab/modes.toml: it says quiet")


def test_a_meters_total_is_not_said_to_be_a_boards_own_formula(machine: Machine) -> None:
    found = document(host(machine("xeon")))
    found["total"] |= {"rails": ["meter:wall"], "proposed": False}
    output = io.StringIO()
    print_report(found, Console(file=output, width=WIDTH))
    (line,) = (line for line in section(output.getvalue(), "Board power") if "formula" in line)
    assert "the external meter alone" in line


@pytest.mark.parametrize("name", ["xeon", "altra", "orin", "xavier-jp4", "grace", "nothing"])
@pytest.mark.parametrize("watch_s", [None, 0.01])
def test_no_line_is_wider_than_the_page_or_ends_in_blanks(machine: Machine, name: str, watch_s: float | None) -> None:
    text = report(machine(name), watch_s)
    told = section(text, "What you can do")  # commands are not wrapped
    for line in text.splitlines():
        assert line == line.rstrip()
        assert len(line) <= WIDTH or line in told


def test_what_works_comes_first(machine: Machine) -> None:
    lines = section(report(machine("power-meter")), "What can be measured")
    assert lines[0].split()[:3] == ["hwmon", "✓", "available"]
    states = [line.split()[1] for line in lines if line[2:3].isalpha() and line.split()[1] in "✓!✗–"]
    assert states == sorted(states, key="✓!✗–".index)


def test_a_static_tree_gives_the_same_report_every_time(machine: Machine) -> None:
    sysroot = machine("xeon")
    assert document(host(sysroot)) == document(host(sysroot))
    assert report(sysroot) == report(sysroot)


def test_the_document_is_json_and_keeps_its_keys(machine: Machine) -> None:
    found = json.loads(json.dumps(document(host(machine("orin")))))
    assert {"device", "engine", "sources", "total", "total_provenance", "knobs", "modes"} <= set(found)
    assert {"journal", "watches", "watched", "watched_s", "cross_check"} <= set(found)


def test_an_offset_is_shown(machine: Machine) -> None:
    line = next(line for line in report(machine("orin")).splitlines() if "ina3221:VDD_CPU_CV" in line)
    assert "240 mW" in line
    assert "±480 mW" in line


def test_names_from_files_are_printed_as_they_are(tree: Tree) -> None:
    chip = "/sys/class/hwmon/hwmon0"
    sysroot = tree({f"{chip}/name": "odd", f"{chip}/power1_label": "[red]a:b", f"{chip}/power1_input": 5000000})
    assert "hwmon:odd [red]a:b" in report(sysroot)


def entry(mode: str) -> Entry:
    return Entry(mode=mode, boot_id="", pid=4242, previous=(), target=())


def test_a_mode_that_waits_to_be_put_back_is_told_with_the_command(machine: Machine) -> None:
    sysroot = machine("xeon")
    Journal(place_of(sysroot, host(sysroot).state_dir) / "journal.json").write(entry("MODE_15W"))
    text = report(sysroot)
    assert "process 4242 set MODE_15W and has not restored the previous settings yet" in " ".join(text.split())
    assert "modes: `powerlab modes restore` puts the old settings back" in text


def test_a_mode_set_to_stay_is_told(machine: Machine) -> None:
    sysroot = machine("xeon")
    Journal(place_of(sysroot, host(sysroot).state_dir) / "undo.json").write(entry("governor=powersave"))
    assert "governor=powersave is set until it is restored" in " ".join(report(sysroot).split())


def test_a_damaged_journal_is_part_of_the_report(machine: Machine) -> None:
    sysroot = machine("xeon")
    place = place_of(sysroot, host(sysroot).state_dir)
    place.mkdir(parents=True)
    (place / "journal.json").write_text("half a jour")
    found = document(host(sysroot))
    assert "damaged" in found["journal"]["problem"]
    assert os.listdir(place) == ["journal.damaged"]


def test_a_program_that_disagrees_with_the_rails_is_told(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "tegrastats says" not in report(machine("orin-nano"))
    sentence = "tegrastats says 9.000 W for VDD_IN, but ina3221 reads 4.758 W"
    monkeypatch.setattr(doctor_document, "cross_check", lambda _sysroot: (sentence,))
    text = report(Sysroot(machine("nothing").base))
    assert sentence in " ".join(text.split())


def test_what_is_not_here_is_one_line_unless_asked_for(machine: Machine) -> None:
    sysroot = machine("xeon")
    short, long = report(sysroot), report(sysroot, everything=True)
    assert "Not available: ina3221," in short
    assert "no INA3221 power monitor" not in short
    assert "Not available:" not in long
    assert "no INA3221 power monitor" in long


def test_who_has_no_sensor_is_told_why(machine: Machine) -> None:
    assert "no INA3221 power monitor" in report(machine("bare"))


def test_every_rail_is_listed_when_asked_for(machine: Machine) -> None:
    sysroot = machine("altra")
    for number in range(13, 30):
        for name, text in (("label", f"Core Energy {number:03d}"), ("input", "5")):
            sysroot.path(f"/sys/class/hwmon/hwmon2/energy{number}_{name}").write_text(text)
    assert "hwmon:Core Energy 029" not in report(sysroot).split("Board power")[0]
    assert "hwmon:Core Energy 029" in report(sysroot, everything=True).split("Board power")[0]


def test_watching_shows_what_is_stated_and_what_is_seen(machine: Machine) -> None:
    lines = section(report(machine("xeon"), 0.05), "What the rails were seen to do in 50 ms")
    row = next(line for line in lines if "rapl:package-0 " in line)
    assert "1 ms" in row
    assert "too few changes" in row
    assert "µs" in row
    assert any(line.startswith("  Never changed: rapl:package-0,") for line in lines)


def test_watching_is_in_the_document_with_every_rail(machine: Machine) -> None:
    found = document(host(machine("xeon")), 0.05)
    assert found["watched_s"] == 0.05
    assert len(found["watched"]) == 6
    for one in found["watched"]:
        assert one["stated_period_s"] == one["reckoned_period_s"] == 0.001
        assert one["update_period_s"] is None
        assert one["readings"] > 0
        assert one["failed_reads"] == 0


def test_with_nothing_to_watch_it_says_so(machine: Machine) -> None:
    assert "There is no rail to watch." in report(machine("nothing"), 0.01)


def test_a_slower_sensor_than_it_says_is_pointed_out(capsys: pytest.CaptureFixture[str]) -> None:
    moving = []
    for seconds in ("1", "5", "20"):  # a busy machine moves the simulated sensors late
        assert main(["doctor", "--board", "jetson-agx-xavier", "--watch", seconds, "--json"]) == EXIT_OK
        found = json.loads(capsys.readouterr().out)
        moving = [one for one in found["watched"] if one["values"] > 3]
        if moving:
            break
    assert moving
    for one in moving:
        assert one["reckoned_period_s"] >= one["stated_period_s"]


@pytest.mark.parametrize("seconds", ["0", "-1", "nan", "inf", "1e9", "soon"])
def test_a_time_that_cannot_be_watched_is_refused(capsys: pytest.CaptureFixture[str], seconds: str) -> None:
    assert main(["doctor", f"--watch={seconds}"]) == EXIT_USAGE
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.count("\n") == 1
    assert "--watch" in captured.err


def test_the_options_are_told(machine: Machine, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["doctor", "--sysroot", str(machine("xgene").base), "--watch", "0.01"]) == EXIT_OK
    assert "What the rails were seen to do in 10 ms" in capsys.readouterr().out


@given(st.floats(1e-12, 1e12), st.sampled_from(["J", "W", "s"]))
def test_a_scaled_figure_is_the_figure(value: float, unit: str) -> None:
    number, _, prefixed = scaled(value, unit).partition(" ")
    factor = {"": 1.0, "m": 1e-3, "µ": 1e-6}[prefixed.removesuffix(unit)]
    assert float(number) * factor == pytest.approx(value, rel=0.06)


@given(st.lists(st.text("ab", min_size=1), max_size=9), st.integers(1, 9))
def test_every_name_is_shown_or_counted(names: list[str], most: int) -> None:
    text = some(names, most, ", ", " and {} more")
    shown, _, rest = text.partition(" and ")
    assert len([name for name in shown.split(", ") if name]) + int(rest.removesuffix(" more") or 0) == len(names)


def test_counts_are_english() -> None:
    assert [counted(count, "rail") for count in (0, 1, 2)] == ["0 rails", "1 rail", "2 rails"]
