from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.domain.errors import PowerlabError
from powerlab.modes.knobs.nvpmodel.conf import ModeNow, parse_conf, parse_query

NAMES = st.from_regex(r"[A-Z][A-Z0-9_]{0,15}", fullmatch=True)

CONF = """\
# a comment
< PARAM TYPE=FILE NAME=CPU_ONLINE >
CORE_0 /sys/devices/system/cpu/cpu0/online
CORE_1 /sys/devices/system/cpu/cpu1/online   # behind a line

< PARAM TYPE=CLOCK NAME=GPU >
MAX_FREQ /sys/gpu/max_freq
MIN_FREQ /sys/gpu/min_freq
< POWER_MODEL ID=0 NAME=MAXN >
CPU_ONLINE CORE_0 1
CPU_ONLINE CORE_1 1
GPU MAX_FREQ -1
<POWER_MODEL ID=17 NAME=MODE_SMALL>
CPU_ONLINE CORE_1 0
< FAN_CONFIG DEFAULT=quiet >
SOMETHING ELSE HERE
< PM_CONFIG DEFAULT=17 >
"""


def test_a_conf_is_read_with_gaps_in_its_numbers_and_blocks_it_does_not_know() -> None:
    conf = parse_conf(CONF)
    assert conf.default_id == 17
    assert [(model.id, model.name) for model in conf.models] == [(0, "MAXN"), (17, "MODE_SMALL")]
    assert conf.parameters["CPU_ONLINE"].paths["CORE_1"] == "/sys/devices/system/cpu/cpu1/online"
    assert conf.parameters["GPU"].kind == "CLOCK"
    assert conf.models[0].values["GPU", "MAX_FREQ"] == "-1"
    assert conf.models[1].values == {("CPU_ONLINE", "CORE_1"): "0"}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "no power mode"),
        ("< POWER_MODEL NAME=A >", "without number or name"),
        ("< POWER_MODEL ID=x NAME=A >", "without number or name"),
        ("< POWER_MODEL ID=1 >", "without number or name"),
        ("< POWER_MODEL ID=1 NAME=A >\n< POWER_MODEL ID=1 NAME=B >", "twice"),
        ("< POWER_MODEL ID=1 NAME=A >\n< POWER_MODEL ID=2 NAME=A >", "twice"),
    ],
)
def test_a_conf_that_cannot_be_meant_is_refused_in_words(text: str, says: str) -> None:
    with pytest.raises(PowerlabError, match=says):
        parse_conf(text)


@given(st.dictionaries(st.integers(0, 10_000), NAMES, min_size=1, max_size=8), st.booleans())
def test_every_written_mode_is_read_back(modes: dict[int, str], with_default: bool) -> None:
    names = {number: f"{name}{number}" for number, name in modes.items()}
    text = "".join(f"< POWER_MODEL ID={number} NAME={name} >\nP A {number}\n" for number, name in names.items())
    if with_default:
        text += f"< PM_CONFIG DEFAULT={min(names)} >\n"
    conf = parse_conf(text)
    assert {model.id: model.name for model in conf.models} == names
    assert all(model.values == {("P", "A"): str(model.id)} for model in conf.models)
    assert conf.default_id == (min(names) if with_default else None)


@given(
    st.text() | st.text(alphabet="<> =\n0_ABDEIMNOPRTW#") | st.lists(st.sampled_from(CONF.splitlines())).map("\n".join)
)
def test_no_text_breaks_the_parsers(text: str) -> None:
    parse_query(text)
    with suppress(PowerlabError):
        assert parse_conf(text).models


@given(NAMES, st.integers(0, 10_000), st.booleans(), st.booleans())
def test_the_mode_is_found_whatever_surrounds_it(name: str, number: int, warned: bool, windows: bool) -> None:
    lines = ["NVPM WARN: fan mode is not set!"] if warned else []
    lines += [f"NV Power Mode: {name}", str(number)]
    text = ("\r\n" if windows else "\n").join(lines) + "\n"
    assert parse_query(text) == ModeNow(id=number, name=name)


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ("", ModeNow(id=None, name=None)),
        ("NVPM ERROR: power mode is not set!\n", ModeNow(id=None, name=None)),
        ("NV Power Mode: CUSTOM\n", ModeNow(id=None, name="CUSTOM")),
        ("NV Power Mode: \n7\n", ModeNow(id=7, name=None)),
        ("7\n", ModeNow(id=None, name=None)),
    ],
)
def test_an_unset_or_custom_mode_is_no_error(text: str, mode: ModeNow) -> None:
    assert parse_query(text) == mode
