"""The examples in the pages work: programs compile and run, files parse, and the tutorial is carried out as written."""

from __future__ import annotations

import ast
import configparser
import json
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from powerlab import cli

_FENCE = re.compile(r"^```(\S*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_LANGUAGES = {"console", "ini", "json", "python", "sql", "text", "toml", "yaml"}


def _parse_ini(text: str) -> None:
    configparser.ConfigParser(strict=False, allow_no_value=True).read_string(text)


PARSERS: dict[str, Callable[[str], object]] = {
    "ini": _parse_ini,
    "json": json.loads,
    "python": ast.parse,
    "toml": tomllib.loads,
    "yaml": yaml.safe_load,
}


@pytest.fixture(scope="session")
def blocks(root: Path, tracked: list[Path]) -> list[tuple[str, str, str]]:
    """Every code block of the documentation: its page, its language and its text."""
    pages = [path for path in tracked if path.suffix == ".md"]
    return [
        (str(page.relative_to(root)), language, text)
        for page in pages
        for language, text in _FENCE.findall(page.read_text(encoding="utf-8"))
    ]


def test_every_block_names_its_language(blocks: list[tuple[str, str, str]]) -> None:
    assert [(page, text[:60]) for page, language, text in blocks if language not in _LANGUAGES] == []


def test_every_block_that_has_a_parser_parses(blocks: list[tuple[str, str, str]]) -> None:
    seen = set()
    for page, language, text in blocks:
        if language in PARSERS:
            try:
                PARSERS[language](text)
            except Exception as error:
                pytest.fail(f"{page}: the {language} block\n{text}does not parse: {error}")
            seen.add(language)
    assert seen >= {"python", "toml"}


def test_what_python_blocks_import_exists(blocks: list[tuple[str, str, str]]) -> None:
    lines = {
        ast.unparse(node)
        for _, language, text in blocks
        if language == "python"
        for node in ast.parse(text).body
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    assert lines
    for line in sorted(lines):
        exec(line, {})


def test_python_blocks_that_need_no_server_run(blocks: list[tuple[str, str, str]], tmp_path: Path) -> None:
    programs = [text for _, language, text in blocks if language == "python" and "http://" not in text]
    assert any("Session(" in text for text in programs)
    for text in programs:
        done = subprocess.run([sys.executable, "-c", text], cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        for shown in re.findall(r"print\(.*\)  # (.*)$", text, re.MULTILINE):
            assert shown in done.stdout.splitlines()


def _tutorial_commands(root: Path) -> list[list[str]]:
    page = (root / "docs" / "tutorial.md").read_text(encoding="utf-8").replace("\\\n", "")
    return [shlex.split(line, comments=True) for line in re.findall(r"^\$ powerlab (.*)$", page, re.MULTILINE)]


def _briefly(words: list[str]) -> list[str]:
    """Shorten the times of a sweep: the tutorial takes a minute, a test should not."""
    return ["0.2" if before in {"--duration", "--idle"} else word for before, word in zip(["", *words], words)]  # noqa: B905


@pytest.mark.campaign(minutes=0.5)
def test_the_tutorial_works(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("POWERLAB_STATE_DIR", str(tmp_path / "state"))
    commands = _tutorial_commands(root)
    assert [words[0] for words in commands] == ["doctor", "profile", "compare", "runs", "runs", "audit"]
    run_id = ""
    for words in commands:
        status = cli.main([run_id if word == "RUN" else word for word in _briefly(words)])
        shown = capsys.readouterr()
        assert status in {cli.EXIT_OK, cli.EXIT_INCOMPLETE} if words[0] == "profile" else status == cli.EXIT_OK, shown
        assert shown.out
        if words == ["runs", "list"]:
            assert cli.main([*words, "--json"]) == cli.EXIT_OK
            run_id = json.loads(capsys.readouterr().out)[0]["id"]
    assert (tmp_path / "sweep.json").is_file()
