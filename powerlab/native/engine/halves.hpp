// float16 to float32 and back, rounded to the nearest, ties to even: what models take and return that the engine
// computes in float32.
#pragma once

#include <cstdint>
#include <span>

namespace powerlab::engine {

// Both throw std::invalid_argument where the spans are not of the same length.
void to_floats(std::span<const std::uint16_t> halves, std::span<float> floats);
void to_halves(std::span<const float> floats, std::span<std::uint16_t> halves);

// One number, by shifts alone; also what the tests compare the processor's instructions with.
float widened(std::uint16_t half);
std::uint16_t narrowed(float value);

// The same of a double, rounded once: by way of a float alone, some numbers would be rounded twice.
std::uint16_t narrowed_once(double value);

}  // namespace powerlab::engine
