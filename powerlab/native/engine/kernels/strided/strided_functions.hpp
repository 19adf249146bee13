// What `each` computes of the elements of general tensors.
//
// Integers narrower than 64 bits are carried as int64 and brought back into their type after each operation that
// can leave it: number[0] is how many bits they lack, number[1] a Sign.
#pragma once

#include "kernels/strided/strided.hpp"

namespace powerlab::engine::POWERLAB_TIER {

using Int = std::int64_t;
using Bits = std::uint64_t;

enum Sign : std::int64_t { kSigned, kUnsigned, kUnsigned64 };

// The lowest bits of an integer as its type reads them.
static inline Int wrapped(const Numbers& k, Bits bits) {
  if (k.number[1] == kUnsigned) return static_cast<Int>(bits << k.number[0] >> k.number[0]);
  if (k.number[1] == kUnsigned64 && bits >> 63 != 0) set_fault(k.fault, kPast64Bits);
  return static_cast<Int>(bits << k.number[0]) >> k.number[0];
}
static inline Bits bits_of(Int value) { return static_cast<Bits>(value); }

template <typename T>
static inline T copy_of(const Numbers&, T x) {
  return x;
}

// Sums, differences, products
static inline float add_f(const Numbers&, float x, float y) { return x + y; }
static inline float sub_f(const Numbers&, float x, float y) { return x - y; }
static inline float mul_f(const Numbers&, float x, float y) { return x * y; }
static inline float div_f(const Numbers&, float x, float y) { return x / y; }
static inline float mul_add_f(const Numbers&, float x, float y, float z) { return x * y + z; }
static inline Int add_i(const Numbers& k, Int x, Int y) { return wrapped(k, bits_of(x) + bits_of(y)); }
static inline Int sub_i(const Numbers& k, Int x, Int y) { return wrapped(k, bits_of(x) - bits_of(y)); }
static inline Int mul_i(const Numbers& k, Int x, Int y) { return wrapped(k, bits_of(x) * bits_of(y)); }

// Quotients are cut towards zero; -2^63 / -1 wraps.
static inline Int div_i(const Numbers& k, Int x, Int y) {
  if (y == 0) {
    set_fault(k.fault, kDivisionByZero);
    return 0;
  }
  return y == -1 ? wrapped(k, 0 - bits_of(x)) : wrapped(k, bits_of(x / y));
}

// Remainders: number[2] is 1 where they have the sign of the dividend, else they have the divisor's.
static inline Int mod_i(const Numbers& k, Int x, Int y) {
  if (y == 0) {
    set_fault(k.fault, kDivisionByZero);
    return 0;
  }
  const Int rest = y == -1 ? 0 : x % y;
  return k.number[2] == 0 && rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}
static inline float mod_f(const Numbers& k, float x, float y) {
  const float rest = __builtin_fmodf(x, y);
  return k.number[2] == 0 && rest != 0 && (rest < 0) != (y < 0) ? rest + y : rest;
}

// Not-a-number wins.
static inline float min_f(const Numbers&, float x, float y) { return x < y || x != x ? x : y; }
static inline float max_f(const Numbers&, float x, float y) { return x > y || x != x ? x : y; }
static inline Int min_i(const Numbers&, Int x, Int y) { return x < y ? x : y; }
static inline Int max_i(const Numbers&, Int x, Int y) { return x > y ? x : y; }

static inline float pow_f(const Numbers&, float x, float y) { return y == 2 ? x * x : __builtin_powf(x, y); }
static inline float pow_fi(const Numbers&, float x, Int y) {
  return y == 2 ? x * x : static_cast<float>(__builtin_pow(x, static_cast<double>(y)));
}
// By squaring; a negative power is the whole part of a fraction.
static inline Int pow_i(const Numbers& k, Int x, Int y) {
  if (y < 0) return x == 1 ? 1 : x == -1 ? (y % 2 == 0 ? 1 : -1) : 0;
  Bits power = 1, factor = bits_of(x);
  for (; y != 0; y >>= 1, factor *= factor) {
    if (y & 1) power *= factor;
  }
  return wrapped(k, power);
}

static inline Int bit_and_i(const Numbers&, Int x, Int y) { return x & y; }
static inline Int bit_or_i(const Numbers&, Int x, Int y) { return x | y; }
static inline Int bit_xor_i(const Numbers&, Int x, Int y) { return x ^ y; }
static inline Int bit_not_i(const Numbers& k, Int x) { return wrapped(k, ~bits_of(x)); }
// Shifts; by more bits than there are, or fewer than none, the sign alone is left to the right, and nothing to the
// left.
static inline Int shift_left_i(const Numbers& k, Int x, Int y) {
  return y < 0 || y > 63 ? 0 : wrapped(k, bits_of(x) << y);
}
static inline Int shift_right_i(const Numbers&, Int x, Int y) { return x >> (y < 0 || y > 63 ? 63 : y); }

template <typename T>
static inline Int equal_of(const Numbers&, T x, T y) {
  return x == y;
}
template <typename T>
static inline Int less_of(const Numbers&, T x, T y) {
  return x < y;
}
template <typename T>
static inline Int less_or_equal_of(const Numbers&, T x, T y) {
  return x <= y;
}
template <typename T>
static inline Int is_zero_of(const Numbers&, T x) {
  return x == 0;
}
template <typename T>
static inline Int is_not_zero_of(const Numbers&, T x) {
  return x != 0;
}
static inline Int is_nan_f(const Numbers&, float x) { return x != x; }
// number[2] and number[3]: whether -inf and +inf count.
static inline Int is_inf_f(const Numbers& k, float x) {
  return (k.number[2] != 0 && x == -__builtin_inff()) || (k.number[3] != 0 && x == __builtin_inff());
}

template <typename T>
static inline T where_of(const Numbers&, Int condition, T x, T y) {
  return condition != 0 ? x : y;
}
// The upper bound wins over the lower.
static inline float clip_f(const Numbers&, float x, float low, float high) {
  const float above = x < low ? low : x;
  return above > high ? high : above;
}
static inline Int clip_i(const Numbers&, Int x, Int low, Int high) {
  const Int above = x < low ? low : x;
  return above > high ? high : above;
}
static inline float prelu_f(const Numbers&, float x, float slope) { return x < 0 ? x * slope : x; }
static inline Int prelu_i(const Numbers& k, Int x, Int slope) {
  return x < 0 ? wrapped(k, bits_of(x) * bits_of(slope)) : x;
}

static inline Int neg_i(const Numbers& k, Int x) { return wrapped(k, 0 - bits_of(x)); }
static inline Int abs_i(const Numbers& k, Int x) { return x < 0 ? wrapped(k, 0 - bits_of(x)) : x; }
static inline Int sign_i(const Numbers&, Int x) { return (x > 0) - (x < 0); }

// Casts. From floats the fraction goes, and what is outside number[2] .. number[3] becomes the nearest of them;
// not-a-number becomes 0.
static inline Int cast_fi(const Numbers& k, float x) {
  if (!(x == x)) return 0;
  const float most = 9223372036854775808.0f;  // 2^63
  const Int whole = x >= most ? k.number[3] : x < -most ? k.number[2] : static_cast<Int>(x);
  return whole < k.number[2] ? k.number[2] : whole > k.number[3] ? k.number[3] : whole;
}
// The nearest float16, as a float: even where two are as near, infinite past the largest.
static inline float half_f(const Numbers&, float x) {
  const float size = __builtin_fabsf(x);
  if (!(size < 65520.0f)) return x != x ? x : __builtin_copysignf(__builtin_inff(), x);
  if (size < 6.103515625e-5f) return __builtin_copysignf((size + 0.75f) - 0.75f, x);  // subnormal: steps of 2^-24
  std::uint32_t bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  bits = (bits + 0xfff + (bits >> 13 & 1)) & ~std::uint32_t{0x1fff};
  float rounded;
  __builtin_memcpy(&rounded, &bits, sizeof bits);
  return rounded;
}
// The nearest number of a narrower float type, as a float: even where two are as near. number[0]: bits of its fraction,
// [1]: its smallest exponent, [2]: its largest number, as the bits of a float, [3]: what follows on that, likewise; bit
// 32 there: it has no -0; bit 33: not-a-number becomes -0, as it has none.
static inline float narrow_f(const Numbers& k, float x) {
  if (x != x) return k.number[3] >> 33 != 0 ? -0.0f : x;
  const auto of_bits = [](std::int64_t from) {
    const std::uint32_t bits = static_cast<std::uint32_t>(from);
    float value;
    __builtin_memcpy(&value, &bits, sizeof value);
    return value;
  };
  std::uint32_t bits;
  __builtin_memcpy(&bits, &x, sizeof bits);
  const Int own = static_cast<Int>(bits >> 23 & 255) - 127;
  const Int exponent = (own > k.number[1] ? own : k.number[1]) - k.number[0];
  const std::uint64_t step_bits = static_cast<std::uint64_t>(exponent + 1023) << 52;
  double step;
  __builtin_memcpy(&step, &step_bits, sizeof step);
  const double size = __builtin_fabs(static_cast<double>(x));
  const double near = size > 3.5e38 ? size : __builtin_rint(size / step) * step;  // infinity stays
  const float rounded = near > of_bits(k.number[2]) ? of_bits(k.number[3]) : static_cast<float>(near);
  const float made = __builtin_copysignf(rounded, x);
  return (k.number[3] >> 32 & 1) != 0 ? made + 0.0f : made;
}
static inline Int cast_ii(const Numbers& k, Int x) { return wrapped(k, bits_of(x)); }
static inline float cast_if(const Numbers&, Int x) { return static_cast<float>(x); }

// QuantizeLinear: the nearest step of the scale, even where two are as near, between number[2] and number[3];
// not-a-number becomes the zero point. DequantizeLinear is its inverse.
static inline Int quantize_f(const Numbers& k, float x, float scale, Int zero_point) {
  const float steps = __builtin_rintf(x / scale);
  const float low = static_cast<float>(k.number[2] - zero_point), high = static_cast<float>(k.number[3] - zero_point);
  const float inside = steps < low ? low : steps > high ? high : steps == steps ? steps : 0.0f;
  return static_cast<Int>(inside) + zero_point;
}
static inline float dequantize_i(const Numbers&, Int x, float scale, Int zero_point) {
  return static_cast<float>(x - zero_point) * scale;
}

}  // namespace powerlab::engine::POWERLAB_TIER
