// Direct convolution of 16-bit floats with sums in float32: conv_direct.hpp's tiles and units, a word of two channels
// at a time.
//
// A tile of up to kPairTileBlocks vectors of sums x kPairTilePixels pixels stays in registers during the whole
// reduction: interrupted sums would be rounded. Padding is the halo of x. Convolutions in blocks and linear layers
// (pixels = rows) are views on it, and so is an image in which a row's pixels follow on each other (narrow_image): its
// one block is a row of the kernel. Channels that fill up a block are finite, and their weights 0; of float16 a block
// has a multiple of four words.
//
// Weights: [output unit][input block][kernel_h][kernel_w][word][vector of the unit][v], a word being the weights of two
// channels; of float16 as half_tile.hpp says. out: words in blocks of 16 channels, or floats in blocks of v. y:
// likewise, words where numbers[0] is 1.
#pragma once

#if defined(POWERLAB_HALVES)
#include "kernels/pairs/half_tile.hpp"
#elif defined(__AMX_BF16__) || defined(POWERLAB_AMX_MODEL)
#include "kernels/pairs/amx_tile.hpp"
#else
#include "kernels/pairs/register_tile.hpp"
#endif

namespace powerlab::engine::POWERLAB_TIER {

#if defined(POWERLAB_HALVES)
constexpr int kTileLanes = 2 * kWidth, kTileVectors = kHalfTileVectors;
#else
constexpr int kTileLanes = kWidth, kTileVectors = kPairTileBlocks;
#endif

// A group's output vectors of a tile, which are dealt to units, and its vectors of floats.
static inline std::int64_t pair_group_vectors(const Step& s) {
  return (s.out.c / s.groups + kTileLanes - 1) / kTileLanes;
}
static inline std::int64_t float_group_vectors(const Step& s) { return (s.out.c / s.groups + kWidth - 1) / kWidth; }

static inline ImageRows pair_rows(const Step& s) {
#if defined(POWERLAB_TILE_MULTIPLY)
  constexpr std::int64_t kLong = 512;  // words
  const std::int64_t words = s.x.blocks / s.groups * s.lanes * s.kernel_h * s.kernel_w;
  return merged_rows(s, kPairTilePixels, words >= kLong);
#else
  return image_rows(s);
#endif
}

// Zeros for the vectors that fill up the last block: what reads it multiplies them by 0, which makes no number of NaN.
static inline void pair_fill(const PairTile& t, int first, int vectors, std::int64_t pixels) {
  for (int b = first; b < first + vectors; ++b) {
    float* out = t.out + pair_place(t, b, t.out_plane);
    for (std::int64_t p = 0; p < pixels; ++p) store_narrow(out + p * t.out_pixel, Vec{});
  }
}

template <bool F>
static void pair_pass(const Step& s, std::int64_t unit, Range tiles, PairTiles& registers) {
  constexpr int kFloats = kTileLanes / kWidth;  // vectors of floats that a tile's vector is
  const std::int64_t vectors = pair_group_vectors(s), floats = float_group_vectors(s);
  const std::int64_t units = (vectors + kTileVectors - 1) / kTileVectors;
  const std::int64_t group = unit / units, i = unit % units;
  const std::int64_t begin_of = i * vectors / units, end_of = (i + 1) * vectors / units;
  const std::int64_t first_vector = begin_of * kFloats, last = end_of * kFloats < floats ? end_of * kFloats : floats;
  const std::int64_t in_blocks = s.x.blocks / s.groups;
  const std::int64_t reduction = in_blocks * s.lanes * s.kernel_h * s.kernel_w;
  const std::int64_t bytes = reduction * (end_of - begin_of) * kTileLanes * 4;
  const int filling =
      F || last < floats ? 0 : static_cast<int>((kBlockVectors - floats % kBlockVectors) % kBlockVectors);
  const bool narrow_residual = s.numbers[0] == 1;
  const std::int64_t out_block = group * (s.out.blocks / s.groups) + first_vector / (F ? 1 : kBlockVectors);
  const std::int64_t y_block = group * (s.y.blocks / s.groups) + first_vector / (narrow_residual ? kBlockVectors : 1);
  PairTile t;
  t.weights = s.weights + (group * vectors + begin_of) * reduction * kTileLanes;
  t.bias = s.bias + (group * floats + first_vector) * kWidth;
  t.prefetch_step = bytes / (tiles.end - tiles.begin) / reduction;
  t.x_plane = s.x.plane;
  t.x_row = s.x.row * s.dilation_h;
  t.x_column = s.x.pixel * s.dilation_w;
  t.x_pixel = s.x.pixel * s.stride_w;
  t.out_plane = s.out.plane;
  t.out_pixel = s.out.pixel;
  t.residual_plane = s.y.plane;
  t.residual_pixel = s.y.pixel;
  t.step = &s;
  t.first_vector = static_cast<int>(first_vector);
  t.blocks = static_cast<int>(in_blocks);
  t.words = s.lanes;
  // Half a block is left out where all its weights are 0.
  const std::int64_t last_channels = s.x.c / s.groups % kBlockChannels;
  t.last_words =
      s.lanes == kBlockWords && last_channels > 0 && last_channels <= kBlockWords ? kBlockWords / 2 : s.lanes;
  t.kernel_h = s.kernel_h;
  t.kernel_w = s.kernel_w;
  t.narrow_residual = narrow_residual;
  registers.begin(group, tiles.begin);
  const char* next_weights = reinterpret_cast<const char*>(t.weights) + bytes;
  const ImageRows rows = pair_rows(s);
  const std::int64_t row_tiles = rows.tiles(kPairTilePixels);
  const std::int64_t wide = rows.width / row_tiles, wider = rows.width % row_tiles;  // so many have one pixel more
  t.rows = {0, rows.pixels, s.out.w, s.out.row, s.y.row};
  const float* x_base = s.x.data + group * in_blocks * s.x.plane - s.pad_top * s.x.row - s.pad_left * s.x.pixel;
  for (std::int64_t tile = tiles.begin; tile < tiles.end; ++tile) {
    const std::int64_t column = tile % row_tiles, row = tile / row_tiles, n = row / rows.of_image,
                       y = row % rows.of_image;
    const std::int64_t begin = column * wide + (column < wider ? column : wider), pixels = wide + (column < wider);
    const std::int64_t first = rows.pixels ? 0 : begin;
    t.rows.first = begin;
    t.x = x_base + n * s.x.image + y * s.stride_h * s.x.row + begin * t.x_pixel;
    t.out = s.out.data + n * s.out.image + out_block * s.out.plane + y * s.out.row + first * s.out.pixel;
    t.residual = s.y.data ? s.y.data + n * s.y.image + y_block * s.y.plane + y * s.y.row + first * s.y.pixel : nullptr;
    t.prefetch = next_weights + (tile - tiles.begin) * (bytes / (tiles.end - tiles.begin));
    run_pair_tile<F>(t, last - first_vector, pixels, registers);
    if (!filling) continue;
    for_rows(t, static_cast<int>(pixels), [&](const PairTile& part, int, int count) {
      pair_fill(part, static_cast<int>(last - first_vector), filling, count);
    });
  }
  end_pair_tiles<F>(last - first_vector, registers);
}

template <bool F>
static void conv_pairs(const Step& s, int thread, int threads) {
  const int row_parts = threads / s.channel_split;
  const int channel_part = thread / row_parts, row_part = thread % row_parts;
  if (channel_part >= s.channel_split) return;  // threads that do not divide evenly
  const std::int64_t group_units = (pair_group_vectors(s) + kTileVectors - 1) / kTileVectors;
  const Range units = share(s.groups * group_units, channel_part, s.channel_split);
  const ImageRows rows = pair_rows(s);
  const Range tiles = share(s.out.n * rows.of_image * rows.tiles(kPairTilePixels), row_part, row_parts);
  PairTiles registers(s);
  const std::int64_t own = tiles.end - tiles.begin, wanted = s.chunk_tiles < own ? s.chunk_tiles : own;
  const std::int64_t chunk = registers.at_once(wanted);
  for (std::int64_t begin = tiles.begin; begin < tiles.end; begin += chunk) {
    const std::int64_t end = begin + chunk < tiles.end ? begin + chunk : tiles.end;
    for (std::int64_t unit = units.begin; unit < units.end; ++unit) pair_pass<F>(s, unit, {begin, end}, registers);
  }
}

}  // namespace powerlab::engine::POWERLAB_TIER
