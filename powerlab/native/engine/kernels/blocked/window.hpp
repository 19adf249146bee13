// What every pooling needs: where a window lies, and a maximum.
#pragma once

#include "kernels/vec.hpp"

namespace powerlab::engine::POWERLAB_TIER {

// The part of a window that lies inside [0, size).
struct Span {
  int begin, end;
};
static inline Span window(std::int64_t at, int stride, int pad, int kernel, int size) {
  const int begin = static_cast<int>(at) * stride - pad;
  const int end = begin + kernel;
  return {begin < 0 ? 0 : begin, end > size ? size : end};
}

// The larger of two; not-a-number wins.
static inline Vec larger(Vec most, Vec v) { return v != v ? v : at_least(most, v); }

}  // namespace powerlab::engine::POWERLAB_TIER
