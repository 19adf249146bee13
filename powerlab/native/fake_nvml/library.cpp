// Start, end, error texts, versions and handles.
#include <cstdio>
#include <cstring>
#include <mutex>

#include "fake_nvml/device.hpp"
#include "fake_nvml/tree.hpp"

namespace powerlab::fake_nvml {
namespace {

std::mutex g_lock;
int g_started = 0;
Device g_devices[kMostGpus];

}  // namespace

nvmlReturn_t check_started() {
  const std::lock_guard<std::mutex> guard(g_lock);
  return g_started > 0 ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
}

nvmlReturn_t check(nvmlDevice_t device) {
  if (const nvmlReturn_t failure = check_started()) return failure;
  for (Device& known : g_devices) {
    if (device == &known) return exists(known.number, "") ? NVML_SUCCESS : NVML_ERROR_GPU_IS_LOST;
  }
  return NVML_ERROR_INVALID_ARGUMENT;
}

}  // namespace powerlab::fake_nvml

namespace fake = powerlab::fake_nvml;

// "init_error" holds the return code with which a driver in trouble refuses to start.
FAKE_NVML_API nvmlReturn_t nvmlInitWithFlags(unsigned) {
  const std::lock_guard<std::mutex> guard(fake::g_lock);
  if (!fake::find_tree()) return NVML_ERROR_DRIVER_NOT_LOADED;
  std::uint64_t refusal = 0;
  if (fake::read_number(fake::kLibrary, "init_error", &refusal) == NVML_SUCCESS && refusal != 0) {
    return static_cast<nvmlReturn_t>(refusal);
  }
  for (int number = 0; number < fake::kMostGpus; ++number) fake::g_devices[number].number = number;
  ++fake::g_started;
  return NVML_SUCCESS;
}

FAKE_NVML_API nvmlReturn_t nvmlInit_v2() { return nvmlInitWithFlags(0); }

FAKE_NVML_API nvmlReturn_t nvmlInit() { return nvmlInitWithFlags(0); }

FAKE_NVML_API nvmlReturn_t nvmlShutdown() {
  const std::lock_guard<std::mutex> guard(fake::g_lock);
  if (fake::g_started == 0) return NVML_ERROR_UNINITIALIZED;
  --fake::g_started;
  return NVML_SUCCESS;
}

FAKE_NVML_API const char* nvmlErrorString(nvmlReturn_t result) {
  switch (result) {
    case NVML_SUCCESS:
      return "Success";
    case NVML_ERROR_UNINITIALIZED:
      return "Uninitialized";
    case NVML_ERROR_INVALID_ARGUMENT:
      return "Invalid Argument";
    case NVML_ERROR_NOT_SUPPORTED:
      return "Not Supported";
    case NVML_ERROR_NO_PERMISSION:
      return "Insufficient Permissions";
    case NVML_ERROR_NOT_FOUND:
      return "Not Found";
    case NVML_ERROR_INSUFFICIENT_SIZE:
      return "Insufficient Size";
    case NVML_ERROR_DRIVER_NOT_LOADED:
      return "Driver Not Loaded";
    case NVML_ERROR_GPU_IS_LOST:
      return "GPU is lost";
    case NVML_ERROR_OPERATING_SYSTEM:
      return "Operating system call failed";
    case NVML_ERROR_LIB_RM_VERSION_MISMATCH:
      return "Driver/library version mismatch";
    default:
      return "Unknown Error";
  }
}

static nvmlReturn_t system_text(const char* name, char* text, unsigned length) {
  if (text == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (const nvmlReturn_t failure = fake::check_started()) return failure;
  return fake::read_text(fake::kLibrary, name, text, length);
}

FAKE_NVML_API nvmlReturn_t nvmlSystemGetDriverVersion(char* version, unsigned length) {
  return system_text("driver_version", version, length);
}

FAKE_NVML_API nvmlReturn_t nvmlSystemGetNVMLVersion(char* version, unsigned length) {
  return system_text("nvml_version", version, length);
}

FAKE_NVML_API nvmlReturn_t nvmlDeviceGetCount_v2(unsigned* count) {
  if (count == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (const nvmlReturn_t failure = fake::check_started()) return failure;
  *count = static_cast<unsigned>(fake::gpu_count());
  return NVML_SUCCESS;
}

FAKE_NVML_API nvmlReturn_t nvmlDeviceGetCount(unsigned* count) { return nvmlDeviceGetCount_v2(count); }

FAKE_NVML_API nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t* device) {
  if (device == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (const nvmlReturn_t failure = fake::check_started()) return failure;
  if (index >= static_cast<unsigned>(fake::gpu_count())) return NVML_ERROR_INVALID_ARGUMENT;
  *device = &fake::g_devices[index];
  return NVML_SUCCESS;
}

FAKE_NVML_API nvmlReturn_t nvmlDeviceGetHandleByIndex(unsigned index, nvmlDevice_t* device) {
  return nvmlDeviceGetHandleByIndex_v2(index, device);
}

FAKE_NVML_API nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t device, unsigned* index) {
  if (index == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (const nvmlReturn_t failure = fake::check(device)) return failure;
  *index = static_cast<unsigned>(device->number);
  return NVML_SUCCESS;
}
