// Normalisation over any axes of general tensors: by mean and variance, or by an Lp norm.
#pragma once

#include <math.h>

#include "kernels/strided/strided.hpp"

namespace powerlab::engine::POWERLAB_TIER {

// How far index `index` of the axes [first, last) of an operand lies from its beginning, in elements.
static inline std::int64_t strided_offset(const Strided& t, int first, int last, std::int64_t index) {
  std::int64_t offset = 0;
  for (int axis = last - 1; axis >= first; --axis) {
    offset += index % t.size[axis] * t.stride[axis];
    index /= t.size[axis];
  }
  return offset;
}

// Operands: out and x, of the same sizes; number[0]: the axes from which on a norm is taken, number[1]: its p, or 0 for
// (x - mean) / (deviation + 1e-9), as ONNX defines it.
static void norm_strided(const Step& s, int thread, int threads) {
  const Strided &out = s.operands[0], &x = s.operands[1];
  const int inner = static_cast<int>(s.numbers[0]);
  const double p = static_cast<double>(s.numbers[1]);
  std::int64_t kept = 1, taken = 1;
  for (int axis = 0; axis < x.rank; ++axis) (axis < inner ? kept : taken) *= x.size[axis];
  const Range units = share(kept, thread, threads);
  for (std::int64_t unit = units.begin; unit < units.end; ++unit) {
    const float* from = static_cast<const float*>(x.data) + strided_offset(x, 0, inner, unit);
    float* to = static_cast<float*>(out.data) + strided_offset(out, 0, inner, unit);
    const auto at = [&](std::int64_t i) { return static_cast<double>(from[strided_offset(x, inner, x.rank, i)]); };
    double mean = 0, norm = 0;
    if (p == 0) {
      for (std::int64_t i = 0; i < taken; ++i) mean += at(i);
      mean /= static_cast<double>(taken);
      for (std::int64_t i = 0; i < taken; ++i) norm += (at(i) - mean) * (at(i) - mean);
      norm = sqrt(norm / static_cast<double>(taken)) + 1e-9;
    } else {
      for (std::int64_t i = 0; i < taken; ++i)
        norm += p == 1 ? fabs(at(i)) : p == 2 ? at(i) * at(i) : pow(fabs(at(i)), p);
      norm = p == 1 ? norm : p == 2 ? sqrt(norm) : pow(norm, 1 / p);
      if (norm == 0) norm = 1;  // of zeros: they stay zeros
    }
    for (std::int64_t i = 0; i < taken; ++i) {
      to[strided_offset(out, inner, out.rank, i)] = static_cast<float>((at(i) - mean) / norm);
    }
  }
}

}  // namespace powerlab::engine::POWERLAB_TIER
