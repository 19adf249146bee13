// Tensors of bfloat16: blocks of 16 channels, two channels a word, and the multiplications instruction sets have for
// them.
//
// [n][c / 16][h][w][16] in every tier. A View counts strides in floats as always: a float is a word of two channels, so
// a pixel of a block is eight words. Rows of a linear layer are words that follow on each other. Vectors of sums are
// floats of the tier's width.
//
// The leaves below are the only functions with intrinsics: no operator means them. Each multiplies the two channels of
// a word, in all lanes the same, with two weights a lane, and adds both products to the lane's sum, in float32:
//   AVX-512 BF16     vdpbf16ps; numbers below 2^-126 count as zero.
//   Arm with BF16    bfdot.
// Floats become bfloat16 by rounding to the nearest, even ones where two are as near.
#pragma once

#include "kernels/vec.hpp"

namespace powerlab::engine::POWERLAB_TIER {

typedef std::int32_t Word __attribute__((may_alias));

constexpr int kBlockChannels = 16, kBlockWords = kBlockChannels / 2;
constexpr int kBlockVectors = kBlockChannels / kWidth;  // vectors of sums that a block is made of

#if defined(__AVX512BF16__)
static_assert(kWidth == 16);
typedef std::int32_t Words __attribute__((vector_size(64)));
static inline Vec dot_pairs(Vec sum, Word x, Vec weights) {
  return (Vec)_mm512_dpbf16_ps((__m512)sum, (__m512bh)weights, (__m512bh)_mm512_set1_epi32(x));
}
static inline void store_narrow(float* p, Vec v) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), (__m256i)_mm512_cvtneps_pbh((__m512)v));
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
#else
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
#endif

}  // namespace powerlab::engine::POWERLAB_TIER
