"""What every knob owes to whoever asks it for a mode by name."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from powerlab.boards.registry import BOARDS
from powerlab.boards.simulator import create_tree
from powerlab.domain.errors import PowerlabError
from powerlab.domain.mode import PowerMode
from powerlab.domain.power import Availability
from powerlab.modes.base import Knob
from powerlab.modes.controller import ModeController
from powerlab.modes.registry import KNOBS
from powerlab.sysroot import Sysroot

SIMULATED = [name for name, board in BOARDS.items() if board.simulatable]
Tree = Callable[[str], Sysroot]
KEYS = [form.name.partition("=")[0] for knob in KNOBS for form in knob.forms]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Sysroot]:
    """Returns one tree of a board for all examples: nothing here writes to it."""

    @cache
    def make(name: str) -> Sysroot:
        directory = tmp_path_factory.mktemp("boards") / name
        create_tree(name, directory)
        return Sysroot(directory)

    return make


def usable(sysroot: Sysroot) -> list[Knob]:
    return [knob for knob in KNOBS if knob.probe(sysroot).availability is Availability.AVAILABLE]


@pytest.mark.parametrize("name", SIMULATED)
def test_every_offered_name_is_parsed_into_the_same_mode(tree: Tree, name: str) -> None:
    knobs = usable(tree(name))
    for knob in knobs:
        for mode in knob.modes(tree(name)):
            assert knob.parse(tree(name), mode.name) == mode
            others = [other for other in knobs if other.parse(tree(name), mode.name) is not None]
            assert others == [knob], "a name belongs to one knob"


@pytest.mark.parametrize("name", SIMULATED)
def test_every_mode_says_what_it_does_and_sets_only_its_own_knob(tree: Tree, name: str) -> None:
    for knob in usable(tree(name)):
        for mode in knob.modes(tree(name)):
            assert mode.settings
            assert {setting.knob for setting in mode.settings} == {knob.name}
            assert mode.description


@pytest.mark.parametrize("knob", KNOBS, ids=lambda knob: knob.name)
def test_every_knob_is_described_for_a_newcomer(knob: Knob) -> None:
    assert knob.meaning
    assert knob.meaning[-1] != "."
    assert knob.permissions, "the privileged helper can stand in for root"
    assert all("=" in form.name and form.meaning for form in knob.forms)


@settings(max_examples=200, deadline=None)
@given(
    st.one_of(
        st.text(max_size=40),
        st.builds("{}={}".format, st.sampled_from(KEYS), st.text(max_size=20)),
        st.builds(
            "{}={}{}".format,
            st.sampled_from(KEYS),
            st.integers(-10, 10**12),
            st.sampled_from(["", "kHz", "Hz", "W", "MHz"]),
        ),
    ),
    st.sampled_from(["jetson-agx-xavier", "laptop", "apm-xgene"]),
)
def test_any_name_is_a_mode_or_nothing_or_refused_in_words(tree: Tree, name: str, board: str) -> None:
    for knob in usable(tree(board)):
        try:
            mode = knob.parse(tree(board), name)
        except PowerlabError:
            assert "=" in name, "only a name that is the knob's own is refused by it"
        else:
            assert mode is None or (isinstance(mode, PowerMode) and mode.name == name and mode.settings)


def test_a_joined_name_is_set_from_what_its_first_parts_leave(tmp_path: Path) -> None:
    """The board starts in a smaller mode: the cap is chosen from the clocks the bigger one allows."""
    create_tree("jetson-agx-xavier", tmp_path / "board")
    board = Sysroot(tmp_path / "board")
    controller = ModeController(board, tmp_path / "state")
    controller.set("MODE_15W")
    small = board.read("/sys/class/devfreq/17000000.gv11b/max_freq")
    with controller.applied("MODE_30W_4CORE+gpu-max=828750000Hz+cpu-max=1728000kHz"):
        assert board.read("/sys/class/devfreq/17000000.gv11b/max_freq") == "828750000"
        assert board.read("/sys/devices/system/cpu/cpufreq/policy0/scaling_max_freq") == "1728000"
    assert board.read("/sys/class/devfreq/17000000.gv11b/max_freq") == small


def test_a_joined_name_does_not_set_clocks_it_could_not_put_back(tmp_path: Path) -> None:
    """Clusters that were offline when the settings were recorded: what they were set to nobody knows."""
    create_tree("jetson-agx-xavier", tmp_path / "board")
    board = Sysroot(tmp_path / "board")
    controller = ModeController(board, tmp_path / "state")
    controller.set("MODE_15W")
    kept = board.read("/sys/devices/system/cpu/cpufreq/policy6/scaling_max_freq")
    with (
        pytest.raises(PowerlabError, match=r"brings cores online and then sets policy4\.max_khz.*to stay"),
        controller.applied("MAXN+cpu-max=806400kHz"),
    ):
        pytest.fail("not set")
    assert board.read("/sys/devices/system/cpu/cpufreq/policy6/scaling_max_freq") == kept
    assert board.read("/sys/devices/system/cpu/cpu6/online") == "0"
    with controller.applied("cores=8"):
        assert board.read("/sys/devices/system/cpu/cpu6/online") == "1", "alone it only brings them online"
