"""A server that speaks S3, as a process of its own: moto's, with a bucket in it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import urllib3

from free_port import free_port

KEYS = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing-secret", "AWS_EC2_METADATA_DISABLED": "true"}


@contextmanager
def s3_server() -> Iterator[str]:
    """Yield its address; whoever uses it sets the environment to :data:`KEYS`."""
    port = free_port()
    command = [sys.executable, "-m", "moto.server", "--host", "127.0.0.1", "--port", str(port)]
    environment = {**os.environ, **KEYS, "PYTHONWARNINGS": "ignore"}
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    address = f"http://127.0.0.1:{port}"
    try:
        while True:
            assert process.poll() is None, "moto's server has ended"
            try:
                urllib3.request("PUT", f"{address}/lab", retries=False, timeout=5.0)
                break
            except urllib3.exceptions.HTTPError:
                time.sleep(0.05)
        yield address
    finally:
        process.terminate()
        process.wait(10)
