"""What a plan that trains may ask for: names that the server knows too, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator

from powerlab.domain.choices import meant
from powerlab.domain.device import Capabilities, Device
from powerlab.domain.sweep import SweepPlan
from powerlab.domain.workload import Preparation, Processor, Recompute, Scenario

OPTIMIZERS = ("sgd", "momentum", "nesterov", "adam", "adamw")
"""Names a plan's optimizer may have; every engine that trains has all of them, by PyTorch's definitions."""

TRAINERS = ("builtin", "torch", "torch-compile")
"""The engines that train: each has a module of its name in ``powerlab.backends.training``."""

PRECISIONS = ("fp32", "bf16")
"""What steps are computed in; weights, and what an optimizer keeps of them, are float32 in both."""

ON_GPU_IN = "fp32"
"""What the built-in engine computes steps in on a graphics processor."""

SLICER = "builtin"
"""The engine that cuts the batch of a step into slices, and that computes activations again."""


def training_complaints(plan: SweepPlan, device: Device, capabilities: Capabilities) -> Iterator[str]:
    """Yield what keeps a device from carrying out a plan that trains, in sentences that say how to fix it."""
    if plan.workload not in capabilities.workloads:
        yield f"{device.name} does not say that it can train, for its agent is older than that; update it."
    elif Recompute.YES in plan.recompute and not capabilities.recomputes:
        yield (
            f"{device.name} does not say that it can compute activations again, for its agent is older than that; "
            "update it, or leave --recompute out."
        )
    if not plan.optimizers:
        yield f"training needs an optimizer; name one, such as --optimizer {OPTIMIZERS[0]}."
    for optimizer in plan.optimizers:
        if optimizer not in OPTIMIZERS:
            close = meant(optimizer, OPTIMIZERS)
            yield f"the optimizer {optimizer!r} is not known{close}; choose from: {', '.join(OPTIMIZERS)}."
    for engine in plan.engines:
        if engine not in TRAINERS:
            yield f"the engine {engine} does not train; leave it out, or choose from: {', '.join(TRAINERS)}."
    yield from (sentence for wrong, sentence in _not_with_training(plan) if wrong)
    if Processor.GPU in plan.processors:
        yield from _on_a_gpu(plan, device, capabilities)
    if plan.nodes > 1:
        yield from _of_a_cluster(plan, device, capabilities)


def _on_a_gpu(plan: SweepPlan, device: Device, capabilities: Capabilities) -> Iterator[str]:
    """Yield what cannot be trained on a graphics processor."""
    if not capabilities.trains_on_gpu:
        yield (
            f"{device.name} does not say that it can train on a graphics processor, for its agent is older than that; "
            "update it, or leave out the processor gpu."
        )
    narrow = [one for one in plan.precisions if one in PRECISIONS and one != ON_GPU_IN]
    if narrow and SLICER in plan.engines:
        yield (
            f"the engine {SLICER} trains in {ON_GPU_IN} alone on a graphics processor; leave out the precision "
            f"{narrow[0]}, or the processor gpu."
        )
    if plan.nodes > 1:
        yield "several devices train together on their cores alone; leave out the processor gpu."


def _of_a_cluster(plan: SweepPlan, device: Device, capabilities: Capabilities) -> Iterator[str]:
    """Yield what several devices cannot do together."""
    if not capabilities.clusters:
        yield f"{device.name} does not say that it can train with others, for its agent is older than that; update it."
    if set(plan.engines) != {SLICER}:
        yield f"the engine {SLICER} alone trains on several devices; leave out the others, or name one device."
    shares = plan.nodes * max(plan.slices)
    few = [size for size in plan.batch_sizes if size < plan.nodes]
    uneven = [size for size in plan.batch_sizes if size % shares and size not in few]
    if few:
        yield f"a batch of {few[0]} has fewer samples than the {plan.nodes} devices; ask for {shares} or more."
    if uneven:
        each = f" in {max(plan.slices)} slices each" if max(plan.slices) > 1 else ""
        yield (
            f"a batch of {uneven[0]} cannot be shared evenly by {plan.nodes} devices{each}; ask for multiples of "
            f"{shares}."
        )
    rebooting = [mode.name for mode in capabilities.modes if mode.requires_reboot and mode.name in plan.modes]
    if rebooting:
        yield f"several devices do not reboot together; leave out the power mode {rebooting[0]!r}."


def _not_with_training(plan: SweepPlan) -> Iterator[tuple[bool, str]]:
    """Yield what may go with inference alone, and whether the plan asks for it."""
    precisions = [one for one in plan.precisions if one not in PRECISIONS]
    scenarios = [one for one in plan.scenarios if one is not Scenario.SINGLE_STREAM]
    yield (
        bool(precisions),
        f"models are trained in {' or '.join(PRECISIONS)}; leave out the precision {', '.join(precisions)}.",
    )
    yield (
        bool(scenarios),
        f"steps of training follow each other as in single-stream; leave out the scenario {', '.join(scenarios)}.",
    )
    yield (
        max(plan.slices) > 1 and set(plan.engines) != {SLICER},
        f"the engine {SLICER} alone trains a batch in slices; leave out the others, or the slices {max(plan.slices)}.",
    )
    yield (
        Recompute.YES in plan.recompute and set(plan.engines) != {SLICER},
        f"the engine {SLICER} alone computes activations again; leave out the others, or --recompute.",
    )
    yield (
        any(us is not None for us in plan.spin_us),
        "how long threads spin cannot be set where a model is trained; leave out the spin time.",
    )
    yield (
        plan.preparation is not Preparation.OUTSIDE,
        "models are trained on random numbers, which nobody prepares; leave out the preparation.",
    )
