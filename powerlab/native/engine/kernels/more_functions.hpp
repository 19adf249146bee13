// More functions of one number, as functions.hpp; what has no vector form here is left to the C library, lane by lane.
#pragma once

#include "kernels/functions.hpp"

namespace powerlab::engine::POWERLAB_TIER {

template <float (*F)(float)>
static inline Vec lanes(Vec x) {
  float values[kWidth];
  __builtin_memcpy(values, &x, sizeof values);
  for (int k = 0; k < kWidth; ++k) values[k] = F(values[k]);
  __builtin_memcpy(&x, values, sizeof values);
  return x;
}

#define POWERLAB_LANES(name, builtin)                             \
  static inline float name##_lane(float x) { return builtin(x); } \
  static inline Vec name##_of(Vec x, const Step&) { return lanes<name##_lane>(x); }
POWERLAB_LANES(acos, __builtin_acosf)
POWERLAB_LANES(acosh, __builtin_acoshf)
POWERLAB_LANES(asin, __builtin_asinf)
POWERLAB_LANES(asinh, __builtin_asinhf)
POWERLAB_LANES(atan, __builtin_atanf)
POWERLAB_LANES(atanh, __builtin_atanhf)
POWERLAB_LANES(ceil, __builtin_ceilf)
POWERLAB_LANES(cos, __builtin_cosf)
POWERLAB_LANES(cosh, __builtin_coshf)
POWERLAB_LANES(expm1, __builtin_expm1f)
POWERLAB_LANES(floor, __builtin_floorf)
POWERLAB_LANES(log, __builtin_logf)
POWERLAB_LANES(log1p, __builtin_log1pf)
POWERLAB_LANES(round, __builtin_rintf)
POWERLAB_LANES(sin, __builtin_sinf)
POWERLAB_LANES(sinh, __builtin_sinhf)
POWERLAB_LANES(sqrt, __builtin_sqrtf)
POWERLAB_LANES(tan, __builtin_tanf)
#undef POWERLAB_LANES

static inline float abs_lane(float x) { return __builtin_fabsf(x); }
static inline Vec abs_of(Vec x, const Step&) { return lanes<abs_lane>(x); }
static inline Vec neg_of(Vec x, const Step&) { return -x; }
static inline Vec reciprocal_of(Vec x, const Step&) { return broadcast(1) / x; }
static inline Vec sign_of(Vec x, const Step&) {
  const Vec above = x > broadcast(0) ? broadcast(1) : x;  // 0 and not-a-number stay
  return x < broadcast(0) ? broadcast(-1) : above;
}
static inline Vec softsign_of(Vec x, const Step&) { return x / (broadcast(1) + absolute(x)); }
static inline Vec softplus(Vec x) {
  const Vec above = x > broadcast(0) ? x : Vec{};
  const Vec sum = above + lanes<log1p_lane>(exponential(-absolute(x)));
  return x != x ? x : sum;
}
static inline Vec softplus_of(Vec x, const Step&) { return softplus(x); }
// x tanh(log(1 + e)), where e = exp(x), is x n / (n + 2) with n = e (e + 2); from 20 on the quotient is 1.
static inline Vec mish_of(Vec x, const Step&) {
  const Vec e = exponential_inside(at_most(x, broadcast(20))), n = e * (e + broadcast(2));
  return at_least(x, broadcast(-87)) * quotient(n, n + broadcast(2));
}
static inline Vec swish_of(Vec x, const Step& s) { return x * sigmoid(x * broadcast(s.alpha)); }
static inline Vec selu_of(Vec x, const Step& s) {
  const Vec below = lanes<expm1_lane>(x) * broadcast(s.alpha);
  return (x > broadcast(0) ? x : below) * broadcast(s.beta);
}
static inline Vec celu_of(Vec x, const Step& s) {
  const Vec below = lanes<expm1_lane>(x / broadcast(s.alpha)) * broadcast(s.alpha);
  return x > broadcast(0) ? x : below;
}
static inline Vec thresholded_relu_of(Vec x, const Step& s) { return x > broadcast(s.alpha) ? x : Vec{}; }
static inline Vec shrink_of(Vec x, const Step& s) {
  const Vec up = x + broadcast(s.beta), down = x - broadcast(s.beta);
  const Vec above = x > broadcast(s.alpha) ? down : Vec{};
  return x < broadcast(-s.alpha) ? up : above;
}
static inline Vec gelu_tanh_of(Vec x, const Step&) {
#if defined(__AVX512DQ__)
  return times_share_below(x, kTanhShare);
#else
  const Vec inside = (x + x * x * x * broadcast(0.044715f)) * broadcast(2 * 0.797884561f);
  return quotient(at_least(x, broadcast(-87)), one_over_sigmoid(inside));
#endif
}

}  // namespace powerlab::engine::POWERLAB_TIER
