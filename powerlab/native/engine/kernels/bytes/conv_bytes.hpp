// Direct convolution of bytes: conv_direct.hpp's tiles and units, a word of four channels at a time.
//
// A tile of up to kByteTileBlocks vectors of sums x kByteTilePixels pixels stays in registers, or in those of AMX,
// during the whole reduction: sums of 32 bits have no place in an output of bytes, and weights of one unit are few. The
// halo's zero points add what `bias` takes away again, so no tap is left out. Every convolution but the depthwise ones,
// fully connected layers (pixels = images or rows) and first layers (one word a pixel, a kernel row folded into the
// words) are views on it.
//
// Weights: [output unit][input block][kernel_h][kernel_w][word][vector of the unit][half][v], see words.hpp; of narrow
// ones there are no halves.
// Bias: for each vector of outputs v integers that the sums begin with, then v multipliers.
// out: bytes, or floats in blocks of v channels, of which the multipliers then are the scales; these may end with a
// function.
#pragma once

#if defined(__AMX_INT8__) || defined(POWERLAB_AMX_MODEL)
#include "kernels/bytes/amx_tile.hpp"
#else
#include "kernels/bytes/tile_table.hpp"
#endif

namespace powerlab::engine::POWERLAB_TIER {

// Output vectors of a group, and how they are dealt to units.
static inline std::int64_t byte_group_vectors(const Step& s) { return (s.out.c / s.groups + kWidth - 1) / kWidth; }

// Weights of a unit: where they are, and how large.
struct ByteWeights {
  std::int64_t group, first, count;  // vectors of the group
  std::int64_t reduction, bytes;
  const std::uint8_t* at;
};
template <int N>
static inline ByteWeights byte_weights(const Step& s, std::int64_t unit) {
  const std::int64_t vectors = byte_group_vectors(s);
  const std::int64_t units = (vectors + kByteTileBlocks<N> - 1) / kByteTileBlocks<N>;
  const std::int64_t words = (s.x.blocks / s.groups - 1) * packed_words(s.lanes) + packed_words(s.last_lanes);
  ByteWeights w;
  w.group = unit / units;
  w.first = unit % units * vectors / units;
  w.count = (unit % units + 1) * vectors / units - w.first;
  w.reduction = words * s.kernel_h * s.kernel_w;
  w.bytes = w.reduction * w.count * kWordBytes<N>;
  w.at = bytes_of(s.weights) + (w.group * vectors + w.first) * w.reduction * kWordBytes<N>;
  return w;
}

// The units of a thread.
template <int N>
static inline Range byte_units(const Step& s, int channel_part) {
  const std::int64_t group_units = (byte_group_vectors(s) + kByteTileBlocks<N> - 1) / kByteTileBlocks<N>;
  return share(s.groups * group_units, channel_part, s.channel_split);
}

template <bool F, int N>
static inline ImageRows byte_rows(const Step& s) {
#if defined(POWERLAB_TILE_MULTIPLY)
  if (!(F && s.function != kNoFunction)) return merged_rows(s, kByteTilePixels<N>, false);
#endif
  return image_rows(s);
}

template <bool F, int N>
static void byte_pass(const Step& s, const ByteWeights& w, const std::uint8_t* next, Range tiles,
                      ByteTiles& registers) {
  const std::int64_t group = w.group, first = w.first, count = w.count, bytes = w.bytes;
  const std::int64_t in_blocks = s.x.blocks / s.groups;
  const std::int64_t out_first = group * (s.out.blocks / s.groups);
  const std::int64_t out_block = out_first + first / (F ? 1 : kBlockVectors);  // byte_place knows where in the block
  const std::int64_t y_block = group * (s.y.blocks / s.groups) + first / kBlockVectors;
  ByteTile t;
  t.weights = w.at;
  t.bias = s.bias + (group * byte_group_vectors(s) + first) * 2 * kWidth;
  t.prefetch_step = bytes / (tiles.end - tiles.begin) / w.reduction;
  t.x_plane = s.x.plane;
  t.x_row = s.x.row * s.dilation_h;
  t.x_column = s.x.pixel * s.dilation_w;
  t.x_pixel = s.x.pixel * s.stride_w;
  t.out_plane = 4 * s.out.plane;
  t.out_pixel = 4 * s.out.pixel;
  t.residual_plane = 4 * s.y.plane;
  t.residual_pixel = 4 * s.y.pixel;
  t.first_vector = static_cast<int>(first);
  t.blocks = static_cast<int>(in_blocks);
  t.words = s.lanes;
  t.last_words = s.last_lanes;
  t.kernel_h = s.kernel_h;
  t.kernel_w = s.kernel_w;
  t.requantize = requantize_of(s);
  registers.begin(group, tiles.begin);
  const char* next_weights = reinterpret_cast<const char*>(next);
  const ImageRows rows = byte_rows<F, N>(s);
  const std::int64_t row_tiles = rows.tiles(kByteTilePixels<N>);
  const std::int64_t wide = rows.width / row_tiles, wider = rows.width % row_tiles;  // so many have one pixel more
  t.rows = {0, rows.pixels, s.out.w, 4 * s.out.row, 4 * s.y.row};
  const float* x_base = s.x.data + group * in_blocks * s.x.plane - s.pad_top * s.x.row - s.pad_left * s.x.pixel;
  std::int64_t column = tiles.begin % row_tiles, row = tiles.begin / row_tiles, n = row / rows.of_image,
               y = row % rows.of_image;
  for (std::int64_t tile = tiles.begin, run = 1; tile < tiles.end; tile += run) {
    const std::int64_t begin = column * wide + (column < wider ? column : wider), pixels = wide + (column < wider);
    t.x = x_base + n * s.x.image + y * s.stride_h * s.x.row + begin * t.x_pixel;
    const std::int64_t of_row = rows.pixels ? 0 : begin;
    t.rows.first = begin;
    t.out = bytes_of(s.out.data + n * s.out.image + out_block * s.out.plane + y * s.out.row + of_row * s.out.pixel);
    t.residual = s.y.data ? bytes_of(s.y.data + n * s.y.image + y_block * s.y.plane + y * s.y.row + of_row * s.y.pixel)
                          : nullptr;
    t.prefetch = next_weights + (tile - tiles.begin) * (bytes / (tiles.end - tiles.begin));
    [[maybe_unused]] std::uint8_t* out = t.out;
    if constexpr (kByteRuns) {
      const std::int64_t like = (column < wider ? wider : row_tiles) - column, left = tiles.end - tile;
      t.count = run = like < left ? like : left;
      t.x_next = pixels * t.x_pixel;
      t.out_next = pixels * t.out_pixel;
      t.residual_next = s.y.data ? pixels * t.residual_pixel : 0;
      t.prefetch_next = bytes / (tiles.end - tiles.begin);
    }
    run_byte_tile<F, N>(t, count, pixels, registers);
    if constexpr (F) {
      if (s.function != kNoFunction) {
        end_byte_tiles<F, N>(count, registers);
        POWERLAB_BASE_TIER::finish_tile(s, {reinterpret_cast<float*>(out), s.out.plane, s.out.pixel,
                                            static_cast<std::int64_t>(count), run * pixels});
      }
    }
    if ((column += run) < row_tiles) continue;
    column = 0;
    if (++y < rows.of_image) continue;
    y = 0;
    ++n;
  }
  end_byte_tiles<F, N>(count, registers);
}

template <bool F, int N = 1>
static void conv_bytes(const Step& s, int thread, int threads) {
  const int row_parts = threads / s.channel_split;
  const int channel_part = thread / row_parts, row_part = thread % row_parts;
  if (channel_part >= s.channel_split) return;  // threads that do not divide evenly
  const Range units = byte_units<N>(s, channel_part);
  // What comes first in the next step, as cold as all weights are; where it is cut like this one.
  const std::uint8_t* behind = nullptr;
  if (s.next != nullptr && s.next->weights != nullptr) {
    const int parts = threads / s.next->channel_split;
    behind = byte_weights<N>(*s.next, byte_units<N>(*s.next, thread / parts % s.next->channel_split).begin).at;
  }
  const ImageRows rows = byte_rows<F, N>(s);
  const Range tiles = share(s.out.n * rows.of_image * rows.tiles(kByteTilePixels<N>), row_part, row_parts);
  ByteTiles registers(s);
  const std::int64_t own = tiles.end - tiles.begin, wanted = s.chunk_tiles < own ? s.chunk_tiles : own;
  const std::int64_t chunk = registers.at_once(wanted);
  for (std::int64_t begin = tiles.begin; begin < tiles.end; begin += chunk) {
    const std::int64_t end = begin + chunk < tiles.end ? begin + chunk : tiles.end;
    ByteWeights weights = byte_weights<N>(s, units.begin);
    for (std::int64_t unit = units.begin; unit < units.end; ++unit) {
      const ByteWeights after = byte_weights<N>(s, unit + 1 < units.end ? unit + 1 : unit);
      const bool is_last = unit + 1 == units.end && end == tiles.end && behind != nullptr;
      byte_pass<F, N>(s, weights, is_last ? behind : weights.at + weights.bytes, {begin, end}, registers);
      weights = after;
    }
  }
}

}  // namespace powerlab::engine::POWERLAB_TIER
