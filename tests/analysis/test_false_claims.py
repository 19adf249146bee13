"""Random labels of one and the same point: a winner is claimed in no more than 5 of 100 draws, on real repeats too."""

from __future__ import annotations

import math
import random

import msgspec
import pytest

from bench.claims.false_claims import (
    COMPARED,
    DESIGNS,
    FOLDER,
    Design,
    Repeats,
    as_measured,
    claims_a_winner,
    condensed,
    false_claims,
    labelled,
    may_claim,
    runs_of,
    wilson,
)
from powerlab.analysis.comparison import CARE
from powerlab.domain.quantity import METRICS

DRAWS = 200
SLACK = 2.5 * math.sqrt(0.05 * 0.95 / DRAWS)
"""What chance may add to 5 % in so many draws."""


def recorded(name: str) -> Repeats:
    return msgspec.json.decode((FOLDER / f"{name}.json").read_bytes(), type=Repeats)


def without_rest(repeats: Repeats, names: tuple[str, ...]) -> Repeats:
    return msgspec.structs.replace(repeats, values={name: repeats.values[name] for name in names}, budget=[])


@pytest.mark.parametrize("name", ["here", "jetson-agx-orin", "jetson-agx-xavier"])
@pytest.mark.parametrize("design", [Design(labels=2, repeats=3), Design(labels=5, repeats=3)], ids=str)
def test_real_repeats_are_seldom_told_from_themselves(name, design):
    some = without_rest(recorded(name), ("latency_p50_ms", "throughput_img_per_s"))
    for usual, strict in false_claims(some, design, draws=DRAWS).values():
        assert usual / DRAWS < 0.05 + SLACK
        assert strict <= usual


def clusters(seed: int) -> Repeats:
    """Return repeats that lie in two places, as a clock that is either boosted or not makes them."""
    chance = random.Random(seed)
    values = [chance.choice([10.0, 10.6]) * (1 + chance.gauss(0, 0.002)) for _ in range(40)]
    return Repeats(
        name=f"clusters {seed}",
        processor="",
        provenance={"latency_p50_ms": "measured"},
        values={"latency_p50_ms": values},
        budget=[],
    )


def test_the_care_is_needed_and_two_clusters_are_its_limit(monkeypatch):
    """Scatter in two places is the worst there is for three repeats: their own spread can look far too small."""
    design = Design(labels=2, repeats=3)

    def share() -> float:
        found = [false_claims(clusters(seed), design, draws=DRAWS)["latency_p50_ms"][0] for seed in range(5)]
        return sum(found) / 5 / DRAWS

    careful = share()
    monkeypatch.setattr("powerlab.analysis.comparison.CARE", 1.0)
    assert CARE == 2.0
    assert careful < share()
    assert careful < 0.06


def test_every_label_of_a_draw_has_every_block_once():
    runs, chance = runs_of(clusters(1)), random.Random(1)
    three = Design(labels=3, repeats=4)
    labels = as_measured(runs, labelled(len(runs), three, chance), three)
    assert [[run.repeat for run in label] for label in labels] == [[0, 1, 2, 3]] * 3
    assert len({run.id for label in labels for run in label}) == 12
    two = Design(labels=2, repeats=4, one_sweep=False)
    apart = as_measured(runs, labelled(len(runs), two, chance), two)
    assert len({(run.sweep_id, run.repeat) for label in apart for run in label}) == 8


@pytest.mark.parametrize("design", DESIGNS, ids=lambda design: design.title)
def test_no_draw_is_set_aside_that_the_rule_would_call_a_winner(design):
    repeats, chance, name = clusters(2), random.Random(3), "latency_p50_ms"
    runs, claims = runs_of(repeats), 0
    for _ in range(DRAWS):
        places = labelled(len(runs), design, chance)
        claimed = claims_a_winner(as_measured(runs, places, design), name)
        values = [[repeats.values[name][place] for place in label] for label in places]
        assert not claimed or may_claim(values, higher=False, paired=design.one_sweep)
        claims += claimed
    assert claims or design.labels > 2


def test_a_rates_interval_holds_it_and_has_no_impossible_end():
    assert wilson(0, 1000)[0] == pytest.approx(0, abs=1e-12)
    assert wilson(50, 1000) == pytest.approx((0.0381, 0.0653), abs=1e-3)


def test_what_is_recorded_is_read_back():
    metrics = [
        {"name": name, "value": 2.0 * place, "provenance": "simulated"} for place, name in enumerate(COMPARED, 1)
    ]
    line = {"metric": "power_w", "origin": "rail", "effect": "gain", "kind": "B", "standard_uncertainty": 0.6}
    found = condensed("one", {"runs": [{"repeat": n, "metrics": metrics, "budget": [line]} for n in range(3)]})
    assert found.values["power_w"] == [6.0] * 3
    (run, *_) = runs_of(found)
    assert run.budget[0].standard_uncertainty == pytest.approx(0.6)
    assert set(found.values) == set(COMPARED) <= METRICS.keys()
