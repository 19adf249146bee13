"""Who can reach a server, and what it must therefore ask of them."""

from __future__ import annotations

import ipaddress
import ssl
from dataclasses import dataclass
from pathlib import Path

from powerlab.domain.errors import PowerlabError


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenPolicy:
    """Where a server listens and what stands before it.

    Attributes:
        host: the address to listen on.
        tls: files of the certificate and of its key; None without TLS.
        proxies: addresses and networks whose forwarded headers are believed.
        operator_token: the configured admin's token; None where there is none.
    """

    host: str
    tls: tuple[Path, Path] | None = None
    proxies: tuple[str, ...] = ()
    operator_token: str | None = None

    @property
    def local(self) -> bool:
        """Return whether only this machine's users reach the server."""
        return _is_loopback(self.host) and not self.proxies

    @property
    def login_needed(self) -> bool:
        """Return whether everybody needs a token."""
        return not self.local or self.operator_token is not None

    @classmethod
    def from_arguments(
        cls, host: str, certificate: Path | None, key: Path | None, proxies: str | None, operator_token: str | None
    ) -> ListenPolicy:
        """Check what the command line gives.

        Raises:
            PowerlabError: half a pair of files, files that are no certificate and its key, or no addresses.
        """
        if (certificate is None) != (key is None):
            raise PowerlabError("TLS needs both --tls-cert and --tls-key.")
        tls = None if certificate is None or key is None else (certificate, key)
        if tls is not None:
            _check_pair(*tls)
        return cls(host=host, tls=tls, proxies=_networks(proxies), operator_token=operator_token)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _check_pair(certificate: Path, key: Path) -> None:
    try:
        # A key with a password would be asked for at the terminal; a server that starts by itself has nobody there.
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password=lambda: b"")
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise PowerlabError(
            f"{certificate} and {key} cannot be used for TLS ({reason}); give a certificate and its key as PEM files, "
            "the key without a password."
        ) from error


def _networks(proxies: str | None) -> tuple[str, ...]:
    if proxies is None:
        return ()
    found = tuple(part.strip() for part in proxies.split(","))
    for part in found:
        try:
            ipaddress.ip_network(part)
        except ValueError as error:
            raise PowerlabError(
                f"--behind-proxy: {part!r} is neither an address nor a network; write 10.0.0.7 or 10.0.0.0/24."
            ) from error
    return found
