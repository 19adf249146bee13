// The tile of conv_pairs.hpp in AMX: up to four vectors of 16 outputs x 16 pixels, two at a time.
#pragma once

#define POWERLAB_TILE_MULTIPLY POWERLAB_TILE_MULTIPLY_PAIRS
#include "kernels/amx_sums.hpp"
#include "kernels/pairs/pair_tile.hpp"

namespace powerlab::engine::POWERLAB_TIER {

// A tile waits for the next one, so that two go together.
struct PairTiles : Tiles {
  using Tiles::Tiles;
  PairTile waiting;
  int pixels = 0;  // of the one that waits; 0: there is none
};

// The tile that waits, and the next one; null: there is none.
template <bool F, int B>
static __attribute__((noinline)) void amx_tile(const PairTile* next, int pixels, PairTiles& tiles) {
  alignas(64) float sums[2][B * kTileRows * kWidth];
  if (next) {
    sums_of_two<B>(tiles.waiting, tiles.pixels, *next, pixels, sums[0], sums[1], tiles);
    pair_finish_sums<F>(tiles.waiting, sums[0], B, tiles.pixels, kTileRows);
    pair_finish_sums<F>(*next, sums[1], B, pixels, kTileRows);
  } else {
    sums_of<B>(tiles.waiting, tiles.pixels, sums[0], tiles);
    pair_finish_sums<F>(tiles.waiting, sums[0], B, tiles.pixels, kTileRows);
  }
  tiles.pixels = 0;
}

template <bool F>
static inline void run_pair_tiles(const PairTile* next, std::int64_t vectors, std::int64_t pixels, PairTiles& tiles) {
  constexpr void (*kTilesOf[])(const PairTile*, int, PairTiles&) = {amx_tile<F, 1>, amx_tile<F, 2>, amx_tile<F, 3>,
                                                                    amx_tile<F, 4>};
  kTilesOf[vectors - 1](next, static_cast<int>(pixels), tiles);
}

template <bool F>
static inline void run_pair_tile(const PairTile& t, std::int64_t vectors, std::int64_t pixels, PairTiles& tiles) {
  if (tiles.pixels) return run_pair_tiles<F>(&t, vectors, pixels, tiles);
  tiles.waiting = t;
  tiles.pixels = static_cast<int>(pixels);
}

// Those of a unit that are still to be computed.
template <bool F>
static inline void end_pair_tiles(std::int64_t vectors, PairTiles& tiles) {
  if (tiles.pixels) run_pair_tiles<F>(nullptr, vectors, 0, tiles);
}

}  // namespace powerlab::engine::POWERLAB_TIER
