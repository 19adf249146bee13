#include "halves.hpp"

#include <bit>
#include <cstddef>
#include <stdexcept>

#if defined(__x86_64__)
#include <immintrin.h>

#include "tiers/x86_levels.hpp"
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

namespace powerlab::engine {
namespace {

// Return how many numbers were converted, from the first on; the caller does the others.
#if defined(__x86_64__)

constexpr std::size_t kLanes = 8;
constexpr int kLevelWithHalves = 3;  // f16c belongs to x86-64-v3

__attribute__((target("avx,f16c"))) std::size_t widen_f16c(const std::uint16_t* from, float* to, std::size_t count) {
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from + i))));
  }
  return i;
}

__attribute__((target("avx,f16c"))) std::size_t narrow_f16c(const float* from, std::uint16_t* to, std::size_t count) {
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    const __m128i halves = _mm256_cvtps_ph(_mm256_loadu_ps(from + i), _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to + i), halves);
  }
  return i;
}

bool has_halves() {
  static const bool has = x86_level() >= kLevelWithHalves;
  return has;
}

std::size_t widen(const std::uint16_t* from, float* to, std::size_t count) {
  return has_halves() ? widen_f16c(from, to, count) : 0;
}

std::size_t narrow(const float* from, std::uint16_t* to, std::size_t count) {
  return has_halves() ? narrow_f16c(from, to, count) : 0;
}

#elif defined(__aarch64__)

constexpr std::size_t kLanes = 4;

std::size_t widen(const std::uint16_t* from, float* to, std::size_t count) {
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) vst1q_f32(to + i, vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(from + i))));
  return i;
}

std::size_t narrow(const float* from, std::uint16_t* to, std::size_t count) {
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) vst1_u16(to + i, vreinterpret_u16_f16(vcvt_f16_f32(vld1q_f32(from + i))));
  return i;
}

#else

std::size_t widen(const std::uint16_t*, float*, std::size_t) { return 0; }
std::size_t narrow(const float*, std::uint16_t*, std::size_t) { return 0; }

#endif

void check(std::size_t from, std::size_t to) {
  if (from != to) throw std::invalid_argument("as many float16 as float32 are needed; please report this as a bug.");
}

constexpr std::uint32_t kInfinity = 0x7f800000;  // of float32, without its sign

}  // namespace

float widened(std::uint16_t half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000) << 16;
  const std::uint32_t exponent = half >> 10 & 31, fraction = half & 0x3ff;
  if (exponent == 0) return std::bit_cast<float>(std::bit_cast<std::uint32_t>(fraction * 0x1p-24f) | sign);
  if (exponent == 31) return std::bit_cast<float>(sign | kInfinity | fraction << 13);
  return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
}

std::uint16_t narrowed(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000);
  const std::uint32_t size = bits & 0x7fffffff;
  const auto signed_half = [sign](std::uint32_t half) { return static_cast<std::uint16_t>(sign | half); };
  if (size > kInfinity) return signed_half(0x7e00 | (size >> 13 & 0x3ff));  // not a number
  if (size >= 0x477ff000) return signed_half(0x7c00);                       // from 65520 on: infinity
  if (size < 0x38800000) {  // below 2^-14: multiples of 2^-24, to which adding a half rounds
    return signed_half(std::bit_cast<std::uint32_t>(std::bit_cast<float>(size) + 0.5f) - 0x3f000000);
  }
  return signed_half((size - 0x38000000 + 0xfff + (size >> 13 & 1)) >> 13);
}

void to_floats(std::span<const std::uint16_t> halves, std::span<float> floats) {
  check(halves.size(), floats.size());
  for (std::size_t i = widen(halves.data(), floats.data(), halves.size()); i < halves.size(); ++i) {
    floats[i] = widened(halves[i]);
  }
}

void to_halves(std::span<const float> floats, std::span<std::uint16_t> halves) {
  check(floats.size(), halves.size());
  for (std::size_t i = narrow(floats.data(), halves.data(), floats.size()); i < floats.size(); ++i) {
    halves[i] = narrowed(floats[i]);
  }
}

std::uint16_t narrowed_once(double value) {
  // A float that is rounded to odd lies between two float16 if the number does.
  const float near = static_cast<float>(value);
  auto bits = std::bit_cast<std::uint32_t>(near);
  if (static_cast<double>(near) != value) {
    const bool beyond =
        (near < 0 ? -static_cast<double>(near) : static_cast<double>(near)) > (value < 0 ? -value : value);
    bits = (beyond ? bits - 1 : bits) | 1;
  }
  return narrowed(std::bit_cast<float>(bits));
}

}  // namespace powerlab::engine
