// The part of NVML's C interface that the fake library answers, as NVIDIA's API reference guide states it: types,
// return codes and numbers of fields. Names are NVIDIA's, because programs look them up by name.
#pragma once

#include <cstdint>

#define FAKE_NVML_API extern "C" __attribute__((visibility("default")))

namespace powerlab::fake_nvml {
struct Device;
}

using nvmlReturn_t = int;
using nvmlDevice_t = powerlab::fake_nvml::Device*;

enum : nvmlReturn_t {
  NVML_SUCCESS = 0,
  NVML_ERROR_UNINITIALIZED = 1,
  NVML_ERROR_INVALID_ARGUMENT = 2,
  NVML_ERROR_NOT_SUPPORTED = 3,
  NVML_ERROR_NO_PERMISSION = 4,
  NVML_ERROR_NOT_FOUND = 6,
  NVML_ERROR_INSUFFICIENT_SIZE = 7,
  NVML_ERROR_DRIVER_NOT_LOADED = 9,
  NVML_ERROR_GPU_IS_LOST = 15,
  NVML_ERROR_OPERATING_SYSTEM = 17,
  NVML_ERROR_LIB_RM_VERSION_MISMATCH = 18,
  NVML_ERROR_UNKNOWN = 999,
};

enum : unsigned {
  NVML_CLOCK_GRAPHICS = 0,
  NVML_CLOCK_SM = 1,
  NVML_CLOCK_MEM = 2,
};

enum : unsigned {
  NVML_PERF_POLICY_POWER = 0,
  NVML_PERF_POLICY_THERMAL = 1,
  NVML_PERF_POLICY_BOARD_LIMIT = 3,
};

enum : unsigned {
  NVML_VALUE_TYPE_UNSIGNED_INT = 1,
  NVML_VALUE_TYPE_UNSIGNED_LONG_LONG = 3,
};

struct nvmlUtilization_t {
  unsigned gpu;     // Percent of the last sample period.
  unsigned memory;  // Percent of the last sample period.
};

struct nvmlMemory_t {
  unsigned long long total;  // bytes
  unsigned long long free;
  unsigned long long used;
};

struct nvmlViolationTime_t {
  unsigned long long referenceTime;  // µs
  unsigned long long violationTime;  // ns
};

struct nvmlTemperature_t {
  unsigned version;
  unsigned sensorType;
  int temperature;  // °C
};

union nvmlValue_t {
  double dVal;
  unsigned uiVal;
  unsigned long long ullVal;
};

struct nvmlFieldValue_t {
  unsigned fieldId;
  unsigned scopeId;
  long long timestamp;    // µs since 1970
  long long latencyUsec;  // µs
  unsigned valueType;
  nvmlReturn_t nvmlReturn;
  nvmlValue_t value;
};
static_assert(sizeof(nvmlFieldValue_t) == 40, "as programs that were compiled against NVIDIA's header expect it");
