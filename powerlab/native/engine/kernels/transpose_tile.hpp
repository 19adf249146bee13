// A square of as many vectors as a vector has lanes, turned in registers: rows become columns. In each round the
// off-diagonal squares of half the size change places (J. O. Eklundh, "A Fast Computer Method for Matrix Transposing",
// 1972).
#pragma once

#include "kernels/vec.hpp"

namespace powerlab::engine::POWERLAB_TIER {

template <int Half, int... Lane>
static inline void swap_halves(Vec& upper, Vec& lower, Indices<Lane...>) {
  const Vec first = __builtin_shufflevector(upper, lower, (Lane & Half ? kWidth + (Lane ^ Half) : Lane)...);
  lower = __builtin_shufflevector(upper, lower, (Lane & Half ? kWidth + Lane : Lane ^ Half)...);
  upper = first;
}

template <int Half = kWidth / 2>
static inline __attribute__((always_inline)) void transpose_tile(Vec (&rows)[kWidth]) {
  POWERLAB_UNROLL
  for (int row = 0; row < kWidth; ++row) {
    if (!(row & Half)) swap_halves<Half>(rows[row], rows[row | Half], typename MakeIndices<kWidth>::type{});
  }
  if constexpr (Half > 1) transpose_tile<Half / 2>(rows);
}

}  // namespace powerlab::engine::POWERLAB_TIER
