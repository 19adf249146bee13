"""From a study to sweeps that a device can carry out: memory, cores, modes, engines, precisions."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from powerlab.domain.device import Capabilities, Device
from powerlab.domain.errors import PowerlabError
from powerlab.domain.mode import CURRENT_MODE, ModeOrigin, PowerMode, Setting
from powerlab.domain.preflight import ENGINES, check_plan
from powerlab.domain.rigour import LEVELS, Rigour
from powerlab.domain.workload import Processor, WorkloadKind
from powerlab.studies.planning import Here, plan_study, thread_counts
from powerlab.studies.registry import STUDIES, find_study
from powerlab.studies.study import PlanTemplate, Threads

GIB = 2**30
MODES = (
    CURRENT_MODE,
    PowerMode(name="MAXN", online_cores=8),
    PowerMode(name="15W", online_cores=4),
    PowerMode(name="15W_DESKTOP", online_cores=4),
    PowerMode(
        name="10W", online_cores=2, requires_reboot=True, settings=(Setting(knob="nvpmodel", target="mode", value="1"),)
    ),
    PowerMode(name="governor=powersave", origin=ModeOrigin.INVENTED),
    PowerMode(name="jetson-clocks", settings=(Setting(knob="jetson_clocks", target="clocks", value="on"),)),
)
ZOO = {name: name for name in ("alexnet", "resnet50", "resnet152@256", "densenet201@256")}


def here(**changes):
    return replace(
        Here(
            name="xavier",
            core_count=8,
            memory_bytes=32 * GIB,
            modes=MODES,
            engines=("builtin", "onnxruntime"),
            models=ZOO,
            needed_bytes=lambda _model, batch_size: batch_size * GIB // 16,
            training_bytes=lambda _model, batch_size: batch_size * GIB // 4,
            refusal=lambda engine, _model, precision, processor: (
                f"{engine} finds no graphics processor."
                if processor is Processor.GPU
                else ("" if precision == "fp32" else f"the engine {engine} computes in fp32 alone.")
            ),
            first_cores=lambda threads: f"0-{threads - 1}",
        ),
        **changes,
    )


def planned(name, place=None, **changes):
    return plan_study(find_study(name), place or here(), **{"rigour": Rigour.STANDARD, **changes})


def reasons(made):
    return {one.what: one.why for one in made.left_out}


def test_times_and_counts_are_those_of_the_level():
    for rigour, level in LEVELS.items():
        (plan,) = planned("tegra-x1-alexnet", rigour=rigour).plans
        assert (plan.rigour, plan.repeats, plan.duration_s) == (rigour, level.repeats, level.duration_s)
        assert (plan.warm_up_s, plan.idle_s, plan.cool_down_s) == (level.warm_up_s, level.idle_s, level.cool_down_s)


def test_quick_takes_the_smaller_batches_where_there_are_some():
    assert planned("tegra-x1-alexnet").plans[0].batch_sizes == (1, 48, 128)
    assert planned("tegra-x1-alexnet", quick=True).plans[0].batch_sizes == (1, 16)
    assert planned("xavier-resnet50", quick=True).plans[0].batch_sizes == (1,)


def test_engines_may_be_named_and_a_study_of_none_of_them_is_refused():
    made = planned("dlbench", engines=("builtin",))
    assert {engine for plan in made.plans for engine in plan.engines} == {"builtin"}
    assert reasons(made)["other engines"] == "builtin alone was asked for"
    with pytest.raises(PowerlabError, match="nothing of the study aa can be repeated on xavier"):
        planned("aa", engines=("onnxruntime",))


def test_a_precision_that_the_engine_lacks_is_named_with_its_reason():
    study = find_study("tegra-x1-alexnet")
    on_cores = replace(study.plans[0], precisions=("fp32", "fp16"))
    made = plan_study(replace(study, plans=(on_cores,)), here(), rigour=Rigour.STANDARD)
    assert [plan.precisions for plan in made.plans] == [("fp32",)]
    assert reasons(made) == {"alexnet in fp16 on builtin": "the engine builtin computes in fp32 alone"}


def test_all_precisions_of_an_engine_are_in_one_sweep():
    study = replace(
        find_study("tegra-x1-alexnet"),
        plans=(PlanTemplate(models=("alexnet",), engines=("all",), precisions=("fp32", "fp16")),),
    )
    place = here(
        refusal=lambda engine, _model, precision, _processor: "no" if (engine, precision) == ("builtin", "fp16") else ""
    )
    made = plan_study(study, place, rigour=Rigour.QUICK)
    assert [(plan.precisions, plan.engines) for plan in made.plans] == [
        (("fp32",), ("builtin",)),
        (("fp32", "fp16"), ("onnxruntime",)),
    ]
    all_of_them = plan_study(study, here(refusal=lambda *_: ""), rigour=Rigour.QUICK)
    assert [plan.precisions for plan in all_of_them.plans] == [("fp32", "fp16")]


def test_a_batch_too_big_for_the_memory_is_left_out_before_anything_runs():
    made = planned("tegra-x1-alexnet", here(memory_bytes=4 * GIB, name="nano"))
    assert [plan.batch_sizes for plan in made.plans] == [(1, 48)]
    assert reasons(made)["alexnet at batch 128"] == (
        "it takes at least 8.0 GiB for weights and activations, and nano has 4.0 GiB"
    )


def test_one_network_too_big_leaves_the_other_in():
    def needed(model, _batch_size):
        return 40 * GIB if model == "resnet152@256" else GIB

    made = planned("armv8-cluster", here(needed_bytes=needed))
    assert [plan.models for plan in made.plans] == [("densenet201@256",)]
    trained = {f"{name}@256 in training at batch 256" for name in ("resnet152", "densenet201")}
    assert {what for what in reasons(made) if "gpu" not in what} == {"yolov3", "resnet152@256 at batch 256", *trained}


def test_training_is_a_sweep_of_its_own_by_the_engines_that_train():
    made = planned("armv8-cluster", here(training_bytes=lambda *_: GIB, engines=("builtin", "onnxruntime", "torch")))
    assert [(plan.workload, plan.optimizers, plan.engines) for plan in made.plans] == [
        ("inference", (), ("builtin",)),
        ("train", ("momentum",), ("builtin", "torch")),
    ]
    assert find_study("armv8-cluster").asked_by(made.plans[1].points())


def test_slices_of_an_inference_share_the_threads_and_those_of_a_step_need_not():
    made = planned("caffe-streams", here(core_count=2, refusal=lambda *_: ""))
    found = {(plan.workload, plan.processors[0], plan.slices) for plan in made.plans}
    on_gpu = {(kind, "gpu", (1, 2, 4)) for kind in ("train", "inference")}
    assert found == {("train", "cpu", (1, 2, 4)), ("inference", "cpu", (1, 2)), *on_gpu}
    assert reasons(made)["slices over 2 queues"] == "the graphics processor of xavier has one queue"
    with_queues = planned("caffe-streams", here(refusal=lambda *_: "", queues=16))
    assert {(plan.processors[0], plan.queues) for plan in with_queues.plans} == {("cpu", (1,)), ("gpu", (1, 2))}
    effect = "what slices do to speed and energy"
    assert effect not in reasons(with_queues)
    assert "in the same time however a batch is cut" in reasons(planned("caffe-streams", here(simulated=True)))[effect]


def test_a_study_of_which_nothing_fits_is_refused_with_the_reasons():
    with pytest.raises(PowerlabError, match=r"nothing of the study tegra-x1-alexnet .* on nano .*batch 1: it takes at"):
        planned("tegra-x1-alexnet", here(memory_bytes=GIB // 32, name="nano"))


def test_memory_that_nobody_knows_refuses_nothing():
    assert planned("tegra-x1-alexnet", here(memory_bytes=0)).plans[0].batch_sizes == (1, 48, 128)


def test_a_network_that_the_zoo_lacks_asks_for_a_file():
    made = planned("armv8-cluster")
    assert "--model yolov3=FILE.onnx" in reasons(made)["yolov3"]
    given_file = planned("armv8-cluster", here(models={**ZOO, "yolov3": "nets/yolo.onnx"}))
    infers = [plan for plan in given_file.plans if not plan.optimizers]
    assert [plan.models for plan in infers] == [("nets/yolo.onnx",), ("resnet152@256", "densenet201@256")]
    assert [plan.batch_sizes for plan in infers] == [(64,), (256,)]


def test_the_vendors_modes_are_swept_with_the_threads_that_their_cores_allow():
    made = planned("xavier-resnet50")
    assert [(plan.modes, plan.threads) for plan in made.plans] == [
        (("MAXN",), (1, 2, 4, 8)),
        (("15W", "15W_DESKTOP"), (1, 2, 4)),
    ]
    assert "sudo nvpmodel -m 1" in reasons(made)["power mode 10W"]


def test_a_device_without_vendor_modes_is_measured_as_it_is_and_that_is_said():
    made = planned("xavier-resnet50", here(modes=(CURRENT_MODE,), core_count=2, name="vm"))
    assert [(plan.modes, plan.threads) for plan in made.plans] == [(("current",), (1, 2))]
    assert "vm has no vendor modes" in reasons(made)["power modes"]


def test_named_modes_take_the_place_of_the_studys():
    (plan,) = planned("xavier-resnet50", modes=("15W",)).plans
    assert (plan.modes, plan.threads) == (("15W",), (1, 2, 4))


def test_a_against_a_runs_one_point_twice_on_the_same_cores():
    (plan,) = planned("aa").plans
    assert plan.cores == ("", "0-7")
    assert plan.threads == (8,)
    assert plan.repeats == 8
    assert len(plan.points()) == 2


@pytest.mark.parametrize("name", STUDIES)
@pytest.mark.parametrize("quick", [False, True])
def test_every_sweep_passes_the_check_before_a_sweep(name, quick):
    device = Device(
        name="xavier", board="jetson-agx-xavier", architecture="aarch64", cpu_model="ARMv8", core_count=8,
        memory_bytes=32 * GIB, kernel="5.10", simulated=False,
    )  # fmt: skip
    made = planned(name, here(models={**ZOO, "yolov3": "y.onnx", "fcn5": "f.onnx"}), quick=quick)
    for plan in made.plans:
        able = Capabilities(sources=(), total=None, modes=MODES, workloads=tuple(WorkloadKind))
        check_plan(plan, device, able, ("builtin", "onnxruntime"))


@given(st.integers(1, 300), st.sampled_from(list(Threads)) | st.lists(st.integers(1, 400), max_size=5).map(tuple))
def test_thread_counts_fit_the_cores(cores, wanted):
    counts = thread_counts(wanted, cores)
    assert counts
    assert max(counts) <= cores
    assert len(set(counts)) == len(counts) or not isinstance(wanted, Threads)
    if wanted is Threads.DOUBLING:
        assert counts[0] == 1
        assert counts[-1] == cores
        assert all(later <= 2 * earlier for earlier, later in pairwise(counts))


@given(
    st.dictionaries(
        st.tuples(st.sampled_from(["alexnet", "resnet50", "resnet152@256"]), st.sampled_from([1, 2, 4])),
        st.booleans(),
        max_size=9,
    ),
    st.sets(st.tuples(st.sampled_from(["builtin", "onnxruntime"]), st.sampled_from(["fp32", "fp16"]))),
)
def test_sweeps_hold_what_can_run_and_nothing_else(fits, refused):
    template = PlanTemplate(
        models=("alexnet", "resnet50", "resnet152@256"),
        batch_sizes=(1, 2, 4),
        engines=("all",),
        precisions=("fp32", "fp16"),
    )
    study = replace(find_study("aa"), plans=(template,))
    place = here(
        needed_bytes=lambda model, batch_size: 0 if fits.get((model, batch_size), True) else 64 * GIB,
        refusal=lambda engine, _model, precision, _processor: "no" if (engine, precision) in refused else "",
    )
    wanted = {
        (model, batch, engine, precision)
        for model in template.models
        for batch in template.batch_sizes
        for engine in ("builtin", "onnxruntime")
        for precision in template.precisions
        if fits.get((model, batch), True) and (engine, precision) not in refused
    }
    if not wanted:
        with pytest.raises(PowerlabError):
            plan_study(study, place, rigour=Rigour.QUICK)
        return
    made = plan_study(study, place, rigour=Rigour.QUICK)
    run = [
        (point.workload.model, point.workload.batch_size, point.workload.engine, point.workload.precision)
        for plan in made.plans
        for point in plan.points()
    ]
    assert len(run) == len(set(run))
    assert set(run) == wanted


def test_a_study_of_both_processors_has_a_sweep_of_each():
    made = planned("tegra-x1-alexnet", here(refusal=lambda *_: "", engines=("builtin", "litert", "onnxruntime")))
    on_cores, on_card = made.plans
    assert (on_cores.processors, on_cores.precisions, on_cores.batch_sizes) == (
        ("cpu",),
        ("fp32", "fp16"),
        (1, 48, 128),
    )
    assert (on_card.processors, on_card.batch_sizes) == (("gpu",), (1, 128))
    assert on_card.engines == tuple(name for name in ("builtin", "onnxruntime") if Processor.GPU in ENGINES[name])
    assert {point.threads for point in on_card.points()} == {1}


@pytest.mark.parametrize("name", ["tegra-x1-alexnet", "armv8-cluster"])
def test_without_a_graphics_processor_the_cores_are_measured_and_the_rest_is_said(name):
    made = planned(name)
    assert {plan.processors for plan in made.plans} == {("cpu",)}
    said = [(what, why) for what, why in reasons(made).items() if "on the gpu" in what]
    assert said
    assert all("finds no graphics processor" in why for _, why in said)
