// What can be asked of a processor. Every answer is the content of a file, so each metric can be left out.
#include <time.h>

#include <cstdlib>

#include "fake_nvml/device.hpp"
#include "fake_nvml/tree.hpp"

namespace fake = powerlab::fake_nvml;

namespace {

constexpr unsigned kViolationPower = 74;
constexpr unsigned kViolationThermal = 75;
constexpr unsigned kViolationBoardLimit = 77;
constexpr unsigned kTotalEnergy = 83;
constexpr unsigned kPowerAverage = 185;
constexpr unsigned kPowerInstant = 186;
constexpr unsigned kPowerMinLimit = 187;
constexpr unsigned kPowerMaxLimit = 188;
constexpr unsigned kPowerDefaultLimit = 189;
constexpr unsigned kPowerCurrentLimit = 190;
constexpr unsigned kEnergy = 191;

long long now_us(clockid_t clock) {
  timespec now{};
  clock_gettime(clock, &now);
  return now.tv_sec * 1'000'000LL + now.tv_nsec / 1000;
}

template <typename Number>
nvmlReturn_t number(nvmlDevice_t device, const char* name, Number* value) {
  if (value == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (const nvmlReturn_t failure = fake::check(device)) return failure;
  std::uint64_t found = 0;
  const nvmlReturn_t result = fake::read_number(device->number, name, &found);
  if (result == NVML_SUCCESS) *value = static_cast<Number>(found);
  return result;
}

nvmlReturn_t text(nvmlDevice_t device, const char* name, char* value, unsigned length) {
  if (value == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (const nvmlReturn_t failure = fake::check(device)) return failure;
  return fake::read_text(device->number, name, value, length);
}

const char* clock_file(unsigned type, const char* graphics, const char* memory) {
  if (type == NVML_CLOCK_GRAPHICS || type == NVML_CLOCK_SM) return graphics;
  return type == NVML_CLOCK_MEM ? memory : nullptr;
}

const char* violation_file(unsigned policy) {
  switch (policy) {
    case NVML_PERF_POLICY_POWER:
      return "violation_power_ns";
    case NVML_PERF_POLICY_THERMAL:
      return "violation_thermal_ns";
    case NVML_PERF_POLICY_BOARD_LIMIT:
      return "violation_board_limit_ns";
    default:
      return nullptr;
  }
}

const char* field_file(unsigned field) {
  switch (field) {
    case kViolationPower:
      return "violation_power_ns";
    case kViolationThermal:
      return "violation_thermal_ns";
    case kViolationBoardLimit:
      return "violation_board_limit_ns";
    case kTotalEnergy:
    case kEnergy:
      return "energy_mj";
    case kPowerAverage:
      return "power_average_mw";
    case kPowerInstant:
      return "power_instant_mw";
    case kPowerMinLimit:
      return "power_limit_min_mw";
    case kPowerMaxLimit:
      return "power_limit_max_mw";
    case kPowerDefaultLimit:
      return "power_limit_default_mw";
    case kPowerCurrentLimit:
      return "power_limit_mw";
    default:
      return nullptr;
  }
}

// NVML's way to return a list: too small a buffer is refused, and the count then says how much is needed.
nvmlReturn_t list(nvmlDevice_t device, const char* name, unsigned* count, unsigned* values) {
  char line[4096];
  if (count == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  if (const nvmlReturn_t failure = text(device, name, line, sizeof line)) return failure;
  const unsigned room = values == nullptr ? 0 : *count;
  *count = 0;
  for (char* rest = line; *rest != '\0'; ++*count) {
    char* end = rest;
    const unsigned long value = std::strtoul(rest, &end, 10);
    if (end == rest) return NVML_ERROR_UNKNOWN;
    if (*count < room) values[*count] = static_cast<unsigned>(value);
    rest = end;
  }
  return *count > room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

bool is_counter(unsigned field) { return field < kPowerAverage || field == kEnergy; }

}  // namespace

FAKE_NVML_API nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char* name, unsigned length) {
  return text(device, "name", name, length);
}

// "compute_capability" holds 10 times the major number, plus the minor one.
FAKE_NVML_API nvmlReturn_t nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int* major, int* minor) {
  if (major == nullptr || minor == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  unsigned both = 0;
  if (const nvmlReturn_t failure = number(device, "compute_capability", &both)) return failure;
  *major = static_cast<int>(both / 10);
  *minor = static_cast<int>(both % 10);
  return NVML_SUCCESS;
}

FAKE_NVML_API nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t* memory) {
  if (memory == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  unsigned long long total_mib = 0;
  if (const nvmlReturn_t failure = number(device, "memory_mib", &total_mib)) return failure;
  *memory = {total_mib << 20U, total_mib << 20U, 0};
  return NVML_SUCCESS;
}

FAKE_NVML_API nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char* uuid, unsigned length) {
  return text(device, "uuid", uuid, length);
}

// Averaged over a second, as on Ampere and later.
FAKE_NVML_API nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned* power_mw) {
  return number(device, "power_average_mw", power_mw);
}

FAKE_NVML_API nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device, unsigned long long* energy_mj) {
  return number(device, "energy_mj", energy_mj);
}

FAKE_NVML_API nvmlReturn_t nvmlDeviceGetPowerManagementLimit(nvmlDevice_t device, unsigned* limit_mw) {
  return number(device, "power_limit_mw", limit_mw);
}

FAKE_NVML_API nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned* limit_mw) {
  return number(device, "power_limit_mw", limit_mw);
}

FAKE_NVML_API nvmlReturn_t nvmlDeviceGetPowerManagementDefaultLimit(nvmlDevice_t device, unsigned* limit_mw) {
  return number(device, "power_limit_default_mw", limit_mw);
}

FAKE_NVML_API nvmlReturn_t nvmlDeviceGetPowerManagementLimitConstraints(nvmlDevice_t device, unsigned* low_mw,
                                                                        unsigned* high_mw) {
  if (const nvmlReturn_t failure = number(device, "power_limit_min_mw", low_mw)) return failure;
  return number(device, "power_limit_max_mw", high_mw);
}

FAKE_NVML_API nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, unsigned type, unsigned* clock_mhz) {
  const char* file = clock_file(type, "clock_graphics_mhz", "clock_memory_mhz");
  return file == nullptr ? NVML_ERROR_NOT_SUPPORTED : number(device, file, clock_mhz);
}

FAKE_NVML_API nvmlReturn_t nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, unsigned type, unsigned* clock_mhz) {
  const char* file = clock_file(type, "max_clock_graphics_mhz", "max_clock_memory_mhz");
  return file == nullptr ? NVML_ERROR_NOT_SUPPORTED : number(device, file, clock_mhz);
}

FAKE_NVML_API nvmlReturn_t nvmlDeviceGetSupportedMemoryClocks(nvmlDevice_t device, unsigned* count,
                                                              unsigned* clocks_mhz) {
  return list(device, "supported_memory_clocks_mhz", count, clocks_mhz);
}

// The same for every clock of the memory.
FAKE_NVML_API nvmlReturn_t nvmlDeviceGetSupportedGraphicsClocks(nvmlDevice_t device, unsigned, unsigned* count,
                                                                unsigned* clocks_mhz) {
  return list(device, "supported_graphics_clocks_mhz", count, clocks_mhz);
}

FAKE_NVML_API nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t device, unsigned long long* reasons) {
  return number(device, "clocks_event_reasons", reasons);
}

FAKE_NVML_API nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t device, unsigned long long* reasons) {
  return number(device, "clocks_event_reasons", reasons);
}

FAKE_NVML_API nvmlReturn_t nvmlDeviceGetViolationStatus(nvmlDevice_t device, unsigned policy,
                                                        nvmlViolationTime_t* violation) {
  if (violation == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  const char* file = violation_file(policy);
  if (file == nullptr) return NVML_ERROR_NOT_SUPPORTED;
  violation->referenceTime = static_cast<unsigned long long>(now_us(CLOCK_MONOTONIC));
  return number(device, file, &violation->violationTime);
}

FAKE_NVML_API nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, unsigned, unsigned* temperature_c) {
  return number(device, "temperature_c", temperature_c);
}

FAKE_NVML_API nvmlReturn_t nvmlDeviceGetTemperatureV(nvmlDevice_t device, nvmlTemperature_t* temperature) {
  return temperature == nullptr ? NVML_ERROR_INVALID_ARGUMENT
                                : number(device, "temperature_c", &temperature->temperature);
}

FAKE_NVML_API nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t* utilization) {
  if (utilization == nullptr) return NVML_ERROR_INVALID_ARGUMENT;
  utilization->memory = 0;
  return number(device, "utilisation_percent", &utilization->gpu);
}

// A field reports its failure inside the answer; the call itself succeeds.
FAKE_NVML_API nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t* values) {
  if (values == nullptr || count < 0) return NVML_ERROR_INVALID_ARGUMENT;
  if (const nvmlReturn_t failure = fake::check(device)) return failure;
  for (int index = 0; index < count; ++index) {
    nvmlFieldValue_t& field = values[index];
    const char* file = field_file(field.fieldId);
    const bool counter = is_counter(field.fieldId);
    field.timestamp = now_us(CLOCK_REALTIME);
    field.latencyUsec = 0;
    field.valueType = counter ? NVML_VALUE_TYPE_UNSIGNED_LONG_LONG : NVML_VALUE_TYPE_UNSIGNED_INT;
    field.value.ullVal = 0;
    if (file == nullptr) {
      field.nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
    } else {
      field.nvmlReturn = counter ? number(device, file, &field.value.ullVal) : number(device, file, &field.value.uiVal);
    }
  }
  return NVML_SUCCESS;
}
