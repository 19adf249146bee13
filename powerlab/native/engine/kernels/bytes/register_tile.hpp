// The tile of conv_bytes.hpp in registers: up to kByteTileBlocks vectors of sums x kByteTilePixels pixels, a word of
// four channels at a time.
#pragma once

#include "kernels/bytes/byte_tile.hpp"

namespace powerlab::engine::POWERLAB_TIER {

template <int B, int P>
static inline __attribute__((always_inline)) void byte_narrow_word([[maybe_unused]] IVec (&acc)[B][P],
                                                                   [[maybe_unused]] const float* x,
                                                                   [[maybe_unused]] const float* x3,
                                                                   [[maybe_unused]] std::int64_t pixel,
                                                                   [[maybe_unused]] const std::uint8_t* weights) {
#if defined(POWERLAB_NARROW)
  POWERLAB_UNROLL
  for (int p = 0; p < P; ++p) {
    const float* at = p < 3 ? x + p * pixel : p < 6 ? x3 + (p - 3) * pixel : x3 + p * pixel - 3 * pixel;
    const IVec value = every(*reinterpret_cast<const Word*>(at));
    POWERLAB_UNROLL
    for (int b = 0; b < B; ++b) acc[b][p] = dot_narrow(acc[b][p], value, load_ints(weights + b * 4 * kWidth));
    __atomic_signal_fence(__ATOMIC_SEQ_CST);  // weights are operands in memory: there are too few registers
  }
#endif
}

template <int H, int B, int P>
static inline __attribute__((always_inline)) void byte_half(IVec (&acc)[B][P], const float* x, const float* x3,
                                                            std::int64_t pixel, const std::uint8_t* weights) {
  IVec w[B];
  POWERLAB_UNROLL
  for (int b = 0; b < B; ++b) w[b] = load_ints(weights + (b * kHalves + H) * 4 * kWidth);
  POWERLAB_UNROLL
  for (int p = 0; p < P; ++p) {
    const float* at = p < 3 ? x + p * pixel : p < 6 ? x3 + (p - 3) * pixel : x3 + p * pixel - 3 * pixel;
    const IVec value = spread<H>(*reinterpret_cast<const Word*>(at));
    POWERLAB_UNROLL
    for (int b = 0; b < B; ++b) acc[b][p] = dot(acc[b][p], value, w[b]);
  }
}

template <bool N, int B, int P>
static inline __attribute__((always_inline)) void byte_word(IVec (&acc)[B][P], const float* x, const float* x3,
                                                            std::int64_t pixel, const std::uint8_t* weights) {
  if constexpr (N) return byte_narrow_word(acc, x, x3, pixel, weights);
  byte_half<0, B, P>(acc, x, x3, pixel, weights);
  if constexpr (kHalves == 2) {
    __atomic_signal_fence(__ATOMIC_SEQ_CST);  // x is loaded again: there are too few registers to keep all pixels
    byte_half<1, B, P>(acc, x, x3, pixel, weights);
  }
}

#if defined(__aarch64__)
// Four words at once: one load serves four steps.
template <int I, int B, int P>
static inline __attribute__((always_inline)) void byte_word_of(IVec (&acc)[B][P], const int8x16_t (&x)[P],
                                                               const std::uint8_t* weights) {
  POWERLAB_UNROLL
  for (int b = 0; b < B; ++b) {
    const IVec w = load_ints(weights + (I * B + b) * kWordBytes<false>);
    POWERLAB_UNROLL
    for (int p = 0; p < P; ++p) acc[b][p] = dot_of<I>(acc[b][p], x[p], w);
  }
}
template <bool N, int B, int P>
static inline __attribute__((always_inline)) void byte_four_words(IVec (&acc)[B][P], const float* x, const float*,
                                                                  std::int64_t pixel, const std::uint8_t* weights) {
  int8x16_t values[P];
  POWERLAB_UNROLL
  for (int p = 0; p < P; ++p) {
    const Block bytes = load_block(bytes_of(x + p * pixel));
    values[p] = (int8x16_t)(bytes ^ static_cast<std::uint8_t>(128));
  }
  byte_word_of<0, B, P>(acc, values, weights);
  byte_word_of<1, B, P>(acc, values, weights);
  byte_word_of<2, B, P>(acc, values, weights);
  byte_word_of<3, B, P>(acc, values, weights);
}
#else
template <bool N, int B, int P>
static inline __attribute__((always_inline)) void byte_four_words(IVec (&acc)[B][P], const float* x, const float* x3,
                                                                  std::int64_t pixel, const std::uint8_t* weights) {
  POWERLAB_UNROLL
  for (int i = 0; i < 4; ++i) byte_word<N, B, P>(acc, x + i, x3 + i, pixel, weights + i * B * kWordBytes<N>);
}
#endif

template <bool F, bool N, int B, int P>
static __attribute__((noinline)) void byte_tile(const ByteTile& t) {
  IVec acc[B][P];
  POWERLAB_UNROLL
  for (int b = 0; b < B; ++b) {
    const IVec begin = load_ints(t.bias + 2 * b * kWidth);
    POWERLAB_UNROLL
    for (int p = 0; p < P; ++p) acc[b][p] = begin;
  }
  const std::uint8_t* weights = t.weights;
  const char* prefetch = t.prefetch;
  const std::int64_t pixel = t.x_pixel, prefetch_step = t.prefetch_step;
  for (int block = 0; block < t.blocks; ++block) {
    const int words = block + 1 == t.blocks ? t.last_words : t.words;
    for (int ky = 0; ky < t.kernel_h; ++ky) {
      const float* x = t.x + block * t.x_plane + ky * t.x_row;
      for (int kx = 0; kx < t.kernel_w; ++kx, x += t.x_column) {
        const float* at = x;
        const float* at3 = x + 3 * pixel;
        int left = words;
        for (; left >= 4; left -= 4, at += 4, at3 += 4) {
          byte_four_words<N, B, P>(acc, at, at3, pixel, weights);
          weights += 4 * B * kWordBytes<N>;
          __builtin_prefetch(prefetch, 0, 2);
          prefetch += 4 * prefetch_step;
        }
        for (; left > 0; --left, ++at, ++at3) {
          byte_word<N, B, P>(acc, at, at3, pixel, weights);
          weights += B * kWordBytes<N>;
        }
      }
    }
  }
  // Reads t anew: else addresses of the results would be kept, on the stack, from the first loads on.
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  t.requantize.slope == 1 ? byte_finish<F, false, B, P>(acc, t) : byte_finish<F, true, B, P>(acc, t);
}

}  // namespace powerlab::engine::POWERLAB_TIER
