// The tile of conv_bytes.hpp in AMX: up to four vectors of 16 outputs x 16 pixels. Weights are those of words.
#pragma once

#define POWERLAB_TILE_MULTIPLY POWERLAB_TILE_MULTIPLY_BYTES
#include "kernels/amx_sums.hpp"
#include "kernels/bytes/byte_tile.hpp"

#undef POWERLAB_BYTE_FORM
#define POWERLAB_BYTE_FORM "word_blocks"

namespace powerlab::engine::POWERLAB_TIER {

using ByteTiles = Tiles;

template <bool F, int B>
static __attribute__((noinline)) void amx_tile(const ByteTile& t, int pixels, ByteTiles& tiles) {
  alignas(64) std::int32_t sums[B][kTileRows * kWidth];
  tiles.configure(pixels);
  tile_sums<B>(t, tiles);
  POWERLAB_TILE_STORE(0, sums[0], kTileRowBytes);
  if constexpr (B > 1) POWERLAB_TILE_STORE(1, sums[1], kTileRowBytes);
  if constexpr (B > 2) POWERLAB_TILE_STORE(2, sums[2], kTileRowBytes);
  if constexpr (B > 3) POWERLAB_TILE_STORE(3, sums[3], kTileRowBytes);
  ByteTile pixel = t;
  for (int p = 0; p < pixels; ++p, pixel.out += t.out_pixel) {
    IVec acc[B][1];
    POWERLAB_UNROLL
    for (int b = 0; b < B; ++b) acc[b][0] = load_ints(t.bias + 2 * b * kWidth) + load_ints(sums[b] + p * kWidth);
    t.requantize.slope == 1 ? byte_finish<F, false, B, 1>(acc, pixel) : byte_finish<F, true, B, 1>(acc, pixel);
    if (t.residual) pixel.residual += t.residual_pixel;
  }
}

template <bool F, int N>
static inline void run_byte_tile(const ByteTile& t, std::int64_t vectors, std::int64_t pixels, ByteTiles& tiles) {
  constexpr void (*kTilesOf[])(const ByteTile&, int, ByteTiles&) = {amx_tile<F, 1>, amx_tile<F, 2>, amx_tile<F, 3>,
                                                                    amx_tile<F, 4>};
  kTilesOf[vectors - 1](t, static_cast<int>(pixels), tiles);
}

}  // namespace powerlab::engine::POWERLAB_TIER
