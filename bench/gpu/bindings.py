"""What a run costs the host by three ways to call a GPU: the native core, and the Python packages vulkan and wgpu.

    pip install vulkan wgpu
    python -m bench.gpu.bindings

A run is one submit and a wait for it; its cost is the processor time of the thread that calls, so that what the GPU
computes and who else is at work do not matter. Core and `vulkan` submit commands that were recorded once, the core
with copies of input and output; `wgpu` has no such commands, so it records its kernels for every run.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from importlib.metadata import version

import numpy as np
from rich.console import Console
from rich.table import Table

from bench.gpu.overhead import NUMBERS, chain
from powerlab.boards.processor import cpu_model
from powerlab.engine.gpu.device import chosen, devices
from powerlab.sysroot import Sysroot

SHADER = """
@group(0) @binding(0) var<storage, read_write> y: array<f32>;
@compute @workgroup_size(8) fn main(@builtin(global_invocation_id) at: vec3<u32>) { y[at.x] = max(y[at.x], 0.0); }
"""


def by_core(kernels: int) -> Callable[[], object]:
    """Return a run by powerlab's own binding, without what its Python does for inputs and outputs."""
    model = chain(kernels)
    given = model._exchange.given({"t0": np.zeros((1, NUMBERS), np.float32)})
    out = model._exchange.out(model._exchange.room())
    return lambda: model._plan.run(given, out, 10**10)


def by_vulkan(kernels: int) -> Callable[[], object]:
    """Return a run by the package vulkan: submit and wait; its commands are a barrier a kernel, and no kernel."""
    import vulkan as vk

    instance = vk.vkCreateInstance(
        vk.VkInstanceCreateInfo(pApplicationInfo=vk.VkApplicationInfo(apiVersion=vk.VK_MAKE_VERSION(1, 1, 0))), None
    )
    gpu = vk.vkEnumeratePhysicalDevices(instance)[chosen()]
    queues = [vk.VkDeviceQueueCreateInfo(queueFamilyIndex=0, queueCount=1, pQueuePriorities=[1.0])]
    device = vk.vkCreateDevice(gpu, vk.VkDeviceCreateInfo(pQueueCreateInfos=queues), None)
    queue = vk.vkGetDeviceQueue(device, 0, 0)
    pool = vk.vkCreateCommandPool(device, vk.VkCommandPoolCreateInfo(queueFamilyIndex=0), None)
    (commands,) = vk.vkAllocateCommandBuffers(
        device,
        vk.VkCommandBufferAllocateInfo(
            commandPool=pool, level=vk.VK_COMMAND_BUFFER_LEVEL_PRIMARY, commandBufferCount=1
        ),
    )
    access = vk.VK_ACCESS_SHADER_WRITE_BIT | vk.VK_ACCESS_SHADER_READ_BIT
    barrier = vk.VkMemoryBarrier(srcAccessMask=access, dstAccessMask=access)
    stage = vk.VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT
    vk.vkBeginCommandBuffer(commands, vk.VkCommandBufferBeginInfo())
    for _ in range(kernels):
        vk.vkCmdPipelineBarrier(commands, stage, stage, 0, 1, [barrier], 0, None, 0, None)
    vk.vkEndCommandBuffer(commands)
    fence = vk.vkCreateFence(device, vk.VkFenceCreateInfo(), None)
    submit = vk.VkSubmitInfo(pCommandBuffers=[commands])

    def run() -> None:
        vk.vkQueueSubmit(queue, 1, [submit], fence)
        vk.vkWaitForFences(device, 1, [fence], vk.VK_TRUE, 10**9)
        vk.vkResetFences(device, 1, [fence])

    return run


def by_wgpu(kernels: int) -> Callable[[], object]:
    """Return a run by the package wgpu: record, submit and wait."""
    import wgpu

    device = wgpu.gpu.request_adapter_sync().request_device_sync()
    module = device.create_shader_module(code=SHADER)
    pipeline = device.create_compute_pipeline(layout="auto", compute={"module": module, "entry_point": "main"})
    usage = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST
    buffer = device.create_buffer(size=4 * NUMBERS, usage=usage)
    entries = [{"binding": 0, "resource": {"buffer": buffer, "offset": 0, "size": 4 * NUMBERS}}]
    group = device.create_bind_group(layout=pipeline.get_bind_group_layout(0), entries=entries)

    def run() -> None:
        encoder = device.create_command_encoder()
        for _ in range(kernels):
            step = encoder.begin_compute_pass()
            step.set_pipeline(pipeline)
            step.set_bind_group(0, group)
            step.dispatch_workgroups(1)
            step.end()
        device.queue.submit([encoder.finish()])
        device.queue.read_buffer(buffer)

    return run


WAYS = {"native core": by_core, "vulkan": by_vulkan, "wgpu": by_wgpu}


def main() -> int:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kernels", default="1,64", metavar="COUNT,...")
    parser.add_argument("--runs", type=int, default=2000)
    args = parser.parse_args()
    gpu, console = devices()[chosen()], Console(width=120)
    console.print(f"{gpu.name}, {gpu.driver}; processor: {cpu_model(Sysroot('/'))}")
    console.print(", ".join(f"{name} {version(name)}" for name in ("vulkan", "wgpu")))
    table = Table("way", "kernels", "processor time of a run, µs: median", "p99")
    for kernels in map(int, args.kernels.split(",")):
        runs = {name: way(kernels) for name, way in WAYS.items()}
        took: dict[str, list[float]] = {name: [] for name in WAYS}
        for number in range(args.runs + 20):
            for name, run in runs.items():
                start = time.thread_time_ns()
                run()
                if number >= 20:
                    took[name].append((time.thread_time_ns() - start) / 1e3)
        for name, times in took.items():
            median, late = np.percentile(times, (50, 99))
            table.add_row(name, str(kernels), f"{median:.0f}", f"{late:.0f}")
    console.print(table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
