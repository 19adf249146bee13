"""The files that put powerlab on servers and boards, checked as far as that goes without a container engine."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from powerlab import cli
from powerlab.modes.undo.lock import LOCK_DIRECTORY
from powerlab.privileged.protocol import SOCKET
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
    for service in ("database:", "server:", "agent:", "prometheus:", "grafana:", "storage:", "clickhouse:"):
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
        cli.parser().parse_args([*words, "--help"])
    except SystemExit as stop:
        return stop.code == 0
    return False


DEVICE_UNITS = (
    "powerlab-agent.service",
    "powerlab-helper.service",
    "powerlab-helper.socket",
    "powerlab-restore.service",
)
SERVER_UNIT = "powerlab-server.service"
UNITS = (*DEVICE_UNITS, SERVER_UNIT)
MOST_EXPOSED = {
    "powerlab-agent.service": 2.2,
    "powerlab-helper.service": 2.2,
    "powerlab-restore.service": 1.0,
    "powerlab-server.service": 1.2,
}
"""Of 10 (systemd-analyze security): below 2.5 few services of a distribution come."""


def _file(root: Path, name: str) -> Path:
    return root / ("api" if name == SERVER_UNIT else "agents") / name


def _unit(root: Path, name: str) -> dict[str, list[str]]:
    """Return a unit's settings, each with all its lines."""
    settings: dict[str, list[str]] = {}
    for line in _file(root, name).read_text(encoding="utf-8").splitlines():
        if "=" in line and not line.startswith("#"):
            key, _, value = line.partition("=")
            settings.setdefault(key, []).append(value)
    return settings


def test_the_services_call_commands_that_exist(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    started = [
        line for name in DEVICE_UNITS for key, lines in _unit(root, name).items() if key[:4] == "Exec" for line in lines
    ]
    commands = _commands_in("\n".join(started))
    assert commands == {("agent", "run"), ("modes", "restore")}
    for words in commands:
        assert _known(words), f"powerlab {' '.join(words)} is no command"
    assert "--if-killed" in capsys.readouterr().out
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    programs = {Path(line.split()[0]).name for line in started}
    assert programs <= set(project["project"]["scripts"])


def test_only_the_helper_is_root(root: Path) -> None:
    users = {name: _unit(root, name).get("User") for name in UNITS if name.endswith(".service")}
    assert users == {
        "powerlab-server.service": ["powerlab-server"],
        "powerlab-agent.service": ["powerlab"],
        "powerlab-helper.service": ["root"],
        "powerlab-restore.service": ["powerlab"],
    }
    for name in ("powerlab-agent.service", "powerlab-restore.service", SERVER_UNIT):
        assert _unit(root, name)["CapabilityBoundingSet"] == [""]


def test_the_server_s_unit_starts_a_server_with_a_database_that_it_can_write(
    root: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    unit = _unit(root, SERVER_UNIT)
    (command,) = unit["ExecStart"]
    assert command == "/opt/powerlab/bin/powerlab serve $SERVE_OPTIONS"
    assert _known(("serve",))
    shown = capsys.readouterr().out
    for option in re.findall(r"SERVE_OPTIONS=(--\S+) \S+ (--\S+)", _file(root, SERVER_UNIT).read_text())[0]:
        assert option in shown
    (folder,) = unit["StateDirectory"]
    assert unit["Environment"] == [f"POWERLAB_DATABASE=/var/lib/{folder}/powerlab.db"]
    assert "POWERLAB_DATABASE" in shown


def test_the_units_agree_on_who_asks_whom_where(root: Path) -> None:
    agent, helper, restore = (_unit(root, f"powerlab-{name}.service") for name in ("agent", "helper", "restore"))
    listens = _unit(root, "powerlab-helper.socket")
    assert listens["ListenStream"] == [SOCKET]
    assert helper["ExecStart"][0].split()[-2:] == ["--user", *agent["User"]]
    assert listens["SocketGroup"] == agent["User"]
    assert str(Path(SOCKET).parent) in helper["ReadWritePaths"][0].split()
    for unit in (agent, helper, restore):
        assert f"-{LOCK_DIRECTORY}" in unit["ReadWritePaths"][0].split()
    for unit in (agent, restore):
        assert "powerlab-helper.socket" in " ".join(unit["Wants"])
        assert unit["Environment"] == ["POWERLAB_STATE_DIR=/var/lib/powerlab"]
    assert "powerlab-restore.service" in agent["After"][0]
    assert agent["OnFailure"] == ["powerlab-restore.service"]


def test_the_helper_s_sandbox_leaves_open_what_its_list_needs(root: Path) -> None:
    helper = _unit(root, "powerlab-helper.service")
    for closes in ("ProtectKernelTunables", "ProtectControlGroups", "PrivateDevices", "PrivateUsers", "ProtectProc"):
        assert closes not in helper, f"{closes} would keep it from /sys, its devices or the processes it may move"
    allowed = " ".join(helper["DeviceAllow"])
    assert "char-cpu/msr r" in allowed
    assert "char-nvidia" in allowed


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


@pytest.fixture
def units(root: Path, tmp_path: Path) -> Path:
    """The units in a folder, with a program that is there."""
    there = shutil.which("true") or ""
    for name in UNITS:
        text = _file(root, name).read_text(encoding="utf-8")
        (tmp_path / name).write_text(re.sub(r"/opt/powerlab/bin/powerlab[a-z-]*", there, text), encoding="utf-8")
    return tmp_path


def test_systemd_accepts_the_units(units: Path) -> None:
    program = require_program("systemd-analyze", "systemd")
    environment = {**os.environ, "SYSTEMD_UNIT_PATH": f"{units}:"}
    command = [program, "verify", *(units / name for name in UNITS)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "powerlab" not in done.stderr


@pytest.mark.parametrize("name", sorted(MOST_EXPOSED))
def test_a_service_can_do_no_more_than_it_has_to(units: Path, name: str) -> None:
    program = require_program("systemd-analyze", "systemd")
    command = [program, "security", "--offline=true", "--no-pager", units / name]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = re.search(r"exposure level for \S+: ([0-9.]+)", done.stdout)
    assert found is not None, done.stdout + done.stderr
    assert float(found[1]) <= MOST_EXPOSED[name], done.stdout


def test_ci_is_one_script_that_bash_understands(root: Path) -> None:
    script = root / ".ci" / "run"
    assert script.stat().st_mode & 0o111
    subprocess.run(["bash", "-n", script], check=True)
    lines = [line for line in script.read_text(encoding="utf-8").splitlines() if line]
    assert lines[-2:] == ["make --jobs=2 check", "make test-ci"]
