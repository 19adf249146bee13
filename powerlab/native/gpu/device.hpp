// GPUs that Vulkan's loader knows, and one of them opened: its queue, its pipelines, and how it is waited for.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "gpu/functions.hpp"

namespace powerlab::gpu {

// Sizes of matrices whose products a subgroup computes at once: m x k times k x n.
struct MatrixSize {
  std::uint32_t m, n, k;
};

// What is known of a GPU before it is opened.
struct DeviceInfo {
  std::string name;
  std::string driver;         // its name and version in words; empty where the driver tells none
  std::string kind;           // "discrete", "integrated", "virtual", "cpu" or "other"
  std::uint32_t api_version;  // Vulkan's own packing
  std::uint32_t driver_version;
  std::uint32_t vendor;
  std::uint32_t device;
  std::string cache_id;                   // hexadecimal: pipeline caches are of use between equal ones
  std::uint64_t memory_bytes;             // of its largest device-local heap
  std::uint64_t largest_buffer_bytes;     // that a shader may see at once
  std::uint64_t alignment_bytes;          // of what a shader sees
  std::uint32_t shared_bytes;             // of a work group
  std::uint32_t group_size;               // invocations of a work group at most
  std::uint32_t subgroup_lanes;           // that share what one of them has; 0 where they cannot
  bool half_storage;                      // whether shaders read and write 16-bit numbers
  bool half_arithmetic;                   // whether they compute with them
  bool dot_product;                       // whether they multiply and sum four 8-bit numbers at once
  std::vector<MatrixSize> matrices;       // of 16-bit numbers, sums in 32
  std::vector<MatrixSize> byte_matrices;  // of signed bytes, sums in 32 bits
  std::uint32_t queues;                   // that compute at the same time
  std::uint32_t cores;                    // with shared memory of their own; 0 where the driver does not tell
  double tick_ns;                         // of its timestamps; 0 where it has none
  std::uint32_t tick_bits;                // that count; those above are zero
};

constexpr const char* kHalfArithmetic = "VK_KHR_shader_float16_int8";
constexpr const char* kMatrices = "VK_KHR_cooperative_matrix";
constexpr const char* kMemoryModel = "VK_KHR_vulkan_memory_model";
constexpr const char* kSubgroupSizes = "VK_EXT_subgroup_size_control";
constexpr const char* kCores = "VK_NV_shader_sm_builtins";
constexpr const char* kDotProduct = "VK_KHR_shader_integer_dot_product";

// The loader, opened once, and an instance. Throws std::runtime_error with a sentence where there is none.
class Library {
 public:
  explicit Library(const std::string& path);
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  const vk::Functions& functions() const { return functions_; }
  std::vector<DeviceInfo> devices() const;
  std::vector<vk::PhysicalDevice> physical() const;

 private:
  void* handle_ = nullptr;
  vk::Functions functions_;
  vk::Instance instance_ = nullptr;
};

// The queues of a device that compute, those with timestamps first.
struct QueueFamily {
  std::uint32_t index;
  std::uint32_t queues;
  std::uint32_t timestamp_bits;
};
std::optional<QueueFamily> compute_family(const vk::Functions& f, vk::PhysicalDevice device);

// Throws std::runtime_error with a sentence for whoever asked, where a result is none of success.
void check(vk::Result result, const char* what);

struct Piece {
  vk::Buffer buffer = nullptr;
  vk::DeviceMemory memory = nullptr;
  std::uint64_t bytes = 0;
  void* mapped = nullptr;  // null where the host cannot see it
};

struct Shader {
  std::string name;
  std::string code;                      // SPIR-V
  std::vector<std::uint32_t> constants;  // specialization constants 0, 1, ...
  int bindings = 0;
};

class Device {
 public:
  // index: of Library::devices(). cache: what pipeline_cache() gave before, or empty. host_constants: whether the host
  // may write into device-local memory where it sees it; otherwise all weights go through a staging buffer.
  Device(std::shared_ptr<Library> library, std::size_t index, const std::string& cache, bool host_constants);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const DeviceInfo& info() const { return info_; }
  const vk::Functions& f() const { return functions_; }
  vk::Device handle() const { return device_; }
  bool host_constants() const { return host_constants_; }
  std::string pipeline_cache() const;
  std::size_t pipelines() const { return pipelines_.size(); }
  std::uint64_t submits() const { return submits_; }
  std::int64_t nanoseconds(std::uint64_t begin, std::uint64_t end) const;

  vk::Pipeline pipeline(const Shader& shader);
  vk::PipelineLayout layout(int bindings);
  vk::DescriptorSetLayout set_layout(int bindings);

  // Memory with all of the wanted flags and, where some has them too, the preferred ones; mapped where it is visible.
  Piece allocate(std::uint64_t bytes, vk::Flags wanted, vk::Flags preferred);
  void release(Piece& piece);

  // Command buffers come from a pool that one thread uses at a time: each plan has its own.
  vk::CommandPool make_commands();
  void destroy(vk::CommandPool commands);
  vk::CommandBuffer begin(vk::CommandPool commands, bool once);  // in the recording state
  void end(vk::CommandBuffer buffer);
  void free(vk::CommandPool commands, vk::CommandBuffer buffer);
  // Waits until what the buffers hold is done; each goes to a queue of its own, as far as there are some. After a
  // timeout nothing of this device is ever freed: the GPU may still be writing.
  void submit(std::span<const vk::CommandBuffer> buffers, std::uint64_t timeout_ns);
  void submit(vk::CommandBuffer buffer, std::uint64_t timeout_ns) { submit(std::span(&buffer, 1), timeout_ns); }
  bool abandoned() const { return abandoned_; }

 private:
  struct Layouts {
    vk::DescriptorSetLayout set = nullptr;
    vk::PipelineLayout pipeline = nullptr;
  };
  Layouts& layouts(int bindings);
  vk::Result waited(std::uint32_t count, std::uint64_t timeout_ns);

  std::shared_ptr<Library> library_;
  vk::Functions functions_;
  DeviceInfo info_;
  bool host_constants_;
  vk::Device device_ = nullptr;
  std::vector<vk::Queue> queues_;
  std::uint32_t family_ = 0;
  vk::PipelineCache cache_ = nullptr;
  std::vector<vk::Fence> fences_;  // one for each buffer that is submitted at once
  vk::MemoryProperties memory_{};
  std::map<int, Layouts> layouts_;
  std::map<std::tuple<std::string, std::vector<std::uint32_t>>, vk::Pipeline> pipelines_;
  std::mutex making_;  // layouts and pipelines
  std::mutex submitting_;
  std::uint64_t submits_ = 0;
  bool abandoned_ = false;
};

}  // namespace powerlab::gpu
