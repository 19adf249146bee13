"""Two network namespaces with a cable between them: real interfaces, whose faults are the kernel's own.

Made without privileges, inside a user namespace. Each namespace lives as long as a process that does nothing in it.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from requires import missing, require_program

SERVER, AGENT, MOVED = "10.86.0.1", "10.86.0.2", "10.86.0.3"
LINE = "cable"


@dataclass(frozen=True)
class End:
    """One end, by the process that keeps its namespace."""

    keeper: subprocess.Popen[str]

    @property
    def prefix(self) -> list[str]:
        """What a command begins with that shall run here, with the files of everybody."""
        return ["nsenter", "--preserve-credentials", "-U", "-n", "-t", str(self.keeper.pid)]

    def run(self, *words: str) -> None:
        subprocess.run([*self.prefix, *words], check=True, capture_output=True, text=True)

    def link(self, state: str) -> None:
        self.run("ip", "link", "set", LINE, state)

    def address(self, verb: str, address: str) -> None:
        self.run("ip", "address", verb, f"{address}/24", "dev", LINE)


@dataclass(frozen=True)
class Cable:
    """Both ends, and what may happen between them."""

    server: End
    agent: End

    def lay(self) -> None:
        """Make it, and try what not every kernel can do with it."""
        peer = ("peer", "name", LINE, "netns", str(self.agent.keeper.pid))
        self.server.run("ip", "link", "add", LINE, "type", "veth", *peer)
        for end, address in ((self.server, SERVER), (self.agent, AGENT)):
            end.address("add", address)
            end.link("up")
        self.throttle(1_000_000)
        self.unthrottle()

    def pull(self) -> None:
        """Nothing arrives any more, and nobody is told."""
        self.server.link("down")

    def plug(self) -> None:
        self.server.link("up")

    def route(self, verb: str, kind: str) -> None:
        """Add or delete a route to the server that leads nowhere: ``unreachable``, ``prohibit`` or ``blackhole``."""
        self.agent.run("ip", "route", verb, kind, f"{SERVER}/32")

    def throttle(self, bits_per_s: int) -> None:
        """Let so much through each way, with a queue of two packets: what does not fit is lost."""
        for end in (self.server, self.agent):
            words = ("rate", f"{bits_per_s}bit", "burst", "1600", "limit", "3200")
            end.run("tc", "qdisc", "replace", "dev", LINE, "root", "tbf", *words)

    def unthrottle(self) -> None:
        for end in (self.server, self.agent):
            end.run("tc", "qdisc", "delete", "dev", LINE, "root")

    def move(self, old: str, new: str) -> None:
        """Give the agent's device another address, as a DHCP server does; its connections are dead and do not know."""
        self.agent.address("delete", old)
        self.agent.address("add", new)


def _keeper(prefix: list[str], *words: str) -> subprocess.Popen[str]:
    command = [*prefix, "unshare", *words, "sh", "-c", "echo here; exec sleep infinity"]
    keeper = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if keeper.stdout.readline() != "here\n":
        _, why = keeper.communicate()
        missing(f"no network namespace can be made here ({why.strip()})")
    return keeper


@contextmanager
def plugged_cable() -> Iterator[Cable]:
    """Yield a cable between two namespaces, each with an address."""
    for program in ("ip", "tc"):
        require_program(program, "iproute2")
    keepers = [_keeper([], "--user", "--map-root-user", "--net")]
    try:
        server = End(keepers[0])
        keepers.append(_keeper(server.prefix, "--net"))
        agent = End(keepers[1])
        cable = Cable(server, agent)
        try:
            cable.lay()
        except subprocess.CalledProcessError as error:
            missing(f"no cable can be laid here ({error.stderr.strip()})")
        yield cable
    finally:
        for keeper in keepers:
            keeper.kill()
            keeper.communicate()
