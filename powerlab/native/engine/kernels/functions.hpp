// Functions of one number, element by element, over rows of whole vectors; a planar tensor passes as one block.
//
// exp by range reduction: x = n ln 2 + r with |r| <= ln 2 / 2, a Taylor polynomial of degree 7 for exp(r) (its next
// term is below 6e-9), and n put into the exponent. The others follow from it; where a difference would lose digits
// near 0, their own series stands in (Abramowitz and Stegun, Handbook of Mathematical
// Functions, 4.5.64, 7.1.5, 7.1.26).
#pragma once

#include "kernels/vec.hpp"

namespace powerlab::engine::POWERLAB_TIER {

typedef std::int32_t IntVec __attribute__((vector_size(4 * kWidth)));

static inline Vec absolute(Vec x) { return x < broadcast(0) ? -x : x; }
static inline Vec with_sign_of(Vec sign, Vec magnitude) { return sign < broadcast(0) ? -magnitude : magnitude; }

static inline Vec exponential(Vec x) {
  constexpr float kLeast = -87.0f, kMost = 88.0f;
  constexpr float kLog2E = 1.44269504f, kHigh = 0.693359375f, kLow = -2.12194440e-4f, kMagic = 12582912.0f;
  const Vec inside = clamp(x, kLeast, kMost);
  const Vec whole = (inside * broadcast(kLog2E) + broadcast(kMagic)) - broadcast(kMagic);  // rounds to the nearest
  const Vec r = (inside - whole * broadcast(kHigh)) - whole * broadcast(kLow);
  Vec sum = broadcast(1.0f / 5040);
  constexpr float kTerms[] = {1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f, 1.0f};
  for (const float coefficient : kTerms) {
    sum = sum * r + broadcast(coefficient);
  }
  const Vec sound = x != x ? Vec{} : whole;  // not-a-number has no exponent
  const IntVec bits = (__builtin_convertvector(sound, IntVec) + 127) << 23;
  const Vec power = sum * reinterpret_cast<Vec>(bits);
  const Vec upper = x > broadcast(kMost) ? broadcast(__builtin_inff()) : power;
  const Vec whole_range = x < broadcast(kLeast) ? Vec{} : upper;
  return x != x ? x : whole_range;
}

static inline Vec sigmoid(Vec x) {
  const Vec small = exponential(-absolute(x));  // at most 1: nothing overflows on either side
  const Vec one = broadcast(1);
  const Vec at_least_half = one / (one + small);
  return x < broadcast(0) ? small / (one + small) : at_least_half;
}

static inline Vec hyperbolic_tangent(Vec x) {
  const Vec size = absolute(x), small = exponential(size * broadcast(-2)), one = broadcast(1), square = x * x;
  const Vec far = with_sign_of(x, (one - small) / (one + small));
  const Vec series =
      ((square * broadcast(-17.0f / 315) + broadcast(2.0f / 15)) * square - broadcast(1.0f / 3)) * square + one;
  return size < broadcast(0.25f) ? x * series : far;
}

static inline Vec error_function(Vec x) {
  const Vec size = absolute(x), one = broadcast(1), square = x * x;
  Vec series = broadcast(-1.0f / 1320);
  constexpr float kTerms[] = {1.0f / 216, -1.0f / 42, 0.1f, -1.0f / 3, 1.0f};
  for (const float coefficient : kTerms) {
    series = series * square + broadcast(coefficient);
  }
  const Vec t = one / (one + size * broadcast(0.3275911f));
  Vec sum = broadcast(1.061405429f);
  constexpr float kFarTerms[] = {-1.453152027f, 1.421413741f, -0.284496736f, 0.254829592f};
  for (const float coefficient : kFarTerms) {
    sum = sum * t + broadcast(coefficient);
  }
  const Vec far = with_sign_of(x, one - sum * t * exponential(-square));
  return size < broadcast(0.5f) ? x * series * broadcast(1.12837917f) : far;
}

static inline Vec sigmoid_of(Vec x, const Step&) { return sigmoid(x); }
static inline Vec silu_of(Vec x, const Step&) { return x * sigmoid(x); }
static inline Vec tanh_of(Vec x, const Step&) { return hyperbolic_tangent(x); }
static inline Vec exp_of(Vec x, const Step&) { return exponential(x); }
static inline Vec erf_of(Vec x, const Step&) { return error_function(x); }
static inline Vec gelu_of(Vec x, const Step&) {
  return x * (error_function(x * broadcast(0.70710678f)) + broadcast(1)) * broadcast(0.5f);
}
static inline Vec hard_sigmoid_of(Vec x, const Step& s) {
  return clamp(x * broadcast(s.alpha) + broadcast(s.beta), 0.0f, 1.0f);
}
static inline Vec hard_swish_of(Vec x, const Step&) {
  return x * clamp(x * broadcast(1.0f / 6) + broadcast(0.5f), 0.0f, 1.0f);
}
static inline Vec elu_of(Vec x, const Step& s) {
  Vec series = broadcast(1.0f / 5040);
  constexpr float kTerms[] = {1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f, 1.0f};
  for (const float coefficient : kTerms) {
    series = series * x + broadcast(coefficient);
  }
  const Vec less_one = x > broadcast(-0.35f) ? x * series : exponential(x) - broadcast(1);
  return x < broadcast(0) ? less_one * broadcast(s.alpha) : x;
}

// out = F(x)
template <Vec (*F)(Vec, const Step&)>
static void function(const Step& s, int thread, int threads) {
  const Range rows = row_share(s.out, thread, threads);
  const std::int64_t count = s.out.w * static_cast<std::int64_t>(kWidth);
  for (std::int64_t unit = rows.begin; unit < rows.end; ++unit) {
    const Row r = row_of(unit, s.out);
    const float* x = row_start(s.x, r);
    float* out = row_start(s.out, r);
    for (std::int64_t i = 0; i < count; i += kWidth) store(out + i, F(load(x + i), s));
  }
}

}  // namespace powerlab::engine::POWERLAB_TIER
