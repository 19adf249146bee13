// Winograd convolution F(M x M, R x R), stride 1 (A. Lavin, S. Gray, "Fast Algorithms for Convolutional Neural
// Networks", CVPR 2016): out = activate(conv(x) + bias + y), with (M + R - 1)^2 / M^2 multiplications a pixel instead
// of R^2.
//
// Output is made in tiles of M x M pixels. A thread takes up to chunk_tiles tiles at a time: it transforms a group's
// input into (M + R - 1)^2 positions, multiplies each position's matrix with its weights through conv_direct's register
// tile (tiles are the pixels there), and transforms the products back. Edge tiles read the halo of x, which the plan
// makes wide enough, and write only the pixels that exist. A dilated convolution is several without dilation, of every
// dilation-th pixel each: its tiles are of pixels that lie so far apart. Where tiles are few and weights many, threads
// share the tiles and divide the output channels: to transform the same input is cheaper than to read the same weights.
//
// Weights: G w G^T as [output unit][position][channel][block of the unit][v]; units as in conv_direct.
// Scratch, for each thread `scratch.image` floats: input [position][input block of a group][tile][v], then
// products [position][block of a unit][tile][v]; one vector between positions keeps them out of one another's cache
// sets.
#pragma once

#include "kernels/convolution/conv_direct.hpp"
#include "kernels/convolution/winograd_transforms.hpp"

namespace powerlab::engine::POWERLAB_TIER {

alignas(64) static const float kZeroBias[kTileBlocks * kWidth] = {};

// Where a tile lies in the output: its first pixel.
struct WinogradTile {
  std::int64_t n, y, x;
};

// The tiles of an image: so many rows and columns of them for each pixel of a dilation.
template <int M>
struct WinogradGrid {
  std::int64_t rows, columns, down, across;
  explicit WinogradGrid(const Step& s)
      : rows(parts(s.out.h, s.dilation_h)),
        columns(parts(s.out.w, s.dilation_w)),
        down(s.dilation_h),
        across(s.dilation_w) {}
  static std::int64_t parts(std::int64_t pixels, std::int64_t apart) {
    const std::int64_t own = (pixels + apart - 1) / apart;
    return (own + M - 1) / M;
  }
  std::int64_t tiles() const { return rows * columns * down * across; }
  WinogradTile at(std::int64_t tile) const {
    const std::int64_t column = tile % columns, row = tile / columns % rows, pixel = tile / columns / rows;
    return {pixel / across / down, row * M * down + pixel / across % down, column * M * across + pixel % across};
  }
  // How many of the M pixels from `first` on exist.
  static int inside(std::int64_t first, std::int64_t apart, std::int64_t size) {
    const std::int64_t left = (size - first + apart - 1) / apart;
    return static_cast<int>(left < 0 ? 0 : left < M ? left : M);
  }
};

template <int M, int R>
static void winograd_input(const Step& s, Range blocks, Range tiles, float* to, std::int64_t position_stride) {
  constexpr int kSize = M + R - 1;
  const std::int64_t count = tiles.end - tiles.begin;
  const WinogradGrid<M> grid(s);
  const std::int64_t x_row = s.x.row * grid.down, x_pixel = s.x.pixel * grid.across;
  for (std::int64_t i = 0; i < count; ++i) {
    const WinogradTile tile = grid.at(tiles.begin + i);
    for (std::int64_t block = blocks.begin; block < blocks.end; ++block) {
      const float* x = s.x.data + tile.n * s.x.image + block * s.x.plane + (tile.y - s.pad_top) * s.x.row +
                       (tile.x - s.pad_left) * s.x.pixel;
      Vec half[kSize][kSize];
      for (int column = 0; column < kSize; ++column) {
        Vec d[kSize], r[kSize];
        for (int row = 0; row < kSize; ++row) d[row] = load(x + row * x_row + column * x_pixel);
        Winograd<M, R>::input(d, r);
        for (int row = 0; row < kSize; ++row) half[row][column] = r[row];
      }
      float* v = to + ((block - blocks.begin) * count + i) * kWidth;
      for (int row = 0; row < kSize; ++row) {
        Vec r[kSize];
        Winograd<M, R>::input(half[row], r);
        for (int column = 0; column < kSize; ++column) store(v + (row * kSize + column) * position_stride, r[column]);
      }
    }
  }
}

template <int M, int R>
static void winograd_output(const Step& s, const ConvUnit& unit, Range tiles, const float* from,
                            std::int64_t position_stride) {
  constexpr int kSize = M + R - 1;
  const std::int64_t count = tiles.end - tiles.begin;
  const WinogradGrid<M> grid(s);
  const std::int64_t out_pixel = s.out.pixel * grid.across, y_pixel = s.y.pixel * grid.across;
  for (std::int64_t i = 0; i < count; ++i) {
    const WinogradTile tile = grid.at(tiles.begin + i);
    const int rows = grid.inside(tile.y, grid.down, s.out.h);
    const int columns = grid.inside(tile.x, grid.across, s.out.w);
    for (int b = 0; b < unit.blocks; ++b) {
      const float* m = from + (b * count + i) * kWidth;
      Vec half[M][kSize];
      for (int column = 0; column < kSize; ++column) {
        Vec d[kSize], r[M];
        for (int row = 0; row < kSize; ++row) d[row] = load(m + (row * kSize + column) * position_stride);
        Winograd<M, R>::output(d, r);
        for (int row = 0; row < M; ++row) half[row][column] = r[row];
      }
      const std::int64_t block = unit.first_block + b;
      const Vec bias = load(s.bias + block * kWidth);
      for (int row = 0; row < rows; ++row) {
        Vec r[M];
        Winograd<M, R>::output(half[row], r);
        const Row at{tile.n, block, tile.y + row * grid.down};
        float* out = row_start(s.out, at) + tile.x * s.out.pixel;
        const float* y = s.y.data ? row_start(s.y, at) + tile.x * s.y.pixel : nullptr;
        for (int column = 0; column < columns; ++column) {
          store(out + column * out_pixel, with_residual(r[column] + bias, y ? y + column * y_pixel : nullptr, s));
        }
        finish(s, {out, 0, out_pixel, 1, columns});
      }
    }
  }
}

// One position's product for one unit: [block][tile] = sum over channels of weights x input.
static void winograd_multiply(const Step& s, const ConvUnit& unit, std::int64_t tiles, const float* input,
                              const float* weights, float* products) {
  const std::int64_t in_blocks = s.x.blocks / s.groups;
  const std::int64_t steps = (in_blocks - 1) * kWidth + s.last_lanes, most = tile_pixels(unit.blocks);
  const std::int64_t tile_bytes = steps * unit.blocks * kWidth * 4 / tiles;
  ConvTile t{};
  t.weights = weights;
  t.bias = kZeroBias;
  t.prefetch_step = tile_bytes * most / steps;
  t.x_plane = tiles * kWidth;
  t.x_pixel = kWidth;
  t.out_plane = tiles * kWidth;
  t.out_pixel = kWidth;
  t.blocks = static_cast<int>(in_blocks);
  t.lanes = kWidth;
  t.last_lanes = s.last_lanes;
  t.kernel_h = t.kernel_w = 1;
  t.first = true;
  const char* next_weights = reinterpret_cast<const char*>(weights) + steps * unit.blocks * kWidth * 4;
  const std::int64_t parts = (tiles + most - 1) / most, wide = tiles / parts, wider = tiles % parts;
  const auto multiply = [&](std::int64_t begin, std::int64_t pixels, std::int64_t count) {
    t.x = input + begin * kWidth;
    t.out = products + begin * kWidth;
    t.prefetch = next_weights + begin * tile_bytes;
    t.count = count;
    t.x_next = t.out_next = pixels * kWidth;
    t.prefetch_next = pixels * tile_bytes;
    conv_run(conv_function(conv_functions(1, kWidth), unit.blocks, pixels), t);
  };
  if (wider > 0) multiply(0, wide + 1, wider);  // so many have one tile more
  multiply(wider * (wide + 1), wide, parts - wider);
}

template <int M, int R>
static void conv_winograd(const Step& s, int thread, int threads) {
  constexpr int kPositions = (M + R - 1) * (M + R - 1);
  const std::int64_t all = s.out.n * WinogradGrid<M>(s).tiles();
  const int tile_parts = threads / s.channel_split;
  const int channel_part = thread / tile_parts, tile_part = thread % tile_parts;
  if (channel_part >= s.channel_split) return;  // threads that do not divide evenly
  const Range own = share(all, tile_part, tile_parts);
  const std::int64_t chunks = (own.end - own.begin + s.chunk_tiles - 1) / s.chunk_tiles;
  const std::int64_t in_blocks = s.x.blocks / s.groups;
  const Range units = share(s.groups * conv_group_units(s), channel_part, s.channel_split);
  const std::int64_t channels = (in_blocks - 1) * kWidth + s.last_lanes;
  float* input = s.scratch.data + thread * s.scratch.image;
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
    const Range part = share(own.end - own.begin, static_cast<int>(chunk), static_cast<int>(chunks));
    const Range tiles{own.begin + part.begin, own.begin + part.end};
    const std::int64_t count = tiles.end - tiles.begin;
    const std::int64_t input_stride = (in_blocks * count + 1) * kWidth;
    const std::int64_t product_stride = (kTileBlocks * count + 1) * kWidth;
    float* products = input + kPositions * input_stride;
    std::int64_t transformed = -1;  // group
    for (std::int64_t u = units.begin; u < units.end; ++u) {
      const ConvUnit unit = conv_unit(s, u);
      if (unit.group != transformed) {
        transformed = unit.group;
        winograd_input<M, R>(s, {unit.group * in_blocks, (unit.group + 1) * in_blocks}, tiles, input, input_stride);
      }
      for (int position = 0; position < kPositions; ++position) {
        const float* weights = s.weights + (unit.first_block * kPositions + position * unit.blocks) * channels * kWidth;
        winograd_multiply(s, unit, count, input + position * input_stride, weights,
                          products + position * product_stride);
      }
      winograd_output<M, R>(s, unit, tiles, products, product_stride);
    }
  }
}

}  // namespace powerlab::engine::POWERLAB_TIER
