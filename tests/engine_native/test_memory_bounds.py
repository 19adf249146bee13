"""A model that needs more memory than there is gets a sentence, before the memory is taken."""

import resource
import subprocess
import sys

import numpy as np
import pytest

from engine_native.graphs import NO_CLAMP, GraphMaker
from powerlab.cgroups import memory_left_bytes
from powerlab.domain.errors import PowerlabError
from powerlab.engine import Session
from powerlab.engine.codegen import builder
from powerlab.engine.runtime import memory
from powerlab.engine.runtime.memory import available_bytes
from trees import write_tree

MIB = 2**20


def graph(channels=64, size=32):
    maker = GraphMaker()
    return maker.graph(maker.conv(maker.input("x", 1, channels, size, size), np.ones((channels, channels, 1, 1))))


def leave(monkeypatch, left_bytes):
    for module in (memory, builder):
        monkeypatch.setattr(module, "available_bytes", lambda: left_bytes)
        monkeypatch.setattr(module, "ALWAYS_THERE_BYTES", 0)


def test_weights_that_do_not_fit_are_refused(monkeypatch):
    leave(monkeypatch, 64 * 64 * 4 - 1)
    with pytest.raises(PowerlabError, match=r"needs 1.53e-05 GiB for its weights, and 1.53e-05 GiB are left"):
        Session(graph())


def test_weights_that_grow_beyond_memory_when_packed_are_refused(monkeypatch):
    """Three channels fill a vector of the kernels, which takes more than they do."""
    thin = graph(channels=3)
    leave(monkeypatch, 3 * 3 * 4)
    with pytest.raises(PowerlabError, match=r"the weights up to node '.*' are larger than the memory there is"):
        Session(thin)


def test_activations_that_do_not_fit_are_refused(monkeypatch):
    wide = graph(channels=4, size=512)
    leave(monkeypatch, 4 * 512 * 512 * 4)  # the input's copy in blocks, or the result, but not both
    with pytest.raises(PowerlabError, match=r"the model needs .* GiB for its activations, and 0.00391 GiB are left"):
        Session(wide)
    leave(monkeypatch, 10 * 16 * 512 * 512 * 4)
    Session(wide)


@pytest.mark.parametrize(
    ("files", "left"),
    [
        ({"memory.max": "max\n", "memory.current": f"{MIB}\n"}, None),
        ({"memory.max": f"{5 * MIB}\n", "memory.current": f"{2 * MIB}\n"}, 3 * MIB),
        (
            {
                "memory.max": f"{5 * MIB}\n",
                "memory.current": f"{2 * MIB}\n",
                "memory.stat": f"anon 7\ninactive_file {MIB}\nactive_file 9\n",
            },
            4 * MIB,
        ),
        ({"memory.max": f"{MIB}\n", "memory.current": f"{2 * MIB}\n"}, 0),
        ({"memory.max": "", "memory.current": ""}, None),
        ({}, None),
    ],
)
def test_what_a_group_leaves(tmp_path, files, left):
    tree = {f"/sys/fs/cgroup/job/{name}": text for name, text in files.items()}
    root = write_tree(
        tmp_path,
        {
            "/proc/self/cgroup": "0::/job/inner\n",
            "/proc/self/mounts": "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n",
            "/sys/fs/cgroup/job/inner/memory.max": "max\n",
            **tree,
        },
    )
    assert memory_left_bytes(root) == left


def test_what_a_group_of_version_1_leaves(tmp_path):
    group = "/sys/fs/cgroup/memory/job"
    root = write_tree(
        tmp_path,
        {
            "/proc/self/cgroup": "7:memory:/job\n0::/\n",
            f"{group}/memory.limit_in_bytes": f"{8 * MIB}\n",
            f"{group}/memory.usage_in_bytes": f"{6 * MIB}\n",
            f"{group}/memory.stat": f"inactive_file 5\ntotal_inactive_file {MIB}\n",
        },
    )
    assert memory_left_bytes(root) == 3 * MIB
    assert available_bytes(root) == 3 * MIB


def test_without_groups_the_machine_or_the_address_space_is_the_bound(tmp_path):
    root = write_tree(tmp_path, {"/proc/self/cgroup": "0::/\n"})
    assert available_bytes(root) > MIB
    program = f"""
import resource
from powerlab.engine.runtime.memory import available_bytes
vms = 4096 * int(open("/proc/self/statm").read().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (vms + 64 * {MIB}, resource.RLIM_INFINITY))
print(available_bytes())
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert 32 * MIB < int(done.stdout) <= 64 * MIB


def test_a_model_that_fits_exactly_once_needs_no_second_copy_of_its_promise():
    maker = GraphMaker()
    shape = (1, 2**30)
    y = maker.node("Clamp", (maker.input("x", *shape),), shape, clamp=NO_CLAMP)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.MonkeyPatch.context() as patch:
        leave(patch, 2**30)
        with pytest.raises(PowerlabError, match="for its activations"):
            Session(maker.graph(y))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 * 1024  # KiB: nothing was taken
