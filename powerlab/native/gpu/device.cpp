#include "gpu/device.hpp"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <thread>

namespace powerlab::gpu {
namespace {

constexpr std::uint32_t kPushBytes = 128;  // every device has room for so many

// Of queues that one process asks for; more do not compute at the same time on any GPU known.
constexpr std::uint32_t kMostQueues = 8;

// How long the end of a run is looked for without sleep. More would cost the host power for runs that take long anyway.
constexpr std::uint64_t kSpinNs = 1'000'000;

// Tells whether a kernel computes products of matrices: its capabilities are its first instructions (SPIR-V 2.4).
bool uses_matrices(std::span<const std::uint32_t> code) {
  constexpr std::uint32_t kCapability = 2u << 16 | 17u, kCooperativeMatrix = 6022;
  for (std::size_t at = 5; at + 1 < code.size() && code[at] == kCapability; at += 2) {
    if (code[at + 1] == kCooperativeMatrix) return true;
  }
  return false;
}

}  // namespace

Device::Device(std::shared_ptr<Library> library, std::size_t index, const std::string& cache, bool host_constants)
    : library_(std::move(library)), functions_(library_->functions()), host_constants_(host_constants) {
  const auto all = library_->physical();
  if (index >= all.size()) throw std::runtime_error("there is no GPU of this number.");
  const auto physical = all[index];
  info_ = library_->devices()[index];
  functions_.GetPhysicalDeviceMemoryProperties(physical, &memory_);
  const auto family = compute_family(functions_, physical);
  if (!family) throw std::runtime_error("this GPU has no queue for computing.");
  family_ = family->index;
  const std::vector<float> priorities(std::min(family->queues, kMostQueues), 1.0f);
  const vk::DeviceQueueCreateInfo queue{
      .family = family_, .count = static_cast<std::uint32_t>(priorities.size()), .priorities = priorities.data()};
  vk::Storage16Features storage{.storage = 1};
  const bool matrices = !info_.matrices.empty() || !info_.byte_matrices.empty();
  vk::Float16Int8Features arithmetic{.float16 = info_.half_arithmetic, .int8 = !info_.byte_matrices.empty()};
  vk::IntegerDotProductFeatures dots{.dot_product = 1};
  vk::CooperativeMatrixFeatures units{.matrices = 1};
  vk::MemoryModelFeatures memory_model{.memory_model = 1};
  vk::SubgroupSizeFeatures subgroups{.full_subgroups = 1};
  void* features = nullptr;
  std::vector<const char*> extensions;
  const auto enable = [&features](auto& feature) {
    feature.next = features;
    features = &feature;
  };
  if (info_.half_storage) enable(storage);
  if (arithmetic.float16 || arithmetic.int8) enable(arithmetic), extensions.push_back(kHalfArithmetic);
  if (matrices) {
    enable(units), enable(memory_model), enable(subgroups);
    extensions.insert(extensions.end(), {kMatrices, kMemoryModel, kSubgroupSizes});
  }
  if (info_.dot_product) enable(dots), extensions.push_back(kDotProduct);
  const vk::DeviceCreateInfo wanted{.next = features,
                                    .queues = &queue,
                                    .extension_count = static_cast<std::uint32_t>(extensions.size()),
                                    .extensions = extensions.data()};
  check(functions_.CreateDevice(physical, &wanted, nullptr, &device_), "be opened");
#define POWERLAB_VK_LOAD(name, result, parameters) \
  functions_.name = reinterpret_cast<decltype(functions_.name)>(functions_.GetDeviceProcAddr(device_, "vk" #name));
  POWERLAB_VK_DEVICE(POWERLAB_VK_LOAD)
#undef POWERLAB_VK_LOAD
  queues_.resize(priorities.size());
  for (std::uint32_t i = 0; i < queues_.size(); ++i) functions_.GetDeviceQueue(device_, family_, i, &queues_[i]);
  const vk::PipelineCacheCreateInfo kept{.size = cache.size(), .data = cache.data()};
  check(functions_.CreatePipelineCache(device_, &kept, nullptr, &cache_), "keep its pipelines");
}

Device::~Device() {
  if (abandoned_) {
    new std::shared_ptr<Library>(library_);  // neither may the loader go while the driver's threads work
    return;
  }
  functions_.DeviceWaitIdle(device_);
  for (const auto& [key, pipeline] : pipelines_) functions_.DestroyPipeline(device_, pipeline, nullptr);
  for (const auto& [count, both] : layouts_) {
    functions_.DestroyPipelineLayout(device_, both.pipeline, nullptr);
    functions_.DestroyDescriptorSetLayout(device_, both.set, nullptr);
  }
  for (const auto fence : fences_) functions_.DestroyFence(device_, fence, nullptr);
  functions_.DestroyPipelineCache(device_, cache_, nullptr);
  functions_.DestroyDevice(device_, nullptr);
}

std::string Device::pipeline_cache() const {
  std::size_t size = 0;
  check(functions_.GetPipelineCacheData(device_, cache_, &size, nullptr), "give its pipelines out");
  std::string data(size, '\0');
  check(functions_.GetPipelineCacheData(device_, cache_, &size, data.data()), "give its pipelines out");
  data.resize(size);
  return data;
}

Device::Layouts& Device::layouts(int bindings) {
  auto& both = layouts_[bindings];
  if (both.pipeline != nullptr) return both;
  std::vector<vk::DescriptorSetLayoutBinding> all;
  for (int i = 0; i < bindings; ++i) {
    all.push_back({static_cast<std::uint32_t>(i), vk::kStorageBufferDescriptor, 1, vk::kStageCompute, nullptr});
  }
  const vk::DescriptorSetLayoutCreateInfo set{.count = static_cast<std::uint32_t>(bindings), .bindings = all.data()};
  check(functions_.CreateDescriptorSetLayout(device_, &set, nullptr, &both.set), "bind buffers");
  const vk::PushConstantRange range{vk::kStageCompute, 0, kPushBytes};
  const vk::PipelineLayoutCreateInfo layout{.sets = &both.set, .ranges = &range};
  check(functions_.CreatePipelineLayout(device_, &layout, nullptr, &both.pipeline), "bind buffers");
  return both;
}

vk::PipelineLayout Device::layout(int bindings) {
  const std::lock_guard<std::mutex> lock(making_);
  return layouts(bindings).pipeline;
}

vk::DescriptorSetLayout Device::set_layout(int bindings) {
  const std::lock_guard<std::mutex> lock(making_);
  return layouts(bindings).set;
}

vk::Pipeline Device::pipeline(const Shader& shader) {
  const std::lock_guard<std::mutex> lock(making_);
  const auto key = std::make_tuple(shader.name, shader.constants);
  if (const auto found = pipelines_.find(key); found != pipelines_.end()) return found->second;
  std::vector<std::uint32_t> code(shader.code.size() / 4);
  shader.code.copy(reinterpret_cast<char*>(code.data()), 4 * code.size());
  const vk::ShaderModuleCreateInfo wanted{.size = 4 * code.size(), .code = code.data()};
  vk::ShaderModule module = nullptr;
  check(functions_.CreateShaderModule(device_, &wanted, nullptr, &module), "take a kernel");
  std::vector<vk::SpecializationEntry> entries;
  for (std::uint32_t i = 0; i < shader.constants.size(); ++i) entries.push_back({i, 4 * i, 4});
  const vk::SpecializationInfo specialization{.count = static_cast<std::uint32_t>(entries.size()),
                                              .entries = entries.data(),
                                              .size = 4 * entries.size(),
                                              .data = shader.constants.data()};
  vk::ComputePipelineCreateInfo info;
  info.layout = layouts(shader.bindings).pipeline;
  info.stage.module = module;
  info.stage.flags = uses_matrices(code) ? vk::kFullSubgroups : 0;
  info.stage.specialization = &specialization;
  vk::Pipeline made = nullptr;
  const auto result = functions_.CreateComputePipelines(device_, cache_, 1, &info, nullptr, &made);
  functions_.DestroyShaderModule(device_, module, nullptr);
  check(result, "compile a kernel");
  return pipelines_[key] = made;
}

Piece Device::allocate(std::uint64_t bytes, vk::Flags wanted, vk::Flags preferred) {
  Piece piece{.bytes = bytes};
  const vk::BufferCreateInfo info{.size = bytes,
                                  .usage = vk::kUsageStorage | vk::kUsageTransferSource | vk::kUsageTransferTarget};
  check(functions_.CreateBuffer(device_, &info, nullptr, &piece.buffer), "make a buffer");
  try {
    vk::MemoryRequirements needs{};
    functions_.GetBufferMemoryRequirements(device_, piece.buffer, &needs);
    int best = -1;
    for (std::uint32_t i = 0; i < memory_.type_count; ++i) {
      const auto flags = memory_.types[i].flags;
      if (!(needs.types >> i & 1) || (flags & wanted) != wanted) continue;
      if (best < 0 || ((flags & preferred) == preferred && (memory_.types[best].flags & preferred) != preferred)) {
        best = static_cast<int>(i);
      }
    }
    if (best < 0) throw std::runtime_error("this GPU has no memory of the kind that is needed.");
    const vk::MemoryAllocateInfo allocation{.size = needs.size, .memory_type = static_cast<std::uint32_t>(best)};
    check(functions_.AllocateMemory(device_, &allocation, nullptr, &piece.memory), "hold the model");
    check(functions_.BindBufferMemory(device_, piece.buffer, piece.memory, 0), "hold the model");
    constexpr auto kVisible = vk::kMemoryHostVisible | vk::kMemoryHostCoherent;
    if ((memory_.types[best].flags & kVisible) == kVisible) {
      check(functions_.MapMemory(device_, piece.memory, 0, bytes, 0, &piece.mapped), "show its memory");
    }
  } catch (...) {
    release(piece);
    throw;
  }
  return piece;
}

void Device::release(Piece& piece) {
  if (abandoned_) return;
  if (piece.buffer != nullptr) functions_.DestroyBuffer(device_, piece.buffer, nullptr);
  if (piece.memory != nullptr) functions_.FreeMemory(device_, piece.memory, nullptr);
  piece = {};
}

std::int64_t Device::nanoseconds(std::uint64_t begin, std::uint64_t end) const {
  const auto mask = info_.tick_bits >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << info_.tick_bits) - 1;
  return static_cast<std::int64_t>(static_cast<double>((end - begin) & mask) * info_.tick_ns);
}

vk::CommandPool Device::make_commands() {
  const vk::CommandPoolCreateInfo wanted{.family = family_};
  vk::CommandPool made = nullptr;
  check(functions_.CreateCommandPool(device_, &wanted, nullptr, &made), "record commands");
  return made;
}

void Device::destroy(vk::CommandPool commands) {
  if (!abandoned_) functions_.DestroyCommandPool(device_, commands, nullptr);
}

vk::CommandBuffer Device::begin(vk::CommandPool commands, bool once) {
  const vk::CommandBufferAllocateInfo wanted{.pool = commands};
  vk::CommandBuffer buffer = nullptr;
  check(functions_.AllocateCommandBuffers(device_, &wanted, &buffer), "record commands");
  const vk::CommandBufferBeginInfo info{.flags = once ? 1u : 0u};
  check(functions_.BeginCommandBuffer(buffer, &info), "record commands");
  return buffer;
}

void Device::end(vk::CommandBuffer buffer) { check(functions_.EndCommandBuffer(buffer), "record commands"); }

void Device::submit(std::span<const vk::CommandBuffer> buffers, std::uint64_t timeout_ns) {
  const std::lock_guard<std::mutex> lock(submitting_);
  if (abandoned_) throw std::runtime_error("the GPU is still at work that took too long; start a new process.");
  while (fences_.size() < buffers.size()) {
    const vk::FenceCreateInfo wanted;
    vk::Fence fence = nullptr;
    check(functions_.CreateFence(device_, &wanted, nullptr, &fence), "be waited for");
    fences_.push_back(fence);
  }
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    const vk::SubmitInfo info{.buffers = &buffers[i]};
    const auto taken = functions_.QueueSubmit(queues_[i % queues_.size()], 1, &info, fences_[i]);
    if (taken != vk::kSuccess && i > 0) abandoned_ = true;  // others are at work
    check(taken, "take work");
    ++submits_;
  }
  const auto count = static_cast<std::uint32_t>(buffers.size());
  const auto result = waited(count, timeout_ns);
  if (result != vk::kSuccess) abandoned_ = true;
  if (result == vk::kTimeout) {
    throw std::runtime_error("the GPU did not finish within " + std::to_string(timeout_ns / 1'000'000) +
                             " ms; use a smaller batch or model.");
  }
  check(result, "finish its work");
  check(functions_.ResetFences(device_, count, fences_.data()), "be waited for");
}

// Looks again and again for a while before it sleeps: a thread that sleeps is woken tens of microseconds late.
vk::Result Device::waited(std::uint32_t count, std::uint64_t timeout_ns) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::nanoseconds(std::min(timeout_ns, kSpinNs));
  std::uint32_t done = 0;
  while (std::chrono::steady_clock::now() < end) {
    const auto result = functions_.GetFenceStatus(device_, fences_[done]);
    if (result == vk::kNotReady) {
      std::this_thread::yield();  // to the driver, where it computes on the processor
    } else if (result != vk::kSuccess || ++done == count) {
      return result;
    }
  }
  return functions_.WaitForFences(device_, count, fences_.data(), 1, timeout_ns);
}

void Device::free(vk::CommandPool commands, vk::CommandBuffer buffer) {
  if (!abandoned_) functions_.FreeCommandBuffers(device_, commands, 1, &buffer);
}

}  // namespace powerlab::gpu
