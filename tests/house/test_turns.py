"""Long campaigns take turns: every one runs in one part, every other test in each, and the last lines say what did."""

from __future__ import annotations

import subprocess
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from nested_pytest import nested_pytest
from turns import PARTS, chosen_part, dealt

FILES = {
    "test_wheels": "@pytest.mark.campaign(minutes=10)",
    "test_arm": "@pytest.mark.campaign(minutes=6)",
    "test_kills": "@pytest.mark.campaign",
    "test_boards": "@pytest.mark.release\n@pytest.mark.campaign(minutes=5)",
    "test_fast": "",
}


@given(st.dictionaries(st.integers(0, 99).map(lambda number: Path(f"test_{number}.py")), st.integers(1, 10)))
def test_every_file_has_a_part_and_no_part_more_than_its_share_by_a_files_minutes(minutes):
    part_of = dealt(minutes)
    assert part_of.keys() == minutes.keys()
    loads = [sum(minutes[path] for path in minutes if part_of[path] == part) for part in range(1, PARTS + 1)]
    assert max(loads) - min(loads) <= max(minutes.values(), default=0)


def run(folder: Path, *words: str) -> str:
    for name, marker in FILES.items():
        (folder / f"{name}.py").write_text(f"import pytest\n\n{marker}\ndef test_one():\n    pass\n")
    done = nested_pytest(folder, "-v", "--override-ini=markers=campaign\nrelease", *words)
    return done.stdout + done.stderr


def ran(said: str) -> set[str]:
    return {name for name in FILES if f"PASSED {name}.py" in said}


def test_each_long_campaign_runs_in_one_part_and_all_else_in_each(tmp_path):
    first, second = (run(tmp_path, "--campaigns-part", part) for part in "12")
    assert ran(first) == set(FILES) - {"test_arm"}
    assert ran(second) == set(FILES) - {"test_wheels"}
    assert f"part 1 of {PARTS} ran. Left to other changes, and to make test-all: test_arm.py." in first
    assert ran(run(tmp_path)) == set(FILES)


def test_a_part_that_does_not_exist_is_explained(tmp_path):
    beyond = str(PARTS + 1)
    expected = f'"{beyond}" is no part of the long campaigns: 1 to {PARTS}, or change'
    assert expected in run(tmp_path, "--campaigns-part", beyond)


def git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=one", "-c", "user.email=one@example.org")
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


def test_consecutive_commits_run_consecutive_parts_and_a_shallow_clone_always_the_same(tmp_path):
    folder, shallow = tmp_path / "whole", tmp_path / "shallow"
    git(tmp_path, "init", str(folder))
    found = []
    for _ in range(PARTS + 1):
        git(folder, "commit", "--allow-empty", "--message", "change")
        found.append(chosen_part("change", folder))
    assert sorted(found[:PARTS]) == list(range(1, PARTS + 1))
    assert found[PARTS] == found[0]
    git(tmp_path, "clone", "--depth", "1", folder.as_uri(), str(shallow))
    assert chosen_part("change", shallow) == chosen_part("change", shallow)
    assert chosen_part("change", shallow) in range(1, PARTS + 1)


def test_without_a_commit_the_day_draws_the_part(tmp_path):
    assert chosen_part("change", tmp_path) in range(1, PARTS + 1)
