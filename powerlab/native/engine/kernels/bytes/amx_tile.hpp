// The tile of conv_bytes.hpp in AMX: up to four vectors of 16 outputs x 16 pixels.
//
// A row of `a` is what a pixel reads of one kernel row: bytes that follow on each other in memory, of neighbouring
// taps too where these are neighbours; pixels of a row lie a stride apart, so tiles are loaded from where the image
// lies, and rows may overlap. Weights are those of words, whole blocks of 16 channels: their words are the rows of `b`.
#pragma once

#include "kernels/bytes/amx.hpp"
#include "kernels/bytes/byte_tile.hpp"

#undef POWERLAB_BYTE_FORM
#define POWERLAB_BYTE_FORM "word_blocks"

namespace powerlab::engine::POWERLAB_TIER {

// Words of a kernel row that are multiplied at once: all, or the largest equal parts that fit the rows of a tile.
static inline int words_at_once(int run) {
  int parts = (run + kTileRows - 1) / kTileRows;
  while (run % parts) ++parts;
  return run / parts;
}

// Tiles as a step wants them, for as long as it runs: their configuration belongs to the thread.
class ByteTiles {
 public:
  explicit ByteTiles(const Step& s) {
    const bool neighbours = s.x.pixel * s.dilation_w == s.lanes;
    runs_ = neighbours ? 1 : s.kernel_w;
    run_ = (neighbours ? s.kernel_w : 1) * s.lanes;
    words_ = words_at_once(run_);
  }
  ByteTiles(const ByteTiles&) = delete;
  ByteTiles& operator=(const ByteTiles&) = delete;
  ~ByteTiles() {
    if (pixels_) POWERLAB_TILE_RELEASE();
  }

  // For so many pixels: four tiles of sums, one of a, three of weights.
  void configure(int pixels) {
    if (pixels == pixels_) return;
    pixels_ = pixels;
    TileConfig config;
    for (int tile = 0; tile < kTiles; ++tile) {
      config.rows[tile] = static_cast<std::uint8_t>(tile < 5 ? pixels : words_);
      config.row_bytes[tile] = static_cast<std::uint16_t>(tile == 4 ? 4 * words_ : kTileRowBytes);
    }
    POWERLAB_TILE_CONFIGURE(config);
  }
  int runs() const { return runs_; }
  int run() const { return run_; }
  int words() const { return words_; }

 private:
  int pixels_ = 0;
  int runs_, run_, words_;  // runs of neighbouring words in a kernel row, words of a run and of a multiplication
};

template <int B>
static inline __attribute__((always_inline)) void tile_sums(const ByteTile& t, const ByteTiles& tiles) {
  const int words = tiles.words(), parts = tiles.run() / words, runs = tiles.runs(), kernel_h = t.kernel_h;
  const std::int64_t row_bytes = B * kTileRowBytes, pixel = 4 * t.x_pixel, weight_bytes = words * row_bytes;
  POWERLAB_TILE_ZERO(0);
  if constexpr (B > 1) POWERLAB_TILE_ZERO(1);
  if constexpr (B > 2) POWERLAB_TILE_ZERO(2);
  if constexpr (B > 3) POWERLAB_TILE_ZERO(3);
  const std::uint8_t* weights = t.weights;
  for (int block = 0; block < t.blocks; ++block) {
    for (int ky = 0; ky < kernel_h; ++ky) {
      for (int run = 0; run < runs; ++run) {
        const float* x = t.x + block * t.x_plane + ky * t.x_row + run * t.x_column;
        for (int part = 0; part < parts; ++part, x += words, weights += weight_bytes) {
          POWERLAB_TILE_LOAD(4, x, pixel);
          POWERLAB_TILE_LOAD(5, weights, row_bytes);
          POWERLAB_TILE_MULTIPLY(0, 4, 5);
          if constexpr (B > 1) {
            POWERLAB_TILE_LOAD(6, weights + kTileRowBytes, row_bytes);
            POWERLAB_TILE_MULTIPLY(1, 4, 6);
          }
          if constexpr (B > 2) {
            POWERLAB_TILE_LOAD(7, weights + 2 * kTileRowBytes, row_bytes);
            POWERLAB_TILE_MULTIPLY(2, 4, 7);
          }
          if constexpr (B > 3) {
            POWERLAB_TILE_LOAD(5, weights + 3 * kTileRowBytes, row_bytes);
            POWERLAB_TILE_MULTIPLY(3, 4, 5);
          }
        }
      }
    }
  }
}

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
