// What Vulkan makes on an open GPU: memory, kernels, what they are bound to, commands and how they are waited for.
#pragma once

#include <cstddef>

#include "gpu/vulkan/numbers.hpp"

namespace powerlab::gpu::vk {

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
