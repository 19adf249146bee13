"""The files that put powerlab on servers and boards, checked as far as that goes without a container engine."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from powerlab import cli
from requires import missing, require_program


def _compose() -> list[str] | None:
    for command in (["docker", "compose"], ["docker-compose"]):
        if shutil.which(command[0]):
            asked = subprocess.run([*command, "version"], capture_output=True, check=False)
            if asked.returncode == 0:
                return command
    return None


@pytest.fixture(scope="session")
def composed(root: Path) -> dict[str, Any]:
    """The compose file as compose itself understands it."""
    command = _compose()
    if command is None:
        missing("neither 'docker compose' nor docker-compose is installed (Debian: apt install docker-compose)")
    done = subprocess.run([*command, "config"], cwd=root, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return {"text": done.stdout, "command": command}


def test_compose_accepts_the_file(composed: dict[str, Any]) -> None:
    for service in ("database:", "server:", "agent:"):
        assert f"  {service}" in composed["text"]


def test_compose_refuses_a_broken_file(composed: dict[str, Any], root: Path, tmp_path: Path) -> None:
    """So that the test above can fail."""
    text = (root / "docker-compose.yml").read_text(encoding="utf-8")
    broken = tmp_path / "docker-compose.yml"
    broken.write_text(text.replace("depends_on:", "depend_on:"), encoding="utf-8")
    command = [*composed["command"], "-f", str(broken), "config", "--quiet"]
    assert subprocess.run(command, capture_output=True, check=False).returncode != 0


def test_what_the_compose_file_builds_from_is_there(root: Path) -> None:
    text = (root / "docker-compose.yml").read_text(encoding="utf-8")
    files = re.findall(r"dockerfile: (\S+)", text)
    assert sorted(files) == ["agents/Dockerfile", "api/Dockerfile"]
    for name in files:
        assert (root / name).is_file()


@pytest.mark.parametrize("name", ["api/Dockerfile", "agents/Dockerfile"])
def test_an_image_copies_what_the_context_lets_through(root: Path, name: str) -> None:
    dockerfile = (root / name).read_text(encoding="utf-8")
    allowed = {
        line[1:] for line in (root / ".dockerignore").read_text(encoding="utf-8").splitlines() if line.startswith("!")
    }
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    folders = {value.split("/")[0] for value in project["tool"]["scikit-build"]["wheel"]["packages"].values()}
    assert folders | {"pyproject.toml", "CMakeLists.txt", "requirements.lock", "README.md", "LICENSE"} <= allowed
    for source in re.findall(r"^COPY (?!--from)(\S+) ", dockerfile, re.MULTILINE):
        assert (root / source).exists()
    assert "-c requirements.lock --build-constraint requirements.lock" in dockerfile
    assert re.search(r"^USER powerlab$", dockerfile, re.MULTILINE)


def _commands_in(text: str) -> set[tuple[str, ...]]:
    """Return the powerlab commands a file runs: the words after the program up to the first option or variable."""
    found = re.findall(r"(?:^|/)powerlab((?: [a-z]+)+)", text, re.MULTILINE)
    return {tuple(words.split()) for words in found}


def _known(words: tuple[str, ...]) -> bool:
    try:
        cli._parser().parse_args([*words, "--help"])
    except SystemExit as stop:
        return stop.code == 0
    return False


def test_the_service_calls_commands_that_exist(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    unit = (root / "agents" / "powerlab-agent.service").read_text(encoding="utf-8")
    started = {line.partition("=")[2] for line in unit.splitlines() if line.startswith("Exec")}
    commands = _commands_in("\n".join(started))
    assert commands == {("agent", "run"), ("modes", "restore")}
    for words in commands:
        assert _known(words), f"powerlab {' '.join(words)} is no command"
    capsys.readouterr()


def test_the_images_call_commands_that_exist(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("api/Dockerfile", "agents/Dockerfile"):
        (command,) = re.findall(r"^CMD (\[.*\])$", (root / name).read_text(encoding="utf-8"), re.MULTILINE)
        words = json.loads(command)
        given = list(dict.fromkeys(word for word in words if word.startswith("--")))
        bare = tuple(words[: words.index(given[0])] if given else words)
        assert _known(bare)
        shown = capsys.readouterr().out
        for option in given:
            assert option in shown


def test_systemd_accepts_the_service(root: Path, tmp_path: Path) -> None:
    program = require_program("systemd-analyze", "systemd")
    text = (root / "agents" / "powerlab-agent.service").read_text(encoding="utf-8")
    unit = tmp_path / "powerlab-agent.service"
    unit.write_text(text.replace("/opt/powerlab/bin/powerlab", shutil.which("true") or ""), encoding="utf-8")
    done = subprocess.run([program, "verify", unit], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert str(unit.name) not in done.stderr


def test_ci_is_one_script_that_bash_understands(root: Path) -> None:
    script = root / ".ci" / "run"
    assert script.stat().st_mode & 0o111
    subprocess.run(["bash", "-n", script], check=True)
    lines = [line for line in script.read_text(encoding="utf-8").splitlines() if line]
    assert lines[-2:] == ["make check", "make test"]


def test_the_wheels_are_configured_for_both_machines(root: Path) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    wheels = project["tool"]["cibuildwheel"]
    assert wheels["linux"]["archs"] == ["x86_64", "aarch64"]
    assert wheels["build"] == [f"cp3{minor}-*" for minor in range(11, 15)]
    compile(wheels["test-command"].split('"')[1], "test-command", "exec")
