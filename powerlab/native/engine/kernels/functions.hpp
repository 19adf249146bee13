// Functions of one number, element by element, over rows of whole vectors; a planar tensor passes as one block.
//
// Most follow from exponentials: a power of two goes into the exponent, the rest is a polynomial with the smallest
// largest relative error. Where a difference would lose digits near 0 it is taken before the power is added, or a
// series stands in (Abramowitz and Stegun, Handbook of Mathematical Functions, 7.1.5, 7.1.26).
#pragma once

#include "kernels/gelu.hpp"
#include "kernels/vec.hpp"

namespace powerlab::engine::POWERLAB_TIER {

typedef std::int32_t IntVec __attribute__((vector_size(4 * kWidth)));

static inline Vec absolute(Vec x) {
  return reinterpret_cast<Vec>(reinterpret_cast<IntVec>(x) & (IntVec{} + 0x7fffffff));
}
static inline Vec with_sign_of(Vec sign, Vec magnitude) { return sign < broadcast(0) ? -magnitude : magnitude; }

// 1 / x, for x from 1 on; to 1e-8 of itself where the processor has an approximation that one step makes so precise,
// as its division takes longer than all the rest of a function.
static inline Vec one_over(Vec x) {
#if defined(__AVX512F__)
  const Vec near = _mm512_maskz_rcp14_ps(0xffff, x);
  return near + near * (broadcast(1) - x * near);
#else
  return broadcast(1) / x;
#endif
}

static inline Vec quotient(Vec above, Vec below) {
#if defined(__AVX512F__)
  return above * one_over(below);
#else
  return above / below;
#endif
}

// low + high x. Polynomials are summed in such pairs, which do not wait for each other: what ends a tile has too few
// vectors to hide the time of one term after the other.
static inline Vec pair(float low, float high, Vec x) { return broadcast(low) + broadcast(high) * x; }

// Added to a float, rounds it to an integer and puts the exponent's bias to it, both in the lowest bits.
constexpr float kRounding = 12582912.0f + 127;

// 2^n of a number to which kRounding was added. Of not-a-number it may be anything.
static inline Vec power_of(Vec rounded) { return reinterpret_cast<Vec>(reinterpret_cast<IntVec>(rounded) << 23); }

// exp(x) up to 88, and from -87 on, below which it stays: x = n ln 2 + r, and a polynomial for exp(r) (relative error
// 3e-9).
static inline Vec exponential_inside(Vec x) {
  constexpr float kLog2E = 1.44269504f, kHigh = 0.693359375f, kLow = -2.12194440e-4f;
  const Vec inside = at_least(x, broadcast(-87));
  const Vec rounded = inside * broadcast(kLog2E) + broadcast(kRounding), whole = rounded - broadcast(kRounding);
  const Vec r = (inside - whole * broadcast(kHigh)) - whole * broadcast(kLow);
  const Vec square = r * r, high = pair(0.0416683890f, 0.00836871751f, r) + broadcast(0.00138145988f) * square;
  const Vec sum = pair(1.0f, 1.0f, r) + pair(0.499999940f, 0.166665211f, r) * square;
  return (sum + high * (square * square)) * power_of(rounded);
}

// Of numbers up to 0.
static inline Vec exponential_below(Vec x) { return x < broadcast(-87) ? Vec{} : exponential_inside(x); }

static inline Vec exponential(Vec x) {
  const Vec below = exponential_below(x);
  return x > broadcast(88) ? broadcast(__builtin_inff()) : below;
}

// 2^x for |x| up to 126, beyond which it stays: a power 2^n, and 2^(x - n) - 1 from the polynomial through the
// Chebyshev nodes of [-1/2, 1/2] (relative error 2e-8). Not-a-number stays.
struct PowerOfTwo {
  Vec whole, rest;
};
static inline PowerOfTwo power_of_two(Vec x) {
  const Vec inside = clamp(x, -126.0f, 126.0f);
  const Vec rounded = inside + broadcast(kRounding);
  const Vec r = inside - (rounded - broadcast(kRounding));
  const Vec square = r * r, high = pair(0.009618083f, 0.0013390863f, r) + broadcast(0.00015453163f) * square;
  const Vec sum = broadcast(0.6931472f) + pair(0.24022651f, 0.05550357f, r) * r;
  return {power_of(rounded), (sum + high * (square * r)) * r};
}

constexpr float kLog2E = 1.44269504f;

// 1 / sigmoid(x) = 1 + exp(-x). x86 takes a shorter polynomial, fitted for the smallest largest relative error (8e-8),
// for nothing is taken from it; AVX-512 has instructions to round and to scale by a power of two.
#if defined(__AVX2__)
static inline Vec power_of_rest(Vec r) {
  Vec sum = broadcast(0.00132764725f);
  constexpr float kTerms[] = {0.00967554189f, 0.0555071309f, 0.240221202f, 0.693146944f, 1.00000012f};
  for (const float coefficient : kTerms) {
    sum = sum * r + broadcast(coefficient);
  }
  return sum;
}
#endif
static inline Vec one_over_sigmoid(Vec x) {
#if defined(__AVX512F__)
  const Vec inside = clamp(x * broadcast(-kLog2E), -126.0f, 126.0f);
  const Vec whole = _mm512_maskz_roundscale_ps(0xffff, inside, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  return broadcast(1) + _mm512_maskz_scalef_ps(0xffff, power_of_rest(inside - whole), whole);
#elif defined(__AVX2__)
  const Vec inside = clamp(x, -87.0f, 87.0f);
  const Vec rounded = inside * broadcast(-kLog2E) + broadcast(kRounding);
  const Vec r = inside * broadcast(-kLog2E) - (rounded - broadcast(kRounding));
  return broadcast(1) + power_of_rest(r) * power_of(rounded);
#else
  const PowerOfTwo e = power_of_two(x * broadcast(-kLog2E));
  return e.whole * e.rest + (e.whole + broadcast(1));
#endif
}

static inline Vec sigmoid(Vec x) {
  const Vec found = one_over(one_over_sigmoid(x));
  return x < broadcast(-87) ? Vec{} : found;
}

// tanh(x) = above / below, precise for small x too: 1 - exp(-2x) over 1 + exp(-2x). Beyond 40 it is 1.
struct Quotient {
  Vec above, below;
};
static inline Quotient tanh_quotient(Vec x) {
  const PowerOfTwo e = power_of_two(clamp(x, -40.0f, 40.0f) * broadcast(-2 * kLog2E));
  const Vec less = e.whole * e.rest + (e.whole - broadcast(1));
  return {-less, less + broadcast(2)};
}

static inline Vec hyperbolic_tangent(Vec x) {
  const Quotient found = tanh_quotient(x);
  return quotient(found.above, found.below);
}

static inline Vec error_function(Vec x) {
  const Vec size = clamp(absolute(x), 0.0f, 10.0f), one = broadcast(1), square = size * size;
  Vec series = broadcast(-1.0f / 1320);
  constexpr float kTerms[] = {1.0f / 216, -1.0f / 42, 0.1f, -1.0f / 3, 1.0f};
  for (const float coefficient : kTerms) {
    series = series * square + broadcast(coefficient);
  }
  const Vec t = one_over(one + size * broadcast(0.3275911f));
  Vec sum = broadcast(1.061405429f);
  constexpr float kFarTerms[] = {-1.453152027f, 1.421413741f, -0.284496736f, 0.254829592f};
  for (const float coefficient : kFarTerms) {
    sum = sum * t + broadcast(coefficient);
  }
  const Vec far = with_sign_of(x, one - sum * t * exponential_below(-square));
  return size < broadcast(0.5f) ? x * series * broadcast(1.12837917f) : far;
}

// x times the normal distribution's share below x. Without AVX-512 what lies beyond |x| is 1 over the eighth power of a
// polynomial, the form of Abramowitz and Stegun 7.1.28, fitted for the smallest largest error of the result (6e-8, and
// of small x a part of x). From 19 on, where the power would soon be infinite, it stays; minus infinity gives no
// number.
static inline Vec gelu(Vec x) {
#if defined(__AVX512DQ__)
  return times_share_below(x, kNormalShare);
#else
  const Vec size = at_most(absolute(x), broadcast(19)), square = size * size;
  const Vec near = pair(1.09050773f, 0.108761192f, size) + pair(0.048828058f, 0.00940543592f, size) * square;
  const Vec far = pair(0.00102469374f, 1.51548286e-04f, size) +
                  (pair(9.52017357e-05f, -1.61039968e-05f, size) + broadcast(3.03068925e-06f) * square) * square;
  const Vec sum = near + far * (square * square), second = sum * sum, fourth = second * second;
  const Vec below = at_most(x, Vec{});
  return (x - below) - quotient(size, fourth * fourth);
#endif
}

static inline Vec sigmoid_of(Vec x, const Step&) { return sigmoid(x); }
static inline Vec silu_of(Vec x, const Step&) { return quotient(at_least(x, broadcast(-87)), one_over_sigmoid(x)); }
static inline Vec tanh_of(Vec x, const Step&) { return hyperbolic_tangent(x); }
static inline Vec exp_of(Vec x, const Step&) { return exponential(x); }
static inline Vec erf_of(Vec x, const Step&) { return error_function(x); }
static inline Vec gelu_of(Vec x, const Step&) { return gelu(x); }
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

// Rounded to bytes, of which a step is alpha and 0 is beta, and back. Adding 1.5 * 2^23 leaves no fraction.
static inline Vec fake_quantize_of(Vec x, const Step& s) {
  const Vec steps = clamp(x / broadcast(s.alpha), -s.beta, 255 - s.beta);
  return ((steps + broadcast(12582912.0f)) - broadcast(12582912.0f)) * broadcast(s.alpha);
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
    POWERLAB_UNROLL_BY_2
    for (std::int64_t i = 0; i < count; i += kWidth) store(out + i, F(load(x + i), s));
  }
}

}  // namespace powerlab::engine::POWERLAB_TIER
