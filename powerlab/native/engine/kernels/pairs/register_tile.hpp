// The tile of conv_pairs.hpp in registers: up to kPairTileBlocks vectors of sums x kPairTilePixels pixels, a word of
// two channels at a time.
#pragma once

#include "kernels/pairs/pair_tile.hpp"
#include "kernels/pairs/register_words.hpp"

namespace powerlab::engine::POWERLAB_TIER {

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
  const char* prefetch = t.prefetch;
  const std::int64_t pixel = t.x_pixel, prefetch_step = t.prefetch_step;
  for (int block = 0; block < t.blocks; ++block) {
    for (int ky = 0; ky < t.kernel_h; ++ky) {
      const float* x = t.x + block * t.x_plane + ky * t.x_row;
      for (int kx = 0; kx < t.kernel_w; ++kx, x += t.x_column) {
        const float* at = x;
        const float* at3 = x + 3 * pixel;
        for (int left = t.words; left > 0; left -= 4, at += 4, at3 += 4) {
          pair_four_words<B, P>(acc, at, at3, pixel, weights);
          weights += 4 * B * kWidth;
          __builtin_prefetch(prefetch, 0, 2);
          prefetch += 4 * prefetch_step;
        }
      }
    }
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
};

template <bool F>
static inline void run_pair_tile(const PairTile& t, std::int64_t vectors, std::int64_t pixels, PairTiles&) {
  kPairTiles<F>.at[(vectors - 1) * kPairTilePixels + (pixels - 1)](t);
}

}  // namespace powerlab::engine::POWERLAB_TIER
