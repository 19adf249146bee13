"""Whether a run may go on, for any course of temperatures, readable or not."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from powerlab.domain.temperature import TemperatureLimits
from powerlab.measure.heat.judge import BLIND_S, NO_TEMPERATURE, TOO_HOT, HeatJudge

ZONES = st.sampled_from(["CPU-therm", "GPU-therm", "GPU0"])
LOOK = st.dictionaries(ZONES, st.floats(-30, 130).map(lambda value: round(value, 1)))
LOOKS = st.lists(st.tuples(st.floats(0.1, 4.0), LOOK), max_size=12)
LIMIT_C = st.floats(0, 110).map(lambda value: round(value, 1))


def judged(limit_c: float, looks: list[tuple[float, dict[str, float]]]) -> tuple[HeatJudge, list[bool]]:
    judge, now_s, answers = HeatJudge(TemperatureLimits(max_c=limit_c)), 100.0, []
    for passed_s, celsius in looks:
        now_s += passed_s
        answers.append(judge.look(celsius, now_s))
    return judge, answers


@given(LIMIT_C, LOOKS)
def test_a_run_is_ended_by_the_first_reading_above_the_limit_and_stays_so(limit_c, looks):
    looks = [(passed_s, celsius) for passed_s, celsius in looks if celsius]
    judge, answers = judged(limit_c, looks)
    hot = [max(celsius.values()) > limit_c for _, celsius in looks]
    assert answers == [any(hot[: number + 1]) for number in range(len(hot))]
    assert judge.ended == (TOO_HOT if any(hot) else None)
    peak = max((value for _, celsius in looks for value in celsius.values()), default=None)
    assert (None if judge.peak is None else judge.peak.celsius) == peak
    if any(hot):
        assert f"reached {peak:.1f} °C, and {limit_c:g} °C is the most" in judge.why()
    else:
        assert judge.why() == ""


@given(LIMIT_C, LOOKS, st.randoms())
def test_the_order_of_zones_says_nothing(limit_c, looks, random):
    shuffled = []
    for passed_s, celsius in looks:
        items = list(celsius.items())
        random.shuffle(items)
        shuffled.append((passed_s, dict(items)))
    (one, answers), (other, again) = judged(limit_c, looks), judged(limit_c, shuffled)
    assert answers == again
    assert one.ended == other.ended
    assert (one.peak is None) == (other.peak is None)


@given(LIMIT_C, LOOKS)
def test_a_run_that_nobody_can_watch_is_ended_after_five_seconds_and_not_before(limit_c, looks):
    looks = [(passed_s, {zone: value for zone, value in one.items() if value <= limit_c}) for passed_s, one in looks]
    judge, answers = judged(limit_c, looks)
    blind_s, longest_s, seen_first = 0.0, 0.0, False
    for number, (passed_s, celsius) in enumerate(looks):
        blind_s = 0.0 if celsius else blind_s + (passed_s if seen_first or number else 0.0)
        seen_first = True
        longest_s = max(longest_s, blind_s)
    # Sums of floats that meet the limit to within rounding may fall to either side.
    if abs(longest_s - BLIND_S) > 1e-6:
        assert (judge.ended == NO_TEMPERATURE) == (longest_s > BLIND_S) == (bool(answers) and answers[-1])
        assert ("no temperature could be read for 5 s" in judge.why()) == (longest_s > BLIND_S)


@given(LIMIT_C)
def test_a_zone_that_cannot_be_read_is_no_cold_one(limit_c):
    judge, answers = judged(limit_c, [(1.0, {}), (1.0, {})])
    assert answers == [False, False]
    assert judge.peak is None
    assert judge.words() == "there was no temperature"


def test_what_was_watched_is_told_with_what_was_silent():
    judge, _ = judged(90.0, [(1, {"CPU-therm": 61.0, "GPU-therm": 58.0}), (1, {"CPU-therm": 70.25}), (1, {})])
    assert judge.words() == (
        "watched CPU-therm, GPU-therm: 70.2 °C at most (CPU-therm), and a run begins below 80 °C and is ended above "
        "90 °C; CPU-therm gave none in 1 of 3 looks; GPU-therm gave none in 2 of 3 looks"
    )
