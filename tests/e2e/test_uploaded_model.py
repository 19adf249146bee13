"""A model is uploaded, a sweep names it, and a device's agent fetches it and measures it."""

from __future__ import annotations

import json
import re

import pytest

from onnx_bytes import sha256
from small_network import write_small_network

pytestmark = pytest.mark.campaign

QUICK = ("--threads", "1", "--warm-up", "0", "--longest-warm-up", "0", "--idle", "0", "--duration", "0.05")


def test_an_uploaded_model_is_swept_by_an_agent(powerlab):
    path = write_small_network(powerlab.home / "small.onnx")
    key = sha256(path.read_bytes())
    word = f"small@sha256:{key}"

    def done(*words):
        made = powerlab(*words)
        assert made.returncode == 0, made.stderr
        return made.stdout

    with powerlab.started("serve", "--port", "0", "--database", "server.db") as server:
        url = server.stdout.readline().split()[-1]
        code = re.search(r"--code (\S+)", server.stdout.readline())[1]
        at = ("--server", url)
        done("agent", "enrol", *at, "--code", code, "--state", "agent", "--board", "jetson-agx-xavier")
        refused = powerlab("sweep", "create", word, *QUICK, *at)
        assert refused.returncode == 2
        assert "there is no model" in refused.stderr
        assert done("models", "upload", "small.onnx", *at).splitlines()[0] == word
        path.unlink()  # what the agent runs comes from the server
        sweep = json.loads(done("sweep", "create", f"sha256:{key[:6]}", *QUICK, *at, "--json"))
        assert sweep["plan"]["models"] == [word]
        agent = powerlab("agent", "run", "--once", "--state", "agent")
        assert agent.returncode == 0, agent.stderr
        assert f"fetched {word}" in agent.stderr
        shown = json.loads(done("sweep", "show", sweep["id"], *at, "--json"))
        assert shown["sweep"]["state"] == "done", shown["sweep"]["detail"]
        (summary,) = shown["summaries"]
        assert summary["point"]["workload"]["model"] == word
        assert {metric["name"] for metric in summary["metrics"]} >= {"throughput_img_per_s", "latency_p50_ms"}
        assert f"small@{key[:12]}" in done("sweep", "show", sweep["id"], *at)
    (kept,) = (powerlab.home / "agent" / "models").iterdir()
    assert sha256(kept.read_bytes()) == key
    local = powerlab("profile", word, *QUICK, "--database", "none", "--board", "jetson-agx-xavier")
    assert local.returncode == 2
    assert "lies on a server" in local.stderr
