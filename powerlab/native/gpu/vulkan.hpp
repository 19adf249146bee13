// As much of Vulkan 1.1 as the engine calls, written from the specification (https://registry.khronos.org/vulkan/):
// names are its own without "Vk" and "vk", and what it has in fields that nobody reads here is room of the right size.
#pragma once

#include <cstddef>
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
constexpr Flags kAccessShaderRead = 0x20, kAccessShaderWrite = 0x40, kAccessTransferWrite = 0x1000,
                kAccessHostRead = 0x2000;
constexpr Flags kResultsOf64Bits = 1, kResultsWait = 2;
constexpr Flags kSubgroupBallot = 8;
constexpr std::int32_t kBindCompute = 1, kStorageBufferDescriptor = 7, kTimestampQueries = 2;
constexpr std::int32_t kScopeSubgroup = 3;
constexpr std::int32_t kFloat16 = 0, kFloat32 = 1, kSint8 = 3, kSint32 = 5;  // component types
constexpr std::uint32_t kVersion11 = (1u << 22) | (1u << 12), kVersion12 = (1u << 22) | (2u << 12);

struct ApplicationInfo {
  Type type = Type::kApplicationInfo;
  const void* next = nullptr;
  const char* name = nullptr;
  std::uint32_t version = 0;
  const char* engine = nullptr;
  std::uint32_t engine_version = 0;
  std::uint32_t api_version = kVersion11;
};

struct InstanceCreateInfo {
  Type type = Type::kInstanceCreateInfo;
  const void* next = nullptr;
  Flags flags = 0;
  const ApplicationInfo* application = nullptr;
  std::uint32_t layer_count = 0;
  const char* const* layers = nullptr;
  std::uint32_t extension_count = 0;
  const char* const* extensions = nullptr;
};

struct Limits {
  std::uint32_t images_and_uniforms[7];
  std::uint32_t max_storage_buffer_range;
  std::uint32_t max_push_constants_size;
  std::uint32_t allocations[2];
  Size granularity[2];
  std::uint32_t graphics[38];
  std::uint32_t max_compute_shared_memory_size;
  std::uint32_t max_compute_work_group_count[3];
  std::uint32_t max_compute_work_group_invocations;
  std::uint32_t max_compute_work_group_size[3];
  std::uint32_t viewports[13];
  Size min_memory_map_alignment;
  Size min_texel_and_uniform_alignment[2];
  Size min_storage_buffer_offset_alignment;
  std::uint32_t texels_and_samples[21];
  Bool timestamps_everywhere;
  float timestamp_period;
  std::uint32_t drawing[12];
  Size copies[3];
};
static_assert(sizeof(Limits) == 504 && offsetof(Limits, max_compute_shared_memory_size) == 216);
static_assert(offsetof(Limits, min_storage_buffer_offset_alignment) == 328);
static_assert(offsetof(Limits, timestamp_period) == 424);

struct Properties2 {
  Type type = Type::kPhysicalDeviceProperties2;
  void* next = nullptr;
  std::uint32_t api_version;
  std::uint32_t driver_version;
  std::uint32_t vendor;
  std::uint32_t device;
  std::int32_t kind;
  char name[256];
  std::uint8_t cache_uuid[16];
  Limits limits;
  Bool sparse[5];
};
static_assert(sizeof(Properties2) == 16 + 824 && offsetof(Properties2, limits) == 16 + 296);

struct DriverProperties {
  Type type = Type::kDriverProperties;
  void* next = nullptr;
  std::int32_t id;
  char name[256];
  char info[256];
  std::uint8_t conformance[4];
};

struct SubgroupProperties {
  Type type = Type::kSubgroupProperties;
  void* next = nullptr;
  std::uint32_t size = 0;
  Flags stages = 0;
  Flags operations = 0;
  Bool quads_everywhere = 0;
};

struct Storage16Features {
  Type type = Type::k16BitStorageFeatures;
  void* next = nullptr;
  Bool storage = 0;
  Bool uniform = 0;
  Bool push_constants = 0;
  Bool stages = 0;
};

// Of VK_KHR_shader_float16_int8.
struct Float16Int8Features {
  Type type = Type::kFloat16Int8Features;
  void* next = nullptr;
  Bool float16 = 0;
  Bool int8 = 0;
};

// Of VK_KHR_shader_integer_dot_product.
struct IntegerDotProductFeatures {
  Type type = Type::kIntegerDotProductFeatures;
  void* next = nullptr;
  Bool dot_product = 0;
};

// Of VK_KHR_cooperative_matrix.
struct CooperativeMatrixFeatures {
  Type type = Type::kCooperativeMatrixFeatures;
  void* next = nullptr;
  Bool matrices = 0;
  Bool robust = 0;
};

// Of VK_KHR_vulkan_memory_model.
struct MemoryModelFeatures {
  Type type = Type::kMemoryModelFeatures;
  void* next = nullptr;
  Bool memory_model = 0;
  Bool device_scope = 0;
  Bool chains = 0;
};

// Of VK_EXT_subgroup_size_control.
struct SubgroupSizeFeatures {
  Type type = Type::kSubgroupSizeFeatures;
  void* next = nullptr;
  Bool sizes = 0;
  Bool full_subgroups = 0;
};

struct CooperativeMatrixProperties {
  Type type = Type::kCooperativeMatrixProperties;
  void* next = nullptr;
  std::uint32_t m = 0;
  std::uint32_t n = 0;
  std::uint32_t k = 0;
  std::int32_t a = 0;  // component types
  std::int32_t b = 0;
  std::int32_t c = 0;
  std::int32_t result = 0;
  Bool saturates = 0;
  std::int32_t scope = 0;
};

struct ExtensionProperties {
  char name[256];
  std::uint32_t version;
};

struct Features2 {
  Type type = Type::kPhysicalDeviceFeatures2;
  void* next = nullptr;
  Bool features[55];
};

struct QueueFamily {
  Flags flags;
  std::uint32_t count;
  std::uint32_t timestamp_bits;
  std::uint32_t granularity[3];
};

struct MemoryProperties {
  std::uint32_t type_count;
  struct {
    Flags flags;
    std::uint32_t heap;
  } types[32];
  std::uint32_t heap_count;
  struct {
    Size size;
    Flags flags;
  } heaps[16];
};

struct DeviceQueueCreateInfo {
  Type type = Type::kDeviceQueueCreateInfo;
  const void* next = nullptr;
  Flags flags = 0;
  std::uint32_t family = 0;
  std::uint32_t count = 1;
  const float* priorities = nullptr;
};

struct DeviceCreateInfo {
  Type type = Type::kDeviceCreateInfo;
  const void* next = nullptr;
  Flags flags = 0;
  std::uint32_t queue_count = 1;
  const DeviceQueueCreateInfo* queues = nullptr;
  std::uint32_t layer_count = 0;
  const char* const* layers = nullptr;
  std::uint32_t extension_count = 0;
  const char* const* extensions = nullptr;
  const void* features = nullptr;
};

struct BufferCreateInfo {
  Type type = Type::kBufferCreateInfo;
  const void* next = nullptr;
  Flags flags = 0;
  Size size = 0;
  Flags usage = 0;
  std::int32_t sharing = 0;
  std::uint32_t family_count = 0;
  const std::uint32_t* families = nullptr;
};

struct MemoryRequirements {
  Size size;
  Size alignment;
  std::uint32_t types;
};

struct MemoryAllocateInfo {
  Type type = Type::kMemoryAllocateInfo;
  const void* next = nullptr;
  Size size = 0;
  std::uint32_t memory_type = 0;
};

struct ShaderModuleCreateInfo {
  Type type = Type::kShaderModuleCreateInfo;
  const void* next = nullptr;
  Flags flags = 0;
  std::size_t size = 0;
  const std::uint32_t* code = nullptr;
};

struct PipelineCacheCreateInfo {
  Type type = Type::kPipelineCacheCreateInfo;
  const void* next = nullptr;
  Flags flags = 0;
  std::size_t size = 0;
  const void* data = nullptr;
};

struct SpecializationEntry {
  std::uint32_t id;
  std::uint32_t offset;
  std::size_t size;
};

struct SpecializationInfo {
  std::uint32_t count = 0;
  const SpecializationEntry* entries = nullptr;
  std::size_t size = 0;
  const void* data = nullptr;
};

struct PipelineShaderStageCreateInfo {
  Type type = Type::kPipelineShaderStageCreateInfo;
  const void* next = nullptr;
  Flags flags = 0;
  Flags stage = kStageCompute;
  ShaderModule module = nullptr;
  const char* name = "main";
  const SpecializationInfo* specialization = nullptr;
};

struct ComputePipelineCreateInfo {
  Type type = Type::kComputePipelineCreateInfo;
  const void* next = nullptr;
  Flags flags = 0;
  PipelineShaderStageCreateInfo stage;
  PipelineLayout layout = nullptr;
  Pipeline base = nullptr;
  std::int32_t base_index = -1;
};

struct DescriptorSetLayoutBinding {
  std::uint32_t binding;
  std::int32_t type;
  std::uint32_t count;
  Flags stages;
  const void* samplers;
};

struct DescriptorSetLayoutCreateInfo {
  Type type = Type::kDescriptorSetLayoutCreateInfo;
  const void* next = nullptr;
  Flags flags = 0;
  std::uint32_t count = 0;
  const DescriptorSetLayoutBinding* bindings = nullptr;
};

struct PushConstantRange {
  Flags stages;
  std::uint32_t offset;
  std::uint32_t size;
};

struct PipelineLayoutCreateInfo {
  Type type = Type::kPipelineLayoutCreateInfo;
  const void* next = nullptr;
  Flags flags = 0;
  std::uint32_t set_count = 1;
  const DescriptorSetLayout* sets = nullptr;
  std::uint32_t range_count = 1;
  const PushConstantRange* ranges = nullptr;
};

struct DescriptorPoolSize {
  std::int32_t type;
  std::uint32_t count;
};

struct DescriptorPoolCreateInfo {
  Type type = Type::kDescriptorPoolCreateInfo;
  const void* next = nullptr;
  Flags flags = 0;
  std::uint32_t max_sets = 0;
  std::uint32_t size_count = 1;
  const DescriptorPoolSize* sizes = nullptr;
};

struct DescriptorSetAllocateInfo {
  Type type = Type::kDescriptorSetAllocateInfo;
  const void* next = nullptr;
  DescriptorPool pool = nullptr;
  std::uint32_t count = 1;
  const DescriptorSetLayout* layouts = nullptr;
};

struct DescriptorBufferInfo {
  Buffer buffer;
  Size offset;
  Size range;
};

struct WriteDescriptorSet {
  Type type = Type::kWriteDescriptorSet;
  const void* next = nullptr;
  DescriptorSet set = nullptr;
  std::uint32_t binding = 0;
  std::uint32_t element = 0;
  std::uint32_t count = 1;
  std::int32_t descriptor = kStorageBufferDescriptor;
  const void* images = nullptr;
  const DescriptorBufferInfo* buffers = nullptr;
  const void* texels = nullptr;
};

struct CommandPoolCreateInfo {
  Type type = Type::kCommandPoolCreateInfo;
  const void* next = nullptr;
  Flags flags = 0;
  std::uint32_t family = 0;
};

struct CommandBufferAllocateInfo {
  Type type = Type::kCommandBufferAllocateInfo;
  const void* next = nullptr;
  CommandPool pool = nullptr;
  std::int32_t level = 0;
  std::uint32_t count = 1;
};

struct CommandBufferBeginInfo {
  Type type = Type::kCommandBufferBeginInfo;
  const void* next = nullptr;
  Flags flags = 0;
  const void* inheritance = nullptr;
};

struct MemoryBarrier {
  Type type = Type::kMemoryBarrier;
  const void* next = nullptr;
  Flags source = 0;
  Flags target = 0;
};

struct BufferCopy {
  Size source;
  Size target;
  Size size;
};

struct QueryPoolCreateInfo {
  Type type = Type::kQueryPoolCreateInfo;
  const void* next = nullptr;
  Flags flags = 0;
  std::int32_t query_type = kTimestampQueries;
  std::uint32_t count = 0;
  Flags statistics = 0;
};

struct FenceCreateInfo {
  Type type = Type::kFenceCreateInfo;
  const void* next = nullptr;
  Flags flags = 0;
};

struct SubmitInfo {
  Type type = Type::kSubmitInfo;
  const void* next = nullptr;
  std::uint32_t wait_count = 0;
  const void* waits = nullptr;
  const Flags* wait_stages = nullptr;
  std::uint32_t buffer_count = 1;
  const CommandBuffer* buffers = nullptr;
  std::uint32_t signal_count = 0;
  const void* signals = nullptr;
};

}  // namespace powerlab::gpu::vk
