// float16, and the multiplications that instruction sets have for it: of each number of a vector by one number, added
// to a sum, which is float16 too and rounded once.
//   AVX-512 FP16     vfmadd231ph.
//   Arm (ARMv8.2)    fmla of eight halves.
// Elsewhere plain C++ does the same, for the kernels' tests.
#pragma once

#include "kernels/vec.hpp"
#if !defined(__AVX512FP16__) && !defined(__ARM_FEATURE_FP16_VECTOR_ARITHMETIC)
#include "halves.hpp"
#endif

namespace powerlab::engine::POWERLAB_TIER {

#if defined(__AVX512FP16__)
static_assert(kWidth == 16);
typedef __m512h HalfVec;
typedef const _Float16* EightHalves;
static inline HalfVec load_halves(const float* p) { return _mm512_load_ph(p); }
static inline EightHalves load_eight(const float* p) { return reinterpret_cast<EightHalves>(p); }
template <int I>
static inline HalfVec multiply_add(HalfVec sum, HalfVec w, EightHalves x) {
  return _mm512_fmadd_ph(w, _mm512_set1_ph(x[I]), sum);
}
constexpr __mmask16 kEveryLane = 0xffff;  // unmasked forms read an undefined register, of which GCC warns
static inline Vec floats_of(__m256i halves) { return (Vec)_mm512_maskz_cvtph_ps(kEveryLane, halves); }
static inline Vec lower_floats(HalfVec v) { return floats_of(_mm512_maskz_extracti64x4_epi64(0xff, (__m512i)v, 0)); }
static inline Vec upper_floats(HalfVec v) { return floats_of(_mm512_maskz_extracti64x4_epi64(0xff, (__m512i)v, 1)); }
static inline void store_narrow(float* p, Vec v) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                      _mm512_maskz_cvtps_ph(kEveryLane, (__m512)v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
static inline Vec load_narrow(const float* p) {
  return floats_of(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
#elif defined(__ARM_FEATURE_FP16_VECTOR_ARITHMETIC)
static_assert(kWidth == 4);
typedef float16x8_t HalfVec;
typedef float16x8_t EightHalves;
static inline HalfVec load_halves(const float* p) { return vreinterpretq_f16_f32(load(p)); }
static inline EightHalves load_eight(const float* p) { return vreinterpretq_f16_f32(load_unaligned(p)); }
template <int I>
static inline HalfVec multiply_add(HalfVec sum, HalfVec w, EightHalves x) {
  return vfmaq_laneq_f16(sum, w, x, I);
}
static inline Vec lower_floats(HalfVec v) { return vcvt_f32_f16(vget_low_f16(v)); }
static inline Vec upper_floats(HalfVec v) { return vcvt_high_f32_f16(v); }
static inline void store_narrow(float* p, Vec v) { vst1_f16(reinterpret_cast<float16_t*>(p), vcvt_f16_f32(v)); }
static inline Vec load_narrow(const float* p) { return vcvt_f32_f16(vld1_f16(reinterpret_cast<const float16_t*>(p))); }
#else
struct HalfVec {
  float lanes[2 * kWidth];
};
typedef const std::uint16_t* EightHalves;
static inline HalfVec load_halves(const float* p) {
  HalfVec v;
  for (int i = 0; i < 2 * kWidth; ++i) v.lanes[i] = widened(reinterpret_cast<const std::uint16_t*>(p)[i]);
  return v;
}
static inline EightHalves load_eight(const float* p) { return reinterpret_cast<EightHalves>(p); }
template <int I>
static inline HalfVec multiply_add(HalfVec sum, HalfVec w, EightHalves x) {
  // The product is exact in double precision.
  for (int i = 0; i < 2 * kWidth; ++i) {
    const double product = static_cast<double>(w.lanes[i]) * static_cast<double>(widened(x[I]));
    sum.lanes[i] = widened(narrowed_once(static_cast<double>(sum.lanes[i]) + product));
  }
  return sum;
}
static inline Vec floats_of(const float* lanes) {
  Vec v{};
  for (int i = 0; i < kWidth; ++i) v[i] = lanes[i];
  return v;
}
static inline Vec lower_floats(const HalfVec& v) { return floats_of(v.lanes); }
static inline Vec upper_floats(const HalfVec& v) { return floats_of(v.lanes + kWidth); }
static inline void store_narrow(float* p, Vec v) {
  for (int i = 0; i < kWidth; ++i) reinterpret_cast<std::uint16_t*>(p)[i] = narrowed(v[i]);
}
static inline Vec load_narrow(const float* p) {
  Vec v{};
  for (int i = 0; i < kWidth; ++i) v[i] = widened(reinterpret_cast<const std::uint16_t*>(p)[i]);
  return v;
}
#endif

}  // namespace powerlab::engine::POWERLAB_TIER
