// Vulkan's functions, looked up in the loader at run time: nothing is linked, so a machine without it loads this
// module.
#pragma once

#include "gpu/vulkan/devices.hpp"
#include "gpu/vulkan/objects.hpp"

namespace powerlab::gpu::vk {

using AnyFunction = void (*)();
using GetInstanceProcAddr = AnyFunction (*)(Instance, const char*);

// name, result, parameters
#define POWERLAB_VK_GLOBAL(X) X(CreateInstance, Result, (const InstanceCreateInfo*, const void*, Instance*))

#define POWERLAB_VK_INSTANCE(X)                                                                                      \
  X(DestroyInstance, void, (Instance, const void*))                                                                  \
  X(EnumeratePhysicalDevices, Result, (Instance, std::uint32_t*, PhysicalDevice*))                                   \
  X(GetPhysicalDeviceProperties2, void, (PhysicalDevice, Properties2*))                                              \
  X(GetPhysicalDeviceFeatures2, void, (PhysicalDevice, Features2*))                                                  \
  X(GetPhysicalDeviceQueueFamilyProperties, void, (PhysicalDevice, std::uint32_t*, QueueFamily*))                    \
  X(GetPhysicalDeviceMemoryProperties, void, (PhysicalDevice, MemoryProperties*))                                    \
  X(EnumerateDeviceExtensionProperties, Result, (PhysicalDevice, const char*, std::uint32_t*, ExtensionProperties*)) \
  X(CreateDevice, Result, (PhysicalDevice, const DeviceCreateInfo*, const void*, Device*))                           \
  X(GetDeviceProcAddr, AnyFunction, (Device, const char*))

// Looked up where a device has their extension: the loader may not know them.
using GetCooperativeMatrixProperties = Result (*)(PhysicalDevice, std::uint32_t*, CooperativeMatrixProperties*);
constexpr const char* kGetCooperativeMatrixProperties = "vkGetPhysicalDeviceCooperativeMatrixPropertiesKHR";

#define POWERLAB_VK_DEVICE(X)                                                                                        \
  X(DestroyDevice, void, (Device, const void*))                                                                      \
  X(GetDeviceQueue, void, (Device, std::uint32_t, std::uint32_t, Queue*))                                            \
  X(DeviceWaitIdle, Result, (Device))                                                                                \
  X(CreateBuffer, Result, (Device, const BufferCreateInfo*, const void*, Buffer*))                                   \
  X(DestroyBuffer, void, (Device, Buffer, const void*))                                                              \
  X(GetBufferMemoryRequirements, void, (Device, Buffer, MemoryRequirements*))                                        \
  X(AllocateMemory, Result, (Device, const MemoryAllocateInfo*, const void*, DeviceMemory*))                         \
  X(FreeMemory, void, (Device, DeviceMemory, const void*))                                                           \
  X(BindBufferMemory, Result, (Device, Buffer, DeviceMemory, Size))                                                  \
  X(MapMemory, Result, (Device, DeviceMemory, Size, Size, Flags, void**))                                            \
  X(CreateShaderModule, Result, (Device, const ShaderModuleCreateInfo*, const void*, ShaderModule*))                 \
  X(DestroyShaderModule, void, (Device, ShaderModule, const void*))                                                  \
  X(CreatePipelineCache, Result, (Device, const PipelineCacheCreateInfo*, const void*, PipelineCache*))              \
  X(DestroyPipelineCache, void, (Device, PipelineCache, const void*))                                                \
  X(GetPipelineCacheData, Result, (Device, PipelineCache, std::size_t*, void*))                                      \
  X(CreateComputePipelines, Result,                                                                                  \
    (Device, PipelineCache, std::uint32_t, const ComputePipelineCreateInfo*, const void*, Pipeline*))                \
  X(DestroyPipeline, void, (Device, Pipeline, const void*))                                                          \
  X(CreatePipelineLayout, Result, (Device, const PipelineLayoutCreateInfo*, const void*, PipelineLayout*))           \
  X(DestroyPipelineLayout, void, (Device, PipelineLayout, const void*))                                              \
  X(CreateDescriptorSetLayout, Result,                                                                               \
    (Device, const DescriptorSetLayoutCreateInfo*, const void*, DescriptorSetLayout*))                               \
  X(DestroyDescriptorSetLayout, void, (Device, DescriptorSetLayout, const void*))                                    \
  X(CreateDescriptorPool, Result, (Device, const DescriptorPoolCreateInfo*, const void*, DescriptorPool*))           \
  X(DestroyDescriptorPool, void, (Device, DescriptorPool, const void*))                                              \
  X(AllocateDescriptorSets, Result, (Device, const DescriptorSetAllocateInfo*, DescriptorSet*))                      \
  X(UpdateDescriptorSets, void, (Device, std::uint32_t, const WriteDescriptorSet*, std::uint32_t, const void*))      \
  X(CreateCommandPool, Result, (Device, const CommandPoolCreateInfo*, const void*, CommandPool*))                    \
  X(DestroyCommandPool, void, (Device, CommandPool, const void*))                                                    \
  X(AllocateCommandBuffers, Result, (Device, const CommandBufferAllocateInfo*, CommandBuffer*))                      \
  X(FreeCommandBuffers, void, (Device, CommandPool, std::uint32_t, const CommandBuffer*))                            \
  X(BeginCommandBuffer, Result, (CommandBuffer, const CommandBufferBeginInfo*))                                      \
  X(EndCommandBuffer, Result, (CommandBuffer))                                                                       \
  X(CmdBindPipeline, void, (CommandBuffer, std::int32_t, Pipeline))                                                  \
  X(CmdBindDescriptorSets, void,                                                                                     \
    (CommandBuffer, std::int32_t, PipelineLayout, std::uint32_t, std::uint32_t, const DescriptorSet*, std::uint32_t, \
     const std::uint32_t*))                                                                                          \
  X(CmdPushConstants, void, (CommandBuffer, PipelineLayout, Flags, std::uint32_t, std::uint32_t, const void*))       \
  X(CmdDispatch, void, (CommandBuffer, std::uint32_t, std::uint32_t, std::uint32_t))                                 \
  X(CmdPipelineBarrier, void,                                                                                        \
    (CommandBuffer, Flags, Flags, Flags, std::uint32_t, const MemoryBarrier*, std::uint32_t, const void*,            \
     std::uint32_t, const void*))                                                                                    \
  X(CmdCopyBuffer, void, (CommandBuffer, Buffer, Buffer, std::uint32_t, const BufferCopy*))                          \
  X(CmdFillBuffer, void, (CommandBuffer, Buffer, Size, Size, std::uint32_t))                                         \
  X(CmdWriteTimestamp, void, (CommandBuffer, Flags, QueryPool, std::uint32_t))                                       \
  X(CmdResetQueryPool, void, (CommandBuffer, QueryPool, std::uint32_t, std::uint32_t))                               \
  X(CreateQueryPool, Result, (Device, const QueryPoolCreateInfo*, const void*, QueryPool*))                          \
  X(DestroyQueryPool, void, (Device, QueryPool, const void*))                                                        \
  X(GetQueryPoolResults, Result, (Device, QueryPool, std::uint32_t, std::uint32_t, std::size_t, void*, Size, Flags)) \
  X(QueueSubmit, Result, (Queue, std::uint32_t, const SubmitInfo*, Fence))                                           \
  X(CreateFence, Result, (Device, const FenceCreateInfo*, const void*, Fence*))                                      \
  X(DestroyFence, void, (Device, Fence, const void*))                                                                \
  X(ResetFences, Result, (Device, std::uint32_t, const Fence*))                                                      \
  X(GetFenceStatus, Result, (Device, Fence))                                                                         \
  X(WaitForFences, Result, (Device, std::uint32_t, const Fence*, Bool, std::uint64_t))

#define POWERLAB_VK_MEMBER(name, result, parameters) result(*name) parameters = nullptr;

struct Functions {
  GetInstanceProcAddr get = nullptr;
  POWERLAB_VK_GLOBAL(POWERLAB_VK_MEMBER)
  POWERLAB_VK_INSTANCE(POWERLAB_VK_MEMBER)
  POWERLAB_VK_DEVICE(POWERLAB_VK_MEMBER)
};

#undef POWERLAB_VK_MEMBER

}  // namespace powerlab::gpu::vk
