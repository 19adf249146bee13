"""make demo and make test: what they would run, and when the environment is made anew, fixed or left alone."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest


class Recorded:
    """Stands in for pip: notes what would be installed."""

    def __init__(self, environment: object) -> None:
        self.calls: list[tuple[str, ...]] = []
        environment.pip = lambda *arguments: self.calls.append(arguments)  # type: ignore[attr-defined]
        environment.create = lambda: self.calls.append(("create",))  # type: ignore[attr-defined]
        environment._output = lambda command, failure: "[]"  # type: ignore[attr-defined]

    @property
    def text(self) -> str:
        """Everything that was asked for."""
        return " | ".join(" ".join(call) for call in self.calls)


@pytest.fixture
def project(root: Path, tmp_path: Path) -> Path:
    """A small project with the files that the set-up looks at."""
    for name in ("pyproject.toml", "requirements.lock"):
        shutil.copy(root / name, tmp_path / name)
    for name, text in {
        "scripts/setup_venv.py": "",
        "CMakeLists.txt": "project(x)",
        "powerlab/native/core.cpp": "int x;",
        "powerlab/native/__init__.py": "",
        ".venv/bin/python": "",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path


def _ensure(setup_venv: ModuleType, project: Path, extra: str) -> tuple[bool, Recorded]:
    environment = setup_venv.Environment(project)
    recorded = Recorded(environment)
    return setup_venv.ensure(environment, extra), recorded


def test_a_first_call_makes_everything_and_a_second_nothing(setup_venv: ModuleType, project: Path) -> None:
    changed, first = _ensure(setup_venv, project, "server")
    assert changed
    assert "create" in first.text
    assert "-e .[server]" in first.text
    assert "-c requirements.lock" in first.text
    assert _ensure(setup_venv, project, "server")[0] is False


def test_the_demo_after_the_tests_takes_nothing_away(setup_venv: ModuleType, project: Path) -> None:
    _ensure(setup_venv, project, "dev")
    changed, recorded = _ensure(setup_venv, project, "server")
    assert not changed
    assert recorded.calls == []


def test_the_tests_after_the_demo_add_to_it(setup_venv: ModuleType, project: Path) -> None:
    _ensure(setup_venv, project, "server")
    changed, recorded = _ensure(setup_venv, project, "dev")
    assert changed
    assert "create" not in recorded.text
    assert "-e .[dev]" in recorded.text


@pytest.mark.parametrize("changed_file", ["CMakeLists.txt", "powerlab/native/core.cpp"])
def test_changed_native_sources_are_built_again_and_nothing_is_installed(
    setup_venv: ModuleType, project: Path, changed_file: str
) -> None:
    _ensure(setup_venv, project, "dev")
    (project / changed_file).write_text("changed", encoding="utf-8")
    changed, recorded = _ensure(setup_venv, project, "server")
    assert changed
    assert len(recorded.calls) == 1
    assert "--no-deps" in recorded.text
    assert _ensure(setup_venv, project, "dev")[0] is False


def test_a_new_native_file_is_a_change(setup_venv: ModuleType, project: Path) -> None:
    _ensure(setup_venv, project, "server")
    (project / "powerlab/native/kernel.hpp").write_text("", encoding="utf-8")
    assert _ensure(setup_venv, project, "server")[0]


def test_a_changed_python_file_costs_nothing(setup_venv: ModuleType, project: Path) -> None:
    _ensure(setup_venv, project, "server")
    (project / "powerlab/native/__init__.py").write_text("x = 1", encoding="utf-8")
    assert _ensure(setup_venv, project, "server")[0] is False


def test_a_module_that_became_a_package_is_looked_for_anew(setup_venv: ModuleType, project: Path) -> None:
    """An editable install remembers which file each module lies in, so a pulled move would otherwise break imports."""
    _ensure(setup_venv, project, "dev")
    (project / "powerlab/measure").mkdir()
    (project / "powerlab/measure/__init__.py").write_text("", encoding="utf-8")
    assert _ensure(setup_venv, project, "dev")[0]
    assert _ensure(setup_venv, project, "dev")[0] is False


def test_a_changed_lock_installs_again_with_what_was_there(setup_venv: ModuleType, project: Path) -> None:
    _ensure(setup_venv, project, "dev")
    with (project / "requirements.lock").open("a", encoding="utf-8") as file:
        file.write("another==1\n")
    changed, recorded = _ensure(setup_venv, project, "server")
    assert changed
    assert "-e .[dev]" in recorded.text


def test_a_moved_project_gets_a_new_environment(setup_venv: ModuleType, project: Path, tmp_path: Path) -> None:
    _ensure(setup_venv, project, "server")
    moved = tmp_path / "moved"
    shutil.copytree(project, moved, ignore=shutil.ignore_patterns("moved"))
    _, recorded = _ensure(setup_venv, moved, "server")
    assert "create" in recorded.text


def test_a_failed_install_is_tried_again(setup_venv: ModuleType, project: Path) -> None:
    environment = setup_venv.Environment(project)
    Recorded(environment)

    def fail(*arguments: str) -> None:
        raise setup_venv.SetupError("no network.")

    environment.pip = fail
    with pytest.raises(setup_venv.SetupError):
        setup_venv.ensure(environment, "server")
    assert _ensure(setup_venv, project, "server")[0]


def test_a_damaged_note_counts_as_none(setup_venv: ModuleType, project: Path) -> None:
    _ensure(setup_venv, project, "server")
    (project / ".venv" / "powerlab-setup.json").write_text("{", encoding="utf-8")
    assert "create" in _ensure(setup_venv, project, "server")[1].text


def test_pip_says_in_one_sentence_that_it_failed(setup_venv: ModuleType, project: Path) -> None:
    environment = setup_venv.Environment(project)
    environment.python.write_text("#!/bin/sh\nexit 1\n", encoding="utf-8")
    environment.python.chmod(0o755)
    with pytest.raises(setup_venv.SetupError, match=r"pip install numpy.* failed"):
        environment.pip("install", "numpy")


def _find_python(root: Path, path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["/bin/sh", root / "scripts" / "find_python"],
        env={"PATH": str(path), **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def _program(folder: Path, name: str, body: str) -> Path:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n", encoding="utf-8")
    path.chmod(0o755)
    return path


def test_no_python_at_all(root: Path, tmp_path: Path) -> None:
    done = _find_python(root, tmp_path)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "needs Python 3.11 or newer" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_python_that_is_too_old_or_broken_is_passed_over(root: Path, tmp_path: Path) -> None:
    _program(tmp_path, "python3", "exit 3")
    _program(tmp_path, "python3.14", "echo 'pyenv: python3.14: command not found' >&2; exit 127")
    good = _program(tmp_path, "python3.12", f'exec "{sys.executable}" "$@"')
    done = _find_python(root, tmp_path)
    assert done.stdout.strip() == str(good)
    assert done.stderr == ""


def test_the_python_that_was_named_is_the_only_one_tried(root: Path, tmp_path: Path) -> None:
    _program(tmp_path, "python3", f'exec "{sys.executable}" "$@"')
    old = _program(tmp_path, "old", "exit 3")
    assert _find_python(root, tmp_path, PYTHON=str(old)).returncode == 2


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        ("import sys; sys.modules['ensurepip'] = None", "no venv module with pip"),
        ("import sysconfig; sysconfig.get_path = lambda name: '/nowhere'", "/nowhere/Python.h is missing"),
    ],
)
def test_an_incomplete_python_is_named_with_the_package_it_lacks(
    root: Path, tmp_path: Path, spoil: str, sentence: str
) -> None:
    _program(tmp_path, "python3", f'exec "{sys.executable}" -c "{spoil}\n$2"')
    done = _find_python(root, tmp_path)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert "apt install" in done.stderr


def test_help_lists_every_target(root: Path) -> None:
    shown = subprocess.run(["make"], cwd=root, capture_output=True, text=True, check=True).stdout
    for target in ("demo", "test", "check", "bench", "lock", "openapi", "clean", "help"):
        assert f"make {target} " in shown


@pytest.mark.parametrize(
    ("target", "extra", "command"), [("demo", "server", "powerlab demo"), ("test", "dev", "-m pytest")]
)
def test_the_two_commands(root: Path, target: str, extra: str, command: str) -> None:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("MAKE")}
    shown = subprocess.run(
        ["make", "-n", target], cwd=root, env=environment, capture_output=True, text=True, check=True
    ).stdout
    assert f"scripts/setup_venv {extra}" in shown
    assert command in shown


def test_the_note_is_readable(setup_venv: ModuleType, project: Path) -> None:
    _ensure(setup_venv, project, "dev")
    noted = json.loads((project / ".venv" / "powerlab-setup.json").read_text(encoding="utf-8"))
    assert noted["extras"] == "dev,server"
    assert noted["root"] == str(project)
