// The tile of conv_pairs.hpp in registers: up to kPairTileBlocks vectors of sums x kPairTilePixels pixels, a word of
// two channels at a time.
#pragma once

#include "kernels/pairs/pair_tile.hpp"
#include "kernels/pairs/register_words.hpp"

namespace powerlab::engine::POWERLAB_TIER {

// What the innermost loops do not use, in memory: see ByteTileState in kernels/bytes/register_tile.hpp.
struct PairTileState {
  const PairTile* tile;
  const char* prefetch;
  int block, ky;
};

template <bool F, int B, int P>
static __attribute__((noinline)) void pair_tile(const PairTile& t) {
  Vec acc[B][P];
  POWERLAB_UNROLL
  for (int b = 0; b < B; ++b) {
    const Vec begin = load(t.bias + b * kWidth);
    POWERLAB_UNROLL
    for (int p = 0; p < P; ++p) acc[b][p] = begin;
  }
  const float* weights = t.weights;
  PairTileState state = {&t, t.prefetch, 0, 0};
  for (bool is_left = t.blocks > 0 && t.kernel_h > 0; is_left;) {
    asm volatile("" : "+m"(state));
    const PairTile& at = *state.tile;
    // Under a kernel of 1 x 1 blocks are passed through as taps are: what surrounds a short loop would count.
    const bool is_point = at.kernel_h * at.kernel_w == 1;
    const std::int64_t pixel = at.x_pixel, prefetch_step = 4 * at.prefetch_step;
    const int words = is_point || state.block + 1 < at.blocks ? at.words : at.last_words;
    const int end_words = is_point ? at.last_words : words;
    const std::int64_t next = (is_point ? at.x_plane : at.x_column) - words;
    const std::int64_t left_out = static_cast<std::int64_t>(at.words - words) * B * kWidth;
    const float* x = at.x + state.block * at.x_plane + state.ky * at.x_row;
    const float* x3 = x + 3 * pixel;
    const char* prefetch = state.prefetch;
    for (int taps = is_point ? at.blocks : at.kernel_w; taps > 0; --taps, x += next, x3 += next) {
      int left = taps > 1 ? words : end_words;
      for (; left >= 4; left -= 4, x += 4, x3 += 4) {
        pair_four_words<B, P>(acc, x, x3, pixel, weights);
        weights += 4 * B * kWidth;
        fetch_ahead(prefetch, prefetch_step);
        prefetch += prefetch_step;
      }
      for (; left > 0; --left, ++x, ++x3, weights += B * kWidth) pair_word<B, P>(acc, x, x3, pixel, weights);
      weights += left_out;
    }
    state.prefetch = prefetch;
    asm volatile("" : "+m"(state));
    if (++state.ky == state.tile->kernel_h) {
      state.ky = 0;
      ++state.block;
    }
    is_left = state.block < state.tile->blocks && state.tile->kernel_h * state.tile->kernel_w != 1;
  }
  // Reads t anew: else addresses of the results would be kept, on the stack, from the first loads on.
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  pair_store<F, B, P>(acc, t);
}

using PairTileFunction = void (*)(const PairTile&);
struct PairTileTable {
  PairTileFunction at[kPairTileBlocks * kPairTilePixels];
};
template <bool F, int... I>
constexpr PairTileTable make_pair_tiles(Indices<I...>) {
  return {{pair_tile<F, I / kPairTilePixels + 1, I % kPairTilePixels + 1>...}};
}
template <bool F>
constexpr PairTileTable kPairTiles =
    make_pair_tiles<F>(typename MakeIndices<kPairTileBlocks * kPairTilePixels>::type{});

// Registers want nothing before or after a step.
struct PairTiles {
  explicit PairTiles(const Step&) {}
  static std::int64_t at_once(std::int64_t tiles) { return tiles; }
  static void begin(std::int64_t, std::int64_t) {}
};

template <bool F>
static inline void run_pair_tile(const PairTile& t, std::int64_t vectors, std::int64_t pixels, PairTiles&) {
  kPairTiles<F>.at[(vectors - 1) * kPairTilePixels + (pixels - 1)](t);
}
template <bool F>
static inline void end_pair_tiles(std::int64_t, PairTiles&) {}

}  // namespace powerlab::engine::POWERLAB_TIER
