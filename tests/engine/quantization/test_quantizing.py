"""Quantizing: what is written runs in ONNX Runtime to the same answers, and says what it costs."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from engine_models import run_ort
from msgspec.structs import replace
from quantized_models import model_bytes
from trained import SIZE, answers_of, pictures

from powerlab.cli import main
from powerlab.domain.errors import PowerlabError
from powerlab.engine import Session
from powerlab.engine.codegen.quantized.pack import products_in_16_bits
from powerlab.engine.frontend.load import load_graph
from powerlab.engine.frontend.onnx_writer import onnx_bytes, write_onnx
from powerlab.engine.quantization.calibrate import calibrate, image_shapes, random_batches
from powerlab.engine.quantization.kept import keep_calibration, kept_calibration
from powerlab.engine.quantization.methods import METHODS
from powerlab.engine.quantization.precisions import in_precision
from powerlab.engine.quantization.prepare import prepared_for_quantization
from powerlab.engine.quantization.quantize import Options, quantize_graph, scale_of
from powerlab.engine.quantization.sensitivity import Search
from powerlab.engine.quantization.whole import quantize_network
from powerlab.engine.target.tiers import TIER_VARIABLE, available_tiers, choose_tier
from powerlab.measure.output_accuracy import wilson_95

BATCH = 50


@pytest.fixture(scope="module")
def prepared(trained):
    return prepared_for_quantization(load_graph(trained))


@pytest.fixture(scope="module")
def data():
    images, _ = pictures(200, 2)
    return [{"x": part} for part in np.split(images, 4)]


@pytest.fixture(scope="module")
def calibration(prepared, data):
    return calibrate(prepared, data, threads=1)


@pytest.fixture(scope="module")
def written(prepared, calibration, folder):
    path = folder / "quantized.onnx"
    write_onnx(quantize_graph(prepared, calibration).graph, path)
    return path


def right(answers, labels):
    """Return how many answers are right and the 95 % interval of the share."""
    hits = int((answers.argmax(axis=1) == labels).sum())
    return hits / len(labels), wilson_95(hits, len(labels))


def test_what_is_written_is_onnx_with_integers_a_channel(written):
    model = onnx.load(written)
    onnx.checker.check_model(model, full_check=True)
    kinds = {one.name: one.data_type for one in model.graph.initializer}
    weights = [node for node in model.graph.node if kinds.get(node.input[0]) == onnx.TensorProto.INT8]
    assert len(weights) == 3
    shapes = {one.name: tuple(one.dims) for one in model.graph.initializer}
    assert [shapes[node.input[1]] for node in weights] == [(12,), (16,), (10,)]


def test_onnx_runtime_gives_the_same_answers(written, calibration):
    """Sums near the middle between two integers round either way, and so later ones: by a quantum, for few outputs."""
    images, _ = pictures(500, 4)
    found = answers_of(Session(written, threads=1), images)
    expected = np.concatenate([run_ort(str(written), {"x": part})["y"] for part in np.split(images, 10)])
    quantum, _ = scale_of(*calibration.ranges["y"])
    steps = np.rint((found - expected) / quantum)
    assert np.abs(steps).max() <= 2
    assert np.mean(np.abs(steps) > 1) <= 0.001
    assert np.mean(steps != 0) <= 0.05
    assert np.mean(found.argmax(axis=1) == expected.argmax(axis=1)) >= 0.99


def test_integers_cost_little_of_a_trained_networks_accuracy(trained, written):
    images, labels = pictures(2000, 5)
    exact, quantized = (answers_of(Session(path, threads=1), images) for path in (trained, written))
    share, (low, _) = right(exact, labels)
    quantized_share, (_, high) = right(quantized, labels)
    assert share > 0.95, "the network was to be trained"
    assert high > low, (share, quantized_share)
    assert abs(share - quantized_share) < 0.01
    assert np.mean(exact.argmax(axis=1) == quantized.argmax(axis=1)) > 0.98


@pytest.mark.parametrize("method", METHODS)
def test_every_method_keeps_most_of_the_signal(method, prepared, data):
    result = Search(prepared, calibrate(prepared, data, method, threads=1), data, Options()).until(None)
    assert result.sqnr_db > 20
    assert set(result.layers_db) == {"c1", "c2", "y"}
    assert all(ratio > 15 for ratio in result.layers_db.values())


def test_layers_stay_in_float32_until_the_outputs_are_as_exact_as_asked(prepared, calibration, data):
    search = Search(prepared, calibration, data, Options())
    usual = search.until(None).sqnr_db
    result = search.until(usual + 3)
    assert result.sqnr_db >= usual + 3
    assert 0 < len(result.layers_db) < 3
    with pytest.raises(PowerlabError, match="no layer can be quantized with an SQNR of 140 dB"):
        search.until(140)


def test_corrected_biases_leave_outputs_where_they_were(prepared, calibration, data):
    """Of weights rounded far from where they were: a range of one of them spoils the others."""
    means = [
        Search(prepared, calibration, data, Options(correct_biases=corrects)).until(None).sqnr_db
        for corrects in (False, True)
    ]
    assert means[1] > means[0] - 1


def test_uneven_channels_are_equalised(tmp_path, monkeypatch):
    """Of channels that differ a thousandfold, the smaller are all 0 in the integers of the largest."""
    monkeypatch.setenv("POWERLAB_STATE_DIR", str(tmp_path / "state"))
    generator = np.random.default_rng(2)
    factors = np.geomspace(1, 1000, 8).astype(np.float32).reshape(8, 1, 1, 1)
    constants = {
        "w1": generator.normal(0, 0.3, (8, 3, 3, 3)).astype(np.float32) * factors,
        "b1": (generator.uniform(0, 0.3, 8) * factors.reshape(-1)).astype(np.float32),
        "w2": generator.normal(0, 0.3, (8, 1, 3, 3)).astype(np.float32) / factors,
        "w3": generator.normal(0, 0.3, (5, 8, 1, 1)).astype(np.float32),
    }
    nodes = [
        onnx.helper.make_node("Conv", ["x", "w1", "b1"], ["c1"]),
        onnx.helper.make_node("Relu", ["c1"], ["r1"]),
        onnx.helper.make_node("Conv", ["r1", "w2"], ["c2"], group=8),
        onnx.helper.make_node("Conv", ["c2", "w3"], ["y"]),
    ]
    float32 = onnx.TensorProto.FLOAT
    path = tmp_path / "uneven.onnx"
    path.write_bytes(model_bytes(nodes, {"x": (float32, (1, 3, 12, 12))}, {"y": (float32, None)}, constants))
    graph = prepared_for_quantization(load_graph(path))
    compared = random_batches(graph, 8, seed=3)
    plain = Search(graph, calibrate(graph), compared, Options()).until(None)
    result, calibration = quantize_network(graph, None, "minmax", compared=compared)
    assert calibration.equalized
    assert result.sqnr_db > plain.sqnr_db + 6
    keep_calibration(path, calibration)
    found = Session(path, threads=1, precision="int8").run(compared[0])["y"]
    exact = Session(path, threads=1).run(compared[0])["y"]
    assert np.square(found - exact).sum() < 10 ** (-result.sqnr_db / 10) * 4 * np.square(exact).sum()


def test_a_session_in_int8_keeps_its_calibration(trained, tmp_path, monkeypatch):
    monkeypatch.setenv("POWERLAB_STATE_DIR", str(tmp_path))
    images, _ = pictures(BATCH, 6)
    first = Session(trained, threads=1, precision="int8").run({"x": images})["y"]
    kept = list((tmp_path / "calibrations").iterdir())
    assert len(kept) == 1
    again = Session(trained, threads=1, precision="int8").run({"x": images})["y"]
    np.testing.assert_array_equal(first, again)
    kept[0].write_text("{}")
    with pytest.raises(PowerlabError, match="is no calibration"):
        Session(trained, threads=1, precision="int8")


def test_a_random_calibration_that_lacks_a_tensor_is_made_anew_and_one_by_data_refused(trained, tmp_path, monkeypatch):
    """As an older powerlab kept it, which prepared the network otherwise."""
    monkeypatch.setenv("POWERLAB_STATE_DIR", str(tmp_path))
    images, _ = pictures(BATCH, 6)
    first = Session(trained, threads=1, precision="int8").run({"x": images})["y"]
    shapes = image_shapes(load_graph(trained))
    made = kept_calibration(trained, shapes)
    lacking = {name: span for name, span in made.ranges.items() if name != "x"}
    keep_calibration(trained, replace(made, ranges=lacking))
    again = Session(trained, threads=1, precision="int8").run({"x": images})["y"]
    np.testing.assert_array_equal(first, again)
    assert kept_calibration(trained, shapes).ranges == made.ranges
    keep_calibration(trained, replace(made, ranges=lacking, random=False))
    with pytest.raises(PowerlabError, match="calibrate this model anew"):
        Session(trained, threads=1, precision="int8")


def test_int8_has_narrow_weights_where_processors_have_no_dot_products_of_bytes(trained, tmp_path, monkeypatch):
    monkeypatch.setenv("POWERLAB_STATE_DIR", str(tmp_path))
    for tier in available_tiers():
        monkeypatch.setenv(TIER_VARIABLE, tier.name)
        graph = in_precision(load_graph(trained), trained, "int8")
        products = {
            products_in_16_bits(weights)
            for weights in graph.constants.values()
            if weights.dtype == np.int8 and weights.ndim == 4
        }
        assert (products == {4}) == tier.widens_bytes, tier.name  # a kernel of one channel is narrow anyway


def test_random_calibrations_are_of_one_size_and_those_by_data_of_the_model(tmp_path, monkeypatch):
    monkeypatch.setenv("POWERLAB_STATE_DIR", str(tmp_path))
    folder = tmp_path / "calibrations"
    for pixels, batch, files in ((64, 1, 1), (96, 1, 2), (64, 2, 2)):
        Session("squeezenet", batch_size=batch, shapes={"x": (batch, 3, pixels, pixels)}, precision="int8")
        assert len(list(folder.iterdir())) == files
    graph = prepared_for_quantization(load_graph("squeezenet", {"x": (1, 3, 64, 64)}))
    keep_calibration("squeezenet", calibrate(graph, random_batches(graph)))
    Session("squeezenet", shapes={"x": (1, 3, 80, 80)}, precision="int8")
    assert len(list(folder.iterdir())) == 3


@pytest.mark.parametrize(("precision", "least_db"), [("fp16w", 45), ("int8w", 24), ("int4w", 10)])
def test_weights_alone_in_fewer_bits(precision, least_db, trained):
    images, _ = pictures(BATCH, 7)
    exact, rounded = (
        Session(trained, threads=1, precision=one).run({"x": images})["y"].astype(np.float64)
        for one in ("fp32", precision)
    )
    noise = np.square(exact - rounded).sum()
    assert noise > 0
    assert 10 * np.log10(np.square(exact).sum() / noise) > least_db


def test_a_precision_that_does_not_exist_gets_a_sentence(trained):
    with pytest.raises(PowerlabError, match="there is no precision 'int3'; known are fp32, bf16, fp16, int8"):
        Session(trained, precision="int3")


WRONG = {
    "another shape": (np.zeros((4, 1, 9, 9), np.float32), "in the shape"),
    "no numbers": (np.full((BATCH, 1, SIZE, SIZE), np.nan, np.float32), "infinite numbers or NaN"),
}


@pytest.mark.parametrize("what", WRONG)
def test_wrong_calibration_data_get_a_sentence(what, trained, tmp_path, capsys):
    values, sentence = WRONG[what]
    np.savez(tmp_path / "a.npz", x=values)
    output = tmp_path / "out.onnx"
    assert main(["engine", "quantize", str(trained), "--calibrate", str(tmp_path), "--output", str(output)]) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1
    assert not output.exists()


@pytest.mark.parametrize(("given", "sentence"), [("none", "there is no folder"), ("", "holds no .npz files")])
def test_a_folder_without_data_gets_a_sentence(given, sentence, trained, tmp_path, capsys):
    words = ["--calibrate", str(tmp_path / given), "--output", str(tmp_path / "out.onnx")]
    assert main(["engine", "quantize", str(trained), *words]) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1


def test_too_few_images_get_a_sentence(tmp_path):
    nodes = [onnx.helper.make_node("Conv", ["x", "w"], ["y"])]
    float32 = onnx.TensorProto.FLOAT
    weights = np.ones((2, 1, 3, 3), np.float32)
    data = model_bytes(nodes, {"x": (float32, (1, 1, 8, 8))}, {"y": (float32, None)}, {"w": weights})
    (tmp_path / "m.onnx").write_bytes(data)
    graph = prepared_for_quantization(load_graph(tmp_path / "m.onnx"))
    with pytest.raises(PowerlabError, match="there are 3 calibration images, too few"):
        calibrate(graph, random_batches(graph, 3))


def test_the_command_writes_a_model_and_a_table(trained, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("POWERLAB_STATE_DIR", str(tmp_path / "state"))
    images, _ = pictures(100, 8)
    np.savez(tmp_path / "a.npz", x=images)
    output = tmp_path / "out.onnx"
    command = ["engine", "quantize", str(trained), "--calibrate", str(tmp_path), "--method", "percentile"]
    assert main([*command, "--output", str(output)]) == 0
    text = capsys.readouterr().out
    assert "calibrated with 100 images, percentile" in text
    assert "3 layers in int8, 0 in fp32" in text
    assert ("no dot products of bytes" in text) == choose_tier().widens_bytes
    assert Session(output, threads=1).outputs == {"y": (BATCH, 10)}


def test_nodes_of_an_old_opset_are_written_in_a_newer_form(tmp_path):
    nodes = [
        onnx.helper.make_node("Clip", ["x"], ["c"], min=0.0, max=1.5),
        onnx.helper.make_node("Squeeze", ["c"], ["s"], axes=[1]),
        onnx.helper.make_node("Softmax", ["s"], ["y"], axis=1),
    ]
    float32 = onnx.TensorProto.FLOAT
    data = model_bytes(nodes, {"x": (float32, (3, 1, 4))}, {"y": (float32, None)}, {}, opset=9)
    (tmp_path / "m.onnx").write_bytes(data)
    new = onnx_bytes(load_graph(tmp_path / "m.onnx"))
    assert onnx.ModelProto.FromString(new).opset_import[0].version == 13
    inputs = {"x": np.random.default_rng(0).standard_normal((3, 1, 4)).astype(np.float32)}
    np.testing.assert_allclose(run_ort(new, inputs)["y"], run_ort(data, inputs)["y"], rtol=1e-6)
