from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.domain.errors import PowerlabError
from powerlab.domain.mode import PowerMode, Setting
from powerlab.domain.power import Availability
from powerlab.modes.base import KnobProbe
from powerlab.modes.io.permissions import Permission
from powerlab.modes.settings import Board, key_of
from powerlab.sysroot import Sysroot

NAMES = "abcd"
VALUES = st.fixed_dictionaries({name: st.integers(0, 3).map(str) for name in NAMES})


class Shelf:
    """A knob that is a dictionary; ``needs`` lists settings that are refused until another one has its value."""

    permissions: tuple[Permission, ...] = ()

    def __init__(self, name: str, values: dict[str, str], needs: dict[str, tuple[str, str]] | None = None) -> None:
        self.name, self.values, self.needs = name, dict(values), needs or {}
        self.written: list[str] = []
        self.availability = Availability.AVAILABLE

    def probe(self, sysroot: Sysroot) -> KnobProbe:
        return KnobProbe(knob=self.name, availability=self.availability, detail="")

    def modes(self, sysroot: Sysroot) -> Sequence[PowerMode]:
        return ()

    def read(self, sysroot: Sysroot) -> Sequence[Setting]:
        return [Setting(knob=self.name, target=target, value=value) for target, value in self.values.items()]

    def write(self, sysroot: Sysroot, setting: Setting) -> None:
        other, value = self.needs.get(setting.target, (setting.target, self.values.get(setting.target)))
        if self.values.get(other) != value:
            raise PowerlabError(f"{setting.target} needs {other} to be {value}")
        self.values[setting.target] = setting.value
        self.written.append(setting.target)

    def survives_reboot(self, setting: Setting) -> bool:
        return setting.target == "a"


@given(VALUES, VALUES, st.sets(st.sampled_from(NAMES)))
def test_restoring_writes_what_was_touched_and_what_differs_and_no_more(
    before: dict[str, str], after: dict[str, str], touched: set[str]
) -> None:
    shelf = Shelf("shelf", before)
    board = Board(Sysroot(), [shelf])
    previous = board.read()
    shelf.values = dict(after)
    written = board.restore(previous, frozenset(("shelf", name) for name in touched))
    assert shelf.values == before
    assert {setting.target for setting in written} == touched | {name for name in NAMES if before[name] != after[name]}
    assert board.restore(previous, frozenset()) == ()


def test_knobs_are_written_back_in_the_order_they_are_given() -> None:
    order: list[str] = []

    class Noted(Shelf):
        def write(self, sysroot: Sysroot, setting: Setting) -> None:
            order.append(self.name)
            super().write(sysroot, setting)

    knobs = [Noted("first", {"a": "1"}), Noted("second", {"a": "1"})]
    board = Board(Sysroot(), knobs)
    previous = board.read()
    for knob in knobs:
        knob.values["a"] = "2"
    board.restore(tuple(reversed(previous)), frozenset())
    assert order == ["first", "second"]


def test_what_a_knob_resets_in_another_is_seen_and_put_back() -> None:
    """As nvpmodel resets the clocks that cpufreq sets."""
    second = Shelf("second", {"a": "by hand"})

    class Resets(Shelf):
        def write(self, sysroot: Sysroot, setting: Setting) -> None:
            super().write(sysroot, setting)
            second.values["a"] = "default"

    first = Resets("first", {"mode": "0"})
    board = Board(Sysroot(), [first, second])
    previous = board.read()
    board.write([Setting(knob="first", target="mode", value="1")])
    board.restore(previous, frozenset({("first", "mode")}))
    assert second.values == {"a": "by hand"}


def test_a_setting_that_depends_on_a_later_one_is_tried_again() -> None:
    shelf = Shelf("shelf", {"a": "1", "b": "1"}, needs={"a": ("b", "1")})
    board = Board(Sysroot(), [shelf])
    previous = board.read()
    shelf.values = {"a": "2", "b": "2"}
    board.restore(previous, frozenset())
    assert shelf.values == {"a": "1", "b": "1"}
    assert shelf.written == ["b", "a"]


def test_a_setting_that_is_refused_for_good_is_told_and_the_others_are_back() -> None:
    shelf = Shelf("shelf", {"a": "1", "b": "1", "c": "1"}, needs={"b": ("c", "never")})
    board = Board(Sysroot(), [shelf])
    previous = board.read()
    shelf.values = {"a": "2", "b": "2", "c": "2"}
    with pytest.raises(PowerlabError, match="b needs c to be never"):
        board.restore(previous, frozenset())
    assert shelf.values == {"a": "1", "b": "2", "c": "1"}


def test_a_difference_names_the_setting_and_both_values() -> None:
    shelf = Shelf("shelf", {"a": "1"})
    board = Board(Sysroot(), [shelf])
    wanted = [*board.read(), Setting(knob="shelf", target="gone", value="9")]
    assert board.difference(wanted) == "shelf gone should be 9 and cannot be read"
    shelf.values["a"] = "5"
    assert board.difference(wanted) == "shelf a should be 1 and reads 5"
    with pytest.raises(PowerlabError, match="MODE did not take effect: shelf a should be 1 and reads 5"):
        board.check(wanted, "MODE")


def test_only_survivors_outlive_a_reboot() -> None:
    board = Board(Sysroot(), [Shelf("shelf", {"a": "1", "b": "1"})])
    assert [key_of(setting) for setting in board.survivors(board.read())] == [("shelf", "a")]


def test_a_knob_that_cannot_be_read_has_no_settings() -> None:
    class Broken(Shelf):
        def read(self, sysroot: Sysroot) -> Sequence[Setting]:
            raise PowerlabError("broken")

    assert Board(Sysroot(), [Broken("broken", {}), Shelf("shelf", {"a": "1"})]).read() == (
        Setting(knob="shelf", target="a", value="1"),
    )


def test_a_setting_that_is_refused_for_good_does_not_keep_a_later_one_from_its_second_try() -> None:
    values = {"never": "x", "late": "1", "last": "1"}
    shelf = Shelf("shelf", values, needs={"never": ("nothing", "y"), "late": ("last", "1")})
    board = Board(Sysroot(), [shelf])
    previous = board.read()
    shelf.values = {"never": "z", "late": "2", "last": "2"}
    with pytest.raises(PowerlabError, match="never"):
        board.restore(previous, frozenset())
    assert shelf.values == {"never": "z", "late": "1", "last": "1"}


def test_a_setting_of_an_unknown_knob_is_refused() -> None:
    with pytest.raises(PowerlabError, match="no knob named 'nothing'"):
        Board(Sysroot(), []).write([Setting(knob="nothing", target="a", value="1")])


def test_what_may_not_be_set_is_not_recorded_to_be_put_back() -> None:
    ours, roots, broken = Shelf("ours", {"a": "0"}), Shelf("roots", {"a": "0"}), Shelf("broken", {"a": "0"})
    roots.availability, broken.availability = Availability.DENIED, Availability.BROKEN
    board = Board(Sysroot(), [ours, roots, broken])
    assert [setting.knob for setting in board.read_ours()] == ["ours", "broken"]
    assert [setting.knob for setting in board.read()] == ["ours", "roots", "broken"], "drift is seen all the same"


def test_a_knob_whose_files_fail_does_not_keep_the_others_from_going_back() -> None:
    class Failing(Shelf):
        def write(self, sysroot: Sysroot, setting: Setting) -> None:
            raise OSError(5, "Input/output error")

    failing, good = Failing("failing", {"a": "0"}), Shelf("good", {"a": "0"})
    board = Board(Sysroot(), [failing, good])
    previous = board.read()
    failing.values, good.values = {"a": "1"}, {"a": "1"}
    with pytest.raises(PowerlabError, match=r"failing a does not go back to 0 \(.*Input/output error\)"):
        board.restore(previous, frozenset())
    assert good.values == {"a": "0"}
