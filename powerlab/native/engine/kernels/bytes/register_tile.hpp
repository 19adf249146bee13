// The tile of conv_bytes.hpp in registers: up to kByteTileBlocks vectors of sums x kByteTilePixels pixels, a word of
// four channels at a time.
#pragma once

#include "kernels/bytes/byte_tile.hpp"
#include "kernels/bytes/register_words.hpp"

namespace powerlab::engine::POWERLAB_TIER {

// What the innermost loops do not use stays in memory: they want all registers, and GCC would keep it in those of
// vectors, from where it comes only after the products that are under way.
struct ByteTileState {
  const ByteTile* tile;
  const char* prefetch;
  int block, ky;
};
static inline __attribute__((always_inline)) void leave_in_memory([[maybe_unused]] ByteTileState& state) {
#if defined(__AVX512F__)
  asm volatile("" : "+m"(state));
#else
  __atomic_signal_fence(__ATOMIC_SEQ_CST);  // t is read where it is needed
#endif
}

template <bool F, int N, int B, int P>
static __attribute__((noinline)) void byte_tile(ByteTile& t) {
  IVec acc[B][P];
  POWERLAB_UNROLL
  for (int b = 0; b < B; ++b) {
    const IVec begin = load_ints(t.bias + 2 * b * kWidth);
    POWERLAB_UNROLL
    for (int p = 0; p < P; ++p) acc[b][p] = begin;
  }
  const std::uint8_t* weights = t.weights;
  ByteTileState state = {&t, t.prefetch, 0, 0};
  for (bool is_left = t.blocks > 0 && t.kernel_h > 0; is_left;) {
    leave_in_memory(state);
    const ByteTile& at = *state.tile;
    // Whole blocks under a kernel of 1 x 1 are passed through as taps are: what surrounds a loop of one turn would
    // count.
    const bool is_point = at.kernel_h * at.kernel_w == 1 && at.last_words == kBlockWords;
    const int words = state.block + 1 == at.blocks ? at.last_words : at.words;
    const std::int64_t pixel = at.x_pixel, column = is_point ? at.x_plane : at.x_column;
    const float* x = at.x + state.block * at.x_plane + state.ky * at.x_row;
    const float* x3 = x + 3 * pixel;
    const char* prefetch = state.prefetch;
    int left = is_point ? at.blocks : at.kernel_w;
    if (words == kBlockWords) {
      const std::int64_t next = column - kBlockWords, prefetch_step = 4 * at.prefetch_step;
      for (; left > 0; --left, x += next, x3 += next) {
        byte_four_words<N, B, P>(acc, x, x3, pixel, weights);
        weights += 4 * B * kWordBytes<N>;
        fetch_ahead(prefetch, prefetch_step);
        prefetch += prefetch_step;
      }
    } else {
      for (; left > 0; --left, x += column, x3 += column) {
        for (int word = 0; word < words; ++word, weights += B * kWordBytes<N>)
          byte_word<N, B, P>(acc, x + word, x3 + word, pixel, weights);
      }
    }
    state.prefetch = prefetch;
    leave_in_memory(state);
    if (++state.ky == state.tile->kernel_h) {
      state.ky = 0;
      ++state.block;
    }
    is_left = state.block < state.tile->blocks &&
              !(state.tile->kernel_h * state.tile->kernel_w == 1 && state.tile->last_words == kBlockWords);
  }
  read_anew();
  t.requantize.slope == 1 ? byte_finish<F, false, B, P>(acc, t) : byte_finish<F, true, B, P>(acc, t);
}

}  // namespace powerlab::engine::POWERLAB_TIER
