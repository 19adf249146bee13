// Direct convolution in the blocked layout: out = activate(conv(x) + bias + y).
//
// A register tile (kernels/convolution/conv_tile.hpp) of pixels of one output row reduces a chunk of input blocks.
// Padding is the halo of x, so there are no edges. A row is cut into tiles of nearly equal width. Fully connected
// layers (pixels = images), 1x1 convolutions (one row of all pixels) and the first layer (interleaved x, a kernel row
// folded into the lanes) are views on this kernel.
//
// Weights: [output unit][input block][kernel_h][kernel_w][lane][block of the unit][v], in the order they are read. The
// output blocks of a group are dealt to ceil(blocks / kTileBlocks) units of nearly equal size. The next chunk of
// weights is prefetched evenly over all tiles of the current one; bursts of prefetches were slower. While the first
// unit of a 1x1 convolution goes through more pixels than there are outputs, each tile prefetches the pixels of the
// next one instead: they lie in as many places as there are input blocks, too many for the processor to see where they
// go on.
#pragma once

#include "kernels/convolution/conv_tile.hpp"
#include "kernels/epilogue.hpp"

namespace powerlab::engine::POWERLAB_TIER {

// Tiles that are computed before a function ends them: their outputs are still in the nearest cache.
constexpr std::int64_t kFinishedTiles = 4;

// The taps that meet one of `size` pixels or rows in some of `count` windows, `stride` apart, whose first tap is at
// `first` in the image. At least one is left, so that no loop is empty.
static inline ConvTaps taps_inside(int taps, std::int64_t dilation, std::int64_t first, std::int64_t stride,
                                   std::int64_t count, std::int64_t size) {
  ConvTaps inside = {0, taps};
  const std::int64_t last = first + (count - 1) * stride;
  while (inside.begin < taps - 1 && last + inside.begin * dilation < 0) ++inside.begin;
  while (inside.end > inside.begin + 1 && first + (inside.end - 1) * dilation >= size) --inside.end;
  return inside;
}
static inline bool same_taps(ConvTaps a, ConvTaps b) { return a.begin == b.begin && a.end == b.end; }

// The output blocks one pass works on, and where their weights and bias lie.
struct ConvUnit {
  std::int64_t group, first_block, blocks;
};
static inline std::int64_t conv_row_tiles(const Step& s) {
  const bool is_long = s.out.blocks == s.groups && s.x.pixel * s.stride_w == kWidth;
  const int most = is_long ? kLongPixels : tile_pixels(s.unit_blocks > kTileBlocks ? kMostBlocks : kTileBlocks);
  return (s.out.w + most - 1) / most;
}
static inline std::int64_t conv_group_units(const Step& s) {
  const std::int64_t most = s.unit_blocks > 0 ? s.unit_blocks : kTileBlocks;
  return (s.out.blocks / s.groups + most - 1) / most;
}
static inline ConvUnit conv_unit(const Step& s, std::int64_t unit) {
  const std::int64_t blocks = s.out.blocks / s.groups;
  const std::int64_t units = conv_group_units(s);
  const std::int64_t group = unit / units, i = unit % units;
  const std::int64_t begin = i * blocks / units, end = (i + 1) * blocks / units;
  return {group, group * blocks + begin, end - begin};
}

// The blocks of x that a unit's outputs depend on, of those of its group. Where groups were joined, weights between
// them are zeros.
static inline ConvTaps conv_reach(const Step& s, const ConvUnit& unit) {
  const std::int32_t all = s.x.blocks / s.groups;
  if (s.joined_outputs == 0) return {0, all};
  const std::int64_t first = (unit.first_block - unit.group * (s.out.blocks / s.groups)) * kWidth;
  const std::int64_t begin = first / s.joined_outputs;
  const std::int64_t end = (first + unit.blocks * kWidth - 1) / s.joined_outputs + 1;
  const std::int64_t last = (end * s.joined_inputs + kWidth - 1) / kWidth;
  return {static_cast<std::int32_t>(begin * s.joined_inputs / kWidth),
          last < all ? static_cast<std::int32_t>(last) : all};
}

// Whether the pixels that a pass of a larger kernel reads do not stay in the second-level cache, of which its weights
// take up to half: all units read them from beyond it, in as many places as there are blocks and rows.
static inline bool pixels_outweigh(const Step& s, std::int64_t pixels) {
  const std::int64_t taps = static_cast<std::int64_t>(s.kernel_h) * s.kernel_w;
  const std::int64_t outputs = (s.unit_blocks > 0 ? s.unit_blocks : kTileBlocks) * kWidth;
  return taps > 1 && s.chunk_blocks > 1 && pixels * s.stride_h * s.stride_w > 2 * taps * outputs;
}

// Prefetches the pixels that are read next instead of weights: those of a 1x1 convolution's next tile, else those of
// the next block, but for what is beside them, which the tile before has read.
static inline void prefetch_pixels_ahead(const Step& s, ConvTile& t, std::int64_t pixels) {
  const bool point = s.kernel_h * s.kernel_w == 1;
  const int columns = t.columns.end - t.columns.begin, rows = t.rows.end - t.rows.begin;
  const std::int64_t overlap = point ? 0 : t.columns.begin * t.x_column + s.kernel_w * t.x_column - t.x_pixel;
  const float* first = t.x + (point ? t.x_next : t.x_plane + t.rows.begin * t.x_row + (overlap > 0 ? overlap : 0));
  t.prefetch = reinterpret_cast<const char*>(first);
  t.prefetch_next = t.x_next * 4;
  t.prefetch_step = pixels * t.x_pixel * 4 / (columns * t.lanes);
  t.prefetch_row = point ? 0 : t.x_row * 4 - columns * t.lanes * t.prefetch_step;
  t.prefetch_block = t.x_plane * 4 - (point ? t.lanes * t.prefetch_step : rows * t.x_row * 4);
}

// All tiles of `tiles` for one unit and one chunk of the reduction over the blocks `reach` of x. Where x is the whole
// image, taps that meet only its halo are left out. `far`: x is not in the nearer caches yet.
static void conv_pass(const Step& s, const ConvUnit& unit, ConvTaps reach, int chunk_begin, int chunk_end, Range tiles,
                      bool whole_image, bool far) {
  const std::int64_t in_blocks = s.x.blocks / s.groups;
  const std::int64_t taps = static_cast<std::int64_t>(s.kernel_h) * s.kernel_w;
  const std::int64_t reduction = ((in_blocks - 1) * s.lanes + s.last_lanes) * taps;
  const std::int64_t chunk_first = chunk_begin * s.lanes * taps;
  const std::int64_t chunk_steps =
      (chunk_end == in_blocks ? reduction : static_cast<std::int64_t>(chunk_end) * s.lanes * taps) - chunk_first;
  const std::int64_t tile_count = tiles.end - tiles.begin;
  const std::int64_t tile_bytes = chunk_steps * unit.blocks * kWidth * 4 / tile_count;
  ConvTile t;
  t.weights = s.weights + (unit.first_block * reduction + chunk_first * unit.blocks) * kWidth;
  t.bias = s.bias + unit.first_block * kWidth;
  t.prefetch_step = tile_bytes / chunk_steps;
  t.prefetch_next = tile_bytes;
  // Rows of features are whole blocks of a vector side by side, which conv_block.hpp takes without a loop.
  const bool rows_of_blocks = kWholeBlocks && taps == 1 && s.x.plane == s.lanes && s.lanes > kWidth &&
                              s.lanes % kWidth == 0 && s.last_lanes % kWidth == 0;
  const int lanes = rows_of_blocks ? kWidth : s.lanes;
  t.x_plane = rows_of_blocks ? kWidth : s.x.plane;
  t.x_row = s.x.row * s.dilation_h;
  t.x_column = s.x.pixel * s.dilation_w;
  t.x_pixel = s.x.pixel * s.stride_w;
  t.out_plane = s.out.plane;
  t.out_pixel = s.out.pixel;
  t.residual_plane = s.y.plane;
  t.residual_pixel = s.y.pixel;
  t.blocks = rows_of_blocks ? static_cast<int>(chunk_steps) / kWidth : chunk_end - chunk_begin;
  t.lanes = lanes;
  t.last_lanes = chunk_end == in_blocks && !rows_of_blocks ? s.last_lanes : lanes;
  t.kernel_h = s.kernel_h;
  t.kernel_w = s.kernel_w;
  t.rows = {0, s.kernel_h};
  t.columns = {0, s.kernel_w};
  t.first = chunk_begin == reach.begin;
  t.last = chunk_end == reach.end;
  t.slope = s.slope;
  t.adds_last = s.adds_last;
  t.low = s.low;
  t.high = s.high;
  const char* next_weights = reinterpret_cast<const char*>(t.weights) + chunk_steps * unit.blocks * kWidth * 4;
  const std::int64_t row_tiles = conv_row_tiles(s);
  const float* x_base =
      s.x.data + (unit.group * in_blocks + chunk_begin) * s.x.plane - s.pad_top * s.x.row - s.pad_left * s.x.pixel;
  const ConvTileTable& functions = conv_functions(taps, t.x_pixel);
  const std::int64_t wide = s.out.w / row_tiles, wider = s.out.w % row_tiles;  // so many tiles have one pixel more
  const auto columns_at = [&](std::int64_t begin, std::int64_t pixels) {
    return taps_inside(s.kernel_w, s.dilation_w, begin * s.stride_w - s.pad_left, s.stride_w, pixels, s.x.w);
  };
  const std::int64_t most = s.function == kNoFunction ? INT64_MAX : kFinishedTiles;
  std::int64_t done = 0;
  // Computes a run that begins at a tile of a row: those beside it, or below it. Returns how many tiles it had.
  const auto compute = [&](std::int64_t row, std::int64_t column, std::int64_t count, bool below) {
    const std::int64_t n = row / s.out.h, y = row % s.out.h;
    const bool is_wider = column < wider;
    const std::int64_t begin = column * wide + (is_wider ? column : wider), pixels = wide + is_wider;
    t.x = x_base + n * s.x.image + y * s.stride_h * s.x.row + begin * t.x_pixel;
    t.out = s.out.data + n * s.out.image + unit.first_block * s.out.plane + y * s.out.row + begin * s.out.pixel;
    t.residual =
        s.y.data ? s.y.data + n * s.y.image + unit.first_block * s.y.plane + y * s.y.row + begin * s.y.pixel : nullptr;
    t.prefetch = next_weights + done * tile_bytes;
    if (count > most) count = most;
    if (whole_image) {
      t.rows = taps_inside(s.kernel_h, s.dilation_h, y * s.stride_h - s.pad_top, 1, 1, s.x.h);
      t.columns = columns_at(begin, pixels);
      std::int64_t alike = s.kernel_w == 1 ? count : 1;
      while (alike < count && same_taps(columns_at(begin + alike * pixels, pixels), t.columns)) ++alike;
      count = alike;
    }
    t.count = count;
    t.x_next = below ? s.stride_h * s.x.row : pixels * t.x_pixel;
    t.out_next = below ? s.out.row : pixels * s.out.pixel;
    t.residual_next = below ? s.y.row : pixels * s.y.pixel;
    if (far) prefetch_pixels_ahead(s, t, pixels);
    float* out = t.out;
    conv_run(conv_function(functions, unit.blocks, pixels), t);
    const std::int64_t parts = below ? count : 1;
    for (std::int64_t part = 0; t.last && part < parts; ++part) {
      finish(s, {out + part * s.out.row, t.out_plane, t.out_pixel, unit.blocks, count / parts * pixels});
    }
    done += count;
    return count;
  };
  const std::int64_t rows = tile_count / row_tiles;
  const bool whole_rows = tiles.begin % row_tiles == 0 && rows * row_tiles == tile_count;
  if ((whole_image && taps > 1) || s.out.n > 1 || !whole_rows || row_tiles >= rows) {
    for (std::int64_t i = tiles.begin; i < tiles.end;) {
      const std::int64_t column = i % row_tiles, left = (column < wider ? wider : row_tiles) - column;
      i += compute(i / row_tiles, column, left < tiles.end - i ? left : tiles.end - i, false);
    }
    return;
  }
  const std::int64_t end = tiles.end / row_tiles;
  for (std::int64_t column = 0; column < row_tiles; ++column) {
    for (std::int64_t row = tiles.begin / row_tiles; row < end;) row += compute(row, column, end - row, true);
  }
}

static void conv_direct(const Step& s, int thread, int threads) {
  const int row_parts = threads / s.channel_split;
  const int channel_part = thread / row_parts, row_part = thread % row_parts;
  if (channel_part >= s.channel_split) return;  // threads that do not divide evenly
  const Range units = share(s.groups * conv_group_units(s), channel_part, s.channel_split);
  const std::int64_t row_tiles = conv_row_tiles(s);
  const Range tiles = share(s.out.n * s.out.h * row_tiles, row_part, row_parts);
  const std::int64_t outputs = static_cast<std::int64_t>(s.out.blocks) * kWidth / s.groups / s.channel_split;
  for (std::int64_t begin = tiles.begin; begin < tiles.end; begin += s.chunk_tiles) {
    const std::int64_t end = begin + s.chunk_tiles < tiles.end ? begin + s.chunk_tiles : tiles.end;
    const std::int64_t pixels = (end - begin) * s.out.w / row_tiles;
    const bool many = kRuns && s.kernel_h * s.kernel_w == 1 && pixels > outputs;
    const bool spread = kRuns && pixels_outweigh(s, pixels);
    for (std::int64_t u = units.begin; u < units.end; ++u) {
      const ConvUnit unit = conv_unit(s, u);
      const bool far = spread || (many && (u == units.begin || unit.first_block % (s.out.blocks / s.groups) == 0));
      const ConvTaps reach = conv_reach(s, unit);
      for (int chunk = reach.begin; chunk < reach.end; chunk += s.chunk_blocks) {
        const int chunk_end = chunk + s.chunk_blocks < reach.end ? chunk + s.chunk_blocks : reach.end;
        conv_pass(s, unit, reach, chunk, chunk_end, {begin, end}, true, far);
      }
    }
  }
}

}  // namespace powerlab::engine::POWERLAB_TIER
