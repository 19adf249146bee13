"""The pages and charts of layer profiles."""

from __future__ import annotations

import json
from dataclasses import replace

import plotly.graph_objects as go
import pytest

from layer_profiles import layer_profile
from powerlab.domain.layers import Roof
from powerlab.domain.quantity import Provenance
from powerlab.domain.run import Finding, Verdict
from powerlab_dashboards.charts.base import NoChart
from powerlab_dashboards.charts.registry import LAYER_CHARTS
from powerlab_dashboards.charts.theme import DARK, LIGHT, View
from tests.dashboards import plausible
from tests.dashboards.page_tree import parse

VIEWS = [View(theme=theme, narrow=narrow) for theme in (LIGHT, DARK) for narrow in (False, True)]
ROOF = Roof(peak_gflops=200.0, memory_gb_per_s=20.0)
MEASURED = layer_profile(power=Provenance.MEASURED, clock=Provenance.MEASURED, roof=ROOF)
NONE = layer_profile("00000000-0000-4000-8000-000000000001", power=None)


def figure(name, profile, view=None):
    made = LAYER_CHARTS[name].build(profile, view or View())
    assert not isinstance(made, NoChart), made
    go.Figure(made)
    json.dumps(made, allow_nan=False)
    return made


def bars(made, axis):
    """Return the length of every bar on an axis by its place."""
    return {
        y: x for trace in made["data"] if trace["xaxis"] == axis for x, y in zip(trace["x"], trace["y"], strict=True)
    }


@pytest.fixture
def stored(shelf):
    """Both profiles, and a device they are of."""
    device = shelf.add_sweep(plausible.xavier(), plausible.plan()).device_id
    shelf.add_layers(device, MEASURED, NONE)
    return shelf


@pytest.mark.parametrize("view", VIEWS, ids=lambda view: f"{view.theme.name}-{view.narrow}")
@pytest.mark.parametrize("name", list(LAYER_CHARTS))
@pytest.mark.parametrize("profile", [MEASURED, layer_profile(), NONE], ids=["roof", "no roof", "no power"])
def test_every_chart_is_a_valid_figure_in_every_view(name, view, profile):
    made = figure(name, profile, view)
    assert made["layout"]["font"]["color"] == view.theme.ink


def test_bars_are_the_layers_time_and_joules_beside_their_names():
    made = figure("layer-energy", MEASURED)
    assert bars(made, "x") == pytest.approx({0: 0.2, 1: 2.0, 2: 0.5, 3: 0.8})
    assert bars(made, "x2") == pytest.approx({0: 1.8, 1: 28.0, 2: 5.0, 3: 8.8})
    layout = made["layout"]
    assert layout["xaxis"]["title"]["text"] == "time, ms (measured)"
    assert layout["xaxis2"]["title"]["text"] == "energy, mJ (measured)"
    assert layout["yaxis"]["ticktext"] == [layer.name for layer in MEASURED.layers]
    conv = next(trace for trace in made["data"] if 1 in trace["y"] and trace["xaxis"] == "x2")
    assert conv["error_x"]["array"] == pytest.approx([1.4])


def test_without_power_bars_are_milliseconds_and_never_zero_joules():
    made = figure("layer-energy", NONE)
    assert bars(made, "x") == pytest.approx({0: 0.2, 1: 2.0, 2: 0.5, 3: 0.8})
    assert made["layout"]["xaxis"]["title"]["text"] == "time, ms (simulated)"
    assert "mJ" not in json.dumps(made)


def test_a_layer_without_usable_power_has_no_bar_for_it():
    layers = tuple(replace(layer, energy=None) if layer.index == 2 else layer for layer in MEASURED.layers)
    assert sorted(bars(figure("layer-energy", replace(MEASURED, layers=layers)), "x2")) == [0, 1, 3]


def test_of_many_layers_the_costliest_have_a_bar_and_the_others_one_together():
    first = MEASURED.layers[1]
    layers = tuple(replace(first, index=index, share_percent=float(index)) for index in range(100))
    made = figure("layer-energy", replace(MEASURED, layers=layers))
    assert made["layout"]["yaxis"]["ticktext"][-1] == "60 other layers"
    assert sum(bars(made, "x").values()) == pytest.approx(100 * first.time.value)


def test_layers_stand_under_their_roof():
    made = figure("layer-roofline", MEASURED)
    *points, roof = made["data"]
    assert roof["mode"] == "lines"
    assert roof["name"].startswith("roofline: 200 GFLOP/s, 20.0 GB/s (measured)")
    x, y = roof["x"], roof["y"]
    assert (x[1], y[1], y[2]) == (10, 200, 200)
    assert y[0] == pytest.approx(x[0] * 20)
    placed = {trace["name"]: (trace["x"], trace["y"]) for trace in points}
    assert set(placed) == {"FusedConv", "MaxPool", "FusedGemm"}  # what only moves numbers has no place here
    assert placed["FusedConv"][1] == pytest.approx([118])


def test_without_a_roof_none_is_drawn():
    assert all(trace["mode"] == "markers" for trace in figure("layer-roofline", layer_profile())["data"])


def test_a_model_of_moves_alone_says_that_there_is_nothing_to_draw():
    moves = replace(MEASURED, layers=MEASURED.layers[:1])
    assert isinstance(LAYER_CHARTS["layer-roofline"].build(moves, View()), NoChart)
    assert isinstance(LAYER_CHARTS["layer-energy"].build(replace(MEASURED, layers=()), View()), NoChart)


def test_a_name_from_a_file_is_no_markup_in_a_chart():
    layers = (*MEASURED.layers[:1], replace(MEASURED.layers[1], name="<b>x</b>", operator="<i>"))
    for name in LAYER_CHARTS:
        made = json.dumps(figure(name, replace(MEASURED, layers=layers)))
        assert "<b>x" not in made
        assert "<i>" not in made


def test_the_list_names_every_profile_and_where_its_power_comes_from(client, stored):
    html = client.get("/layers").text
    page = parse(html)
    for profile in (MEASURED, NONE):
        assert f'href="/layers/{profile.id}"' in html
    assert "measured" in page.text
    assert "no power" in page.text


def test_before_the_first_profile_the_list_says_how_to_make_one(client):
    assert "powerlab layers resnet50" in client.get("/layers").text


def test_a_profile_shows_every_layer_the_sum_and_what_the_rules_said(client, stored):
    page = parse(client.get(f"/layers/{MEASURED.id}").text)
    for words in ("conv_0", "conv_direct_f32_2x6_avx2", "One inference", "Inference ÷ sum of layers"):
        assert words in page.text
    assert "throttled, 1 layer, e.g. it was hot" in " ".join(page.text.split())


def test_a_profile_without_power_says_why_and_shows_no_zero(client, stored):
    text = parse(client.get(f"/layers/{NONE.id}").text).text
    assert "No energy figures: no power source can be read here." in text
    assert "0 W" not in text


@pytest.mark.parametrize("name", list(LAYER_CHARTS))
def test_figures_have_addresses(client, stored, name):
    for query in ("", "?theme=dark&narrow=1"):
        assert client.get(f"/layers/{MEASURED.id}/charts/{name}{query}").json()["data"]


@pytest.mark.parametrize(
    "path", ["/layers/none", "/layers/none/charts/layer-energy", f"/layers/{MEASURED.id}/charts/x"]
)
def test_what_is_not_there_is_said_to_be_missing(client, stored, path):
    reply = client.get(path)
    assert reply.status_code == 404
    assert "There is no" in reply.text or "there is no" in reply.text


def test_the_page_of_layers_is_in_the_navigation(client):
    assert '<a href="/layers" aria-current="page">Layers</a>' in client.get("/layers").text
    assert '<a href="/layers">Layers</a>' in client.get("/").text


def test_what_a_file_is_called_is_no_markup_in_a_page(client, stored, shelf):
    evil = "<script>alert('x')</script>\"'><img src=x onerror=alert(1)>"
    layers = (replace(MEASURED.layers[1], name=evil, nodes=(evil,), kernel=evil),)
    profile = replace(MEASURED, id="00000000-0000-4000-8000-000000000002", model=evil, mode=evil, layers=layers)
    device = shelf.add_sweep(plausible.laptop(), plausible.plan(modes=("current",))).device_id
    shelf.add_layers(device, profile)
    for path in ("/layers", f"/layers/{profile.id}"):
        html = client.get(path).text
        assert "<script>alert" not in html
        assert "<img" not in html


def test_layers_that_were_not_steady_are_told_by_the_profile(client, shelf):
    drifting = Finding(rule="steady-state", verdict=Verdict.FLAGGED, detail="the power of conv_0 still drifted")
    device = shelf.add_sweep(plausible.laptop(), plausible.plan(modes=("current",))).device_id
    shelf.add_layers(device, replace(MEASURED, findings=(drifting,)))
    assert "the power of conv_0 still drifted" in client.get(f"/layers/{MEASURED.id}").text
