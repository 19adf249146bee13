#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

#include "gpu/device.hpp"

namespace powerlab::gpu {
namespace {

constexpr const char* kKinds[] = {"other", "integrated", "discrete", "virtual", "cpu"};

std::string hexadecimal(const std::uint8_t* bytes, std::size_t count) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < count; ++i) {
    text += kDigits[bytes[i] >> 4];
    text += kDigits[bytes[i] & 15];
  }
  return text;
}

std::uint64_t device_local_bytes(const vk::MemoryProperties& memory) {
  std::uint64_t most = 0;
  for (std::uint32_t i = 0; i < memory.heap_count; ++i) {
    if (memory.heaps[i].flags & vk::kMemoryDeviceLocal) most = std::max(most, memory.heaps[i].size);
  }
  return most;
}

bool has_extension(const vk::Functions& f, vk::PhysicalDevice device, const char* name) {
  std::uint32_t count = 0;
  f.EnumerateDeviceExtensionProperties(device, nullptr, &count, nullptr);
  std::vector<vk::ExtensionProperties> found(count);
  f.EnumerateDeviceExtensionProperties(device, nullptr, &count, found.data());
  return std::any_of(found.begin(), found.end(), [name](const auto& one) { return std::strcmp(one.name, name) == 0; });
}

// Tells whether a device has an extension and its feature, the member of a structure of features.
template <class Features>
bool has_feature(const vk::Functions& f, vk::PhysicalDevice device, const char* extension,
                 vk::Bool Features::* member) {
  if (!has_extension(f, device, extension)) return false;
  Features wanted;
  vk::Features2 features{};
  features.type = vk::Type::kPhysicalDeviceFeatures2;
  features.next = &wanted;
  f.GetPhysicalDeviceFeatures2(device, &features);
  return wanted.*member != 0;
}

bool stores_halves(const vk::Functions& f, vk::PhysicalDevice device) {
  vk::Storage16Features halves;
  vk::Features2 features{};
  features.type = vk::Type::kPhysicalDeviceFeatures2;
  features.next = &halves;
  f.GetPhysicalDeviceFeatures2(device, &features);
  return halves.storage != 0;
}

std::uint32_t subgroup_lanes(const vk::Functions& f, vk::PhysicalDevice device) {
  constexpr vk::Flags kOperations = vk::kSubgroupBallot | vk::kSubgroupArithmetic;
  vk::SubgroupProperties subgroups;
  vk::Properties2 found{};
  found.type = vk::Type::kPhysicalDeviceProperties2;
  found.next = &subgroups;
  f.GetPhysicalDeviceProperties2(device, &found);
  const bool shares =
      (subgroups.stages & vk::kStageCompute) != 0 && (subgroups.operations & kOperations) == kOperations;
  return shares ? subgroups.size : 0;
}

std::uint32_t cores(const vk::Functions& f, vk::PhysicalDevice device) {
  if (!has_extension(f, device, kCores)) return 0;
  vk::CoreProperties found;
  vk::Properties2 all{};
  all.type = vk::Type::kPhysicalDeviceProperties2;
  all.next = &found;
  f.GetPhysicalDeviceProperties2(device, &all);
  return found.cores;
}

// Every product of matrices that a device's units compute; none where it has no such units, or lacks what they need.
std::vector<vk::CooperativeMatrixProperties> matrix_products(const vk::Functions& f, vk::Instance instance,
                                                             vk::PhysicalDevice device) {
  const auto list =
      reinterpret_cast<vk::GetCooperativeMatrixProperties>(f.get(instance, vk::kGetCooperativeMatrixProperties));
  const bool usable = has_feature(f, device, kMatrices, &vk::CooperativeMatrixFeatures::matrices) &&
                      has_feature(f, device, kMemoryModel, &vk::MemoryModelFeatures::memory_model) &&
                      has_feature(f, device, kSubgroupSizes, &vk::SubgroupSizeFeatures::full_subgroups);
  if (list == nullptr || !usable) return {};
  std::uint32_t count = 0;
  if (list(device, &count, nullptr) != vk::kSuccess) return {};
  std::vector<vk::CooperativeMatrixProperties> found(count);
  if (list(device, &count, found.data()) != vk::kSuccess) return {};
  found.resize(count);
  return found;
}

// The sizes of products of one type, whose sums are of another, that a subgroup computes and that do not saturate.
std::vector<MatrixSize> sizes_of(std::span<const vk::CooperativeMatrixProperties> products, std::int32_t type,
                                 std::int32_t sums) {
  std::vector<MatrixSize> sizes;
  for (const auto& one : products) {
    const bool fits = one.a == type && one.b == type && one.c == sums && one.result == sums;
    if (fits && one.scope == vk::kScopeSubgroup && one.saturates == 0) sizes.push_back({one.m, one.n, one.k});
  }
  return sizes;
}

DeviceInfo described(const vk::Functions& f, vk::Instance instance, vk::PhysicalDevice device) {
  vk::Properties2 found{};
  vk::DriverProperties driver{};
  found.type = vk::Type::kPhysicalDeviceProperties2;
  f.GetPhysicalDeviceProperties2(device, &found);
  if (found.api_version >= vk::kVersion12) {
    driver.type = vk::Type::kDriverProperties;
    found.next = &driver;
    f.GetPhysicalDeviceProperties2(device, &found);
  }
  vk::MemoryProperties memory{};
  f.GetPhysicalDeviceMemoryProperties(device, &memory);
  const std::string driver_name = driver.name, driver_info = driver.info;
  const auto family = compute_family(f, device).value_or(QueueFamily{});
  const bool halves = has_feature(f, device, kHalfArithmetic, &vk::Float16Int8Features::float16);
  const bool bytes = has_feature(f, device, kHalfArithmetic, &vk::Float16Int8Features::int8);
  const auto products = matrix_products(f, instance, device);
  const bool known = found.kind >= 0 && found.kind < 5;
  return {.name = found.name,
          .driver = driver_info.empty() ? driver_name : driver_name + " " + driver_info,
          .kind = known ? kKinds[found.kind] : kKinds[0],
          .api_version = found.api_version,
          .driver_version = found.driver_version,
          .vendor = found.vendor,
          .device = found.device,
          .cache_id = hexadecimal(found.cache_uuid, sizeof(found.cache_uuid)),
          .memory_bytes = device_local_bytes(memory),
          .largest_buffer_bytes = found.limits.max_storage_buffer_range,
          .alignment_bytes = found.limits.min_storage_buffer_offset_alignment,
          .shared_bytes = found.limits.max_compute_shared_memory_size,
          .group_size = found.limits.max_compute_work_group_invocations,
          .subgroup_lanes = subgroup_lanes(f, device),
          .half_storage = stores_halves(f, device),
          .half_arithmetic = halves,
          .dot_product = has_feature(f, device, kDotProduct, &vk::IntegerDotProductFeatures::dot_product),
          .matrices = halves ? sizes_of(products, vk::kFloat16, vk::kFloat32) : std::vector<MatrixSize>(),
          .byte_matrices = bytes ? sizes_of(products, vk::kSint8, vk::kSint32) : std::vector<MatrixSize>(),
          .queues = family.queues,
          .cores = cores(f, device),
          .tick_ns = family.timestamp_bits > 0 ? static_cast<double>(found.limits.timestamp_period) : 0,
          .tick_bits = family.timestamp_bits};
}

}  // namespace

std::optional<QueueFamily> compute_family(const vk::Functions& f, vk::PhysicalDevice device) {
  std::uint32_t count = 0;
  f.GetPhysicalDeviceQueueFamilyProperties(device, &count, nullptr);
  std::vector<vk::QueueFamily> families(count);
  f.GetPhysicalDeviceQueueFamilyProperties(device, &count, families.data());
  std::optional<QueueFamily> found;
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto& one = families[i];
    if (!(one.flags & vk::kQueueCompute) || (found && (found->timestamp_bits > 0 || one.timestamp_bits == 0))) continue;
    found = {i, one.count, one.timestamp_bits};
  }
  return found;
}

// Python sees it as a MemoryError, with this text.
class NotEnoughMemory : public std::bad_alloc {
 public:
  explicit NotEnoughMemory(std::string text) : text_(std::move(text)) {}
  const char* what() const noexcept override { return text_.c_str(); }

 private:
  std::string text_;
};

void check(vk::Result result, const char* what) {
  if (result == vk::kSuccess) return;
  const std::string doing = std::string("the GPU cannot ") + what;
  switch (result) {
    case vk::kErrorOutOfHostMemory:
    case vk::kErrorOutOfDeviceMemory:
      throw NotEnoughMemory(doing + ": it has not enough memory left; use a smaller batch or model.");
    case vk::kErrorDeviceLost:
      throw std::runtime_error(doing + ": it was lost (reset by its driver, or unplugged); the kernel's log says why.");
    default:
      throw std::runtime_error(doing + " (Vulkan error " + std::to_string(static_cast<int>(result)) + ").");
  }
}

Library::Library(const std::string& path) {
  handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle_ == nullptr) {
    throw std::runtime_error("Vulkan's loader " + path + " is not here; install it (Debian and Ubuntu: libvulkan1).");
  }
  functions_.get = reinterpret_cast<vk::GetInstanceProcAddr>(dlsym(handle_, "vkGetInstanceProcAddr"));
  if (functions_.get == nullptr) {
    dlclose(handle_);
    throw std::runtime_error(path + " is no Vulkan loader; install one (Debian and Ubuntu: libvulkan1).");
  }
  const auto load = [this](vk::Instance instance, const char* name) {
    const auto found = functions_.get(instance, name);
    if (found == nullptr) throw std::runtime_error(std::string("Vulkan's loader is too old: it lacks ") + name + ".");
    return found;
  };
  try {
#define POWERLAB_VK_LOAD(name, result, parameters) \
  functions_.name = reinterpret_cast<decltype(functions_.name)>(load(instance_, "vk" #name));
    POWERLAB_VK_GLOBAL(POWERLAB_VK_LOAD)
    const vk::ApplicationInfo application{.name = "powerlab"};
    const vk::InstanceCreateInfo wanted{.application = &application};
    const vk::Result result = functions_.CreateInstance(&wanted, nullptr, &instance_);
    if (result == vk::kErrorIncompatibleDriver) {
      throw std::runtime_error(
          "no Vulkan driver is here; install your GPU's (NVIDIA: its own; AMD, Intel and others on Debian and Ubuntu: "
          "mesa-vulkan-drivers).");
    }
    check(result, "be looked for");
    POWERLAB_VK_INSTANCE(POWERLAB_VK_LOAD)
#undef POWERLAB_VK_LOAD
  } catch (...) {
    dlclose(handle_);
    throw;
  }
}

Library::~Library() {
  functions_.DestroyInstance(instance_, nullptr);
  dlclose(handle_);
}

std::vector<vk::PhysicalDevice> Library::physical() const {
  std::uint32_t count = 0;
  check(functions_.EnumeratePhysicalDevices(instance_, &count, nullptr), "be listed");
  std::vector<vk::PhysicalDevice> found(count);
  check(functions_.EnumeratePhysicalDevices(instance_, &count, found.data()), "be listed");
  return found;
}

std::vector<DeviceInfo> Library::devices() const {
  std::vector<DeviceInfo> found;
  for (const auto device : physical()) found.push_back(described(functions_, instance_, device));
  return found;
}

}  // namespace powerlab::gpu
