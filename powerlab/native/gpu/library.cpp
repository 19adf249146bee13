#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>

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
  vk::SubgroupProperties subgroups;
  vk::Properties2 found{};
  found.type = vk::Type::kPhysicalDeviceProperties2;
  found.next = &subgroups;
  f.GetPhysicalDeviceProperties2(device, &found);
  const bool shares = (subgroups.stages & vk::kStageCompute) != 0 && (subgroups.operations & vk::kSubgroupBallot) != 0;
  return shares ? subgroups.size : 0;
}

std::uint32_t timestamp_bits(const vk::Functions& f, vk::PhysicalDevice device) {
  std::uint32_t count = 0, most = 0;
  f.GetPhysicalDeviceQueueFamilyProperties(device, &count, nullptr);
  std::vector<vk::QueueFamily> families(count);
  f.GetPhysicalDeviceQueueFamilyProperties(device, &count, families.data());
  for (const auto& family : families) {
    if (most == 0 && (family.flags & vk::kQueueCompute) != 0) most = family.timestamp_bits;
  }
  return most;
}

DeviceInfo described(const vk::Functions& f, vk::PhysicalDevice device) {
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
  const auto bits = timestamp_bits(f, device);
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
          .half_arithmetic = has_feature(f, device, kHalfArithmetic, &vk::Float16Int8Features::float16),
          .dot_product = has_feature(f, device, kDotProduct, &vk::IntegerDotProductFeatures::dot_product),
          .tick_ns = bits > 0 ? static_cast<double>(found.limits.timestamp_period) : 0,
          .tick_bits = bits};
}

}  // namespace

void check(vk::Result result, const char* what) {
  if (result == vk::kSuccess) return;
  const std::string doing = std::string("the GPU cannot ") + what;
  switch (result) {
    case vk::kErrorOutOfHostMemory:
    case vk::kErrorOutOfDeviceMemory:
      throw std::runtime_error(doing + ": it has not enough memory left; use a smaller batch or model.");
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
  for (const auto device : physical()) found.push_back(described(functions_, device));
  return found;
}

}  // namespace powerlab::gpu
