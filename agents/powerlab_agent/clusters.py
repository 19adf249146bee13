"""A sweep that several devices carry out together: the first one waits for the others, and these follow it.

What measures is loaded when there is such a sweep.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from powerlab.domain.errors import PowerlabError
from powerlab.protocol.messages import Lease, Meeting
from powerlab.sweep.host import Host
from powerlab_agent.client import Client

_log = logging.getLogger("powerlab.agent")
PAUSE_S = 1.0
"""How long a device that cannot follow waits before it asks for work again."""


@contextmanager
def leading(
    lease: Lease, client: Client, host: Host, stop: threading.Event, tell: Callable[[Meeting], None]
) -> Iterator[None]:
    """Wait for the other devices of a job, where it has some, as long as the context is open.

    Args:
        lease: the job.
        client: the server.
        host: this device.
        stop: ends waiting.
        tell: brings the meeting to the server.
    """
    if not lease.nodes:
        yield
        return
    from powerlab.sweep.cluster.leader import Cluster

    with Cluster(host.device().name, lease.nodes, lease.plan, stop) as cluster:
        address = f"{client.own_address()}:{cluster.port}"
        _log.info("waiting for %s at %s", ", ".join(lease.nodes), address)
        tell(Meeting(fencing_token=lease.fencing_token, address=address, secret=cluster.key))
        host.nodes = cluster
        try:
            yield
        finally:
            host.nodes = None


def follow(lease: Lease, host: Host, stop: threading.Event) -> None:
    """Follow the first device of a job until it has ended it, or is gone; or say in the log why that cannot be."""
    from powerlab.sweep.cluster.link import LinkError
    from powerlab.sweep.cluster.member import follow_cluster

    if lease.part is None:
        return
    try:
        follow_cluster(lease.plan, host, lease.part.address, lease.part.secret, stop)
    except (LinkError, PowerlabError) as error:
        _log.warning("cannot follow the sweep %s: %s", lease.sweep_id, error)
