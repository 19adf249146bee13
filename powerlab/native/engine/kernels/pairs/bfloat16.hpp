// bfloat16, and the multiplications that instruction sets have for it. Each multiplies the two channels of a word, in
// all lanes the same, with two weights a lane, and adds both products to the lane's sum, in float32:
//   AVX-512 BF16     vdpbf16ps; numbers below 2^-126 count as zero.
//   Arm with BF16    bfdot.
#pragma once

#include <bit>

#include "kernels/vec.hpp"

namespace powerlab::engine::POWERLAB_TIER {

#if defined(__AVX512BF16__)
static_assert(kWidth == 16);
typedef std::int32_t Words __attribute__((vector_size(64)));
static inline Vec dot_pairs(Vec sum, Word x, Vec weights) {
  return (Vec)_mm512_dpbf16_ps((__m512)sum, (__m512bh)weights, (__m512bh)_mm512_set1_epi32(x));
}
static inline void dot_four_pairs(Vec& a, Vec& b, Vec& c, Vec& d, const Word* x, const Vec (&weights)[3],
                                  const float* last) {
  Words word;
  POWERLAB_DOT_FOUR("vdpbf16ps", a, b, c, d, word, x, weights, *reinterpret_cast<const Vec*>(last));
}
static inline void store_narrow(float* p, Vec v) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), (__m256i)_mm512_cvtneps_pbh((__m512)v));
}
// Two vectors behind each other, in one step for both.
static inline void store_two_narrow(float* p, Vec first, Vec second) {
  _mm512_storeu_si512(p, (__m512i)_mm512_cvtne2ps_pbh((__m512)second, (__m512)first));
}
static inline Vec load_narrow(const float* p) {
  const __m256i halves = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  // The unmasked form reads an undefined register, of which GCC warns.
  return (Vec)((Words)_mm512_maskz_cvtepu16_epi32(0xffff, halves) << 16);
}
// Lane by lane a word: a, then b.
static inline Vec pair_up(Vec a, Vec b) {
  typedef std::int16_t Halves __attribute__((vector_size(64)));
  const Halves order = {0, 16, 1, 17, 2,  18, 3,  19, 4,  20, 5,  21, 6,  22, 7,  23,
                        8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
  return (Vec)_mm512_permutexvar_epi16((__m512i)order, (__m512i)_mm512_cvtne2ps_pbh((__m512)b, (__m512)a));
}
#elif defined(__aarch64__)
static_assert(kWidth == 4);
template <int I>
static inline Vec dot_pairs_of(Vec sum, Vec x, Vec weights) {
  return vbfdotq_laneq_f32(sum, vreinterpretq_bf16_f32(weights), vreinterpretq_bf16_f32(x), I);
}
static inline Vec dot_pairs(Vec sum, Word x, Vec weights) {
  return vbfdotq_f32(sum, vreinterpretq_bf16_f32(weights), vreinterpretq_bf16_s32(vdupq_n_s32(x)));
}
static inline void store_narrow(float* p, Vec v) { vst1_bf16(reinterpret_cast<bfloat16_t*>(p), vcvt_bf16_f32(v)); }
static inline Vec load_narrow(const float* p) {
  return vcvt_f32_bf16(vld1_bf16(reinterpret_cast<const bfloat16_t*>(p)));
}
static inline Vec pair_up(Vec a, Vec b) {
  const uint16x4_t low = vreinterpret_u16_bf16(vcvt_bf16_f32(a)), high = vreinterpret_u16_bf16(vcvt_bf16_f32(b));
  return (Vec)vcombine_u16(vzip1_u16(low, high), vzip2_u16(low, high));
}
#else
// For the model of AMX, whose tiles multiply.
static inline std::uint32_t narrowed(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  return (bits + 0x7FFF + (bits >> 16 & 1)) >> 16;
}
static inline void store_narrow(float* p, Vec v) {
  auto* halves = reinterpret_cast<std::uint16_t*>(p);
  for (int i = 0; i < kWidth; ++i) halves[i] = static_cast<std::uint16_t>(narrowed(v[i]));
}
static inline Vec pair_up(Vec a, Vec b) {
  Vec words{};
  for (int i = 0; i < kWidth; ++i) words[i] = std::bit_cast<float>(narrowed(a[i]) | narrowed(b[i]) << 16);
  return words;
}
static inline Vec load_narrow(const float* p) {
  const auto* halves = reinterpret_cast<const std::uint16_t*>(p);
  Vec v{};
  for (int i = 0; i < kWidth; ++i) v[i] = std::bit_cast<float>(static_cast<std::uint32_t>(halves[i]) << 16);
  return v;
}
#endif

}  // namespace powerlab::engine::POWERLAB_TIER
