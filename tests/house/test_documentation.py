"""The documentation, read as a stranger would: its links lead somewhere and it names what the program has."""

from __future__ import annotations

import argparse
import re
import shlex
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from powerlab import cli
from powerlab.domain.errors import PowerlabError

_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
_UNFINISHED = re.compile(r"^\W*[A-Z]+(?:_[A-Z]+)+\W*$|\b(?:TO[D]O|FIX[M]E|TB[D]|XX[X])\b")
"""A line that is nothing but a name in capitals, as scripts put one where a table goes; or a word for what is left."""

_HEADING = re.compile(r"^#+\s+(.*)$", re.MULTILINE)


@pytest.fixture(scope="session")
def pages(tracked: list[Path]) -> list[Path]:
    return [path for path in tracked if path.suffix == ".md"]


def _anchor(heading: str) -> str:
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def test_every_link_leads_to_a_file_of_the_project(root: Path, pages: list[Path]) -> None:
    assert pages
    for page in pages:
        for link in _LINK.findall(page.read_text(encoding="utf-8")):
            if link.startswith(("http://", "https://", "mailto:")):
                continue
            name, _, anchor = link.partition("#")
            target = (page.parent / name).resolve() if name else page
            where = f"{page.relative_to(root)} links to {link}"
            assert target.is_relative_to(root), where
            assert target.exists(), where
            if anchor:
                headings = _HEADING.findall(target.read_text(encoding="utf-8"))
                assert anchor in {_anchor(heading) for heading in headings}, where


def _options(parser: argparse.ArgumentParser) -> Iterator[tuple[str, str]]:
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for child in action.choices.values():
                yield from _options(child)
        elif action.help != argparse.SUPPRESS:
            yield from (
                (parser.prog, option) for option in action.option_strings or [str(action.metavar or action.dest)]
            )


def test_nothing_in_the_pages_waits_to_be_filled_in(root: Path, pages: list[Path]) -> None:
    for page in pages:
        prose = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
        found = [line for line in prose.splitlines() if _UNFINISHED.search(re.sub(r"`[^`]*`", "", line))]
        assert not found, f"{page.relative_to(root)}: {found}"


def test_every_command_and_option_is_documented(root: Path) -> None:
    """The page is written by ``make docs``; its exact layout depends on the Python that wrote it."""
    page = (root / "docs" / "cli.md").read_text(encoding="utf-8")
    sections = {part.split("\n", 1)[0]: part for part in re.split(r"^#+ ", page, flags=re.MULTILINE)}
    for command in cli.COMMANDS:
        assert f"powerlab {command}" in sections, f"docs/cli.md lacks powerlab {command}; run 'make docs'"
    for program, option in _options(cli.parser()):
        assert option in sections[program], f"docs/cli.md lacks {option} of {program}; run 'make docs'"


def test_every_command_explains_itself() -> None:
    (commands,) = (a for a in cli.parser()._actions if isinstance(a, argparse._SubParsersAction))
    assert {action.dest for action in commands._choices_actions if action.help} == set(cli.COMMANDS)
    assert [name for name, child in commands.choices.items() if not child.description] == []


def _commands(text: str) -> Iterator[str]:
    """Yield what follows ``powerlab`` in the console blocks: after a prompt, a path, a variable or sudo."""
    for block in re.findall(r"^```console\n(.*?)^```$", text, re.MULTILINE | re.DOTALL):
        yield from re.findall(
            r"^\$ (?:sudo )?(?:\w+=\S+ )*(?:\S*/)?powerlab (.*)$", block.replace("\\\n", ""), re.MULTILINE
        )


def test_the_commands_in_the_pages_are_understood(root: Path, pages: list[Path]) -> None:
    seen = 0
    for page in pages:
        for line in _commands(page.read_text(encoding="utf-8")):
            words = shlex.split(line.partition(" > ")[0], comments=True)
            try:
                cli.parser().parse_args(words)
            except PowerlabError as error:
                pytest.fail(f"{page.relative_to(root)}: powerlab {line}: {error}")
            seen += 1
    assert seen


def test_the_commands_in_sentences_exist(root: Path, pages: list[Path]) -> None:
    for page in pages:
        for word in re.findall(r"`powerlab ([a-z]+)\b", page.read_text(encoding="utf-8")):
            assert word in cli.COMMANDS, f"{page.relative_to(root)} speaks of 'powerlab {word}'"


def test_every_exit_code_is_documented(root: Path) -> None:
    page = (root / "docs" / "cli.md").read_text(encoding="utf-8")
    for name, code in vars(cli).items():
        if name.startswith("EXIT_"):
            assert re.search(rf"^ *{code} ", page, re.MULTILINE), f"exit code {code} ({name}) is not in docs/cli.md"


def test_every_metric_is_in_the_method(root: Path) -> None:
    from powerlab.domain.quantity import METRICS

    page = (root / "docs" / "method.md").read_text(encoding="utf-8")
    assert [name for name in METRICS if f"`{name}`" not in page] == []


def test_every_validity_rule_is_in_the_method(root: Path) -> None:
    from powerlab.measure.validity import RULES

    page = (root / "docs" / "method.md").read_text(encoding="utf-8")
    names = [rule.__name__.replace("_", "-") for rule in RULES]
    assert [name for name in names if f"`{name}`" not in page] == []


def test_every_source_knob_and_board_is_documented(root: Path) -> None:
    from powerlab.boards.registry import BOARDS
    from powerlab.modes.registry import KNOBS
    from powerlab.power.registry import SOURCES

    pages = "".join((root / "docs" / name).read_text(encoding="utf-8") for name in ("architecture.md", "method.md"))
    names = {item.name for item in (*SOURCES, *KNOBS)} | set(BOARDS)
    assert {name for name in names if f"`{name}`" not in pages} == set()


def test_every_package_is_in_the_architecture(root: Path) -> None:
    page = (root / "docs" / "architecture.md").read_text(encoding="utf-8")
    folders = [path.parent.name for path in (root / "powerlab").glob("*/__init__.py")]
    assert [name for name in folders if f"`{name}/`" not in page] == []


def test_every_file_that_a_page_names_exists(root: Path, tracked: list[Path], pages: list[Path]) -> None:
    """Pages name files of the project by the end of their path; NAME stands for a name to choose."""
    files = {f"/{path.relative_to(root)}" for path in tracked}
    lost = []
    for page in pages:
        for name in re.findall(r"`([\w.-][\w./-]*\.(?:py|hpp|cpp|toml|yml|md))`", page.read_text(encoding="utf-8")):
            of_project = "/" in name or name.endswith((".py", ".hpp", ".cpp"))
            if of_project and "NAME" not in name and not any(file.endswith(f"/{name}") for file in files):
                lost.append(f"{page.relative_to(root)}: {name}")
    assert lost == []


def test_make_targets_in_the_pages_exist(root: Path, pages: list[Path]) -> None:
    makefile = (root / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    for page in pages:
        for target in re.findall(r"(?:\$ |`)make ([a-z]+(?:-[a-z]+)*)", page.read_text(encoding="utf-8")):
            assert target in targets, f"{page.relative_to(root)} speaks of 'make {target}'"


def test_the_version_is_one(root: Path) -> None:
    import powerlab

    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["version"] == powerlab.__version__


def test_the_project_stands_on_its_own(root: Path, tracked: list[Path]) -> None:
    """No note to oneself, no word of the machine it was written on."""
    notes = [rf"\b{first}{second}\b" for first, second in (("TO", "DO"), ("FIX", "ME"), ("X", "XX"))]
    places = [f"/{'work'}/{name}" for name in ("main", "shared")]
    forbidden = re.compile("|".join((*notes, *places)))
    found = []
    for path in tracked:
        if path.suffix in {".py", ".md", ".cpp", ".hpp", ".toml", ".yml", ".html", ".js", ".css", ".sh", ".txt", ""}:
            for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").splitlines(), 1):
                if forbidden.search(line):
                    found.append(f"{path.relative_to(root)}:{number}: {line.strip()}")
    assert found == []
