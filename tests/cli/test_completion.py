"""Shell completion: the scripts run in their shells, and what they offer."""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from powerlab.cli import main, parser
from powerlab.cli.completion.table import places
from powerlab.cli.stored.local_database import begin
from powerlab.cli.stored.results_file import ResultsFile
from powerlab.store import open_store
from requires import require_program
from server_examples import PLAN, capabilities, device, runs_of

pytestmark = pytest.mark.campaign

ONE = replace(PLAN, threads=(1,), batch_sizes=(1,), modes=("current",))
_ASK = {
    "bash": """
        source {script}
        COMP_WORDS=({words}) COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))
        _powerlab; printf '%s\\n' "${{COMPREPLY[@]}}"
    """,
    "zsh": """
        compdef() {{ : }}
        _files() {{ print -l FILES }}
        _describe() {{ print -rl -- "${{(@P)4}}" }}
        source {script}
        words=({words}) CURRENT=$#words
        _powerlab
    """,
    "fish": """
        source {script}
        complete -C {line}
    """,
}


@pytest.fixture(scope="module")
def scripts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    from powerlab.cli.completion.shells import SHELLS

    folder = tmp_path_factory.mktemp("completion")
    found = places(parser())
    for shell, write in SHELLS.items():
        (folder / f"powerlab.{shell}").write_text(write(found))
    return {shell: folder / f"powerlab.{shell}" for shell in SHELLS}


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("POWERLAB_STATE_DIR", str(tmp_path))
    return tmp_path


def offered(shell: str, script: Path, *words: str) -> list[str]:
    """Return what a shell offers for the last of these words, without descriptions."""
    program = require_program(shell, shell)
    quoted = " ".join(map(shlex.quote, words))
    text = _ASK[shell].format(script=script, words=quoted, line=shlex.quote(quoted.removesuffix("''")))
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        [program, "-c", text], capture_output=True, text=True, check=False, env={**os.environ, "PATH": path}, timeout=60
    )
    assert done.stderr == ""
    separator = ":" if shell == "zsh" else "\t"
    found = [line.partition(separator)[0] for line in done.stdout.splitlines() if line]
    return [word for word in found if word.startswith(words[-1])]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_commands_actions_options_and_names(shell: str, scripts: dict[str, Path]) -> None:
    def ask(*words: str) -> list[str]:
        return offered(shell, scripts[shell], "powerlab", *words)

    assert "profile" in ask("pro")
    assert sorted(ask("runs", "")) == ["list", "show"]
    assert ask("runs", "list", "--ver") == ["--verdict"]
    assert sorted(ask("runs", "list", "--verdict", "")) == ["failed", "flagged", "valid", "void"]
    assert "jetson-agx-xavier" in ask("profile", "resnet50", "--board", "jetson-a")
    assert ask("profile", "resnet50", "--search", "--goal", "eff") == ["efficiency"]
    assert sorted(ask("compare", "x", "--metric", "img/s")) == ["img/s", "img/s/W"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_a_shell_completes_the_identifiers_of_what_was_measured_here(
    shell: str, scripts: dict[str, Path], state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with closing(open_store(state / "powerlab.db")) as store:
        held = begin(store, device(), capabilities(), ONE)
        run = runs_of(held.sweep_id, ONE)[0]
        held.add(run, ())
        held.finish(None)
    assert offered(shell, scripts[shell], "powerlab", "compare", held.sweep_id[:6]) == [held.sweep_id]
    assert offered(shell, scripts[shell], "powerlab", "runs", "show", run.id[:6]) == [run.id]
    assert main(["baseline", "set", "main", held.sweep_id]) == 0
    assert offered(shell, scripts[shell], "powerlab", "gate", "x", "--baseline", "ma") == ["main"]
    monkeypatch.setenv("POWERLAB_SERVER", "http://127.0.0.1:1")
    assert offered(shell, scripts[shell], "powerlab", "runs", "show", run.id[:6]) == []


def test_without_a_database_the_sweeps_of_results_files_are_offered(
    state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["completion", "--stored", "sweeps"]) == 0
    assert capsys.readouterr().out == ""
    ResultsFile(state / "sweeps", "empty", device(), ONE).close()
    results = ResultsFile(state / "sweeps", "in-a-file", device(), ONE)
    results.add(runs_of("in-a-file", ONE)[0])
    results.close()
    assert main(["completion", "--stored", "sweeps"]) == 0
    assert capsys.readouterr().out == "in-a-file\n"


def test_every_option_of_every_command_is_in_the_table() -> None:
    def options(one: argparse.ArgumentParser) -> dict[str, set[str]]:
        found = {
            one.prog: {
                name
                for action in one._actions
                if action.help != argparse.SUPPRESS
                for name in action.option_strings
                if name != "-h"
            }
        }
        for action in one._actions:
            if isinstance(action, argparse._SubParsersAction):
                for child in action.choices.values():
                    found |= options(child)
        return found

    wanted = options(parser())
    assert {place: {name for name, _ in found.options} for place, found in places(parser()).items()} == wanted


def test_a_shell_must_be_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion"]) == 2
    assert "SHELL is missing; choose from: bash, zsh, fish." in capsys.readouterr().err
    assert main(["completion", "fsh"]) == 2
    assert "(did you mean fish?)" in capsys.readouterr().err
