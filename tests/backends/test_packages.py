"""An engine that is missing is said so in one sentence with the command that installs it, before anything is run."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import replace

import pytest
from backend_answers import HERE, PEERS

from powerlab.backends import packages
from powerlab.backends.base import LoadOptions
from powerlab.backends.offers import check_threads
from powerlab.backends.packages import PACKAGES, check_installed, installed_version, required
from powerlab.backends.registry import BACKENDS, load
from powerlab.domain.errors import PowerlabError
from powerlab.domain.preflight import ENGINES
from powerlab.domain.workload import Processor

ONE_IMAGE = LoadOptions(model="mobilenetv2", batch_size=1, threads=1)


class Hidden:
    """A finder that knows nothing of some packages, as on a machine that lacks them."""

    def __init__(self, names):
        self._names = names

    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in self._names:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


@pytest.fixture
def hide(monkeypatch):
    """Return a function that hides packages from imports and from those who look for them."""
    look = importlib.util.find_spec

    def hidden(*names):
        for name in [module for module in sys.modules if module.partition(".")[0] in names]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setattr(sys, "meta_path", [Hidden(names), *sys.meta_path])
        monkeypatch.setattr(
            importlib.util, "find_spec", lambda name, package=None: None if name in names else look(name, package)
        )

    return hidden


def test_every_engine_has_its_package():
    assert set(PACKAGES) == set(BACKENDS)


def test_an_engine_nobody_ships_has_no_version():
    assert installed_version("abacus") is None


@pytest.mark.parametrize("engine", sorted(set(BACKENDS) - {"builtin"}))
def test_a_missing_engine_is_refused_with_its_command(engine, hide):
    hide(*PACKAGES[engine].modules)
    assert installed_version(engine) is None
    with pytest.raises(PowerlabError) as refused:
        load(BACKENDS[engine], replace(ONE_IMAGE, processor=ENGINES[engine][0]))
    assert str(refused.value) == (
        f"the engine {engine!r} is not installed here; install it with `{PACKAGES[engine].install}`."
    )


@pytest.mark.parametrize(
    ("engine", "command"),
    [
        ("torch", "pip install torch"),
        ("onnxruntime", "pip install onnx onnxruntime-gpu"),
        ("ncnn", "pip install ncnn"),
    ],
)
def test_on_a_card_another_build_may_be_wanted(engine, command, hide):
    hide(*PACKAGES[engine].modules)
    with pytest.raises(PowerlabError, match=f"install it with `{command}`"):
        check_installed(engine, on_card=True)


def test_a_part_that_is_missing_counts_as_the_whole(hide):
    hide("onnx")
    with pytest.raises(PowerlabError, match="pip install onnx onnxruntime`"):
        check_installed("onnxruntime")


@pytest.mark.parametrize("engine", sorted(set(PEERS) & set(HERE)))
def test_looking_for_an_engine_does_not_import_it(engine):
    program = (
        "import sys; from powerlab.backends.packages import installed_version; "
        f"assert installed_version({engine!r}); assert {PACKAGES[engine].modules[0]!r} not in sys.modules"
    )
    import subprocess

    subprocess.run([sys.executable, "-c", program], check=True)


@pytest.mark.parametrize("error", [ImportError("libgomp.so.1: cannot open shared object file"), OSError("bad ELF")])
def test_an_engine_that_cannot_be_loaded_says_why(error, monkeypatch):
    def broken(name):
        raise error

    monkeypatch.setattr(packages.importlib, "import_module", broken)
    monkeypatch.setattr(packages, "check_installed", lambda engine: None)
    with pytest.raises(PowerlabError, match=r"^the engine 'ncnn' is installed but cannot be loaded \(.+\); install it"):
        required("ncnn", "ncnn")


def test_an_engine_on_other_threads_than_it_was_given_is_refused():
    check_threads("torch", 2, 2)
    with pytest.raises(PowerlabError, match="given 4 threads but computes with 2"):
        check_threads("torch", 4, 2)


def test_a_build_without_the_cards_provider_says_which_it_has(monkeypatch):
    from powerlab.backends import onnxruntime as backend

    class OnProcessors:
        __version__ = "1.31.1"

        @staticmethod
        def get_available_providers():
            return ["AzureExecutionProvider", "CPUExecutionProvider"]

    monkeypatch.setattr(backend, "required", lambda engine, module: OnProcessors)
    with pytest.raises(
        PowerlabError, match=r"^ONNX Runtime 1\.31\.1 has no CUDAExecutionProvider here \(it has: Azure"
    ):
        load(BACKENDS["onnxruntime"], replace(ONE_IMAGE, processor=Processor.GPU))


@pytest.mark.parametrize(
    ("engine", "processor"), [(name, one) for name, able in ENGINES.items() for one in Processor if one not in able]
)
def test_a_processor_that_an_engine_cannot_use_is_refused(engine, processor):
    with pytest.raises(PowerlabError, match=f"^the engine {engine} does not compute on the {processor}; choose"):
        load(BACKENDS[engine], replace(ONE_IMAGE, processor=processor))
