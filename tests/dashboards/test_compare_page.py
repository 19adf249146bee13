"""The page that compares sets of runs: its address, its figures (those of `powerlab compare`), its ways out."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import pytest
from starlette.testclient import TestClient

from powerlab.analysis.set_wording import headline
from powerlab.analysis.sets import compare_sets
from powerlab.analysis.wording import ratio_words, verdict_words
from powerlab.domain.run import Run
from powerlab_dashboards.charts.registry import SET_CHARTS
from powerlab_dashboards.pages.compared_sets import find_sets, run_sets
from tests.dashboards import plausible
from tests.dashboards.conftest import Shelf, Shelved, client_of, open_shelf
from tests.dashboards.page_tree import parse

PLAN = plausible.plan(modes=("MAXN", "MODE_15W"))
EFFICIENCY = "efficiency_img_per_s_per_w"


def faster(run: Run, factor: float) -> Run:
    """Return the run with more images per second and per joule."""
    more = {"throughput_img_per_s", EFFICIENCY}
    return replace(
        run,
        metrics=tuple(
            replace(m, value=m.value * factor, low=m.low * factor, high=m.high * factor)
            if m.name in more and m.low is not None and m.high is not None
            else m
            for m in run.metrics
        ),
    )


def add(shelf: Shelf, name: str, factor: float = 1.0, seed: int = 1, **changes: object) -> Shelved:
    plan = replace(PLAN, **changes)  # type: ignore[arg-type]
    bench = plausible.xavier(name)
    made = [faster(run, factor) for run in plausible.runs(bench, plan, "to be set", seed)]
    return shelf.add_sweep(bench, plan, made=made)


@pytest.fixture
def two(shelf: Shelf) -> tuple[Shelved, Shelved]:
    return add(shelf, "one", seed=1), add(shelf, "other", 1.5, seed=2)


@pytest.fixture(scope="module")
def standing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[TestClient, str]]:
    """Return a client of a page that refuses, over two sweeps, and one's identifier."""
    shelf = open_shelf(tmp_path_factory.mktemp("standing") / "powerlab.db")
    listed, _ = add(shelf, "one", seed=1), add(shelf, "other", 1.5, seed=2)
    with client_of(shelf) as client:
        yield client, listed.id
    shelf.store.close()


def test_the_page_has_the_figures_and_words_of_the_command_line(
    shelf: Shelf, client: TestClient, two: tuple[Shelved, Shelved]
) -> None:
    text = parse(client.get(f"/compare?a={two[0].id}&b={two[1].id}").text).one("main").text
    with shelf.store.session() as session:
        sets = run_sets(find_sets(session, [one.id for one in two]))
    compared = compare_sets(sets, EFFICIENCY)
    assert "other; winner: beats one by" in headline(compared)
    assert headline(compared) in text
    whole = compared.against[0].whole
    assert whole is not None
    assert ratio_words(whole) in text
    assert verdict_words(whole, claimed=True) in text
    for match in compared.against[0].matches:
        assert match.ratio is not None
        assert ratio_words(match.ratio) in text


def test_the_baseline_is_the_first_set_and_can_be_another_one(client: TestClient, two: tuple[Shelved, Shelved]) -> None:
    page = client.get(f"/compare?a={two[0].id}&b={two[1].id}")
    (other,) = [link.attributes["href"] for link in parse(page.text).one("main").all("a") if "make it" in link.text]
    assert other == f"/compare?a={two[1].id}&b={two[0].id}"
    assert "one; " not in headline_of(client.get(other).text, "Efficiency")


def headline_of(html: str, title: str) -> str:
    cards = [card for card in parse(html).one("main").all("article") if title in card.one("h3").text]
    return cards[0].text


def test_a_form_with_marks_leads_to_an_address_to_share(client: TestClient, two: tuple[Shelved, Shelved]) -> None:
    answer = client.get(
        "/compare", params={"set": [two[0].id, two[1].id, "mode=MAXN", ""], "only-model": "resnet50"},
        follow_redirects=False,
    )  # fmt: skip
    assert answer.status_code == 303
    assert answer.headers["location"] == (
        f"/compare?a={two[0].id}:model=resnet50&b={two[1].id}:model=resnet50&c=mode=MAXN,model=resnet50"
    )


def test_devices_engines_and_modes_can_be_compared_too(client: TestClient, two: tuple[Shelved, Shelved]) -> None:
    page = client.get("/compare?a=device=one&b=device=other")
    assert parse(page.text).one("h1").text == "one and other compared"
    split = client.get(f"/compare?a={two[0].id}:mode=MAXN&b={two[0].id}:mode=MODE_15W")
    assert parse(split.text).one("h1").text == "MAXN and MODE_15W compared"
    assert "4 points in common" in split.text


def test_one_sweep_is_offered_against_itself(client: TestClient, two: tuple[Shelved, Shelved]) -> None:
    page = client.get(f"/compare?a={two[0].id}").text
    assert f"/compare?a={two[0].id}:mode=MAXN&amp;b={two[0].id}:mode=MODE_15W" in page
    assert "By threads" in page


def test_what_did_not_match_is_listed_with_the_reason(shelf: Shelf, client: TestClient) -> None:
    whole, part = add(shelf, "one"), add(shelf, "other", modes=("MAXN",))
    text = parse(client.get(f"/compare?a={whole.id}&b={part.id}").text).one("main").text
    assert "4 of 8 points of one" in text
    assert "mode MODE_15W: other has no mode MODE_15W." in text


def test_sets_without_a_common_point_can_be_let_differ(shelf: Shelf, client: TestClient) -> None:
    one, other = add(shelf, "one", modes=("MAXN",)), add(shelf, "other", modes=("MODE_15W",))
    address = f"/compare?a={one.id}&b={other.id}"
    page = client.get(address)
    assert "no point with a figure in common" in page.text
    assert 'name="ignore" type="checkbox" value="mode"' in page.text
    matched = client.get(f"{address}&ignore=mode")
    assert "no point with a figure in common" not in matched.text
    assert "--ignore mode" in matched.text


@pytest.mark.parametrize(
    ("query", "status", "sentence"),
    [
        ("a=device%3Dnobody&b=device%3Done", 404, "There is no device &#39;nobody&#39;"),
        ("a=nosuch&b=device%3Done", 404, "There is no sweep &#39;nosuch&#39;"),
        ("a=speed%3D1&b=device%3Done", 422, "There is no key &#39;speed&#39;"),
        ("a=threads%3Dmany&b=device%3Done", 422, "is no number of threads"),
        ("a=mode%3D9W&b=device%3Done", 422, "no stored run has mode=9W"),
        ("a=device%3Done&b=device%3Dother&ignore=mode", 422, "Without mode several points of one are alike"),
        ("a=device%3Done&b=device%3Dother&ignore=colour", 422, "There is no dimension &#39;colour&#39;"),
        ("&".join(f"set=threads%3D{number}" for number in range(9)), 422, "At most 8 sets can be compared"),
    ],
)
def test_what_cannot_be_compared_is_said_above_the_choice(
    standing: tuple[TestClient, str], query: str, status: int, sentence: str
) -> None:
    client, listed = standing
    page = client.get(f"/compare?{query}")
    assert page.status_code == status
    assert sentence.lower() in page.text.lower()
    assert listed in page.text, "the choice is there"


def test_charts_of_sets_draw_a_front_per_set_and_ratios_around_1(
    client: TestClient, two: tuple[Shelved, Shelved]
) -> None:
    for name in SET_CHARTS:
        figure = json.loads(client.get(f"/compare/charts/{name}?a={two[0].id}&b={two[1].id}").text)
        names = {trace["name"] for trace in figure["data"]}
        assert "other" in names
        assert {trace["type"] for trace in figure["data"]} == {"scatter"}
        said = figure["layout"]["xaxis"]["title"]["text"]
        assert "simulated" in said or "ratio" in said
    assert "takes 2 sets" in client.get("/compare/charts/set-fronts").text
    assert client.get("/compare/charts/nosuch").status_code == 404


def test_two_sweeps_of_one_device_are_told_apart(shelf: Shelf, client: TestClient) -> None:
    one, other = add(shelf, "one", seed=1), add(shelf, "one", seed=2)
    title = parse(client.get(f"/compare?a={one.id}&b={other.id}").text).one("h1").text
    assert title == "2026-11-21 09:31 and 2026-11-21 09:32 compared"


@pytest.mark.campaign
def test_the_baseline_is_listed_page_by_page(shelf: Shelf, client: TestClient) -> None:
    wide = {"threads": (1, 2), "batch_sizes": tuple(range(1, 29)), "modes": ("MAXN",)}
    one, other = add(shelf, "one", **wide), add(shelf, "other", **wide)
    first = client.get(f"/compare?a={one.id}&b={other.id}").text
    assert "Points 1 to 50 of 56" in first
    assert "Points 51 to 56 of 56" in client.get(f"/compare?a={one.id}&b={other.id}&after=50").text
    assert len(first.encode()) < 150_000
