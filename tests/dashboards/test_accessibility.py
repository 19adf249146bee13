"""What a reader without a mouse, without colours or without a screen needs from every page."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from layer_profiles import layer_profile
from powerlab.domain.quantity import Provenance
from powerlab.domain.run import Verdict
from powerlab_dashboards.pages.device import TABS
from tests.dashboards import plausible
from tests.dashboards.conftest import add_recorded_run, client_of, open_shelf
from tests.dashboards.page_tree import Element, parse

PAGES = (
    "home",
    "devices",
    "device",
    "device history",
    "device modes",
    "device sensors",
    "device bookings",
    "simulated",
    "bare",
    "running",
    "run",
    "failed run",
    "audit",
    "refused audit",
    "nowhere",
    "new sweep",
    "models",
    "model",
    "model table",
    "studies",
    "study",
    "layers",
    "layer profile",
    "compare",
    "comparison",
    "comparison of nothing",
    "trends",
    "jobs",
    "admin",
    "admin log",
)
STYLES = Path(__file__).parents[2] / "dashboards/powerlab_dashboards/static/powerlab.css"


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Element]]:
    """Return every kind of page as a tree."""
    shelf = open_shelf(tmp_path_factory.mktemp("pages") / "powerlab.db")
    plan = plausible.plan(modes=("current",), batch_sizes=(1,), models=("resnet50", "alexnet"))
    made = plausible.runs(plausible.laptop(), plan, "to be set")
    made[0] = plausible.failed(made[0].point, "to be set")
    simulated = shelf.add_sweep(plausible.xavier(), plausible.plan())
    bare = shelf.add_sweep(plausible.bare(), plausible.plan(modes=("current",)))
    running = shelf.add_sweep(plausible.laptop(), plan, made=made, stored=4)
    shelf.add_layers(simulated.device_id, layer_profile())
    addresses = {
        "home": "/",
        "devices": "/devices",
        "device": f"/devices/{simulated.device_id}",
        **{f"device {part}": f"/devices/{bare.device_id}/{part}" for part in filter(None, TABS)},
        "simulated": f"/sweeps/{simulated.id}",
        "bare": f"/sweeps/{bare.id}",
        "running": f"/sweeps/{running.id}",
        "run": f"/runs/{simulated.runs[0].id}",
        "failed run": f"/runs/{running.runs[0].id}",
        "audit": f"/runs/{add_recorded_run(shelf).id}/audit",
        "refused audit": f"/runs/{running.runs[0].id}/audit",
        "nowhere": "/nowhere",
        "models": "/models",
        "model": "/models/resnet50",
        "model table": "/models/alexnet?view=table",
        "new sweep": f"/sweeps/new?device={simulated.device_id}&threads=x&latency_bound_ms=x",
        "studies": "/studies",
        "study": "/studies/xavier-resnet50",
        "layers": "/layers",
        "layer profile": f"/layers/{layer_profile().id}",
        "trends": "/trends",
        "jobs": "/jobs",
        "admin": "/admin",
        "admin log": "/admin/log",
        "compare": f"/compare?a={simulated.id}",
        "comparison": f"/compare?a={simulated.id}:mode=MAXN&b={simulated.id}:mode=MODE_15W",
        "comparison of nothing": f"/compare?a={simulated.id}&b={bare.id}",
    }
    with client_of(shelf) as client:
        yield {name: parse(client.get(address).text) for name, address in addresses.items()}
    shelf.store.close()


@pytest.fixture(params=PAGES)
def page(request: pytest.FixtureRequest, pages: dict[str, Element]) -> Element:
    """Return each page in turn."""
    return pages[request.param]


def name_of(element: Element, page: Element) -> str:
    """Return what a screen reader calls an element."""
    if label := element.attributes.get("aria-label"):
        return label
    if reference := element.attributes.get("aria-labelledby"):
        (named,) = [one for one in page.all() if one.attributes.get("id") == reference]
        return named.text
    for label in page.all("label"):
        own = label.attributes.get("for") is not None and label.attributes["for"] == element.attributes.get("id")
        if own or any(one is element for one in label.all()):
            return label.text
    return element.text


def test_a_page_says_its_language_its_title_and_how_wide_it_is(page: Element) -> None:
    assert page.one("html").attributes["lang"] == "en"
    assert re.fullmatch(r".+ · powerlab", page.one("title").text)
    metas = {meta.attributes.get("name"): meta.attributes.get("content") for meta in page.all("meta")}
    assert metas["viewport"] == "width=device-width, initial-scale=1"
    assert metas["color-scheme"] == "light dark"


def test_headings_go_down_one_level_at_a_time_and_are_not_empty(page: Element) -> None:
    levels = [int(heading.tag[1]) for heading in page.all("h1", "h2", "h3", "h4", "h5", "h6")]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(levels)), levels
    assert all(heading.text for heading in page.all("h1", "h2", "h3"))


def test_identifiers_are_unique_and_every_reference_leads_to_one(page: Element) -> None:
    ids = [element.attributes["id"] for element in page.all() if "id" in element.attributes]
    assert len(set(ids)) == len(ids)
    for element in page.all():
        for attribute in ("aria-labelledby", "aria-describedby", "for"):
            assert set(element.attributes.get(attribute, "").split()) <= set(ids)
        if element.attributes.get("href", "").startswith("#"):
            assert element.attributes["href"][1:] in ids


def test_there_is_one_main_part_and_a_first_link_that_skips_to_it(page: Element) -> None:
    main = page.one("main")
    first = next(page.all("a", "button"))
    assert first.attributes["href"] == f"#{main.attributes['id']}"
    names = [nav.attributes["aria-label"] for nav in page.all("nav")]
    assert all(names)
    assert len(set(names)) == len(names)
    assert len(list(page.all("header"))) == len(list(page.all("footer"))) == 1


def test_every_link_button_and_control_has_a_name(page: Element) -> None:
    for element in page.all("a", "button", "summary", "progress", "select", "textarea"):
        assert name_of(element, page), element
    for field in page.all("input"):
        assert field.attributes["type"] == "hidden" or name_of(field, page), field


def test_every_form_is_a_search_or_posted_with_the_word_of_its_page(page: Element) -> None:
    for form in page.all("form"):
        posting = [one.attributes for one in form.all("button") if one.attributes.get("formmethod") == "post"]
        if posting:  # the form for a sweep asks what it would take, and starts it with the word of its page
            assert [(one["formaction"], one["name"]) for one in posting] == [("/sweeps/new", "form_token")]
            continue
        assert len(list(form.all("button"))) == 1
        if form.attributes["method"] == "get":  # a search: it changes nothing, and its words stand in the address
            assert form.attributes["role"] == "search"
            continue
        assert form.attributes["method"] == "post"
        assert form.attributes["action"].startswith(("/sweeps/", "/admin/"))
        assert "form_token" in {field.attributes["name"] for field in form.all("input")}


def test_every_region_has_a_name_of_its_own_heading_or_label(page: Element) -> None:
    for element in page.all("section", "article"):
        assert name_of(element, page)
        assert {"aria-label", "aria-labelledby"} & set(element.attributes)


def test_what_scrolls_sideways_can_be_reached_and_is_named(page: Element) -> None:
    tables = list(page.all("table"))
    for table in tables:
        box = table.parent
        assert box is not None
        assert "scroll" in box.attributes["class"].split()
        assert box.attributes["tabindex"] == "0"
        assert box.attributes["role"] == "group"
        assert name_of(box, page) != box.text, "the region is named, not read out whole"


def test_table_headings_say_what_they_head(page: Element) -> None:
    for table in page.all("table"):
        assert all(cell.attributes.get("scope") in {"col", "row"} for cell in table.all("th"))
        assert all(cell.attributes["scope"] == "col" and cell.text for cell in table.one("thead").all("th"))
        for row in table.one("tbody").all("tr"):
            assert any(cell.attributes["scope"] == "row" for cell in row.all("th")), row.text


def test_every_row_of_a_table_fills_its_columns(page: Element) -> None:
    def width(row: Element) -> int:
        return sum(int(cell.attributes.get("colspan", "1")) for cell in row.children if cell.tag in {"th", "td"})

    for table in page.all("table"):
        (head,) = table.one("thead").all("tr")
        for row in table.one("tbody").all("tr"):
            assert width(row) == width(head), row.text
            assert all(cell.tag in {"th", "td"} for cell in row.children)
            assert all(cell.text for cell in row.children), f"an empty cell in: {row.text}"


def test_numbers_are_right_aligned_in_their_head_as_in_their_cells(page: Element) -> None:
    for table in page.all("table"):
        (head,) = table.one("thead").all("tr")
        for row in table.one("tbody").all("tr"):
            if any("colspan" in cell.attributes for cell in row.children):
                continue
            for heading, cell in zip(head.children, row.children, strict=True):
                aligned = ["num" in part.attributes.get("class", "").split() for part in (heading, cell)]
                assert aligned[0] == aligned[1], (heading.text, cell.text)


def test_a_chart_is_named_and_has_its_meaning_in_words(page: Element) -> None:
    for figure in page.all("figure"):
        plot = next(part for part in figure.all("div") if "data-figure" in part.attributes)
        assert plot.attributes["role"] == "img"
        assert figure.one("h2").text in plot.attributes["aria-label"]
        assert figure.one("p").text.endswith(".")
        assert plot.attributes["aria-label"].endswith(".")


def test_provenance_and_verdicts_are_words_and_not_only_colours(page: Element) -> None:
    for element in page.all("span"):
        for name in element.attributes.get("class", "").split():
            for prefix in ("prov-", "verdict-"):
                if name.startswith(prefix):
                    assert element.text == name.removeprefix(prefix)


def test_a_page_that_changes_by_itself_says_so_to_a_screen_reader(pages: dict[str, Element]) -> None:
    running = pages["running"]
    (status,) = [part for part in running.all() if part.attributes.get("role") == "status"]
    assert "Live" in status.text
    live = [part for part in running.all() if "data-live" in part.attributes]
    assert len(live) >= 5
    assert all(part.attributes.get("id") for part in live)
    for name in ("simulated", "run"):
        assert not [part for part in pages[name].all() if part.attributes.get("role") == "status"]


def test_the_page_one_is_on_is_marked_in_the_navigation(pages: dict[str, Element]) -> None:
    def current(name: str) -> list[str]:
        return [
            link.text for link in pages[name].one("header").one("nav").all("a") if "aria-current" in link.attributes
        ]

    assert current("home") == current("simulated") == current("run") == ["Home"]
    assert current("devices") == current("device") == ["Devices"]
    assert current("studies") == current("study") == ["Studies"]
    assert current("trends") == ["Trends"]
    assert current("jobs") == ["Jobs"]
    assert current("admin") == current("admin log") == ["Admin"]
    assert current("compare") == current("comparison") == ["Compare"]
    assert current("nowhere") == []


def test_a_failed_run_is_no_page_of_dashes(pages: dict[str, Element]) -> None:
    text = pages["failed run"].one("main").text
    assert "the worker was killed by signal 9" in text
    assert "This run has no figures; see its findings." in text
    assert "None" not in text
    assert "nan" not in text


def test_the_parser_of_these_tests_is_strict() -> None:
    for wrong in ("<p><b>x</p></b>", "<div>", "</p>", '<p id="a" id="b"></p>'):
        with pytest.raises(AssertionError):
            parse(f"<!doctype html>{wrong}")
    tree = parse("<!doctype html><p>a<b>b &amp;</b>c</p>")
    assert tree.one("p").text == "a b & c"


class TestStyles:
    text = STYLES.read_text()

    def test_every_provenance_and_verdict_has_a_look(self) -> None:
        for word in (*(p.value for p in Provenance), *(v.value for v in Verdict)):
            assert re.search(rf"\.(prov|verdict)-{word}\b", self.text) or word in {"measured", "valid"}, word
        assert all(f".{name}" in self.text for name in ("skip", "unseen", "scroll", "num"))

    def test_focus_is_shown_and_motion_is_not_forced(self) -> None:
        assert ":focus-visible" in self.text
        assert "outline: none" not in self.text
        assert "transition" not in self.text or "prefers-reduced-motion" in self.text

    def test_braces_balance(self) -> None:
        assert self.text.count("{") == self.text.count("}") > 20

    def test_no_style_reaches_outside(self) -> None:
        assert "@import" not in self.text
        assert "url(" not in self.text


def test_every_page_can_be_read_without_scripts(pages: dict[str, Element]) -> None:
    """Figures stand in tables; only the charts need a script."""
    main = pages["simulated"].one("main").text
    assert main.count("simulated") > 20, "a word beside each figure, or above its column where all are alike"
    for script in pages["simulated"].all("script"):
        assert script.text == ""
        assert {"defer", "type"} & set(script.attributes), "no script holds up the page"
