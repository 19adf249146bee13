"""Every command that reads what is stored has one rule for sources; a new command must say to which kind it belongs."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from powerlab.cli import main, parser
from powerlab.cli.stored.local_database import begin
from powerlab.store import open_store
from server_examples import PLAN, capabilities, device, runs_of

READING = {
    "apply": ("{sweep}",),
    "audit": ("{run}",),
    "baseline add": ("main", "{sweep}"),
    "baseline list": (),
    "baseline remove": ("main",),
    "baseline set": ("main", "{sweep}"),
    "best": ("{sweep}",),
    "bundle create": ("{sweep}", "--output", "{folder}/sweep.zip"),
    "compare": ("{sweep}",),
    "export": ("--sweep", "{sweep}"),
    "gate": ("{sweep}", "--baseline", "main"),
    "learn": ("{run}", "--labelled-images", "{images}", "--accuracy", "90%"),
    "report": ("{sweep}", "--output", "{folder}/report.html"),
    "runs list": ("--sweep", "{sweep}"),
    "runs show": ("{run}",),
    "scaling": ("{run}",),
    "sweep list": (),
    "sweep show": ("{sweep}",),
    "trends": ("--model", "resnet50"),
}
"""Commands that read runs, sweeps or baselines, wherever they are, with words that make them read."""
OF_A_SERVER = frozenset({"devices list", "devices groups", "devices bookings", "models list", "models show"})
"""Commands that read what only a server has; ``--from`` is its address."""
OTHERS = frozenset(
    {
        *("demo", "profile", "repeat", "layers", "study", "calibrate", "tegrastats", "doctor", "top"),
        *("completion", "engine run", "engine info", "engine operators", "engine backends", "engine plan"),
        *("engine tune", "engine cache", "engine quantize", "boards show", "boards simulate", "boards fault"),
        *("modes show", "modes set", "modes restore", "serve", "agent enrol", "agent run", "agent check"),
        *("bundle verify", "bundle rerun", "models upload", "models download", "devices label"),
        *("devices unlabel", "devices group", "devices ungroup", "devices reserve", "devices maintain"),
        *("devices unbook", "sweep create", "sweep preview", "sweep watch", "sweep pause", "sweep resume"),
        *("sweep cancel", "sweep clone", "tokens create", "tokens list", "tokens revoke", "tokens code"),
        *("traces move", "traces compact", "database retire"),
    }
)
"""Commands that measure, change something, or look after a database."""
SAYS_LATER = frozenset({"baseline list", "baseline remove", "apply", "audit", "gate"})
"""Commands that refuse this sweep before they say what they read, or name a baseline instead of runs."""


def leaves(one: argparse.ArgumentParser, *words: str) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    below = [action for action in one._actions if isinstance(action, argparse._SubParsersAction)]
    if not below:
        yield " ".join(words), one
    for action in below:
        for name, command in action.choices.items():
            yield from leaves(command, *words, name)


def test_every_command_is_of_one_kind() -> None:
    known = dict(leaves(parser()))
    assert sorted((*READING, *OF_A_SERVER, *OTHERS)) == sorted(known)
    for name, command in known.items():
        reads = any(action.dest == "read_from" for action in command._actions)
        assert reads == (name in READING), name
        if name in {*READING, *OF_A_SERVER}:
            assert "--from" in command._option_string_actions, name


@dataclass(frozen=True)
class World:
    """A database with one sweep."""

    database: str
    sweep: str
    run: str

    def words(self, name: str, folder: Path) -> list[str]:
        np.savez(images := folder / "images.npz", x=np.zeros((4, 3, 32, 32), np.float32), labels=np.zeros(4, np.int64))
        names = {"sweep": self.sweep[:8], "run": self.run[:13], "folder": folder, "images": images}
        return [*name.split(), *(word.format(**names) for word in READING[name])]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> World:
    path = tmp_path_factory.mktemp("reading") / "runs.db"
    plan = replace(PLAN, threads=(1, 2), batch_sizes=(1,), modes=("current",))
    with closing(open_store(path)) as store:
        held = begin(store, device(), capabilities(), plan)
        runs = list(runs_of(held.sweep_id, plan))
        for run in runs:
            held.add(run, ())
        held.finish(None)
    return World(database=str(path), sweep=held.sweep_id, run=runs[0].id)


@pytest.mark.parametrize("name", sorted(READING))
def test_a_source_that_does_not_exist_is_named_in_one_sentence(
    world: World, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*world.words(name, tmp_path), "--from", f"{tmp_path}/none.db"]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"powerlab: there is no database {tmp_path}/none.db; ")
    assert error.count("\n") == 1


@pytest.mark.parametrize("name", sorted(READING))
def test_the_server_of_the_environment_is_asked_where_no_source_is_named(
    world: World, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("POWERLAB_SERVER", "http://not an address")
    assert main(world.words(name, tmp_path)) == 2
    assert "no powerlab server answers at http://not an address" in capsys.readouterr().err


@pytest.mark.parametrize("name", sorted(READING.keys() - SAYS_LATER))
def test_what_was_read_is_said(world: World, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main([*world.words(name, tmp_path), "--from", world.database])
    error = capsys.readouterr().err
    assert f"source: database {world.database}, " in error, error
