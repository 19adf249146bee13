// The first axes of a general tensor as one: how many elements, and where each of them lies.
#pragma once

#include "kernels/vec.hpp"

namespace powerlab::engine::POWERLAB_TIER {

// Some axes of a general tensor as one number counted from the last: where the element of that number lies.
static inline std::int64_t offset_of(const Strided& t, int axes, std::int64_t number) {
  std::int64_t offset = 0;
  for (int axis = axes - 1; axis > 0; --axis) {
    offset += number % t.size[axis] * t.stride[axis];
    number /= t.size[axis];
  }
  return axes > 0 ? offset + number * t.stride[0] : 0;
}
static inline std::int64_t count_of(const Strided& t, int axes) {
  std::int64_t count = 1;
  for (int axis = 0; axis < axes; ++axis) count *= t.size[axis];
  return count;
}

}  // namespace powerlab::engine::POWERLAB_TIER
