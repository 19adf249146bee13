"""The scripts that write and check what a person would forget."""

from __future__ import annotations

import importlib.util
import os
import shutil
import sys
from pathlib import Path
from types import ModuleType

import pytest

from powerlab import cli


def load(root: Path, name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"script_{name}", root / "scripts" / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class TestCliPage:
    def test_it_does_not_depend_on_the_terminal_and_leaves_it_as_it_was(
        self, root: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        script = load(root, "write_cli_page")
        pages = []
        for columns in ("40", "300"):
            monkeypatch.setenv("COLUMNS", columns)
            pages.append(script.page())
            assert os.environ["COLUMNS"] == columns
        monkeypatch.delenv("COLUMNS")
        pages.append(script.page())
        assert "COLUMNS" not in os.environ
        assert pages[0] == pages[1] == pages[2]

    def test_every_command_has_a_section_and_every_fence_is_closed(self, root: Path) -> None:
        script = load(root, "write_cli_page")
        page = script.page()
        for name in script._subparsers(cli.parser()):
            assert f"## powerlab {name}\n" in page
        assert page.count("```text\n") == page.count("\n```\n")
        assert "\x1b" not in page

    def test_it_writes_where_the_documentation_lies(
        self, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        script = load(root, "write_cli_page")
        monkeypatch.setattr(script, "_PAGE", tmp_path / "cli.md")
        assert script.main() == 0
        assert (tmp_path / "cli.md").read_text(encoding="utf-8") == script.page()


class TestCheckNative:
    @pytest.fixture
    def script(self, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
        """The script, looking at a folder of the test's own."""
        module = load(root, "check_native")
        shutil.copy(root / ".clang-format", tmp_path)
        monkeypatch.setattr(module, "ROOT", tmp_path)
        monkeypatch.setattr(module, "SOURCES", tmp_path)
        (tmp_path / "good.cpp").write_text("int main() { return 0; }\n")
        return module

    def test_a_good_layout_passes(self, script: ModuleType) -> None:
        assert script.layout(fix=False)

    @pytest.mark.parametrize("name", ["deep/er/wrong.cpp", "wrong.hpp", "wrong.h"])
    def test_a_wrong_layout_is_found_wherever_it_lies_and_mended(
        self, script: ModuleType, tmp_path: Path, name: str
    ) -> None:
        wrong = tmp_path / name
        wrong.parent.mkdir(parents=True, exist_ok=True)
        wrong.write_text("int  f(){return 1 ;}\n")
        assert not script.layout(fix=False)
        assert wrong.read_text() == "int  f(){return 1 ;}\n", "a check changes nothing"
        assert script.layout(fix=True)
        assert wrong.read_text() == "int f() { return 1; }\n"
        assert script.layout(fix=False)

    def test_a_bad_layout_stops_before_the_long_build(
        self, script: ModuleType, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sys, "argv", ["check_native.py"])
        monkeypatch.setattr(script, "layout", lambda fix: False)
        monkeypatch.setattr(script, "compiles_without_warning", lambda: pytest.fail("built all the same"))
        assert script.main() == 1

    def test_a_warning_of_the_compiler_is_a_failure(self, script: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sys, "argv", ["check_native.py"])
        monkeypatch.setattr(script, "compiles_without_warning", lambda: False)
        assert script.main() == 1


def test_a_command_that_fails_is_told_by_its_status(root: Path) -> None:
    script = load(root, "check_native")
    assert script.run(sys.executable, "-c", "pass")
    assert not script.run(sys.executable, "-c", "raise SystemExit(3)")
