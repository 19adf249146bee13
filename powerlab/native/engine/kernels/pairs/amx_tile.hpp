// The tile of conv_pairs.hpp in AMX: up to four vectors of 16 outputs x 16 pixels, two at a time.
#pragma once

#define POWERLAB_TILE_MULTIPLY POWERLAB_TILE_MULTIPLY_PAIRS
#define POWERLAB_TILE_BEGIN(tile, t, vector) POWERLAB_TILE_ZERO(tile)
#include "kernels/amx_sums.hpp"
#include "kernels/pairs/pair_tile.hpp"

namespace powerlab::engine::POWERLAB_TIER {

using PairTiles = ConvTiles<PairTile>;

template <bool F, int B>
static __attribute__((noinline)) void amx_tile(const PairTile* next, int pixels, PairTiles& tiles) {
  run_tiles<B, float>(tiles.waiting(), tiles.pixels(), next, pixels, tiles,
                      []<int N>(const PairTile& t, int count, int first, Count<N>, const float* sums) {
                        for_rows(t, count, [&](const PairTile& part, int at, int pixels) {
                          pair_finish_sums<F>(part, first, sums + at * kWidth, N, pixels, kTileRows);
                        });
                      });
  tiles.empty();
}
template <bool F>
constexpr void (*kAmxTiles[])(const PairTile*, int, PairTiles&) = {amx_tile<F, 1>, amx_tile<F, 2>, amx_tile<F, 3>,
                                                                   amx_tile<F, 4>};

template <bool F>
static inline void run_pair_tile(PairTile t, std::int64_t vectors, std::int64_t pixels, PairTiles& tiles) {
  const int count = static_cast<int>(pixels);
  if (!tiles.waits(t, count)) kAmxTiles<F>[vectors - 1](&t, count, tiles);
}

// Those of a unit that are still to be computed.
template <bool F>
static inline void end_pair_tiles(std::int64_t vectors, PairTiles& tiles) {
  if (tiles.pixels()) kAmxTiles<F>[vectors - 1](nullptr, 0, tiles);
}

}  // namespace powerlab::engine::POWERLAB_TIER
