// Winograd convolution F(M x M, 3 x 3), stride 1 (A. Lavin, S. Gray, "Fast Algorithms for Convolutional Neural
// Networks", CVPR 2016): out = activate(conv(x) + bias + y), with (M + 2)^2 / M^2 multiplications a pixel instead of 9.
//
// Output is made in tiles of M x M pixels. A thread takes up to chunk_tiles tiles at a time: it transforms their input
// into (M + 2)^2 positions, multiplies each position's matrix with its weights through conv_direct's register tile
// (tiles are the pixels there), and transforms the products back. Edge tiles read the halo of x, which the plan makes
// wide enough, and write only the pixels that exist.
//
// Weights: G w G^T as [output unit][position][channel][block of the unit][v]; units as in conv_direct.
// Scratch, for each thread `scratch.image` floats: input [position][input block][tile][v], then products
// [position][block of a unit][tile][v]; one vector between positions keeps them out of one another's cache sets.
#pragma once

#include "kernels/conv_direct.hpp"

namespace powerlab::engine::POWERLAB_TIER {

alignas(64) static const float kZeroBias[kTileBlocks * kWidth] = {};

template <int M>
struct Winograd;

template <>
struct Winograd<2> {
  // B^T d, with interpolation points 0, 1, -1
  static inline void input(const Vec (&d)[4], Vec (&r)[4]) {
    r[0] = d[0] - d[2];
    r[1] = d[1] + d[2];
    r[2] = d[2] - d[1];
    r[3] = d[1] - d[3];
  }
  // A^T m
  static inline void output(const Vec (&m)[4], Vec (&r)[2]) {
    r[0] = m[0] + m[1] + m[2];
    r[1] = m[1] - m[2] - m[3];
  }
};

template <>
struct Winograd<4> {
  // Points 0, 1, -1, 2, -2
  static inline void input(const Vec (&d)[6], Vec (&r)[6]) {
    const Vec even1 = d[4] - d[2] * 4.0f, odd1 = d[3] - d[1] * 4.0f;
    const Vec even2 = d[4] - d[2], odd2 = (d[3] - d[1]) * 2.0f;
    r[0] = d[0] * 4.0f - d[2] * 5.0f + d[4];
    r[1] = even1 + odd1;
    r[2] = even1 - odd1;
    r[3] = even2 + odd2;
    r[4] = even2 - odd2;
    r[5] = d[1] * 4.0f - d[3] * 5.0f + d[5];
  }
  static inline void output(const Vec (&m)[6], Vec (&r)[4]) {
    const Vec sum1 = m[1] + m[2], difference1 = m[1] - m[2], sum2 = m[3] + m[4], difference2 = m[3] - m[4];
    r[0] = m[0] + sum1 + sum2;
    r[1] = difference1 + difference2 * 2.0f;
    r[2] = sum1 + sum2 * 4.0f;
    r[3] = difference1 + difference2 * 8.0f + m[5];
  }
};

// Where a tile lies in the output.
struct WinogradTile {
  std::int64_t n, y, x;
};
template <int M>
static inline WinogradTile winograd_tile(const View& out, std::int64_t tile) {
  const std::int64_t columns = (out.w + M - 1) / M, rows = (out.h + M - 1) / M;
  return {tile / columns / rows, tile / columns % rows * M, tile % columns * M};
}

template <int M>
static void winograd_input(const Step& s, Range tiles, float* to, std::int64_t position_stride) {
  constexpr int kSize = M + 2;
  const std::int64_t count = tiles.end - tiles.begin;
  for (std::int64_t i = 0; i < count; ++i) {
    const WinogradTile tile = winograd_tile<M>(s.out, tiles.begin + i);
    for (int block = 0; block < s.x.blocks; ++block) {
      const float* x = s.x.data + tile.n * s.x.image + block * s.x.plane + (tile.y - s.pad_top) * s.x.row +
                       (tile.x - s.pad_left) * s.x.pixel;
      Vec half[kSize][kSize];
      for (int column = 0; column < kSize; ++column) {
        Vec d[kSize], r[kSize];
        for (int row = 0; row < kSize; ++row) d[row] = load(x + row * s.x.row + column * s.x.pixel);
        Winograd<M>::input(d, r);
        for (int row = 0; row < kSize; ++row) half[row][column] = r[row];
      }
      float* v = to + (block * count + i) * kWidth;
      for (int row = 0; row < kSize; ++row) {
        Vec r[kSize];
        Winograd<M>::input(half[row], r);
        for (int column = 0; column < kSize; ++column) store(v + (row * kSize + column) * position_stride, r[column]);
      }
    }
  }
}

template <int M>
static void winograd_output(const Step& s, const ConvUnit& unit, Range tiles, const float* from,
                            std::int64_t position_stride) {
  constexpr int kSize = M + 2;
  const std::int64_t count = tiles.end - tiles.begin;
  for (std::int64_t i = 0; i < count; ++i) {
    const WinogradTile tile = winograd_tile<M>(s.out, tiles.begin + i);
    const int rows = s.out.h - tile.y < M ? static_cast<int>(s.out.h - tile.y) : M;
    const int columns = s.out.w - tile.x < M ? static_cast<int>(s.out.w - tile.x) : M;
    for (int b = 0; b < unit.blocks; ++b) {
      const float* m = from + (b * count + i) * kWidth;
      Vec half[M][kSize];
      for (int column = 0; column < kSize; ++column) {
        Vec d[kSize], r[M];
        for (int row = 0; row < kSize; ++row) d[row] = load(m + (row * kSize + column) * position_stride);
        Winograd<M>::output(d, r);
        for (int row = 0; row < M; ++row) half[row][column] = r[row];
      }
      const std::int64_t block = unit.first_block + b;
      const Vec bias = load(s.bias + block * kWidth);
      for (int row = 0; row < rows; ++row) {
        Vec r[M];
        Winograd<M>::output(half[row], r);
        float* out = row_start(s.out, {tile.n, block, tile.y + row}) + tile.x * s.out.pixel;
        const float* y = s.y.data ? row_start(s.y, {tile.n, block, tile.y + row}) + tile.x * s.y.pixel : nullptr;
        for (int column = 0; column < columns; ++column) {
          Vec v = r[column] + bias;
          if (y) v += load(y + column * s.y.pixel);
          store(out + column * s.out.pixel, activate(v, s));
        }
      }
    }
  }
}

// One position's product for one unit: [block][tile] = sum over channels of weights x input.
static void winograd_multiply(const Step& s, const ConvUnit& unit, std::int64_t tiles, const float* input,
                              const float* weights, float* products) {
  const std::int64_t steps = (s.x.blocks - 1) * kWidth + s.last_lanes;
  const std::int64_t tile_bytes = steps * unit.blocks * kWidth * 4 / tiles;
  ConvTile t{};
  t.weights = weights;
  t.bias = kZeroBias;
  t.prefetch_step = tile_bytes * kTilePixels / steps;
  t.x_plane = tiles * kWidth;
  t.x_pixel = kWidth;
  t.out_plane = tiles * kWidth;
  t.out_pixel = kWidth;
  t.blocks = s.x.blocks;
  t.lanes = kWidth;
  t.last_lanes = s.last_lanes;
  t.kernel_h = t.kernel_w = 1;
  t.first = true;
  const char* next_weights = reinterpret_cast<const char*>(weights) + steps * unit.blocks * kWidth * 4;
  const std::int64_t parts = (tiles + kTilePixels - 1) / kTilePixels;
  for (std::int64_t part = 0; part < parts; ++part) {
    const std::int64_t begin = part * tiles / parts, end = (part + 1) * tiles / parts;
    t.x = input + begin * kWidth;
    t.out = products + begin * kWidth;
    t.prefetch = next_weights + begin * tile_bytes;
    kConvTiles.at[(unit.blocks - 1) * kTilePixels + (end - begin - 1)](t);
  }
}

template <int M>
static void conv_winograd(const Step& s, int thread, int threads) {
  constexpr int kPositions = (M + 2) * (M + 2);
  const std::int64_t all = static_cast<std::int64_t>(s.out.n) * ((s.out.h + M - 1) / M) * ((s.out.w + M - 1) / M);
  const Range own = share(all, thread, threads);
  const std::int64_t chunks = (own.end - own.begin + s.chunk_tiles - 1) / s.chunk_tiles;
  const std::int64_t units = (s.out.blocks + kTileBlocks - 1) / kTileBlocks;
  const std::int64_t channels = (s.x.blocks - 1) * kWidth + s.last_lanes;
  float* input = s.scratch.data + thread * s.scratch.image;
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
    const Range part = share(own.end - own.begin, static_cast<int>(chunk), static_cast<int>(chunks));
    const Range tiles{own.begin + part.begin, own.begin + part.end};
    const std::int64_t count = tiles.end - tiles.begin;
    const std::int64_t input_stride = (s.x.blocks * count + 1) * kWidth;
    const std::int64_t product_stride = (kTileBlocks * count + 1) * kWidth;
    float* products = input + kPositions * input_stride;
    winograd_input<M>(s, tiles, input, input_stride);
    for (std::int64_t u = 0; u < units; ++u) {
      const ConvUnit unit = conv_unit(s, u);
      for (int position = 0; position < kPositions; ++position) {
        const float* weights = s.weights + (unit.first_block * kPositions + position * unit.blocks) * channels * kWidth;
        winograd_multiply(s, unit, count, input + position * input_stride, weights,
                          products + position * product_stride);
      }
      winograd_output<M>(s, unit, tiles, products, product_stride);
    }
  }
}

}  // namespace powerlab::engine::POWERLAB_TIER
