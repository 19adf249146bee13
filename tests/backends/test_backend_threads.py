"""Engines compute on as many threads as they were given: seen in the kernel's own count of every thread's time."""

from __future__ import annotations

import subprocess
import sys

import pytest
from backend_answers import HERE

pytestmark = pytest.mark.campaign

PROGRAM = """
import os, sys, time
from powerlab.backends.base import LoadOptions
from powerlab.backends.registry import BACKENDS, load

def busy():
    found = {}
    for thread in os.listdir("/proc/self/task"):
        with open(f"/proc/self/task/{thread}/schedstat") as file:
            found[thread] = int(file.read().split()[0])
    return found

threads = int(sys.argv[2])
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
backend = load(BACKENDS[sys.argv[1]], LoadOptions(model="mobilenetv2", batch_size=1, threads=threads))
inputs = backend.inputs(0)
backend.run(inputs)
before = busy()
count = 0
for _ in range(40):  # on a busy machine one thread may do nearly all of the first few inferences
    for _ in range(12):
        backend.run(inputs)
    spent = sorted((ns - before.get(thread, 0) for thread, ns in busy().items()), reverse=True)
    count = sum(ns > spent[0] / 100 for ns in spent)
    if count >= threads:
        break
print(count)
"""


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("engine", HERE)
def test_as_many_threads_compute_as_were_given(engine, threads):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, engine, str(threads)], capture_output=True, text=True, check=True
    )
    assert done.stdout.split()[-1] == str(threads)
