"""``powerlab serve`` where others can reach it: TLS, proxies, and what never gets into a log."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import urllib3

from forked_program import ForkedProgram
from powerlab import cli
from powerlab.cli.commands.serve.listen_policy import ListenPolicy
from powerlab.domain.errors import PowerlabError
from powerlab.protocol.access import Role, TokenRequest
from powerlab.protocol.messages import EnrolRequest
from powerlab.protocol.wire import encode
from powerlab.store import open_store
from powerlab.store.reads.audit_log import EventFilter, list_events
from powerlab.store.writes.tokens import create_token
from powerlab_agent.client import Client, ServerUnreachableError
from requires import require_program
from server_examples import capabilities, device

CONFIGURED = "s3cret-word-of-the-server"


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Make a certificate for this machine, signed by itself."""
    folder = tmp_path_factory.mktemp("tls")
    certificate, key = folder / "server.pem", folder / "server.key"
    words = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    names = ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"]
    made = [require_program("openssl", "openssl"), *words, *names, "-keyout", str(key), "-out", str(certificate)]
    subprocess.run(made, check=True, capture_output=True)
    return certificate, key


@dataclass
class Running:
    """A server process; ``said`` holds what it printed, once it has ended."""

    process: ForkedProgram
    url: str
    said: list[str] = field(default_factory=list)

    def ask(self, method: str, path: str, token: str | None = None, **more: Any) -> urllib3.BaseHTTPResponse:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        if "json" in more:
            headers["Content-Type"] = "application/json"
            more["body"] = encode(more.pop("json"))
        headers |= more.pop("headers", {})
        with urllib3.PoolManager(retries=False, **more.pop("pool", {})) as pool:
            return pool.request(method, self.url + path, headers=headers, redirect=False, **more)


@contextmanager
def running(database: Path, *words: str, token: str | None = CONFIGURED) -> Iterator[Running]:
    environment = {name: value for name, value in os.environ.items() if name != "POWERLAB_OPERATOR_TOKEN"}
    if token is not None:
        environment["POWERLAB_OPERATOR_TOKEN"] = token
    command = ["-m", "powerlab.cli", "serve", "--port", "0", "--database", database, *words]
    process = ForkedProgram(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment)
    try:
        first, second = process.stdout.readline(), process.stdout.readline()
        found = Running(process, first.split()[-1] if first else "", [first, second])
        assert "log in at" in second, process.stderr.read()
        yield found
        process.terminate()
        found.said.extend(process.communicate(timeout=60))
        assert process.returncode == 0, found.said
    finally:
        process.kill()
        process.communicate()


@pytest.mark.campaign(minutes=0.5)
def test_a_server_speaks_tls_and_agents_and_commands_understand_it(
    tmp_path: Path, pair: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    certificate, key = pair
    with running(tmp_path / "p.db", "--tls-cert", str(certificate), "--tls-key", str(key)) as server:
        assert server.url.startswith("https://127.0.0.1:")
        trusting = {"ca_certs": str(certificate)}
        assert server.ask("GET", "/api/v1/devices", CONFIGURED, pool=trusting).status == 200
        login = {"body": f"token={CONFIGURED}", "headers": {"Sec-Fetch-Site": "same-origin"}}
        sent = server.ask("POST", "/login", pool=trusting, **login)
        assert (sent.status, "secure" in sent.headers["set-cookie"].lower()) == (303, True)
        monkeypatch.setenv("POWERLAB_TOKEN", CONFIGURED)
        assert cli.main(["tokens", "code", "--server", server.url]) == 2
        told = capsys.readouterr().err
        assert "SSL_CERT_FILE" in told
        assert "certificate" in told
        with pytest.raises(ServerUnreachableError, match="certificate"):
            Client(server.url).lease(0.0)
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
        assert cli.main(["tokens", "code", "--server", server.url]) == 0
        code = capsys.readouterr().out.strip()
        reply = Client(server.url).enrol(EnrolRequest(code=code, device=device(), capabilities=capabilities()))
        assert Client(server.url, reply.token).lease(0.0) is None


@pytest.mark.campaign(minutes=0.5)
def test_forwarded_headers_are_believed_from_the_named_proxy_alone(tmp_path: Path) -> None:
    forwarded = {"X-Forwarded-Proto": "https", "X-Forwarded-For": "203.0.113.7"}
    login = {"body": f"token={CONFIGURED}", "headers": {**forwarded, "Sec-Fetch-Site": "same-origin"}}
    for proxies, believed in (("127.0.0.1", True), ("10.0.0.0/8", False)):
        with running(tmp_path / "p.db", "--behind-proxy", proxies) as server:
            cookie = server.ask("POST", "/login", **login).headers["set-cookie"].lower()
            assert ("secure" in cookie) == believed
            wrong = {"headers": forwarded}
            assert server.ask("GET", "/api/v1/devices", "a guess", **wrong).status == 401
        assert ("203.0.113.7" in "".join(server.said)) == believed
        assert ("127.0.0.1\n" in "".join(server.said)) != believed


def test_behind_a_proxy_everybody_needs_a_token(tmp_path: Path) -> None:
    """The proxy is on this machine, those who ask are not."""
    with closing(open_store(tmp_path / "p.db")) as store, store.write() as session:
        request = TokenRequest(name="root", role=Role.ADMIN)
        root = create_token(session, request, store.clock(), actor="test").token
    with running(tmp_path / "p.db", "--behind-proxy", "127.0.0.1", token=None) as server:
        named = {"headers": {"Host": "lab.example"}}
        assert server.ask("GET", "/api/v1/health", **named).status == 200
        assert server.ask("GET", "/api/v1/devices", **named).status == 401
        assert server.ask("GET", "/api/v1/devices", root, **named).status == 200


def test_no_secret_of_a_session_is_logged_or_in_the_log_of_who_did_what(tmp_path: Path) -> None:
    database = tmp_path / "p.db"
    secrets = {"configured": CONFIGURED, "guess": "my-very-own-guess", "wrong code": "deadbeef" * 4}
    with running(database) as server:
        made = server.ask("POST", "/api/v1/tokens", CONFIGURED, json={"name": "root", "role": "admin"}).json()
        secrets["admin"] = root = made["token"]
        secrets["code"] = code = server.ask("POST", "/api/v1/enrolment-codes", root, json={}).json()["code"]
        enrolment = EnrolRequest(code=code, device=device(), capabilities=capabilities())
        secrets["agent"] = agent = server.ask("POST", "/api/v1/agents", json=enrolment).json()["token"]
        login = {"body": f"token={root}", "headers": {"Sec-Fetch-Site": "same-origin"}}
        sent = server.ask("POST", "/login", **login)
        secrets["cookie"] = sent.headers["set-cookie"].partition("=")[2].partition(";")[0]
        cookie = {"headers": {"Cookie": f"powerlab_session={secrets['cookie']}", "Sec-Fetch-Site": "same-origin"}}
        assert server.ask("GET", "/api/v1/tokens", **cookie).status == 200
        wrong = {"body": f"token={secrets['guess']}", "headers": {"Sec-Fetch-Site": "same-origin"}}
        assert server.ask("POST", "/login", **wrong).status == 401
        # Everything that goes wrong, with every secret in places where it does not belong.
        for secret in list(secrets.values()):
            for token in (secret, root, None):
                server.ask("GET", "/api/v1/devices", token)
                server.ask("GET", f"/api/v1/runs/{secret}", token)
                server.ask("POST", "/api/v1/tokens", token, json={"name": secret, "role": secret})
                server.ask("POST", "/api/v1/jobs/lease", token, json={"wait_s": secret})
                server.ask("GET", f"/api/v1/audit-events?cursor={secret}", token)
            message = {"code": secret, "device": {"name": secret}, "capabilities": {}}
            server.ask("POST", "/api/v1/agents", json=message)
        assert server.ask("POST", "/api/v1/jobs/lease", agent, json={}).status == 200
        server.ask("DELETE", f"/api/v1/tokens/{made['record']['id']}", root)
        server.ask("POST", "/logout", **cookie)
    logged = "".join(server.said)
    assert "a wrong token came from 127.0.0.1" in logged
    with closing(open_store(database)) as store, store.session() as session:
        rows = [str(event) for event in list_events(session, EventFilter())]
    assert len(rows) >= 5
    for name, secret in secrets.items():
        assert secret not in logged, name
        assert not [row for row in rows if secret in row], name


@pytest.mark.parametrize(
    ("certificate", "key", "words"),
    [
        ("good", None, "needs both"),
        (None, "good", "needs both"),
        ("missing", "good", "No such file"),
        ("good", "missing", "No such file"),
        ("nonsense", "good", "cannot be used for TLS"),
        ("key", "good", "cannot be used for TLS"),
    ],
)
def test_what_is_no_certificate(
    tmp_path: Path, pair: tuple[Path, Path], certificate: str | None, key: str | None, words: str
) -> None:
    nonsense = tmp_path / "nonsense"
    nonsense.write_text("Dear reader, this is no certificate.")
    files = {None: None, "missing": tmp_path / "missing", "nonsense": nonsense, "key": pair[1]}
    first = pair[0] if certificate == "good" else files[certificate]
    second = pair[1] if key == "good" else files[key]
    with pytest.raises(PowerlabError, match=words) as caught:
        ListenPolicy.from_arguments("127.0.0.1", first, second, None, None)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("proxies", ["", "proxy.example", "10.0.0.0/8,", "*", "10.0.0.300", "10.0.0.1/8"])
def test_what_is_no_proxy(proxies: str) -> None:
    with pytest.raises(PowerlabError, match="neither an address nor a network"):
        ListenPolicy.from_arguments("127.0.0.1", None, None, proxies, None)


def test_who_needs_a_token() -> None:
    def exposed(host: str, **more: Any) -> tuple[bool, bool]:
        one = ListenPolicy(host=host, **more)
        return one.local, one.login_needed

    for host in ("127.0.0.1", "::1", "localhost", "127.8.9.1"):
        assert exposed(host) == (True, False)
        assert exposed(host, operator_token="x") == (True, True)
        assert exposed(host, proxies=("10.0.0.1",)) == (False, True)
    for host in ("0.0.0.0", "::", "192.168.1.2", "server", "localhost.example"):
        assert exposed(host) == (False, True)
