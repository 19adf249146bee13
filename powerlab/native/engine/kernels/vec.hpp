// The tier's vector type and the few helpers all kernels share. POWERLAB_TIER and POWERLAB_VECTOR_WIDTH come from the
// build, once per instruction set; everything lives in a namespace of the tier's own, see kernels/step.hpp.
#pragma once

#include "kernels/step.hpp"

#if defined(__aarch64__)
#include <arm_neon.h>
#else
#include <immintrin.h>
#endif

#define POWERLAB_TEXT_(text) #text
#define POWERLAB_TEXT(text) POWERLAB_TEXT_(text)
#define POWERLAB_KERNEL(family, name, ...) {family, name "_" POWERLAB_TEXT(POWERLAB_TIER), __VA_ARGS__}

#if defined(__clang__)
#define POWERLAB_UNROLL _Pragma("clang loop unroll(full)")
#define POWERLAB_UNROLL_BY_2 _Pragma("clang loop unroll_count(2)")
#define POWERLAB_UNROLL_BY_4 _Pragma("clang loop unroll_count(4)")
#else
#define POWERLAB_UNROLL _Pragma("GCC unroll 64")
#define POWERLAB_UNROLL_BY_2 _Pragma("GCC unroll 2")
#define POWERLAB_UNROLL_BY_4 _Pragma("GCC unroll 4")
#endif

namespace powerlab::engine::POWERLAB_TIER {

constexpr int kWidth = POWERLAB_VECTOR_WIDTH;

// A number as an argument's type.
template <int N>
struct Count {};

typedef float Vec __attribute__((vector_size(4 * kWidth)));
typedef float UnalignedVec __attribute__((vector_size(4 * kWidth), aligned(4), may_alias));
typedef float AlignedVec __attribute__((vector_size(4 * kWidth), may_alias));

static inline Vec load(const float* p) { return *reinterpret_cast<const AlignedVec*>(p); }
static inline Vec load_unaligned(const float* p) { return *reinterpret_cast<const UnalignedVec*>(p); }
static inline void store(float* p, Vec v) { *reinterpret_cast<AlignedVec*>(p) = v; }
static inline void store_unaligned(float* p, Vec v) { *reinterpret_cast<UnalignedVec*>(p) = v; }
static inline Vec broadcast(float s) { return Vec{} + s; }

// Not-a-number passes through unchanged, so that a broken model shows it.
#if defined(__aarch64__)
// Arm's maximum and minimum do so by themselves, but no operator means them.
static inline Vec at_least(Vec v, Vec low) { return vmaxq_f32(v, low); }
static inline Vec at_most(Vec v, Vec high) { return vminq_f32(v, high); }
#elif defined(__AVX512F__)
// x86's return the second of two where either is not a number. No operator means them where a bound is a constant.
static inline Vec at_least(Vec v, Vec low) { return _mm512_maskz_max_ps(0xffff, low, v); }
static inline Vec at_most(Vec v, Vec high) { return _mm512_maskz_min_ps(0xffff, high, v); }
#elif defined(__AVX2__)
static inline Vec at_least(Vec v, Vec low) { return _mm256_max_ps(low, v); }
static inline Vec at_most(Vec v, Vec high) { return _mm256_min_ps(high, v); }
#else
static inline Vec at_least(Vec v, Vec low) { return v < low ? low : v; }
static inline Vec at_most(Vec v, Vec high) { return v > high ? high : v; }
#endif
static inline Vec clamp(Vec v, Vec low, Vec high) { return at_most(at_least(v, low), high); }
static inline Vec clamp(Vec v, float low, float high) { return clamp(v, broadcast(low), broadcast(high)); }

// What ends most kernels: what is below 0 is multiplied by the slope, then all is clamped.
static inline Vec activate(Vec v, float slope, float low, float high) {
  const Vec sloped = v * broadcast(slope);
  return clamp(v < broadcast(0) ? sloped : v, low, high);
}
static inline Vec activate(Vec v, const Step& s) { return activate(v, s.slope, s.low, s.high); }

// The same of all sums of a tile. What changes nothing is left out: a tile of few products takes a twentieth less.
template <int B, int P>
static inline __attribute__((always_inline)) void activate_tile(Vec (&acc)[B][P], float slope, float low, float high) {
  if (slope != 1) {
    const Vec factor = broadcast(slope);
    POWERLAB_UNROLL
    for (int b = 0; b < B; ++b) {
      POWERLAB_UNROLL
      for (int p = 0; p < P; ++p) acc[b][p] = acc[b][p] < broadcast(0) ? acc[b][p] * factor : acc[b][p];
    }
  }
  if (low != -__builtin_inff()) {
    const Vec least = broadcast(low);
    POWERLAB_UNROLL
    for (int b = 0; b < B; ++b) {
      POWERLAB_UNROLL
      for (int p = 0; p < P; ++p) acc[b][p] = at_least(acc[b][p], least);
    }
  }
  if (high != __builtin_inff()) {
    const Vec most = broadcast(high);
    POWERLAB_UNROLL
    for (int b = 0; b < B; ++b) {
      POWERLAB_UNROLL
      for (int p = 0; p < P; ++p) acc[b][p] = at_most(acc[b][p], most);
    }
  }
}

// The same of a convolution with the residual at `y`, which is null where there is none.
static inline Vec with_residual(Vec v, const float* y, const Step& s) {
  if (!y) return activate(v, s);
  return s.adds_last ? activate(v, s) + load(y) : activate(v + load(y), s);
}

// The first lanes of a vector in memory that ends with them; the others are 0.
static inline Vec load_lanes(const float* from, int lanes) {
#if defined(__AVX512F__)
  return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1 << lanes) - 1), from);
#elif defined(__AVX2__)
  // Lanes that were stored one by one could not be loaded together before all of them are in the cache.
  return _mm256_maskload_ps(from,
                            _mm256_cmpgt_epi32(_mm256_set1_epi32(lanes), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)));
#else
  alignas(4 * kWidth) float all[kWidth] = {};
  for (int i = 0; i < lanes; ++i) all[i] = from[i];
  return load(all);
#endif
}
static inline void store_lanes(float* to, Vec v, int lanes) {
#if defined(__AVX512F__)
  _mm512_mask_storeu_ps(to, static_cast<__mmask16>((1 << lanes) - 1), v);
#else
  alignas(4 * kWidth) float all[kWidth];
  store(all, v);
  for (int i = 0; i < lanes; ++i) to[i] = all[i];
#endif
}

struct Range {
  std::int64_t begin, end;
};

// Numbers that templates count through.
template <int... I>
struct Indices {};
template <int N, int... I>
struct MakeIndices : MakeIndices<N - 1, N - 1, I...> {};
template <int... I>
struct MakeIndices<0, I...> {
  using type = Indices<I...>;
};

// The part of `total` units that falls to `part` of `parts`: contiguous, sizes differ by one at most.
static inline Range share(std::int64_t total, int part, int parts) {
  return {total * part / parts, total * (part + 1) / parts};
}

// A row of one plane, as most kernels walk a tensor: the units are shared among threads.
struct Row {
  std::int64_t n, block, y;
};
static inline Row row_of(std::int64_t unit, const View& v) {
  return {unit / v.h / v.blocks, unit / v.h % v.blocks, unit % v.h};
}
static inline float* row_start(const View& v, Row r) {
  return v.data + r.n * v.image + r.block * v.plane + r.y * v.row;
}
static inline Range row_share(const View& v, int thread, int threads) {
  return share(static_cast<std::int64_t>(v.n) * v.blocks * v.h, thread, threads);
}

}  // namespace powerlab::engine::POWERLAB_TIER
