"""docs/api.md: its examples are run against a server, its table of problems is held against the code."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path

from powerlab.protocol.messages import EnrolmentCodeRequest, EnrolRequest, SweepRequest
from powerlab.store import Store
from powerlab.store.writes.devices import enrol, make_enrolment_code
from powerlab.store.writes.sweeps import create_sweep
from quick_server import quick_server
from requires import require_program
from server_examples import PLAN, capabilities, device, make_trace, runs_of
from store_writing import take, upload, upload_trace

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")


def stored(store: Store) -> dict[str, str]:
    with store.write() as session:
        code = make_enrolment_code(session, EnrolmentCodeRequest(), store.clock()).code
        session.flush()
        request = EnrolRequest(code=code, device=device(), capabilities=capabilities())
        device_id = enrol(session, request, store.clock()).device_id
    with store.write() as session:
        sweep_id = create_sweep(session, SweepRequest(device_id=device_id, plan=PLAN), store.clock())
    held, run = take(store, device_id), runs_of(sweep_id)[0]
    upload(store, device_id, held, run)
    upload_trace(store, device_id, held, run.id, make_trace(count=300))
    return {"DEVICE": device_id, "SWEEP": sweep_id, "RUN": run.id}


def script(address: str) -> tuple[str, list[str]]:
    """Return the page's commands as one script that marks where each one's output begins, and what the page shows."""
    lines = [line for block in re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL) for line in block.splitlines()]
    commands, shown = ["set -euo pipefail"], []
    for line in lines:
        if line.startswith("$ "):
            command = line[2:].replace("http://127.0.0.1:8765", address)
            commands += ["echo @@", re.sub(r"\bcurl -s ", "curl -sS ", command), "echo"]
            shown.append("")
        else:
            shown[-1] += line
    return "\n".join(commands), shown


def test_every_example_works_and_answers_what_the_page_shows(tmp_path: Path) -> None:
    require_program("curl", "curl")
    with quick_server(tmp_path / "p.db") as (address, store):
        text, shown = script(address)
        variables = {**os.environ, **stored(store), "no_proxy": "*"}
        done = subprocess.run(["bash", "-c", text], capture_output=True, text=True, env=variables, check=False)
    assert done.returncode == 0, done.stderr
    answers = [answer.strip() for answer in done.stdout.split("@@")[1:]]
    assert len(answers) == len(shown) > 15
    for answer, wanted in zip(answers, shown, strict=True):
        if wanted:
            assert answer == wanted
        assert "problem/" not in answer


def test_every_problem_has_its_row() -> None:
    code = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "api" / "powerlab_api").rglob("*.py"))
    (table,) = re.findall(r"_STATUS: .*?\n\)", code, re.DOTALL)
    kinds = set(re.findall(r', "([a-z-]+)"\)', table)) | set(
        re.findall(r'problem\([^)]*?, "([a-z]+(?:-[a-z]+)*)"', code)
    )
    rows = set(re.findall(r"^\| `([a-z-]+)` \| \d{3} \|", PAGE, re.MULTILINE))
    assert len(kinds) > 8
    assert rows == kinds


def test_every_list_and_its_filters_are_in_the_page() -> None:
    paths = json.loads((ROOT / "api" / "openapi.json").read_text(encoding="utf-8"))["paths"]
    rows = dict(re.findall(r"^\| `(/[a-z]+)` \| [^|]* \| (.*) \|$", PAGE, re.MULTILINE))
    assert len(rows) == 9
    for path, filters in rows.items():
        fields = {one["name"] for one in paths[f"/api/v1{path}"]["get"]["parameters"] if one["in"] == "query"}
        named = set(re.findall(r"`([a-z_]+)`", filters))
        if path == "/metrics":
            named |= set(re.findall(r"`([a-z_]+)`", rows["/runs"]))
        assert named == fields - {"limit", "cursor"}, path
