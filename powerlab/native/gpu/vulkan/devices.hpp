// How Vulkan describes an instance and its GPUs, and how one is opened. What it has in fields that nobody reads here is
// room of the right size.
#pragma once

#include <cstddef>

#include "gpu/vulkan/numbers.hpp"

namespace powerlab::gpu::vk {

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

// Of VK_NV_shader_sm_builtins.
struct CoreProperties {
  Type type = Type::kCoreProperties;
  void* next = nullptr;
  std::uint32_t cores = 0;
  std::uint32_t subgroups = 0;
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

}  // namespace powerlab::gpu::vk
