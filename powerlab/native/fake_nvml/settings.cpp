// What can be set. A file "no_permission" beside the processors makes every change fail as it does for a plain user.
#include <cstdio>

#include "fake_nvml/device.hpp"
#include "fake_nvml/tree.hpp"

namespace fake = powerlab::fake_nvml;

namespace {

nvmlReturn_t check_change(nvmlDevice_t device) {
  if (const nvmlReturn_t failure = fake::check(device)) return failure;
  return fake::exists(fake::kLibrary, "no_permission") ? NVML_ERROR_NO_PERMISSION : NVML_SUCCESS;
}

constexpr const char* kClocks = "locked_clocks_mhz";
constexpr const char* kMemoryClocks = "locked_memory_clocks_mhz";

nvmlReturn_t lock(nvmlDevice_t device, const char* file, unsigned low_mhz, unsigned high_mhz) {
  if (const nvmlReturn_t failure = check_change(device)) return failure;
  if (low_mhz > high_mhz || high_mhz == 0) return NVML_ERROR_INVALID_ARGUMENT;
  char text[32];
  std::snprintf(text, sizeof text, "%u-%u", low_mhz, high_mhz);
  return fake::write_text(device->number, file, text);
}

nvmlReturn_t unlock(nvmlDevice_t device, const char* file) {
  if (const nvmlReturn_t failure = check_change(device)) return failure;
  return fake::write_text(device->number, file, "unlocked");
}

}  // namespace

FAKE_NVML_API nvmlReturn_t nvmlDeviceSetPowerManagementLimit(nvmlDevice_t device, unsigned limit_mw) {
  if (const nvmlReturn_t failure = check_change(device)) return failure;
  std::uint64_t low_mw = 0;
  std::uint64_t high_mw = 0;
  if (const nvmlReturn_t failure = fake::read_number(device->number, "power_limit_min_mw", &low_mw)) return failure;
  if (const nvmlReturn_t failure = fake::read_number(device->number, "power_limit_max_mw", &high_mw)) return failure;
  if (limit_mw < low_mw || limit_mw > high_mw) return NVML_ERROR_INVALID_ARGUMENT;
  char text[16];
  std::snprintf(text, sizeof text, "%u", limit_mw);
  return fake::write_text(device->number, "power_limit_mw", text);
}

FAKE_NVML_API nvmlReturn_t nvmlDeviceSetGpuLockedClocks(nvmlDevice_t device, unsigned low_mhz, unsigned high_mhz) {
  return lock(device, kClocks, low_mhz, high_mhz);
}

FAKE_NVML_API nvmlReturn_t nvmlDeviceResetGpuLockedClocks(nvmlDevice_t device) { return unlock(device, kClocks); }

FAKE_NVML_API nvmlReturn_t nvmlDeviceSetMemoryLockedClocks(nvmlDevice_t device, unsigned low_mhz, unsigned high_mhz) {
  return lock(device, kMemoryClocks, low_mhz, high_mhz);
}

FAKE_NVML_API nvmlReturn_t nvmlDeviceResetMemoryLockedClocks(nvmlDevice_t device) {
  return unlock(device, kMemoryClocks);
}
