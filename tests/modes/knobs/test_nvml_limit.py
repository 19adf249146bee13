"""The knob ``nvml_limit``: power limits and locked clocks of cards, always put back to what they were."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nvidia_cards import CARD, SILENT, get, put, without, write_cards
from powerlab.domain.errors import PowerlabError
from powerlab.domain.mode import Setting
from powerlab.domain.power import Availability
from powerlab.modes.controller import ModeController
from powerlab.modes.io.permissions import SettingPermission
from powerlab.modes.knobs.nvml_limit.cards import Card, watts
from powerlab.modes.knobs.nvml_limit.knob import NvmlLimit
from powerlab.modes.knobs.nvml_limit.locks import RECORD_DIRECTORY, Record, parse_record
from powerlab.modes.knobs.nvml_limit.names import mode_of, offered_names
from powerlab.privileged import client
from powerlab.sysroot import Sysroot

KNOB = NvmlLimit()
SECOND = {**CARD, "uuid": "GPU-2", "power_limit_min_mw": 120_000, "power_limit_mw": 240_000}


@pytest.fixture
def two_cards(tmp_path: Path) -> Sysroot:
    return write_cards(tmp_path / "tree", [CARD, SECOND])


@pytest.fixture
def of_cards(two_cards: Sysroot, tmp_path: Path) -> ModeController:
    two_cards.path("/run/lock").mkdir(parents=True)
    two_cards.path("/proc/sys/kernel/random").mkdir(parents=True)
    two_cards.path("/proc/sys/kernel/random/boot_id").write_text("boot\n")
    return ModeController(two_cards, tmp_path / "state", [KNOB])


def setting(target: str, value: str) -> Setting:
    return Setting(knob="nvml_limit", target=target, value=value)


def values(sysroot: Sysroot) -> dict[str, str]:
    return {found.target: found.value for found in KNOB.read(sysroot)}


def test_it_says_what_the_cards_are_limited_to(two_cards: Sysroot) -> None:
    probe = KNOB.probe(two_cards)
    assert probe.availability is Availability.AVAILABLE
    assert probe.detail == "GPU0 draws at most 200 W (100 to 250 W); GPU1 draws at most 240 W (120 to 250 W)"
    assert values(two_cards) == {
        "GPU0.power_limit_mw": "200000",
        "GPU0.locked_clocks_mhz": "unlocked",
        "GPU1.power_limit_mw": "240000",
        "GPU1.locked_clocks_mhz": "unlocked",
    }


def test_it_offers_shares_of_the_makers_limit_and_of_the_highest_clock(two_cards: Sysroot) -> None:
    names = [mode.name for mode in KNOB.modes(two_cards)]
    assert names == ["gpu-limit=230W", "gpu-limit=172W", "gpu-limit=120W", "gpu-lock=900MHz", "gpu-lock=600MHz"]
    for name in names:
        assert KNOB.parse(two_cards, name) in KNOB.modes(two_cards)


@pytest.mark.parametrize(
    "mode", ["gpu-limit=150W", "gpu-limit=172.5W", "gpu-lock=600MHz", "gpu-limit=150W+gpu-lock=300MHz"]
)
def test_a_mode_holds_for_every_card_and_the_previous_settings_come_back(
    of_cards: ModeController, two_cards: Sysroot, mode: str
) -> None:
    before = values(two_cards)
    with of_cards.applied(mode):
        now = values(two_cards)
        for index in (0, 1):
            if watts_set := re.search("gpu-limit=([0-9.]+)W", mode):
                assert now[f"GPU{index}.power_limit_mw"] == get(two_cards, "power_limit_mw", index)
                assert float(get(two_cards, "power_limit_mw", index)) == float(watts_set[1]) * 1000
            if clock := re.search("gpu-lock=([0-9]+)MHz", mode):
                assert get(two_cards, "locked_clocks_mhz", index) == f"{clock[1]}-{clock[1]}"
        assert of_cards.drifted(mode) is None
    assert values(two_cards) == before
    assert [get(two_cards, "power_limit_mw", index) for index in (0, 1)] == ["200000", "240000"], "not the maker's"
    assert [get(two_cards, "locked_clocks_mhz", index) for index in (0, 1)] == ["unlocked"] * 2
    assert not [*two_cards.path(RECORD_DIRECTORY).glob("*")]


def test_somebody_elses_limit_is_noticed(of_cards: ModeController, two_cards: Sysroot) -> None:
    with of_cards.applied("gpu-limit=150W"):
        put(two_cards, "power_limit_mw", 180_000, index=1)
        drift = of_cards.drifted("gpu-limit=150W")
        assert drift is not None
        assert "GPU1.power_limit_mw should be 150000 and reads 180000" in drift


def test_a_lock_of_our_own_is_put_back_and_not_undone(of_cards: ModeController, two_cards: Sysroot) -> None:
    of_cards.set("gpu-lock=900MHz")
    with of_cards.applied("gpu-lock=300MHz"):
        assert get(two_cards, "locked_clocks_mhz") == "300-300"
    assert get(two_cards, "locked_clocks_mhz") == "900-900"
    assert values(two_cards)["GPU0.locked_clocks_mhz"] == "900-900"
    of_cards.restore()
    assert get(two_cards, "locked_clocks_mhz") == "unlocked"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("gpu-limit=119W", "GPU1 takes no power limit of 119 W; choose one from 120 to 250 W"),
        ("gpu-limit=99.9W", "GPU0 takes no power limit of 99.9 W; choose one from 100 to 250 W"),
        ("gpu-limit=251W", "GPU0 takes no power limit of 251 W"),
        ("gpu-limit=200", "write it like gpu-limit=65W"),
        ("gpu-limit=", "write it like"),
        ("gpu-lock=700MHz", "no clock of 700 MHz; it has 300 to 1200 MHz, nearest 600 and 900"),
        ("gpu-lock=1200W", "write it like gpu-lock=1200MHz"),
    ],
)
def test_an_impossible_mode_says_what_is_possible(two_cards: Sysroot, name: str, words: str) -> None:
    with pytest.raises(PowerlabError, match=re.escape(words)):
        KNOB.parse(two_cards, name)


@pytest.mark.parametrize("name", ["", "MAXN", "gpu-max=522750000Hz", "gpu-limits=1W", "gpu-limit=150W+cores=2"])
def test_other_names_are_not_its_own(two_cards: Sysroot, name: str) -> None:
    assert KNOB.parse(two_cards, name) is None


@pytest.mark.parametrize(
    ("card", "expected"),
    [
        (without("power_limit_mw"), {"GPU0.locked_clocks_mhz"}),
        (without("power_limit_min_mw"), {"GPU0.locked_clocks_mhz"}),
        (without("supported_memory_clocks_mhz"), {"GPU0.power_limit_mw"}),
        (without("uuid", "energy_mj"), {"GPU0.power_limit_mw", "GPU0.locked_clocks_mhz"}),
        (SILENT, set()),
    ],
)
def test_a_card_has_the_settings_it_knows(tmp_path: Path, card: Mapping[str, object], expected: set[str]) -> None:
    sysroot = write_cards(tmp_path, [card])
    assert set(values(sysroot)) == expected
    wanted = Availability.AVAILABLE if expected else Availability.ABSENT
    assert KNOB.probe(sysroot).availability is wanted
    prefixes = {"GPU0.power_limit_mw": "gpu-limit", "GPU0.locked_clocks_mhz": "gpu-lock"}
    assert {mode.name.partition("=")[0] for mode in KNOB.modes(sysroot)} == {prefixes[target] for target in expected}


def test_what_no_card_can_do_is_impossible(tmp_path: Path) -> None:
    sysroot = write_cards(tmp_path, [SILENT])
    for name in ("gpu-limit=200W", "gpu-lock=600MHz"):
        with pytest.raises(PowerlabError, match="is impossible"):
            KNOB.parse(sysroot, name)


@pytest.mark.parametrize(
    ("target", "value"),
    [
        ("GPU0.fan", "3"),
        ("GPU0", "3"),
        ("GPU7.power_limit_mw", "200000"),
        ("GPU0.power_limit_mw", "200 W"),
        ("GPU0.power_limit_mw", "99999"),
        ("GPU0.locked_clocks_mhz", "locked"),
        ("GPU0.locked_clocks_mhz", "300-700"),
        ("GPU0.locked_clocks_mhz", "900-300"),
    ],
)
def test_a_setting_it_has_not_is_refused_and_changes_nothing(two_cards: Sysroot, target: str, value: str) -> None:
    before = values(two_cards)
    with pytest.raises(PowerlabError):
        KNOB.write(two_cards, setting(target, value))
    assert values(two_cards) == before


def test_a_refusal_says_who_may_and_leaves_no_record(tmp_path: Path) -> None:
    sysroot = write_cards(tmp_path, no_permission="")
    for target, value in (("GPU0.power_limit_mw", "150000"), ("GPU0.locked_clocks_mhz", "300-300")):
        with pytest.raises(PowerlabError, match="run powerlab as root"):
            KNOB.write(sysroot, setting(target, value))
    assert values(sysroot) == {"GPU0.power_limit_mw": "200000", "GPU0.locked_clocks_mhz": "unlocked"}


def test_a_refused_lock_keeps_the_record_of_the_one_before(tmp_path: Path) -> None:
    sysroot = write_cards(tmp_path)
    KNOB.write(sysroot, setting("GPU0.locked_clocks_mhz", "900-900"))
    sysroot.path("/simulation/nvml/no_permission").touch()
    with pytest.raises(PowerlabError):
        KNOB.write(sysroot, setting("GPU0.locked_clocks_mhz", "300-300"))
    assert values(sysroot)["GPU0.locked_clocks_mhz"] == "900-900"


def test_a_driver_that_forgets_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without persistence mode it does when the last program lets go of it, and powerlab may be that."""
    sysroot = write_cards(tmp_path)
    write_limit = KNOB.write
    read = NvmlLimit.read

    def forgetful(self: NvmlLimit, root: Sysroot) -> object:
        put(root, "power_limit_mw", 230_000)
        return read(self, root)

    monkeypatch.setattr(NvmlLimit, "read", forgetful)
    with pytest.raises(PowerlabError, match=r"reads 230000: either the driver forgot it .*nvidia-smi -pm 1"):
        write_limit(sysroot, setting("GPU0.power_limit_mw", "150000"))


def test_a_driver_loaded_anew_has_forgotten_the_lock(tmp_path: Path) -> None:
    """Its energy counter starts again; a record from before would be put back on a card that has no lock."""
    sysroot = write_cards(tmp_path)
    KNOB.write(sysroot, setting("GPU0.locked_clocks_mhz", "300-600"))
    put(sysroot, "energy_mj", 5_000_001)
    assert values(sysroot)["GPU0.locked_clocks_mhz"] == "300-600"
    put(sysroot, "energy_mj", 17)
    assert values(sysroot)["GPU0.locked_clocks_mhz"] == "unlocked"


def test_the_record_can_be_read_by_who_may_not_write_it(tmp_path: Path) -> None:
    """The helper writes it as root with a strict umask, and the agent's user reads it."""
    sysroot = write_cards(tmp_path)
    before = os.umask(0o077)
    try:
        KNOB.write(sysroot, setting("GPU0.locked_clocks_mhz", "300-600"))
    finally:
        os.umask(before)
    (record,) = sysroot.path(RECORD_DIRECTORY).iterdir()
    assert record.stat().st_mode & 0o777 == 0o644


def test_a_damaged_record_says_how_to_be_rid_of_it(tmp_path: Path) -> None:
    sysroot = write_cards(tmp_path)
    KNOB.write(sysroot, setting("GPU0.locked_clocks_mhz", "300-600"))
    (record,) = sysroot.path(RECORD_DIRECTORY).iterdir()
    record.write_text("garbage\n")
    with pytest.raises(PowerlabError, match=r"remove it, and unlock the clocks with `sudo nvidia-smi -rgc -rmc`"):
        KNOB.read(sysroot)


def test_without_a_place_for_the_record_nothing_is_locked(tmp_path: Path) -> None:
    sysroot = write_cards(tmp_path)
    sysroot.path("/run").mkdir()
    sysroot.path(RECORD_DIRECTORY).symlink_to("nowhere")
    with pytest.raises(PowerlabError, match="no clocks are locked"):
        KNOB.write(sysroot, setting("GPU0.locked_clocks_mhz", "300-600"))
    assert get(sysroot, "locked_clocks_mhz") == "unlocked"


@pytest.mark.parametrize(("code", "availability"), [(12, Availability.ABSENT), (18, Availability.BROKEN)])
def test_a_library_that_does_not_start(tmp_path: Path, code: int, availability: Availability) -> None:
    sysroot = write_cards(tmp_path, init_error=code)
    probe = KNOB.probe(sysroot)
    assert probe.availability is availability
    assert bool(probe.remedy) is (availability is Availability.BROKEN)
    assert list(KNOB.modes(sysroot)) == []
    with pytest.raises(PowerlabError):
        KNOB.parse(sysroot, "gpu-limit=200W")
    with pytest.raises(PowerlabError):
        KNOB.write(sysroot, setting("GPU0.power_limit_mw", "150000"))
    if availability is Availability.ABSENT:
        assert list(KNOB.read(sysroot)) == []
    else:
        with pytest.raises(PowerlabError, match="different versions"):
            KNOB.read(sysroot)


def test_a_device_without_cards_has_none_of_it(tmp_path: Path) -> None:
    sysroot = Sysroot(tmp_path)
    assert KNOB.probe(sysroot).availability is Availability.ABSENT
    assert list(KNOB.read(sysroot)) == []


@pytest.mark.parametrize("helper", [True, False])
def test_a_plain_user_needs_the_helper(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, helper: bool) -> None:
    sysroot = write_cards(tmp_path)
    asked: list[tuple[str, str, str]] = []
    make: Callable[..., None] = lambda _root, *what: asked.append(what[:3])  # noqa: E731
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(client, "may_set", lambda _root, knob: helper and knob == "nvml_limit")
    monkeypatch.setattr(client, "make_setting", make)
    sysroot.path("/simulated-board.json").unlink()
    assert KNOB.probe(sysroot).availability is (Availability.AVAILABLE if helper else Availability.DENIED)
    KNOB.write(sysroot, setting("GPU0.power_limit_mw", "150000"))
    assert asked == ([("nvml_limit", "GPU0.power_limit_mw", "150000")] if helper else [])


def test_the_helper_is_granted_what_the_knob_sets_and_no_more(two_cards: Sysroot) -> None:
    permissions = [grant for grant in KNOB.permissions if isinstance(grant, SettingPermission)]
    for mode in KNOB.modes(two_cards):
        for wanted in (*mode.settings, *KNOB.read(two_cards)):
            assert sum(grant.covers(wanted.target, wanted.value) for grant in permissions) == 1
    for target, value in (("GPU0.fan", "1"), ("GPU0.power_limit_mw", "-1"), ("GPU0.power_limit_mw\n", "1"), ("", "")):
        assert not any(grant.covers(target, value) for grant in permissions)


def test_nothing_outlives_a_reboot(two_cards: Sysroot) -> None:
    assert not any(KNOB.survives_reboot(found) for found in KNOB.read(two_cards))


@given(text=st.text(max_size=60))
def test_any_text_is_a_record_or_none(text: str) -> None:
    try:
        record = parse_record(text)
    except ValueError:
        return
    assert text.split() == [record.clocks, text.split()[1]]


@given(low=st.integers(0, 9999), high=st.integers(0, 9999), energy_mj=st.integers(0, 2**63))
def test_a_record_is_read_as_it_was_written(low: int, high: int, energy_mj: int) -> None:
    record = Record(low, high, energy_mj)
    assert parse_record(f"{record.clocks} {record.energy_mj}\n") == record
    assert record.holds(energy_mj)
    assert not record.holds(energy_mj - 1)


def card(index: int, low_mw: int, span_mw: int, default_share: float, clocks: frozenset[int]) -> Card:
    return Card(
        index=index,
        uuid=f"GPU-{index}",
        limit_mw=low_mw,
        low_mw=low_mw,
        high_mw=low_mw + span_mw,
        default_mw=low_mw + round(default_share * span_mw),
        clocks_mhz=tuple(sorted(clocks)),
    )


CARDS = st.lists(
    st.builds(
        card,
        index=st.integers(0, 15),
        low_mw=st.integers(5_000, 400_000),
        span_mw=st.integers(0, 400_000),
        default_share=st.floats(0, 1),
        clocks=st.frozensets(st.integers(100, 3000), max_size=8),
    ),
    max_size=4,
)


@given(cards=CARDS)
def test_whatever_is_offered_is_possible_on_every_card(cards: list[Card]) -> None:
    for name in offered_names(cards):
        assert len(mode_of(cards, name).settings) == sum(
            bool(found.clocks_mhz) if name.startswith("gpu-lock") else True for found in cards
        )


@given(milliwatts=st.integers(0, 10**7))
def test_watts_lose_no_milliwatt(milliwatts: int) -> None:
    assert round(float(watts(milliwatts)) * 1000) == milliwatts


def test_a_system_that_refuses_the_helper_is_a_refusal_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(5, "Input/output error")

    sysroot = write_cards(tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(client, "may_set", lambda _root, knob: True)
    monkeypatch.setattr(client, "make_setting", refuse)
    with pytest.raises(PowerlabError, match=r"GPU0.power_limit_mw does not take 150000 \(Input/output error\)"):
        KNOB.write(sysroot, setting("GPU0.power_limit_mw", "150000"))
