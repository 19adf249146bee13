// A convolution's sums in AMX: up to four vectors of 16 outputs x 16 pixels. Who includes this says before, as
// POWERLAB_TILE_MULTIPLY, what words are made of.
//
// A row of `a` is what a pixel reads of one kernel row: words that follow on each other in memory, of neighbouring
// taps too where these are neighbours; pixels of a row lie a stride apart, so tiles are loaded from where the image
// lies, and rows may overlap. Weights are whole blocks of 16 channels: their words are the rows of `b`.
#pragma once

#include "kernels/amx.hpp"

namespace powerlab::engine::POWERLAB_TIER {

// Words of a kernel row that are multiplied at once: all, or the largest equal parts that fit the rows of a tile.
static inline int words_at_once(int run) {
  int parts = (run + kTileRows - 1) / kTileRows;
  while (run % parts) ++parts;
  return run / parts;
}

// Tiles as a step wants them, for as long as it runs: their configuration belongs to the thread.
class Tiles {
 public:
  explicit Tiles(const Step& s) {
    const bool neighbours = s.x.pixel * s.dilation_w == s.lanes;
    runs_ = neighbours ? 1 : s.kernel_w;
    run_ = (neighbours ? s.kernel_w : 1) * s.lanes;
    words_ = words_at_once(run_);
  }
  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;
  ~Tiles() {
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

// Sums of B vectors of outputs, in tiles 0 to B - 1. T: a tile of a step.
template <int B, typename T>
static inline __attribute__((always_inline)) void tile_sums(const T& t, const Tiles& tiles) {
  const int words = tiles.words(), parts = tiles.run() / words, runs = tiles.runs(), kernel_h = t.kernel_h;
  const std::int64_t row_bytes = B * kTileRowBytes, pixel = 4 * t.x_pixel, weight_bytes = words * row_bytes;
  POWERLAB_TILE_ZERO(0);
  if constexpr (B > 1) POWERLAB_TILE_ZERO(1);
  if constexpr (B > 2) POWERLAB_TILE_ZERO(2);
  if constexpr (B > 3) POWERLAB_TILE_ZERO(3);
  const std::uint8_t* weights = reinterpret_cast<const std::uint8_t*>(t.weights);
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

}  // namespace powerlab::engine::POWERLAB_TIER
