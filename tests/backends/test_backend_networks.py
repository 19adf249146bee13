"""Every engine that is installed computes whole networks as the built-in one does; what it has not, it refuses."""

from __future__ import annotations

import numpy as np
import pytest
from backend_answers import HERE, PEERS, TOLERANCE, difference, loaded
from engine_models import light_model, onnx_bytes
from onnx import helper

from powerlab.backends.packages import installed_version
from powerlab.domain.errors import PowerlabError
from powerlab.measure.output_check import largest_difference
from requires import missing

pytestmark = pytest.mark.campaign


@pytest.mark.parametrize("engine", PEERS)
def test_the_engines_of_the_extra_are_installed(engine):
    if installed_version(engine) is None:
        missing(f"{engine} is not installed (pip install 'powerlab[peers]')")


@pytest.mark.parametrize("name", ["squeezenet", "inception_v1"])
@pytest.mark.parametrize("engine", HERE)
def test_light_networks_give_the_built_in_engines_answers(engine, name, tmp_path):
    path = tmp_path / f"{name}.onnx"
    path.write_bytes(light_model(name))
    assert difference(engine, path) < TOLERANCE


@pytest.mark.parametrize("engine", HERE)
def test_a_batch_larger_than_the_file_says_gives_the_same_answers(engine, tmp_path):
    path = tmp_path / "squeezenet.onnx"
    path.write_bytes(light_model("squeezenet"))
    assert difference(engine, path, batch_size=3) < TOLERANCE


@pytest.mark.parametrize("batch_size", [1, 2])
@pytest.mark.parametrize("engine", HERE)
def test_a_model_of_the_zoo_gives_the_same_answers(engine, batch_size):
    assert difference(engine, "mobilenetv2", batch_size) < TOLERANCE


@pytest.mark.parametrize("engine", HERE)
def test_a_shape_of_precision_that_is_not_offered_is_refused_with_those_that_are(engine):
    with pytest.raises(PowerlabError, match=rf"^the engine {engine} computes in fp32.* here, not in 'int3'; .+\.$"):
        loaded(engine, "mobilenetv2", precision="int3")


@pytest.mark.parametrize("engine", sorted({"torch", "ncnn"} & set(HERE)))
def test_bfloat16_is_near_and_is_not_float32(engine):
    apart = difference(engine, "mobilenetv2", precision="bf16")
    assert 1e-4 < apart < 5e-2


@pytest.mark.parametrize("engine", sorted({"onnxruntime", "openvino", "litert", "torch"} & set(HERE)))
def test_int8_is_the_same_quantized_model_everywhere(engine, tmp_path, monkeypatch):
    """Of random weights and random images; in OpenVINO and LiteRT sums are rounded elsewhere, and overflow nowhere."""
    monkeypatch.setenv("POWERLAB_STATE_DIR", str(tmp_path))
    apart = difference(engine, "squeezenet", precision="int8")
    assert 1e-4 < apart < 0.1
    builtin, peer = (loaded(one, "squeezenet", precision="int8") for one in ("builtin", engine))
    inputs = builtin.inputs(7)
    found, expected = (one.run(inputs)["y"] for one in (peer, builtin))
    assert np.square(found - expected).sum() < 10**-3 * np.square(expected).sum()
    assert len(list((tmp_path / "calibrations").iterdir())) == 1, "calibrated once"


@pytest.mark.parametrize("precision", ["int8w", "int4w"])
@pytest.mark.parametrize("engine", sorted({"onnxruntime", "openvino"} & set(HERE)))
def test_weights_in_fewer_bits_are_the_same_everywhere(engine, precision, tmp_path):
    """A linear layer as wide as a few blocks of 32 features, for one image: the built-in engine packs its weights."""
    generator = np.random.default_rng(5)
    constants = {"w": generator.standard_normal((160, 40), dtype=np.float32)}
    path = tmp_path / "linear.onnx"
    path.write_bytes(onnx_bytes([helper.make_node("MatMul", ["x", "w"], ["y"])], {"x": (1, 160)}, constants=constants))
    builtin, peer = (loaded(one, path, precision=precision) for one in ("builtin", engine))
    inputs = builtin.inputs(7)
    assert largest_difference(peer.run(inputs), builtin.run(inputs)) < TOLERANCE
    assert difference(engine, path, precision=precision) > 1e-4, "float32 weights are something else"


@pytest.mark.parametrize("engine", HERE)
def test_a_spin_time_no_engine_takes_is_refused(engine):
    with pytest.raises(PowerlabError, match=rf"^the engine {engine} .+, not 123 us; leave the spin time out"):
        loaded(engine, "mobilenetv2", spin_us=123)


def test_onnx_runtime_does_not_spin_when_told_so():
    assert difference("onnxruntime", "mobilenetv2", spin_us=0) < TOLERANCE


@pytest.mark.parametrize("engine", HERE)
def test_a_model_that_is_none_is_refused_in_a_sentence(engine, tmp_path):
    path = tmp_path / "model.onnx"
    path.write_bytes(b"no model at all")
    with pytest.raises(PowerlabError) as refused:
        loaded(engine, path)
    assert "\n" not in str(refused.value)
