"""The table of a layer profile and the sentences below it."""

from __future__ import annotations

from dataclasses import replace

import pytest
from rich.console import Console

from layer_profiles import figure, layer_profile
from powerlab.cli.commands.layers.table import layer_table, layer_words
from powerlab.domain.layers import LayerProfile, Roof
from powerlab.domain.quantity import Provenance
from powerlab.domain.run import Finding, Verdict

ROOF = Roof(peak_gflops=200.0, memory_gb_per_s=20.0)
MEASURED = layer_profile(power=Provenance.MEASURED, clock=Provenance.MEASURED, roof=ROOF)


def printed(profile: LayerProfile, width: int = 160) -> list[str]:
    console = Console(width=width, markup=False, emoji=False)
    with console.capture() as captured:
        console.print(layer_table(profile))
    return captured.get().splitlines()


def row(profile: LayerProfile, name: str) -> list[str]:
    return next(line.split() for line in printed(profile) if name in line)


def words(profile: LayerProfile) -> str:
    return "\n".join(text.plain for text in layer_words(profile))


def test_there_is_a_row_a_layer_with_its_figures():
    assert row(MEASURED, "conv_0") == [
        *("1", "conv_0", "conv_direct", "1x8x14x14", "2.00", "±0.10", "1.800", "14.00", "±0.70", "28.0", "±1.4"),
        *("11.20", "±0.56", "25.0", "118", "59", "%", "cpu"),
    ]


def test_the_title_says_what_was_run():
    assert "resnet50, batch 1, 2 threads, mode MAXN, avx2" in printed(MEASURED)[0]
    assert "1 thread," in printed(replace(MEASURED, threads=1))[0]


def test_provenance_stands_under_its_columns():
    assert sum(line.count("measured") for line in printed(MEASURED)) == 5
    mixed = printed(layer_profile(power=Provenance.ESTIMATED, clock=Provenance.MEASURED))
    assert sum(line.count("measured") for line in mixed) == 2
    assert sum(line.count("estimated") for line in mixed) == 3


def test_the_sum_stands_above_the_whole():
    lines = [line.split() for line in printed(MEASURED)]
    total = next(cells for cells in lines if cells[:3] == ["sum", "of", "layers"])
    whole = next(cells for cells in lines if cells[:1] == ["whole"])
    assert "100.0" in total
    assert "100.0" in whole
    assert lines.index(total) == lines.index(whole) - 1


def test_without_power_cells_are_empty_and_not_zero():
    cells = row(layer_profile(power=None, roof=ROOF), "conv_0")
    assert cells.count("–") == 3  # W, mJ, mJ above idle
    assert "0.000" not in cells


def test_without_a_roof_no_share_of_it_is_shown():
    assert row(layer_profile(), "conv_0")[-1] == "–"


@pytest.mark.parametrize("width", [60, 80, 100])
def test_a_narrow_terminal_cuts_no_figure(width):
    text = "".join("".join(printed(MEASURED, width)).split())
    assert "1.4" in text
    assert "…" not in text


def test_it_is_said_what_the_power_is():
    assert "Power is ina3221:CPU: the module; 7.00 ±0.35 W when idle." in words(MEASURED)
    assert "no idle baseline" in words(replace(MEASURED, idle_power=None))


def test_it_is_said_why_there_is_no_power():
    text = words(layer_profile(power=None))
    assert "No joules: no power source can be read here. The last columns share out the time." in text
    assert "times the energy" not in text


@pytest.mark.parametrize(
    ("value", "said"),
    [(1.0, "1.000 ±0.020 times the energy of its layers, which agrees with 1."), (1.2, "which is not 1: a layer")],
)
def test_whole_and_layers_are_held_against_each_other(value, said):
    ratio = figure("whole_per_sum_energy", value, Provenance.MEASURED, 0.02)
    assert said in words(replace(MEASURED, energy_ratio=ratio))


def test_a_ratio_without_an_interval_claims_nothing():
    bare = replace(MEASURED.energy_ratio, low=None, high=None)
    assert "times the energy of its layers." in words(replace(MEASURED, energy_ratio=bare))


def test_a_missing_layer_and_a_missing_whole_are_told_apart():
    layers = (replace(MEASURED.layers[0], energy=None), *MEASURED.layers[1:])
    assert "because the power of 1 of them may not be used" in words(
        replace(MEASURED, layers=layers, energy_ratio=None)
    )
    assert "because its power may not be used" in words(replace(MEASURED, energy_ratio=None))


def test_the_roof_is_stated_or_said_to_be_missing():
    assert "200 GFLOP/s and 20.0 GB/s, which meet at 10.0 FLOP/B" in words(MEASURED)
    assert "No roofline: a simulated board has none." in words(layer_profile())


def test_findings_are_counted_and_shown_once():
    hot = Finding(rule="throttled", verdict=Verdict.FLAGGED, detail="it was hot.")
    layers = tuple(replace(layer, findings=(hot,)) for layer in MEASURED.layers)
    text = words(replace(MEASURED, layers=layers))
    assert "flagged (throttled, 4 times): it was hot." in text
    assert text.count("it was hot") == 1


def test_a_finding_of_the_profile_is_shown_too():
    moved = Finding(rule="mode-drift", verdict=Verdict.VOID, detail="the clock fell")
    assert "void (mode-drift, once): the clock fell." in words(replace(MEASURED, findings=(moved,)))


def test_names_from_a_file_are_printed_as_they_are():
    layers = (replace(MEASURED.layers[0], name="[red]x[/red] :smile:"), *MEASURED.layers[1:])
    text = " ".join("".join(printed(replace(MEASURED, layers=layers), 200)).split())
    assert "[red]x[/red] :smile:" in text
