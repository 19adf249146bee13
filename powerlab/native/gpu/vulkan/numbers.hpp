// As much of Vulkan 1.1 as the engine calls, written from the specification (https://registry.khronos.org/vulkan/):
// names are its own without "Vk" and "vk". Handles and numbers; the structures are in devices.hpp and objects.hpp.
#pragma once

#include <cstdint>

namespace powerlab::gpu::vk {

static_assert(sizeof(void*) == 8, "handles are pointers on 64-bit machines alone");

using Instance = struct InstanceHandle*;
using PhysicalDevice = struct PhysicalDeviceHandle*;
using Device = struct DeviceHandle*;
using Queue = struct QueueHandle*;
using CommandBuffer = struct CommandBufferHandle*;
using Buffer = struct BufferHandle*;
using DeviceMemory = struct DeviceMemoryHandle*;
using ShaderModule = struct ShaderModuleHandle*;
using Pipeline = struct PipelineHandle*;
using PipelineCache = struct PipelineCacheHandle*;
using PipelineLayout = struct PipelineLayoutHandle*;
using DescriptorSetLayout = struct DescriptorSetLayoutHandle*;
using DescriptorPool = struct DescriptorPoolHandle*;
using DescriptorSet = struct DescriptorSetHandle*;
using CommandPool = struct CommandPoolHandle*;
using QueryPool = struct QueryPoolHandle*;
using Fence = struct FenceHandle*;

using Flags = std::uint32_t;
using Size = std::uint64_t;
using Bool = std::uint32_t;

enum Result : std::int32_t {
  kSuccess = 0,
  kNotReady = 1,
  kTimeout = 2,
  kErrorOutOfHostMemory = -1,
  kErrorOutOfDeviceMemory = -2,
  kErrorInitializationFailed = -3,
  kErrorDeviceLost = -4,
  kErrorIncompatibleDriver = -9,
};

enum class Type : std::int32_t {
  kApplicationInfo = 0,
  kInstanceCreateInfo = 1,
  kDeviceQueueCreateInfo = 2,
  kDeviceCreateInfo = 3,
  kSubmitInfo = 4,
  kMemoryAllocateInfo = 5,
  kFenceCreateInfo = 8,
  kQueryPoolCreateInfo = 11,
  kBufferCreateInfo = 12,
  kShaderModuleCreateInfo = 16,
  kPipelineCacheCreateInfo = 17,
  kPipelineShaderStageCreateInfo = 18,
  kComputePipelineCreateInfo = 29,
  kPipelineLayoutCreateInfo = 30,
  kDescriptorSetLayoutCreateInfo = 32,
  kDescriptorPoolCreateInfo = 33,
  kDescriptorSetAllocateInfo = 34,
  kWriteDescriptorSet = 35,
  kCommandPoolCreateInfo = 39,
  kCommandBufferAllocateInfo = 40,
  kCommandBufferBeginInfo = 42,
  kMemoryBarrier = 46,
  kPhysicalDeviceFeatures2 = 1000059000,
  kPhysicalDeviceProperties2 = 1000059001,
  kFloat16Int8Features = 1000082000,
  k16BitStorageFeatures = 1000083000,
  kSubgroupProperties = 1000094000,
  kCoreProperties = 1000154001,
  kDriverProperties = 1000196000,
  kMemoryModelFeatures = 1000211000,
  kSubgroupSizeFeatures = 1000225002,
  kIntegerDotProductFeatures = 1000280000,
  kCooperativeMatrixFeatures = 1000506000,
  kCooperativeMatrixProperties = 1000506001,
};

constexpr Flags kQueueCompute = 2;
constexpr Flags kMemoryDeviceLocal = 1, kMemoryHostVisible = 2, kMemoryHostCoherent = 4, kMemoryHostCached = 8;
constexpr Flags kUsageTransferSource = 1, kUsageTransferTarget = 2, kUsageStorage = 0x20;
constexpr Flags kStageCompute = 0x20, kFullSubgroups = 2;
constexpr Flags kAtTopOfPipe = 1, kAtCompute = 0x800, kAtTransfer = 0x1000, kAtHost = 0x4000;
constexpr Flags kAccessShaderRead = 0x20, kAccessShaderWrite = 0x40, kAccessTransferRead = 0x800,
                kAccessTransferWrite = 0x1000, kAccessHostRead = 0x2000;
constexpr Flags kResultsOf64Bits = 1, kResultsWait = 2;
constexpr Flags kSubgroupArithmetic = 4;
constexpr Flags kSubgroupBallot = 8;
constexpr std::int32_t kBindCompute = 1, kStorageBufferDescriptor = 7, kTimestampQueries = 2;
constexpr std::int32_t kScopeSubgroup = 3;
constexpr std::int32_t kFloat16 = 0, kFloat32 = 1, kSint8 = 3, kSint32 = 5;  // component types
constexpr std::uint32_t kVersion11 = (1u << 22) | (1u << 12), kVersion12 = (1u << 22) | (2u << 12);

}  // namespace powerlab::gpu::vk
