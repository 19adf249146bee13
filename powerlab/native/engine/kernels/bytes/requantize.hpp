// From sums to bytes: q = zero point + round(sum * multiplier), even where two are as near, within the output's bounds.
//
// These sources are compiled without contraction to fused multiply-adds, so that every tier makes the same bits: all
// products and sums below are rounded one by one.
//
// A Step's numbers: [0] zero point of out, [1] of y, [2] of x, as unsigned bytes. low and high are the bounds of out
// less its zero point (an activation narrows them), alpha what a step of y is in steps of out, beta the same of x. What
// a convolution makes is multiplied by slope where it is below 0, before y is added.
#pragma once

#include "kernels/bytes/words.hpp"

namespace powerlab::engine::POWERLAB_TIER {

// Forgets what is known of memory: what follows reads a tile anew, so that no loop before it keeps registers for it,
// nor addresses of the results, from the first loads on, on the stack.
static inline __attribute__((always_inline)) void read_anew() { __atomic_signal_fence(__ATOMIC_SEQ_CST); }

struct Requantize {
  float low, high, y_scale, slope;
  std::int32_t zero, y_zero;  // as they are stored
  Stored lowest, highest;     // bytes that low and high are
};
static inline std::int32_t stored_zero(const Step& s, int number) {
  return static_cast<std::int32_t>(s.numbers[number]) - kStoredLess;
}
static inline Requantize requantize_of(const Step& s) {
  const std::int32_t zero = stored_zero(s, 0), y_zero = stored_zero(s, 1);
  const auto byte_of = [&](float steps) {
    return static_cast<Stored>(steps < -255  ? kLeastStored
                               : steps > 255 ? kMostStored
                                             : static_cast<std::int32_t>(steps) + zero);
  };
  return {s.low, s.high, s.alpha, s.slope, zero, y_zero, byte_of(s.low), byte_of(s.high)};
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

#if defined(__AVX512F__)
// The same for up to four vectors: words of four lanes of the vectors in turn. Saturating packs do most of the work.
// Steps must be numbers of 32 bits, which the rules of passes/quantized/ see to.
template <int B>
static inline __attribute__((always_inline)) __m512i packed_words(const Vec (&steps)[B], const Requantize& r) {
  const auto rounded = [&](int b) { return _mm512_maskz_cvtps_epi32(kAllLanes, (__m512)steps[b < B ? b : 0]); };
  const __m512i zero = _mm512_set1_epi16(static_cast<short>(r.zero));
  const __m512i first = _mm512_adds_epi16(_mm512_packs_epi32(rounded(0), rounded(1)), zero);
  const __m512i second = B > 2 ? _mm512_adds_epi16(_mm512_packs_epi32(rounded(2), rounded(3)), zero) : first;
  const __m512i bytes = _mm512_packus_epi16(first, second);
  return _mm512_min_epu8(_mm512_max_epu8(bytes, _mm512_set1_epi8(static_cast<char>(r.lowest))),
                         _mm512_set1_epi8(static_cast<char>(r.highest)));
}
// The bytes of one vector behind those of the other.
template <int B>
static inline __attribute__((always_inline)) IVec packed(const Vec (&steps)[B], const Requantize& r) {
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  return (IVec)_mm512_maskz_permutexvar_epi32(kAllLanes, order, packed_words(steps, r));
}
#elif defined(__AVX2__)
template <int B>
static inline __attribute__((always_inline)) IVec packed(const Vec (&steps)[B], const Requantize& r) {
  const auto rounded = [&](int b) { return _mm256_cvtps_epi32((__m256)steps[b < B ? b : 0]); };
  const __m256i zero = _mm256_set1_epi16(static_cast<short>(r.zero));
  const __m256i first = _mm256_adds_epi16(_mm256_packs_epi32(rounded(0), rounded(1)), zero);
  const __m256i second = B > 2 ? _mm256_adds_epi16(_mm256_packs_epi32(rounded(2), rounded(3)), zero) : first;
  const __m256i bytes = _mm256_packus_epi16(first, second);  // words of four lanes of the vectors in turn
  const __m256i inside = _mm256_min_epu8(_mm256_max_epu8(bytes, _mm256_set1_epi8(static_cast<char>(r.lowest))),
                                         _mm256_set1_epi8(static_cast<char>(r.highest)));
  return (IVec)_mm256_permutevar8x32_epi32(inside, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}
#elif defined(__aarch64__)
// Two vectors as bytes in halves of 16 bits, before they are cut to the bounds. Saturating narrowings do the work.
static inline __attribute__((always_inline)) int16x8_t rounded(Vec first, Vec second, const Requantize& r) {
  const int32x4_t low = vcvtnq_s32_f32((float32x4_t)first), high = vcvtnq_s32_f32((float32x4_t)second);
  return vqaddq_s16(vqmovn_high_s32(vqmovn_s32(low), high), vdupq_n_s16(static_cast<std::int16_t>(r.zero)));
}
// Two vectors as half a block, and four as a block.
static inline __attribute__((always_inline)) int8x8_t half_block(const Vec (&steps)[2], const Requantize& r) {
  return vmin_s8(vmax_s8(vqmovn_s16(rounded(steps[0], steps[1], r)), vdup_n_s8(r.lowest)), vdup_n_s8(r.highest));
}
static inline __attribute__((always_inline)) Block whole_block(const Vec (&steps)[4], const Requantize& r) {
  const int8x8_t low = vqmovn_s16(rounded(steps[0], steps[1], r));
  const int8x16_t bytes = vqmovn_high_s16(low, rounded(steps[2], steps[3], r));
  return (Block)vminq_s8(vmaxq_s8(bytes, vdupq_n_s8(r.lowest)), vdupq_n_s8(r.highest));
}

// A block of y is added to the steps of out.
static inline __attribute__((always_inline)) void add_scaled(Vec (&steps)[kBlockVectors], const std::uint8_t* y,
                                                             const Requantize& r) {
  const int8x16_t bytes = (int8x16_t)load_block(y), zero = vdupq_n_s8(static_cast<std::int8_t>(r.y_zero));
  const int16x8_t low = vsubl_s8(vget_low_s8(bytes), vget_low_s8(zero)), high = vsubl_high_s8(bytes, zero);
  const int32x4_t differences[] = {vmovl_s16(vget_low_s16(low)), vmovl_high_s16(low), vmovl_s16(vget_low_s16(high)),
                                   vmovl_high_s16(high)};
  POWERLAB_UNROLL
  for (int b = 0; b < kBlockVectors; ++b) steps[b] += (Vec)vcvtq_f32_s32(differences[b]) * r.y_scale;
}
#endif

// Steps as the bytes of up to four pixels of a block that follow on each other.
template <int P>
static inline __attribute__((always_inline)) void store_pixels(std::uint8_t* out, const Vec (&steps)[P],
                                                               const Requantize& r) {
#if defined(__AVX512F__)
  _mm512_mask_storeu_epi32(out, static_cast<__mmask16>((1 << 4 * P) - 1), (__m512i)packed(steps, r));
#elif defined(__AVX2__)
  typedef long long Eights __attribute__((vector_size(32)));
  const Eights bytes = (Eights)packed(steps, r);
  POWERLAB_UNROLL
  for (int p = 0; p < P; ++p) {
    const long long pixel = bytes[p];
    __builtin_memcpy(out + p * kBlockBytes, &pixel, sizeof pixel);
  }
#else
  POWERLAB_UNROLL
  for (int p = 0; p < P; ++p) store_bytes(out + p * kBlockBytes, to_bytes(steps[p], r));
#endif
}

}  // namespace powerlab::engine::POWERLAB_TIER
