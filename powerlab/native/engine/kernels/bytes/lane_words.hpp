// On Arm: sums of up to B vectors x P pixels or rows in registers, and up to four words of a block added to each. One
// load of a pixel serves all of them, for Arm multiplies by one element of a vector.
#pragma once

#include "kernels/bytes/words.hpp"

namespace powerlab::engine::POWERLAB_TIER {

// W words of a pixel that follow on each other, as the first lanes; nothing behind them is read.
template <int W>
static inline __attribute__((always_inline)) int8x16_t load_words(const float* x) {
  const auto* bytes = reinterpret_cast<const std::int8_t*>(x);
  int8x16_t words;
  if constexpr (W == 4) {
    words = (int8x16_t)load_block(bytes_of(x));
  } else if constexpr (W == 1) {
    asm("ldr %s0, %1" : "=w"(words) : "m"(*x));
  } else {
    words = vcombine_s8(vld1_s8(bytes), vcreate_s8(0));
    if constexpr (W == 3)
      words = (int8x16_t)vld1q_lane_s32(reinterpret_cast<const Word*>(bytes + 8), (int32x4_t)words, 2);
  }
  asm("" : "+w"(words));  // else GCC loads the parts that are taken of it, one by one
  return words;
}

#if defined(__ARM_FEATURE_DOTPROD)
// Vectors I and I + 1 of Count of the weights, which one load brings.
template <int I, int Count, int B, int P>
static inline __attribute__((always_inline)) void add_two_vectors(IVec (&acc)[B][P], const int8x16_t (&x)[P],
                                                                  const std::uint8_t* weights) {
  constexpr int kNext = I + 1 < Count ? I + 1 : I;
  const IVec first = load_ints(weights + I * kWordBytes<1>), second = load_ints(weights + kNext * kWordBytes<1>);
  POWERLAB_UNROLL
  for (int p = 0; p < P; ++p) acc[I % B][p] = dot_of<I / B>(acc[I % B][p], x[p], first);
  if constexpr (kNext > I) {
    POWERLAB_UNROLL
    for (int p = 0; p < P; ++p) acc[kNext % B][p] = dot_of<kNext / B>(acc[kNext % B][p], x[p], second);
  }
}
template <int W, int B, int P, int... I>
static inline __attribute__((always_inline)) void add_words(IVec (&acc)[B][P], const int8x16_t (&x)[P],
                                                            const std::uint8_t* weights, Indices<I...>) {
  (add_two_vectors<2 * I, W * B>(acc, x, weights), ...);
}
template <int W, int B>
using LaneSteps = typename MakeIndices<(W * B + 1) / 2>::type;
#else
template <int I, int B, int P>
static inline __attribute__((always_inline)) void add_word(IVec (&acc)[B][P], const int8x16_t (&x)[P],
                                                           const std::uint8_t* weights) {
  IVec w[B];
  POWERLAB_UNROLL
  for (int b = 0; b < B; ++b) w[b] = load_ints(weights + (I * B + b) * kWordBytes<1>);
  POWERLAB_UNROLL
  for (int p = 0; p < P; ++p) {
    const Pairs pairs = pairs_of<I>(x[p]);
    POWERLAB_UNROLL
    for (int b = 0; b < B; ++b) acc[b][p] = add_pairs(acc[b][p], pairs, w[b]);
  }
}
template <int W, int B, int P, int... I>
static inline __attribute__((always_inline)) void add_words(IVec (&acc)[B][P], const int8x16_t (&x)[P],
                                                            const std::uint8_t* weights, Indices<I...>) {
  (add_word<I>(acc, x, weights), ...);
}
template <int W, int B>
using LaneSteps = typename MakeIndices<W>::type;
#endif

// Adds W words.
template <int W, int B, int P>
static inline __attribute__((always_inline)) void byte_words(IVec (&acc)[B][P], const float* x, std::int64_t pixel,
                                                             const std::uint8_t* weights) {
  int8x16_t values[P];
  POWERLAB_UNROLL
  for (int p = 0; p < P; ++p) values[p] = load_words<W>(x + p * pixel);
  add_words<W>(acc, values, weights, LaneSteps<W, B>{});
}

}  // namespace powerlab::engine::POWERLAB_TIER
