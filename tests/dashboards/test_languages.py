"""English and Chinese from one catalogue: which one a visitor gets, and that no word of it is missing."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from babel.messages.pofile import read_po
from fastapi.testclient import TestClient

import write_messages
from powerlab.analysis.dimensions import DIMENSIONS
from powerlab.analysis.roofline import Bound
from powerlab.analysis.verdict import Decision
from powerlab.domain.power import Availability
from powerlab.domain.quantity import METRICS, Provenance
from powerlab.domain.run import Verdict
from powerlab.measure.audit.mlperf import Ruling
from powerlab.protocol.access import Role
from powerlab.protocol.bookings import BookingKind
from powerlab.protocol.fleet import Activity
from powerlab.protocol.records import SweepState
from powerlab_dashboards import language
from powerlab_dashboards.charts.registry import RUN_CHARTS
from powerlab_dashboards.terms import NOUNS, TERMS
from tests.dashboards import plausible
from tests.dashboards.conftest import Shelf, add_recorded_run

PLACE = re.compile(r"%\(\w+\)s|%%|<[^>]+>")
CATALOGUES = sorted(language.FOLDER.glob("*.po"))
PACKAGE = language.FOLDER.parent


def messages(path: Path) -> dict[object, object]:
    with path.open("rb") as file:
        return {one.id: one.string for one in read_po(file) if one.id}


def forms(message: object) -> tuple[str, ...]:
    return tuple(map(str, message)) if isinstance(message, list | tuple) else (str(message),)


@pytest.fixture(params=CATALOGUES, ids=lambda path: path.stem)
def catalogue(request: pytest.FixtureRequest) -> Path:
    path: Path = request.param
    return path


def test_every_language_has_a_catalogue() -> None:
    assert [path.stem.replace("_", "-") for path in CATALOGUES] == [one for one in language.LANGUAGES if one != "en"]


def test_the_catalogue_has_the_words_of_the_code_and_no_others(catalogue: Path) -> None:
    in_the_code = {one.id for one in write_messages.extracted() if one.id}
    assert set(messages(catalogue)) == in_the_code, "run: make messages"


def test_every_message_is_translated(catalogue: Path) -> None:
    missing = [message for message, said in messages(catalogue).items() if not all(forms(said))]
    assert missing == [], f"translate these in {catalogue.name}"


def test_a_translation_has_the_places_and_tags_of_its_message(catalogue: Path) -> None:
    different = {
        message: said
        for message, said in messages(catalogue).items()
        for form in forms(said)
        if form and Counter(PLACE.findall(form)) != Counter(PLACE.findall(forms(message)[-1]))
    }
    assert different == {}


def test_the_words_of_the_library_are_in_the_catalogue() -> None:
    kinds = (Provenance, Verdict, Decision, Ruling, Availability, Activity, BookingKind, Role, Bound)
    words = {word.value for kind in kinds for word in kind}
    words |= {state.label for state in SweepState} | {one.title for one in DIMENSIONS}
    words |= {kind.title for kind in METRICS.values()}
    assert words <= set(TERMS)


def test_whatever_pages_count_has_its_plural() -> None:
    said = "\n".join(path.read_text() for path in PACKAGE.rglob("*") if path.suffix in (".py", ".html"))
    counted = re.findall(r"""\bcount\((?:[^()]|\([^()]*\))*?["']([a-z ]+)["']\)""", said)
    assert len(counted) > 10
    assert set(counted) <= set(NOUNS)


@pytest.mark.parametrize(
    ("cookie", "header", "expected"),
    [
        (None, "", "en"),
        (None, "zh-CN,zh;q=0.9,en;q=0.8", "zh-CN"),
        (None, "zh", "zh-CN"),
        (None, "de-DE,de;q=0.9", "en"),
        (None, "de, zh;q=0.5, en;q=0.7", "en"),
        (None, "zh;q=0, en", "en"),
        (None, "*;;;,\x00", "en"),
        ("zh-CN", "en", "zh-CN"),
        ("en", "zh-CN", "en"),
        ("tlh", "zh-CN", "zh-CN"),
    ],
)
def test_the_language_of_a_visitor(cookie: str | None, header: str, expected: str) -> None:
    assert language.chosen(cookie, header) == expected


def test_a_page_in_chinese(client: TestClient) -> None:
    page = client.get("/devices", headers={"accept-language": "zh-CN"})
    assert page.headers["content-language"] == "zh-CN"
    assert "accept-language" in page.headers["vary"]
    assert '<html lang="zh-CN"' in page.text
    assert "<h1" in page.text
    assert "设备" in page.text
    assert '<html lang="en"' in client.get("/devices").text


def test_the_page_of_a_run_has_no_english_heading_in_chinese(client: TestClient, shelf: Shelf) -> None:
    runs = shelf.add_sweep(plausible.xavier(), plausible.plan(batch_sizes=(1,))).runs
    bare = shelf.add_sweep(plausible.bare(), plausible.plan(modes=("current",))).runs
    for run in (runs[0], bare[0], add_recorded_run(shelf)):
        page = client.get(f"/runs/{run.id}", headers={"accept-language": "zh-CN"}).text
        page = re.sub(r'<span lang="en">.*?</span>|<code>.*?</code>|<span class="unit">.*?</span>', "", page)
        said = re.findall(r"<(?:h2|summary|dt|th scope=\"(?:col|row)\")[^>]*>(.*?)</(?:h2|summary|dt|th)>", page)
        assert len(said) > 10
        assert [
            text for text in said if re.search(r"[A-Za-z]{2}", text) and not re.search(r"[\u4e00-\u9fff]", text)
        ] == []


def test_the_charts_of_a_run_in_chinese(client: TestClient, shelf: Shelf) -> None:
    run = add_recorded_run(shelf)
    for name in RUN_CHARTS:
        layout = client.get(f"/runs/{run.id}/charts/{name}", headers={"accept-language": "zh-CN"}).json()["layout"]
        titles = [value["title"]["text"] for key, value in layout.items() if re.fullmatch(r"[xy]axis\d*", key)]
        assert len(titles) >= 2
        assert all(re.search(r"[\u4e00-\u9fff]", title) for title in titles)
        assert not re.search(r"timed|slowest|warm-up|idle", " ".join(one["text"] for one in layout["annotations"]))


def test_the_switch_is_remembered_and_leads_back(client: TestClient) -> None:
    page = client.get("/devices?show=busy")
    (switch,) = re.findall(r'href="(/language/[^"]+)"', page.text)
    answer = client.get(switch, follow_redirects=False)
    assert answer.headers["location"] == "/devices?show=busy"
    assert '<html lang="zh-CN"' in client.get("/").text
    client.get("/language/en")
    assert '<html lang="en"' in client.get("/", headers={"accept-language": "zh-CN"}).text


@pytest.mark.parametrize("elsewhere", ["https://elsewhere.example", "//elsewhere.example", "/\\elsewhere.example"])
def test_the_switch_leads_to_no_other_server(client: TestClient, elsewhere: str) -> None:
    answer = client.get("/language/zh-CN", params={"next": elsewhere}, follow_redirects=False)
    assert answer.headers["location"] == "/"


def test_there_is_no_other_language(client: TestClient) -> None:
    assert client.get("/language/tlh").status_code == 404
