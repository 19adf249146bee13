// The tile of conv_bytes.hpp in registers: up to kByteTileBlocks vectors of sums x kByteTilePixels pixels, a word of
// four channels at a time.
#pragma once

#include "kernels/bytes/byte_tile.hpp"
#include "kernels/bytes/register_words.hpp"

namespace powerlab::engine::POWERLAB_TIER {

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
