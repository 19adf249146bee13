// The inner loops of register tiles on bfloat16: words of some pixels, or rows, times the weights of a word.
#pragma once

#include "kernels/pairs/words.hpp"

namespace powerlab::engine::POWERLAB_TIER {

template <int B, int P>
static inline __attribute__((always_inline)) void pair_word(Vec (&acc)[B][P], const float* x, const float* x3,
                                                            std::int64_t pixel, const float* weights) {
#if defined(__AVX512BF16__)
  if constexpr (B == 4 && P == 7) {  // takes all registers but four
    asm("" : "+r"(pixel));           // else GCC keeps the offsets of all four words
    const Vec w[3] = {load(weights), load(weights + kWidth), load(weights + 2 * kWidth)};
    POWERLAB_UNROLL
    for (int p = 0; p < P; ++p)
      dot_four_pairs(acc[0][p], acc[1][p], acc[2][p], acc[3][p], word_of(x, x3, pixel, p), w, weights + 3 * kWidth);
    return;
  }
#endif
  Vec w[B];
  POWERLAB_UNROLL
  for (int b = 0; b < B; ++b) w[b] = load(weights + b * kWidth);
  POWERLAB_UNROLL
  for (int p = 0; p < P; ++p) {
    const Word value = *word_of(x, x3, pixel, p);
    POWERLAB_UNROLL
    for (int b = 0; b < B; ++b) acc[b][p] = dot_pairs(acc[b][p], value, w[b]);
  }
}

#if defined(__aarch64__)
// Four words at once: one load serves four steps.
template <int I, int B, int P>
static inline __attribute__((always_inline)) void pair_word_of(Vec (&acc)[B][P], const Vec (&x)[P],
                                                               const float* weights) {
  POWERLAB_UNROLL
  for (int b = 0; b < B; ++b) {
    const Vec w = load(weights + (I * B + b) * kWidth);
    POWERLAB_UNROLL
    for (int p = 0; p < P; ++p) acc[b][p] = dot_pairs_of<I>(acc[b][p], x[p], w);
  }
}
template <int B, int P>
static inline __attribute__((always_inline)) void pair_four_words(Vec (&acc)[B][P], const float* x, const float*,
                                                                  std::int64_t pixel, const float* weights) {
  Vec values[P];
  POWERLAB_UNROLL
  for (int p = 0; p < P; ++p) values[p] = load_unaligned(x + p * pixel);
  pair_word_of<0, B, P>(acc, values, weights);
  pair_word_of<1, B, P>(acc, values, weights);
  pair_word_of<2, B, P>(acc, values, weights);
  pair_word_of<3, B, P>(acc, values, weights);
}
#else
template <int B, int P>
static inline __attribute__((always_inline)) void pair_four_words(Vec (&acc)[B][P], const float* x, const float* x3,
                                                                  std::int64_t pixel, const float* weights) {
  POWERLAB_UNROLL
  for (int i = 0; i < 4; ++i) pair_word<B, P>(acc, x + i, x3 + i, pixel, weights + i * B * kWidth);
}
#endif

}  // namespace powerlab::engine::POWERLAB_TIER
