// The tile of conv_bytes.hpp in AMX: up to four vectors of 16 outputs x 16 pixels, two at a time. Weights are those of
// words.
#pragma once

#define POWERLAB_TILE_MULTIPLY POWERLAB_TILE_MULTIPLY_BYTES
// Rows of no stride: every pixel's sums begin with the same numbers.
#define POWERLAB_TILE_BEGIN(tile, t, vector) POWERLAB_TILE_LOAD(tile, begin_of(t, vector), 0)
#include "kernels/amx_sums.hpp"
#include "kernels/bytes/byte_tile.hpp"

#undef POWERLAB_BYTE_FORM
#define POWERLAB_BYTE_FORM "word_blocks"

namespace powerlab::engine::POWERLAB_TIER {

using ByteTiles = ConvTiles<ByteTile>;

// What the sums of a vector of outputs begin with.
static inline const float* begin_of(const ByteTile& t, int vector) { return t.bias + 2 * vector * kWidth; }

// What the sums of B vectors become, in which bias is already.
template <bool F, bool S, int B>
static inline __attribute__((always_inline)) void amx_finish(ByteTile t, int pixels, const std::int32_t* sums) {
  // The next P pixels of V vectors.
  const auto pixels_of = [&]<int V, int P>(Count<V>, Count<P>) __attribute__((always_inline)) {
    IVec acc[V][P];
    POWERLAB_UNROLL
    for (int b = 0; b < V; ++b) {
      POWERLAB_UNROLL
      for (int p = 0; p < P; ++p) acc[b][p] = load_ints(sums + b * kTileSums + p * kWidth);
    }
    byte_finish<F, S, V, P>(acc, t);
    sums += P * kWidth;
    t.out += P * t.out_pixel;
    if (t.residual) t.residual += P * t.residual_pixel;
  };
  if (F || t.out_pixel != kBlockBytes) {
    for (int p = 0; p + 2 <= pixels; p += 2) pixels_of(Count<B>{}, Count<2>{});
    if (pixels % 2) pixels_of(Count<B>{}, Count<1>{});
    return;
  }
  static_assert(F || kBlockVectors == 1);
  const ByteTile first = t;
  const std::int32_t* const all = sums;
  for (int b = 0; b < B; ++b, t.bias += 2 * kWidth) {  // four pixels of a block are one store
    sums = all + b * kTileSums;
    t.out = first.out + b * t.out_plane;
    if (t.residual) t.residual = first.residual + b * t.residual_plane;
    for (int p = 0; p + 4 <= pixels; p += 4) pixels_of(Count<1>{}, Count<4>{});
    switch (pixels % 4) {
      case 3:
        pixels_of(Count<1>{}, Count<3>{});
        break;
      case 2:
        pixels_of(Count<1>{}, Count<2>{});
        break;
      case 1:
        pixels_of(Count<1>{}, Count<1>{});
        break;
      default:
        break;
    }
  }
}
template <bool F, int B>
static __attribute__((noinline)) void amx_finish(const ByteTile& tile, int pixels, int first,
                                                 const std::int32_t* sums) {
  ByteTile t = tile;
  t.bias += 2 * first * kWidth;
  t.out += F ? first * t.out_plane : byte_place(tile, first, t.out_plane);
  if (t.residual) t.residual += byte_place(tile, first, t.residual_plane);
  t.first_vector += first;
  t.requantize.slope == 1 ? amx_finish<F, false, B>(t, pixels, sums) : amx_finish<F, true, B>(t, pixels, sums);
}

template <bool F, int B>
static __attribute__((noinline)) void amx_tile(const ByteTile* next, int pixels, ByteTiles& tiles) {
  run_tiles<B, std::int32_t>(tiles.waiting(), tiles.pixels(), next, pixels, tiles,
                             []<int N>(const ByteTile& t, int count, int first, Count<N>, const std::int32_t* sums) {
                               for_rows(t, count, [&](const ByteTile& part, int at, int pixels) {
                                 amx_finish<F, N>(part, pixels, first, sums + at * kWidth);
                               });
                             });
  tiles.empty();
}
template <bool F>
constexpr void (*kAmxTiles[])(const ByteTile*, int, ByteTiles&) = {amx_tile<F, 1>, amx_tile<F, 2>, amx_tile<F, 3>,
                                                                   amx_tile<F, 4>};

template <bool F, int N>
static inline void run_byte_tile(ByteTile t, std::int64_t vectors, std::int64_t pixels, ByteTiles& tiles) {
  const int count = static_cast<int>(pixels);
  if (!tiles.waits(t, count)) kAmxTiles<F>[vectors - 1](&t, count, tiles);
}

// Those of a unit that are still to be computed.
template <bool F, int N>
static inline void end_byte_tiles(std::int64_t vectors, ByteTiles& tiles) {
  if (tiles.pixels()) kAmxTiles<F>[vectors - 1](nullptr, 0, tiles);
}

}  // namespace powerlab::engine::POWERLAB_TIER
