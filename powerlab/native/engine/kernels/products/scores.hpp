// What is added to the scores of an attention.
#pragma once

#include "kernels/strided/axes.hpp"

namespace powerlab::engine::POWERLAB_TIER {

static inline void add_row(float* row, const float* added, std::int64_t stride, std::int64_t count) {
  if (stride != 1) {
    for (std::int64_t i = 0; i < count; ++i) row[i] += added[i * stride];
    return;
  }
  std::int64_t i = 0;
  for (; i + kWidth <= count; i += kWidth) {
    store_unaligned(row + i, load_unaligned(row + i) + load_unaligned(added + i));
  }
  for (; i < count; ++i) row[i] += added[i];
}

// Adds what the operands from the fifth on, [batch ...][rows][keys], have for a row of a batch.
static inline void add_masks(const Step& s, std::int64_t batch, std::int64_t row, float* scores, std::int64_t keys) {
  const int axes = s.operands[0].rank - 2;
  for (int k = 4; k < s.operand_count; ++k) {
    const Strided& added = s.operands[k];
    const float* from = static_cast<const float*>(added.data) + offset_of(added, axes, batch);
    add_row(scores, from + row * added.stride[axes], added.stride[axes + 1], keys);
  }
}

}  // namespace powerlab::engine::POWERLAB_TIER
