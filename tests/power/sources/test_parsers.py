"""Parsers: any text gives a value or a ValueError, never anything else."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.domain.power import RailQuantity
from powerlab.power.sources.estimate import parse_proc_stat
from powerlab.power.sources.hwmon.source import Attribute, parse_accuracy, parse_attribute
from powerlab.power.sources.ina3221 import conversion_period_s, parse_label, power_step_w
from powerlab.power.sources.rapl import ZoneName, parse_zone_name
from powerlab.power.sources.scan import natural, parse_integer

ANY_TEXT = st.text(max_size=60) | st.text(alphabet="0123456789-+. \n%:intelraplcpu_", max_size=40)


@given(st.integers(-(2**63) + 1, 2**63 - 1), st.sampled_from(["", "\n", " \t\n"]))
def test_integer_round_trip(value: int, space: str) -> None:
    assert parse_integer(f"{space}{value}{space}") == value


@given(ANY_TEXT)
def test_integer_of_any_text(text: str) -> None:
    try:
        value = parse_integer(text)
    except ValueError:
        return
    assert value == int(text.strip())


@pytest.mark.parametrize("text", ["", "N/A", "1.5", "0x10", "1 2", "1_000", "٣", str(2**63), "9" * 19, "-"])
def test_integer_refuses(text: str) -> None:
    with pytest.raises(ValueError, match=r"integer|64 bits"):
        parse_integer(text)


@given(st.sampled_from(["intel-rapl", "intel-rapl-mmio"]), st.lists(st.integers(0, 500), min_size=1, max_size=3))
def test_zone_round_trip(control: str, numbers: list[int]) -> None:
    name = f"{control}:{':'.join(map(str, numbers))}"
    assert parse_zone_name(name) == ZoneName(control, tuple(numbers))


@given(ANY_TEXT)
def test_zone_of_any_text(text: str) -> None:
    try:
        zone = parse_zone_name(text)
    except ValueError:
        return
    assert zone.numbers


def test_control_type_is_no_zone() -> None:
    with pytest.raises(ValueError, match="intel-rapl"):
        parse_zone_name("intel-rapl")


@given(ANY_TEXT)
def test_label_of_any_text(text: str) -> None:
    label = parse_label(text)
    assert label is None or (label == label.strip() and label.upper() != "NC")


@pytest.mark.parametrize(("text", "label"), [("GPU", "GPU"), ("NC", None), (" nc\n", None), ("", None), ("A\0", "A")])
def test_label(text: str, label: str | None) -> None:
    assert parse_label(text) == label


def test_step_of_the_published_example() -> None:
    """A 2 mΩ shunt steps by 20 mA, which is 398 mW at 19.9 V."""
    assert power_step_w(2000, 19900) == pytest.approx(0.398)
    assert power_step_w(0, 19900) == 0.0


@given(ANY_TEXT)
def test_attribute_of_any_text(text: str) -> None:
    try:
        attribute = parse_attribute(text)
    except ValueError:
        return
    assert f"{attribute.quantity}{attribute.index}_{attribute.kind}".replace("0", "") == text.replace("0", "")


def test_attributes() -> None:
    assert parse_attribute("power1_average") == Attribute(RailQuantity.POWER, 1, "average")
    assert parse_attribute("energy12_input") == Attribute(RailQuantity.ENERGY, 12, "input")
    for name in ("power1_cap", "temp1_input", "energy1_average", "power1_average_interval", "power_input"):
        with pytest.raises(ValueError, match="power or energy"):
            parse_attribute(name)


@given(st.floats(0, 100).map(lambda percent: round(percent, 1)))
def test_accuracy_round_trip(percent: float) -> None:
    assert parse_accuracy(f"{percent}%\n") == pytest.approx(1 - percent / 100, abs=1e-8)


@given(ANY_TEXT)
def test_accuracy_of_any_text(text: str) -> None:
    try:
        error = parse_accuracy(text)
    except ValueError:
        return
    assert 0 <= error <= 1


@given(ANY_TEXT | ANY_TEXT.map(lambda text: f"cpu  1 2 3 4 5 {text}\ncpu0 1"), st.integers(1, 1000))
def test_proc_stat_of_any_text(text: str, ticks: int) -> None:
    try:
        found = parse_proc_stat(text, ticks)
    except ValueError:
        return
    assert found.processors >= 1
    assert found.busy_s >= 0


def test_proc_stat_counts_work_and_neither_waiting_nor_stolen_time() -> None:
    text = "cpu  100 20 50 800 10 4 6 999 30 0\ncpu0 1 0\ncpu1 1 0\ncpu10 1 0\nctxt 5\n"
    found = parse_proc_stat(text, 100)
    assert found.processors == 3
    assert found.busy_s == pytest.approx(1.8)


def test_natural_order() -> None:
    names = ["energy10_input", "energy2_input", "energy1_input"]
    assert sorted(names, key=natural) == ["energy1_input", "energy2_input", "energy10_input"]


@given(ANY_TEXT, ANY_TEXT)
def test_natural_keys_of_any_texts_compare(left: str, right: str) -> None:
    assert (natural(left) < natural(right)) or (natural(left) >= natural(right))


@pytest.mark.parametrize(
    ("config", "period_s"),
    [
        (0x7127, 3 * 2 * 0.0011),  # the chip's own default: every channel once, 1.1 ms for each of bus and shunt
        (0x7727, 3 * 64 * 2 * 0.0011),  # what NVIDIA's driver calls continuous
        (0x7007, 3 * 2 * 0.00014),
        (0x1007, 1 * 2 * 0.00014),  # one channel alone
        (0x7FFF, 3 * 1024 * 2 * 0.008244),
        (0, 0.0),  # no channel enabled, or no configuration found
    ],
)
def test_the_averaging_of_a_configuration(config: int, period_s: float) -> None:
    assert conversion_period_s(config) == pytest.approx(period_s)


@given(st.integers(0, 0xFFFF))
def test_any_configuration_has_a_period(config: int) -> None:
    assert 0.0 <= conversion_period_s(config) <= 3 * 1024 * 2 * 0.008244 + 1e-9
