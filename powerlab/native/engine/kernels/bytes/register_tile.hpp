// The tile of conv_bytes.hpp in registers: up to kByteTileBlocks vectors of sums x kByteTilePixels pixels, a word of
// four channels at a time.
#pragma once

#include "kernels/bytes/byte_tile.hpp"
#include "kernels/bytes/register_words.hpp"

namespace powerlab::engine::POWERLAB_TIER {

template <bool F, int N, int B, int P>
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
  // Whole blocks under a kernel of 1 x 1 are passed through as taps are: what surrounds a loop of one turn would count.
  const bool is_point = t.kernel_h * t.kernel_w == 1 && t.last_words == kBlockWords;
  for (int block = 0; block < t.blocks; ++block) {
    for (int ky = 0; ky < t.kernel_h; ++ky) {
      __atomic_signal_fence(__ATOMIC_SEQ_CST);  // t is read where it is needed: the loops within want all registers
      const int words = block + 1 == t.blocks ? t.last_words : t.words;
      const std::int64_t pixel = t.x_pixel, column = is_point ? t.x_plane : t.x_column;
      const float* x = t.x + block * t.x_plane + ky * t.x_row;
      const float* x3 = x + 3 * pixel;
      int left = is_point ? t.blocks : t.kernel_w;
      if (words == kBlockWords) {
        const std::int64_t next = column - kBlockWords, prefetch_step = 4 * t.prefetch_step;
        for (; left > 0; --left, x += next, x3 += next) {
          byte_four_words<N, B, P>(acc, x, x3, pixel, weights);
          weights += 4 * B * kWordBytes<N>;
          __builtin_prefetch(prefetch, 0, 2);
          prefetch += prefetch_step;
        }
      } else {
        for (; left > 0; --left, x += column, x3 += column) {
          for (int word = 0; word < words; ++word, weights += B * kWordBytes<N>)
            byte_word<N, B, P>(acc, x + word, x3 + word, pixel, weights);
        }
      }
    }
    if (is_point) break;
  }
  // Reads t anew: else addresses of the results would be kept, on the stack, from the first loads on.
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  t.requantize.slope == 1 ? byte_finish<F, false, B, P>(acc, t) : byte_finish<F, true, B, P>(acc, t);
}

}  // namespace powerlab::engine::POWERLAB_TIER
