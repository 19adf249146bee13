// Handles of processors, and whether the library was started.
#pragma once

#include "fake_nvml/abi.hpp"

namespace powerlab::fake_nvml {

struct Device {
  int number;
};

// NVML_SUCCESS between nvmlInit and the last nvmlShutdown, else NVML_ERROR_UNINITIALIZED.
nvmlReturn_t check_started();

// The same, and whether a handle is one of this library's.
nvmlReturn_t check(nvmlDevice_t device);

}  // namespace powerlab::fake_nvml
