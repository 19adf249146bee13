// The tile of conv_pairs.hpp in AMX: up to four vectors of 16 outputs x 16 pixels.
#pragma once

#define POWERLAB_TILE_MULTIPLY POWERLAB_TILE_MULTIPLY_PAIRS
#include "kernels/amx_sums.hpp"
#include "kernels/pairs/pair_tile.hpp"

namespace powerlab::engine::POWERLAB_TIER {

using PairTiles = Tiles;

template <int B>
static __attribute__((noinline)) void amx_tile(const PairTile& t, float* sums, PairTiles& tiles) {
  constexpr int kTileFloats = kTileRows * kWidth;
  tile_sums<B>(t, tiles);
  POWERLAB_TILE_STORE(0, sums, kTileRowBytes);
  if constexpr (B > 1) POWERLAB_TILE_STORE(1, sums + kTileFloats, kTileRowBytes);
  if constexpr (B > 2) POWERLAB_TILE_STORE(2, sums + 2 * kTileFloats, kTileRowBytes);
  if constexpr (B > 3) POWERLAB_TILE_STORE(3, sums + 3 * kTileFloats, kTileRowBytes);
}

template <bool F>
static inline void run_pair_tile(const PairTile& t, std::int64_t vectors, std::int64_t pixels, PairTiles& tiles) {
  constexpr void (*kTilesOf[])(const PairTile&, float*, PairTiles&) = {amx_tile<1>, amx_tile<2>, amx_tile<3>,
                                                                       amx_tile<4>};
  alignas(64) float sums[kPairTileBlocks * kTileRows * kWidth];
  tiles.configure(static_cast<int>(pixels));
  kTilesOf[vectors - 1](t, sums, tiles);
  pair_finish_sums<F>(t, sums, static_cast<int>(vectors), static_cast<int>(pixels), kTileRows);
}

}  // namespace powerlab::engine::POWERLAB_TIER
