"""Machines from elsewhere: whatever their sysfs looks like, every probe answers, and the doctor has something to say.

Each file in ``foreign_trees`` is a machine as another project's fixtures or bug reports describe it. ``[directory]``
begins a directory; in it ``name = text`` is a file (``\\n``, ``\\t`` and ``\\xNN`` as in Python), ``name -> target`` a
link, and ``name !`` an entry that no read works on: a directory, which fails for root, too.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from powerlab.boards.registry import detect
from powerlab.cli.commands.doctor.document import document
from powerlab.cli.commands.doctor.report import print_report
from powerlab.domain.errors import PowerlabError
from powerlab.domain.power import Availability, SourceProbe
from powerlab.modes.base import Knob, KnobProbe
from powerlab.modes.controller import ModeController
from powerlab.modes.registry import KNOBS
from powerlab.power.base import PowerSource
from powerlab.power.registry import SOURCES, probe_all
from powerlab.power.total import choose_total
from powerlab.sweep.host import Host
from powerlab.sysroot import Sysroot
from powerlab.throttling.base import Watch, WatchProbe
from powerlab.throttling.registry import WATCHES

TREES = {path.stem: path for path in sorted((Path(__file__).parent / "foreign_trees").glob("*.tree"))}
_ESCAPE = re.compile(rb"\\(n|t|x[0-9a-f]{2})")
_NAMED = {b"n": b"\n", b"t": b"\t"}

TOTALS = {
    "node-exporter": ("rapl:package-0",),
    "thinkpad-two-batteries": ("rapl:package-0",),
    "ryzen-desktop": ("rapl:package-0", "amdgpu:GPU0"),
    "agx-orin-devkit": (
        "ina3221:VDD_GPU_SOC",
        "ina3221:VDD_CPU_CV",
        "ina3221:VIN_SYS_5V0",
        "ina3221:VDDQ_VDD2_1V8AO",
    ),
    "cloud-vm": ("estimate:host",),
    "graviton": ("estimate:host",),
    "raspberry-pi-4": ("estimate:host",),
    "rk3399": None,
}
"""What is known for certain to be the power of some of them; None where there is nothing, not even processor times."""

BOARDS = {"agx-orin-devkit": "jetson-agx-orin", "raspberry-pi-4": "generic", "cloud-vm": "generic"}


def text_of(escaped: str) -> bytes:
    return _ESCAPE.sub(
        lambda match: _NAMED.get(match[1]) or bytes([int(match[1][1:], 16)]), escaped.encode(errors="replace")
    )


def unpack(tree: Path, base: Path) -> Sysroot:
    """Write a machine below a directory."""
    directory = base
    for line in tree.read_text(encoding="utf-8").splitlines():
        if not line or line.startswith("#"):
            continue
        if line.startswith("["):
            directory = base / line.strip("[]").lstrip("/")
            if not directory.exists():
                directory.mkdir(parents=True)
            continue
        link, file = re.fullmatch(r"(\S+) -> (.*)", line), re.fullmatch(r"(\S+) =(?: (.*))?", line)
        if link:
            (directory / link[1]).symlink_to(link[2])
        elif file:
            (directory / file[1]).write_bytes(text_of(file[2] or "") + b"\n")
        else:
            name, _, mark = line.partition(" ")
            assert mark == "!", line
            (directory / name).mkdir()
    return Sysroot(base)


@pytest.fixture(params=TREES)
def machine(request: pytest.FixtureRequest, tmp_path: Path) -> Sysroot:
    return unpack(TREES[request.param], tmp_path / request.param)


def name_of(machine: Sysroot) -> str:
    return machine.base.name


def sensible(probe: SourceProbe | KnobProbe | WatchProbe) -> None:
    assert isinstance(probe.availability, Availability)
    assert probe.detail.strip()
    assert "Traceback" not in probe.detail
    if probe.availability is Availability.DENIED:
        assert probe.remedy.strip(), probe


def answered(ask: Callable[[], Any]) -> Any:
    """Return the answer, None where it is a refusal in one sentence; nothing else may be raised."""
    try:
        return ask()
    except PowerlabError as error:
        sentence = str(error)
    assert sentence
    assert "\n" not in sentence
    return None


def test_there_is_a_good_number_of_machines_and_each_says_where_it_is_from() -> None:
    assert len(TREES) >= 15
    for path in TREES.values():
        assert path.read_text(encoding="utf-8").startswith("# "), path


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.name)
def test_every_source_answers(machine: Sysroot, source: PowerSource) -> None:
    probe = source.probe(machine)
    sensible(probe)
    assert probe.source == source.name
    keys = [rail.key for rail in probe.rails]
    assert len(set(keys)) == len(keys)
    for rail in probe.rails:
        assert rail.name.isprintable()
        assert rail.resolution >= 0
        assert rail.offset >= 0
        assert rail.relative_error >= 0
        assert rail.update_period_s >= 0
    if probe.availability is not Availability.AVAILABLE:
        assert not probe.rails
        return
    assert probe.rails
    assert {channel.rail.key for channel in source.channels(machine)} == set(keys)


@pytest.mark.parametrize("knob", KNOBS, ids=lambda knob: knob.name)
def test_every_knob_answers(machine: Sysroot, knob: Knob) -> None:
    sensible(knob.probe(machine))
    for ask in (knob.read, knob.modes):
        answer = answered(lambda ask=ask: list(ask(machine))) or []
        assert len(set(map(repr, answer))) == len(answer)
    for name in ("current", "MAXN", "cores=2", "cpu-max=1200000kHz", "governor=powersave", "cpu-quota=1.5", "x=", "=+"):
        answered(lambda name=name: knob.parse(machine, name))


@pytest.mark.parametrize("watch", WATCHES, ids=lambda watch: watch.name)
def test_every_watch_answers_and_sees_nothing_where_nothing_moves(machine: Sysroot, watch: Watch) -> None:
    sensible(watch.probe(machine))
    watching = watch.start(machine)
    watching.sample()
    for sentence in watching.finish():
        assert sentence


def test_the_total_is_one_of_what_is_there(machine: Sysroot) -> None:
    probes, board = probe_all(machine), detect(machine)
    total = choose_total(probes, board)
    rails = {rail.key for probe in probes for rail in probe.rails}
    assert total is None or (set(total.rails) <= rails and total.rails and total.scope)
    if name_of(machine) in TOTALS:
        assert (total and total.rails) == TOTALS[name_of(machine)]
    assert board.name == BOARDS.get(name_of(machine), board.name)


def test_the_doctor_has_something_to_say(machine: Sysroot, tmp_path: Path) -> None:
    host = Host(sysroot=machine, state_dir=tmp_path / "state", name="elsewhere")
    output = io.StringIO()
    found = document(host, watch_s=0.01)
    print_report(found, Console(file=output, width=100))
    text = output.getvalue()
    assert "What can be measured" in text
    assert "What can be set" in text
    assert found == {**document(host), "watched_s": 0.01, "watched": found["watched"]}


def test_modes_can_be_listed(machine: Sysroot, tmp_path: Path) -> None:
    controller = ModeController(machine, tmp_path / "state")
    names = [mode.name for mode in controller.modes()]
    assert names[0] == "current"
    assert len(set(names)) == len(names)


def test_batteries_and_charger_contracts_are_told_apart(tmp_path: Path) -> None:
    """A battery at rest beside one in use, a mouse, a USB contract: the machine draws from one of them alone."""
    probes = {probe.source: probe for probe in probe_all(unpack(TREES["thinkpad-two-batteries"], tmp_path))}
    names = {rail.name for rail in probes["battery"].rails}
    assert not {name for name in names if "hidpp" in name or "ucsi" in name}


def parts() -> Iterator[st.SearchStrategy[str]]:
    yield st.sampled_from(["5000000", "-1", "", "N/A", "1e9", "9" * 30, "\\x00", "0x1f", "Discharging", "nan", "1 2"])
    yield st.text(
        st.characters(codec="utf-8", exclude_characters="\n\r\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029"), max_size=9
    )


@settings(deadline=None)
@given(data=st.data())
def test_machines_with_some_texts_exchanged_still_answer(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    lines = data.draw(st.sampled_from(sorted(TREES.values()))).read_text(encoding="utf-8").splitlines()
    places = [index for index, line in enumerate(lines) if re.fullmatch(r"\S+ =( .*)?", line)]
    for index in data.draw(st.lists(st.sampled_from(places), max_size=6)):
        lines[index] = f"{lines[index].split()[0]} = {data.draw(st.one_of(*parts()))}"
    base = tmp_path_factory.mktemp("machine")
    (base / "m.tree").write_text("\n".join(lines), encoding="utf-8")
    machine = unpack(base / "m.tree", base / "root")
    probes = probe_all(machine)
    for probe in (*probes, *(knob.probe(machine) for knob in KNOBS), *(watch.probe(machine) for watch in WATCHES)):
        sensible(probe)
    choose_total(probes, detect(machine))
    for knob in KNOBS:
        answered(lambda knob=knob: knob.read(machine))
