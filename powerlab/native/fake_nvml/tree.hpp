// The files behind the fake library: <tree>/simulation/nvml/ for the library itself, gpu0/, gpu1/ ... below it for each
// processor. One file is one metric, its first line one value. A metric without a file is one the processor lacks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "fake_nvml/abi.hpp"

namespace powerlab::fake_nvml {

constexpr int kLibrary = -1;  // In place of a processor's number: the library's own files.
constexpr int kMostGpus = 16;

// Finds the tree in which this library lies; false where it lies in none.
bool find_tree();

// How many processors the tree has.
int gpu_count();

bool exists(int gpu, const char* name);

// The first line of a file, cut to the buffer. NVML_ERROR_NOT_SUPPORTED where there is no file.
nvmlReturn_t read_text(int gpu, const char* name, char* text, std::size_t size);

// A file's value; NVML_ERROR_UNKNOWN where its first line does not start with a decimal number.
nvmlReturn_t read_number(int gpu, const char* name, std::uint64_t* value);

// Replaces the value of a file that is there.
nvmlReturn_t write_text(int gpu, const char* name, const char* text);

}  // namespace powerlab::fake_nvml
