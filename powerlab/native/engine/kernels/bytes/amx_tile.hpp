// The tile of conv_bytes.hpp in AMX: up to four vectors of 16 outputs x 16 pixels, two at a time. Weights are those of
// words.
#pragma once

#define POWERLAB_TILE_MULTIPLY POWERLAB_TILE_MULTIPLY_BYTES
#include "kernels/amx_sums.hpp"
#include "kernels/bytes/byte_tile.hpp"

#undef POWERLAB_BYTE_FORM
#define POWERLAB_BYTE_FORM "word_blocks"

namespace powerlab::engine::POWERLAB_TIER {

// A tile waits for the next one, so that two go together.
struct ByteTiles : Tiles {
  using Tiles::Tiles;
  ByteTile waiting;
  int pixels = 0;  // of the one that waits; 0: there is none
};

constexpr int kTileSums = kTileRows * kWidth;

// What the sums of B vectors become.
template <bool F, bool S, int B>
static inline __attribute__((always_inline)) void amx_finish(const ByteTile& tile, const std::int32_t* sums,
                                                             int pixels) {
  ByteTile t = tile;
  if (!F && t.out_pixel == kBlockBytes) {  // four pixels of a block are one store
    static_assert(F || kBlockVectors == 1);
    for (int b = 0; b < B; ++b, t.bias += 2 * kWidth) {
      t.out = tile.out + b * t.out_plane;
      if (tile.residual) t.residual = tile.residual + b * t.residual_plane;
      const IVec begin = load_ints(t.bias);
      const std::int32_t* at = sums + b * kTileSums;
      int p = 0;
      for (; p + 4 <= pixels; p += 4, at += 4 * kWidth, t.out += 4 * t.out_pixel) {
        IVec acc[1][4];
        POWERLAB_UNROLL
        for (int q = 0; q < 4; ++q) acc[0][q] = begin + load_ints(at + q * kWidth);
        byte_finish<F, S, 1, 4>(acc, t);
        if (t.residual) t.residual += 4 * t.residual_pixel;
      }
      for (; p < pixels; ++p, at += kWidth, t.out += t.out_pixel) {
        IVec acc[1][1] = {{begin + load_ints(at)}};
        byte_finish<F, S, 1, 1>(acc, t);
        if (t.residual) t.residual += t.residual_pixel;
      }
    }
    return;
  }
  for (int p = 0; p < pixels; ++p, t.out += t.out_pixel) {
    IVec acc[B][1];
    POWERLAB_UNROLL
    for (int b = 0; b < B; ++b)
      acc[b][0] = load_ints(t.bias + 2 * b * kWidth) + load_ints(sums + b * kTileSums + p * kWidth);
    byte_finish<F, S, B, 1>(acc, t);
    if (t.residual) t.residual += t.residual_pixel;
  }
}
template <bool F, int B>
static __attribute__((noinline)) void amx_finish(const ByteTile& t, const std::int32_t* sums, int pixels) {
  t.requantize.slope == 1 ? amx_finish<F, false, B>(t, sums, pixels) : amx_finish<F, true, B>(t, sums, pixels);
}

// The tile that waits, and the next one; null: there is none.
template <bool F, int B>
static __attribute__((noinline)) void amx_tile(const ByteTile* next, int pixels, ByteTiles& tiles) {
  alignas(64) std::int32_t sums[2][B * kTileSums];
  if (next) {
    sums_of_two<B>(tiles.waiting, tiles.pixels, *next, pixels, sums[0], sums[1], tiles);
    amx_finish<F, B>(tiles.waiting, sums[0], tiles.pixels);
    amx_finish<F, B>(*next, sums[1], pixels);
  } else {
    sums_of<B>(tiles.waiting, tiles.pixels, sums[0], tiles);
    amx_finish<F, B>(tiles.waiting, sums[0], tiles.pixels);
  }
  tiles.pixels = 0;
}

template <bool F, int N>
static inline void run_byte_tiles(const ByteTile* next, std::int64_t vectors, std::int64_t pixels, ByteTiles& tiles) {
  constexpr void (*kTilesOf[])(const ByteTile*, int, ByteTiles&) = {amx_tile<F, 1>, amx_tile<F, 2>, amx_tile<F, 3>,
                                                                    amx_tile<F, 4>};
  kTilesOf[vectors - 1](next, static_cast<int>(pixels), tiles);
}

template <bool F, int N>
static inline void run_byte_tile(const ByteTile& t, std::int64_t vectors, std::int64_t pixels, ByteTiles& tiles) {
  if (tiles.pixels) return run_byte_tiles<F, N>(&t, vectors, pixels, tiles);
  tiles.waiting = t;
  tiles.pixels = static_cast<int>(pixels);
}

// Those of a unit that are still to be computed.
template <bool F, int N>
static inline void end_byte_tiles(std::int64_t vectors, ByteTiles& tiles) {
  if (tiles.pixels) run_byte_tiles<F, N>(nullptr, vectors, 0, tiles);
}

}  // namespace powerlab::engine::POWERLAB_TIER
