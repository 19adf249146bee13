"""Layers on a GPU, one by one, and the doctor's line."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import closing

import numpy as np
from volume_networks import video_network

from powerlab.cli.commands.doctor.report import _gpus
from powerlab.domain.workload import Processor
from powerlab.engine.gpu.device import devices
from powerlab.measure.layers.bench import Bench
from powerlab.measure.layers.messages import WHOLE, LoadLayers, RepeatStep


def test_every_layer_is_repeated_on_the_gpu():
    bench = Bench()
    load = LoadLayers(model="lstm2", batch_size=1, threads=1, sysroot="/", seed=0, processor=Processor.GPU)
    steps = bench.answer(load)
    assert steps.tier == "vulkan"
    assert len(steps.kernels) == len(steps.labels) == len(steps.flops)
    assert sum(steps.flops) > 1e6
    for step in (1, WHOLE):
        found = bench.answer(RepeatStep(step=step, duration_s=0.02, margin_s=0.0))
        begin, end = (np.frombuffer(one, "<i8") for one in (found.start_ns, found.end_ns))
        assert (end > begin).all()
    bench.close()


def test_layers_over_volumes_are_listed_with_their_work(tmp_path):
    path = tmp_path / "video.onnx"
    path.write_bytes(video_network(np.random.default_rng(1)))
    load = LoadLayers(model=str(path), batch_size=1, threads=1, sysroot="/", seed=0, processor=Processor.GPU)
    with closing(Bench()) as bench:
        steps = bench.answer(load)
        own = [flops for kernel, flops in zip(steps.kernels, steps.flops, strict=True) if kernel.startswith("volume")]
        assert sum(own) > 0.9 * sum(steps.flops) > 1e7
        found = bench.answer(RepeatStep(step=1, duration_s=0.02, margin_s=0.0))
        begin, end = (np.frombuffer(one, "<i8") for one in (found.start_ns, found.end_ns))
        assert (end > begin).all()


def test_layers_of_a_step_of_training_are_repeated_on_the_gpu():
    load = LoadLayers(
        model="squeezenet@32",
        batch_size=1,
        threads=1,
        sysroot="/",
        seed=0,
        processor=Processor.GPU,
        optimizer="momentum",
    )
    with closing(Bench()) as bench:
        steps = bench.answer(load)
        assert steps.tier == "vulkan"
        first = next(name for name in steps.labels if f"{name} update" in steps.labels)
        places = [steps.labels.index(f"{first}{what}") for what in ("", " backward", " update")]
        assert places == sorted(places)
        for step in (places[1], WHOLE):
            found = bench.answer(RepeatStep(step=step, duration_s=0.02, margin_s=0.0))
            begin, end = (np.frombuffer(one, "<i8") for one in (found.start_ns, found.end_ns))
            assert (end > begin).all()


def test_the_doctor_names_the_gpu():
    command = [sys.executable, "-m", "powerlab.cli", "doctor", "--json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=False)
    found = json.loads(done.stdout)["gpus"]
    assert [one["name"] for one in found["found"]] == [one.name for one in devices()]
    first = found["found"][0]
    assert devices()[0].driver in _gpus(found)
    tensor_cores = {**first, "matrices": {"fp16": ["16x16x16", "16x8x16"], "int8": []}, "queues": 16}
    assert "cooperative matrices in fp16 (16x16x16, 16x8x16)" in _gpus({"found": [tensor_cores]})
    assert "no cooperative matrices" in _gpus({"found": [{**first, "matrices": {"fp16": [], "int8": []}}]})
    assert _gpus({"found": [], "problem": "no Vulkan driver is here"}) == "no Vulkan driver is here"
