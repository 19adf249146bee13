"""The networks that ``precision.py`` measures, as files: in float32 and in 8-bit integers, and what integers cost."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import msgspec
import numpy as np

from bench.precision.bert_network import NETWORKS
from powerlab.domain.accuracy import sqnr_db
from powerlab.engine import Session
from powerlab.engine.frontend.load import load_graph
from powerlab.engine.frontend.onnx_writer import write_onnx
from powerlab.engine.frontend.zoo import INPUT_NAME, ZOO
from powerlab.engine.ir.graph import Graph
from powerlab.engine.quantization.calibrate import Calibration, calibrate, random_batches
from powerlab.engine.quantization.layers import layers_of
from powerlab.engine.quantization.prepare import prepared_for_quantization
from powerlab.engine.quantization.quantize import Options, quantize_graph

FOLDER = Path("build/precision")
_COMPARED_IMAGES = 32
_COMPARED_SEED = 77


@dataclass(frozen=True, slots=True)
class Cost:
    """What the outputs of the integers keep of those of floats, on seeded random inputs.

    Attributes:
        sqnr_db: of the worst output, in dB, over all images together.
        agreeing: images whose largest output is the same; None where no output is a list of classes.
        images: how many there were.
    """

    sqnr_db: float
    agreeing: int | None
    images: int


def graph_of(model: str, batch: int) -> Graph:
    """Return a network of the zoo or of the benchmarks."""
    if model in NETWORKS:
        return NETWORKS[model](batch)
    shapes = {INPUT_NAME: (batch, *ZOO[model].input_shape)} if model in ZOO else None
    return load_graph(model, shapes)


def float_file(model: str, batch: int) -> Path:
    """Return the file of a network in float32, which is written where there is none yet."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    path = FOLDER / f"{Path(model).stem}-b{batch}-fp32.onnx"
    if not path.exists():
        write_onnx(graph_of(model, batch), path)
    return path


def files(model: str, batch: int, *, narrow: bool) -> tuple[Path, Path]:
    """Return the files of a network in float32 and in integers, which are written where there are none yet.

    Scales come from one image a batch, so that they are the same for every batch size.
    """
    floats = float_file(model, batch)
    integers = FOLDER / f"{Path(model).stem}-b{batch}-int8-{'narrow4' if narrow else 'attention'}.onnx"
    if not integers.exists():
        prepared = prepared_for_quantization(graph_of(model, batch))
        options = Options(narrow_weights=4 if narrow else 1, attention=not narrow)
        write_onnx(quantize_graph(prepared, _calibration(model), options).graph, integers)
    return floats, integers


def _calibration(model: str) -> Calibration:
    """Return the calibration of a network, which is kept beside its files."""
    path = FOLDER / f"{Path(model).stem}-ranges.json"
    if not path.exists():
        made = calibrate(prepared_for_quantization(graph_of(model, 1)))
        path.write_bytes(msgspec.json.encode(made))
    return msgspec.json.decode(path.read_bytes(), type=Calibration)


def with_floats_between(model: str, batch: int, *, narrow: bool) -> Path:
    """Return a file of integers whose concatenations and batch norms are floats, for peers that need it."""
    _, integers = files(model, batch, narrow=narrow)
    path = integers.with_stem(f"{integers.stem}-between")
    if not path.exists():
        prepared, kinds = prepared_for_quantization(graph_of(model, batch)), ("BatchNormalization", "Concat")
        floats = frozenset(layer.name for layer in layers_of(prepared) if layer.node.op_type in kinds)
        options = Options(narrow_weights=4 if narrow else 1, floats=floats)
        write_onnx(quantize_graph(prepared, _calibration(model), options).graph, path)
    return path


def cost(model: str, *, narrow: bool) -> Cost:
    """Return what integers cost a network in accuracy; it is found once and kept beside the files."""
    floats, integers = files(model, 1, narrow=narrow)
    kept = integers.with_suffix(".json")
    if not kept.exists():
        kept.write_text(json.dumps(asdict(_compared(floats, integers, random_of(model)))), encoding="utf-8")
    return Cost(**json.loads(kept.read_text(encoding="utf-8")))


def random_of(model: str) -> list[dict[str, np.ndarray]]:
    """Return seeded random inputs other than those that networks are calibrated with."""
    return [dict(batch) for batch in random_batches(graph_of(model, 1), _COMPARED_IMAGES, _COMPARED_SEED)]


def _compared(floats: Path, integers: Path, batches: list[dict[str, np.ndarray]]) -> Cost:
    exact, rounded = (Session(path, tuned=False) for path in (floats, integers))
    powers: dict[str, list[float]] = {}
    agreeing, has_classes = 0, False
    for inputs in batches:
        right, found = exact.run(inputs), rounded.run(inputs)
        for name, value in right.items():
            signal, noise = powers.setdefault(name, [0.0, 0.0])
            difference = value.astype(np.float64) - found[name]
            powers[name] = [signal + float(np.square(value).sum()), noise + float(np.square(difference).sum())]
        classes = [name for name, value in right.items() if value.ndim == 2]
        has_classes = bool(classes)
        agreeing += all(np.array_equal(right[name].argmax(1), found[name].argmax(1)) for name in classes)
    worst = min(sqnr_db(*both) for both in powers.values())
    return Cost(worst, agreeing if has_classes else None, len(batches))
