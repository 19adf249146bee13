// From sums to bytes: q = zero point + round(sum * multiplier), even where two are as near, within the output's bounds.
//
// These sources are compiled without contraction to fused multiply-adds, so that every tier makes the same bits: all
// products and sums below are rounded one by one.
//
// A Step's numbers: [0] zero point of out, [1] of y, [2] of x. low and high are the bounds of out less its zero point
// (an activation narrows them), alpha what a step of y is in steps of out, beta the same of x. What a convolution makes
// is multiplied by slope where it is below 0, before y is added.
#pragma once

#include "kernels/bytes/words.hpp"

namespace powerlab::engine::POWERLAB_TIER {

struct Requantize {
  float low, high, y_scale, slope;
  std::int32_t zero, y_zero;
};
static inline Requantize requantize_of(const Step& s) {
  const auto zero = static_cast<std::int32_t>(s.numbers[0]), y_zero = static_cast<std::int32_t>(s.numbers[1]);
  return {s.low, s.high, s.alpha, s.slope, zero, y_zero};
}

// Sums of a convolution as steps of out, after its slope if it has one.
template <bool S>
static inline Vec products(IVec sums, Vec multiplier, const Requantize& r) {
  const Vec steps = __builtin_convertvector(sums, Vec) * multiplier;
  if constexpr (!S) return steps;
  return steps < broadcast(0) ? steps * r.slope : steps;
}

// What so many steps of y are in steps of out.
static inline Vec scaled(IVec y, const Requantize& r) { return __builtin_convertvector(y - r.y_zero, Vec) * r.y_scale; }

// Steps of out as bytes in the lanes of integers. Adding 1.5 * 2^23 leaves no fraction, so the sum is rounded as the
// processor rounds, to the even one of two as near, and its lowest bits are the result.
static inline IVec to_bytes(Vec steps, const Requantize& r) {
  const Vec inside = clamp(steps, r.low, r.high);
  return (IVec)(inside + 12582912.0f) + r.zero;
}

}  // namespace powerlab::engine::POWERLAB_TIER
