// Sums of up to B vectors x P pixels or rows in registers, and a word of four channels, or four of them, added to each.
#pragma once

#include "kernels/bytes/words.hpp"
#if defined(__aarch64__)
#include "kernels/bytes/lane_words.hpp"
#endif

namespace powerlab::engine::POWERLAB_TIER {

// W words of which all products of a lane's half fit 16 bits.
template <int W, int B, int P>
static inline __attribute__((always_inline)) void byte_narrow_words([[maybe_unused]] IVec (&acc)[B][P],
                                                                    [[maybe_unused]] const float* x,
                                                                    [[maybe_unused]] const float* x3,
                                                                    [[maybe_unused]] std::int64_t pixel,
                                                                    [[maybe_unused]] const std::uint8_t* weights) {
#if defined(POWERLAB_NARROW)
  // Where registers are too few for the weights, too, they are loaded for each pixel.
#if defined(__AVX512F__)
  constexpr bool kHeld = true;
#elif defined(__AVX2__)
  constexpr bool kHeld = B * P <= 8;
#else
  constexpr bool kHeld = false;
#endif
  const auto weights_of = [&](int i, int b) { return load_ints(weights + (i * B + b) * 4 * kWidth); };
  IVec held[W][B] = {};
  if constexpr (kHeld) {
    POWERLAB_UNROLL
    for (int i = 0; i < W; ++i) {
      POWERLAB_UNROLL
      for (int b = 0; b < B; ++b) held[i][b] = weights_of(i, b);
    }
  }
  POWERLAB_UNROLL
  for (int p = 0; p < P; ++p) {
    IVec values[W];
    POWERLAB_UNROLL
    for (int i = 0; i < W; ++i) values[i] = every(word_of(x, x3, pixel, p)[i]);
    POWERLAB_UNROLL
    for (int b = 0; b < B; ++b) {
      IVec pairs = products_of_pairs(values[0], kHeld ? held[0][b] : weights_of(0, b));
      POWERLAB_UNROLL
      for (int i = 1; i < W; ++i)
        pairs = add_halves(pairs, products_of_pairs(values[i], kHeld ? held[i][b] : weights_of(i, b)));
      acc[b][p] = add_pairs(acc[b][p], pairs);
    }
    if constexpr (!kHeld) __atomic_signal_fence(__ATOMIC_SEQ_CST);
  }
#endif
}

template <int H, int B, int P>
static inline __attribute__((always_inline)) void byte_half(IVec (&acc)[B][P], const float* x, const float* x3,
                                                            std::int64_t pixel, const std::uint8_t* weights) {
#if defined(__AVX512VNNI__) && defined(__AVX512F__)
  if constexpr (B == 4 && P == 7) {  // takes all registers but four
    asm("" : "+r"(pixel));           // else GCC keeps the offsets of all four words
    const IVec w[3] = {load_ints(weights), load_ints(weights + 4 * kWidth), load_ints(weights + 8 * kWidth)};
    POWERLAB_UNROLL
    for (int p = 0; p < P; ++p)
      dot_four(acc[0][p], acc[1][p], acc[2][p], acc[3][p], word_of(x, x3, pixel, p), w, weights + 12 * kWidth);
    return;
  }
#endif
  IVec w[B];
  POWERLAB_UNROLL
  for (int b = 0; b < B; ++b) w[b] = load_ints(weights + (b * kHalves + H) * 4 * kWidth);
  POWERLAB_UNROLL
  for (int p = 0; p < P; ++p) {
    const IVec value = spread<H>(*word_of(x, x3, pixel, p));
    POWERLAB_UNROLL
    for (int b = 0; b < B; ++b) acc[b][p] = dot(acc[b][p], value, w[b]);
  }
}

template <int N, int B, int P>
static inline __attribute__((always_inline)) void byte_word(IVec (&acc)[B][P], const float* x, const float* x3,
                                                            std::int64_t pixel, const std::uint8_t* weights) {
  if constexpr (N > 1) return byte_narrow_words<1>(acc, x, x3, pixel, weights);
  byte_half<0, B, P>(acc, x, x3, pixel, weights);
  if constexpr (kHalves == 2) {
    __atomic_signal_fence(__ATOMIC_SEQ_CST);  // x is loaded again: there are too few registers to keep all pixels
    byte_half<1, B, P>(acc, x, x3, pixel, weights);
  }
}

#if defined(__aarch64__)
// Four words at once, by which x and x3 move on.
template <int N, int B, int P>
static inline __attribute__((always_inline)) void byte_four_words(IVec (&acc)[B][P], const float*& x, const float*& x3,
                                                                  std::int64_t pixel, const std::uint8_t* weights) {
  byte_words<4>(acc, x, pixel, weights);
  x += 4;
  x3 += 4;
}
#else
// Four words, by which x and x3 move on.
template <int N, int B, int P>
static inline __attribute__((always_inline)) void byte_four_words(IVec (&acc)[B][P], const float*& x, const float*& x3,
                                                                  std::int64_t pixel, const std::uint8_t* weights) {
  constexpr int kWords = N == 4 ? 2 : 1;
  POWERLAB_UNROLL
  for (int i = 0; i < 4; i += kWords) {
    const std::uint8_t* of_words = weights + i * B * kWordBytes<N>;
    if constexpr (kWords > 1) {
      byte_narrow_words<kWords>(acc, x, x3, pixel, of_words);
    } else {
      byte_word<N, B, P>(acc, x, x3, pixel, of_words);
    }
    x += kWords;
    x3 += kWords;
    asm("" : "+r"(x), "+r"(x3));  // else GCC adds i to multiples of `pixel` before the loop and spills them
  }
}
#endif

}  // namespace powerlab::engine::POWERLAB_TIER
