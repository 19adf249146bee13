// Direct convolution in the blocked layout: out = activate(conv(x) + bias + y).
//
// A tile of up to kTileBlocks channel blocks x kTilePixels pixels of one output row stays in registers while the
// reduction runs over chunks of input blocks, kernel rows, kernel columns and channels; every step broadcasts one input
// value per pixel and multiplies it with one weight vector per block. Padding is the halo of x, so there are no edges.
// A row is cut into tiles of nearly equal width. Fully connected layers (pixels = images), 1x1 convolutions (one row of
// all pixels) and the first layer (interleaved x, a kernel row folded into the lanes) are views on this kernel.
//
// Weights: [output unit][input block][kernel_h][kernel_w][lane][block of the unit][v], in the order they are read. The
// output blocks of a group are dealt to ceil(blocks / kTileBlocks) units of nearly equal size. The next chunk of
// weights is prefetched evenly over all tiles of the current one; bursts of prefetches were slower.
//
// Where there are few registers, a row of 7 pixels in tiles of 4 and 3 leaves too few sums to hide their latency. Tall
// tiles have more blocks and fewer pixels; a step whose units have more blocks than kTileBlocks is computed in them.
// Groups of one block have long tiles, for the same reason.
#pragma once

#include "kernels/epilogue.hpp"

namespace powerlab::engine::POWERLAB_TIER {

constexpr int kTileBlocks = POWERLAB_TILE_BLOCKS;
constexpr int kTilePixels = POWERLAB_TILE_PIXELS;
constexpr int kTallBlocks = POWERLAB_TALL_BLOCKS;
constexpr int kTallPixels = POWERLAB_TALL_PIXELS;
#if defined(__aarch64__)
constexpr int kLongPixels = kTilePixels;  // enough by themselves, and each pixel takes a register
#else
constexpr int kLongPixels = 2 * kTilePixels;
#endif
constexpr int kMostBlocks = kTallBlocks > kTileBlocks ? kTallBlocks : kTileBlocks;

// Which taps of a kernel are computed.
struct ConvTaps {
  int begin, end;
};

// One tile's work on one chunk of the reduction.
struct ConvTile {
  const float* x;  // first pixel, first block of the chunk, first tap
  const float* weights;
  const float* bias;
  float* out;
  const float* residual;  // null where there is none
  const char* prefetch;
  std::int64_t prefetch_step;  // bytes
  std::int64_t x_plane, x_row, x_column, x_pixel;
  std::int64_t out_plane, out_pixel, residual_plane, residual_pixel;
  int blocks, lanes, last_lanes, kernel_h, kernel_w;
  ConvTaps rows, columns;  // those that meet the image at some pixel of the tile; all others add zeros
  bool first, last;        // chunk of the reduction
  float slope, low, high;
};

// Of x and x3, the first pixel and the fourth, x86's addresses reach two more each.
template <int B, int P>
static inline __attribute__((always_inline)) void conv_lane(Vec (&acc)[B][P], const float* x, const float* x3,
                                                            std::int64_t pixel, const float* weights) {
  const float *x6 = x3 + 3 * pixel, *x9 = x6 + 3 * pixel;
  Vec w[B];
  POWERLAB_UNROLL
  for (int b = 0; b < B; ++b) w[b] = load(weights + b * kWidth);
  POWERLAB_UNROLL
  for (int p = 0; p < P; ++p) {
    const float value = p < 3   ? x[p * pixel]
                        : p < 6 ? x3[(p - 3) * pixel]
                        : p < 9 ? x6[(p - 6) * pixel]
                                : x9[(p - 9) * pixel];
    POWERLAB_UNROLL
    for (int b = 0; b < B; ++b) acc[b][p] += w[b] * value;
  }
}

#if defined(__aarch64__)
// Four channels at once: Arm multiplies by one element of a vector, so that one load serves four steps.
constexpr bool kFourLanes = true;

template <int B, int P>
static inline __attribute__((always_inline)) void conv_four_lanes(Vec (&acc)[B][P], const float* x, std::int64_t pixel,
                                                                  const float* weights) {
  static_assert(kWidth == 4);
  Vec values[P];
  POWERLAB_UNROLL
  for (int p = 0; p < P; ++p) values[p] = load_unaligned(x + p * pixel);
  POWERLAB_UNROLL
  for (int i = 0; i < 4 * B; i += 2) {  // two vectors of weights are one load
    const Vec w0 = load(weights + i * kWidth), w1 = load(weights + (i + 1) * kWidth);
    POWERLAB_UNROLL
    for (int p = 0; p < P; ++p) acc[i % B][p] += w0 * values[p][i / B];
    POWERLAB_UNROLL
    for (int p = 0; p < P; ++p) acc[(i + 1) % B][p] += w1 * values[p][(i + 1) / B];
  }
}
#else
constexpr bool kFourLanes = false;

template <int B, int P>
static inline void conv_four_lanes(Vec (&)[B][P], const float*, std::int64_t, const float*) {}
#endif

// One block of the reduction at one tap.
template <int B, int P>
static inline __attribute__((always_inline)) void conv_lanes(Vec (&acc)[B][P], const float* x, std::int64_t pixel,
                                                             int lanes, const float*& weights, const char*& prefetch,
                                                             std::int64_t prefetch_step) {
  const float* x3 = x + 3 * pixel;
  int lane = 0;
  if constexpr (kFourLanes) {
    for (; lane + 4 <= lanes; lane += 4) {
      conv_four_lanes<B, P>(acc, x + lane, pixel, weights);
      weights += 4 * B * kWidth;
      __builtin_prefetch(prefetch, 0, 2);
      prefetch += 4 * prefetch_step;
    }
  }
  POWERLAB_UNROLL_BY_2
  for (; lane < lanes; ++lane) {
    conv_lane<B, P>(acc, x + lane, x3 + lane, pixel, weights);
    weights += B * kWidth;
    __builtin_prefetch(prefetch, 0, 2);
    prefetch += prefetch_step;
  }
}

// What begins a tile: the bias, or the sums of earlier chunks.
template <int B, int P>
static inline __attribute__((always_inline)) void conv_start(Vec (&acc)[B][P], const ConvTile& t) {
  POWERLAB_UNROLL
  for (int b = 0; b < B; ++b) {
    const Vec bias = load(t.bias + b * kWidth);
    POWERLAB_UNROLL
    for (int p = 0; p < P; ++p) acc[b][p] = bias;
  }
  if (!t.first) {
    POWERLAB_UNROLL
    for (int b = 0; b < B; ++b) {
      POWERLAB_UNROLL
      for (int p = 0; p < P; ++p) acc[b][p] = load(t.out + b * t.out_plane + p * t.out_pixel);
    }
  }
}

// What ends a tile: everything the loops need is in registers before them, since a store might change `t`.
template <int B, int P>
static inline __attribute__((always_inline)) void conv_finish(Vec (&acc)[B][P], const ConvTile& t) {
  if (t.residual) {
    const float* residual = t.residual;
    const std::int64_t plane = t.residual_plane, pixel = t.residual_pixel;
    POWERLAB_UNROLL
    for (int b = 0; b < B; ++b) {
      POWERLAB_UNROLL
      for (int p = 0; p < P; ++p) acc[b][p] += load(residual + b * plane + p * pixel);
    }
  }
  if (t.slope != 1) {
    const Vec slope = broadcast(t.slope);
    POWERLAB_UNROLL
    for (int b = 0; b < B; ++b) {
      POWERLAB_UNROLL
      for (int p = 0; p < P; ++p) acc[b][p] = acc[b][p] < broadcast(0) ? acc[b][p] * slope : acc[b][p];
    }
  }
  const Vec low = broadcast(t.low), high = broadcast(t.high);
  POWERLAB_UNROLL
  for (int b = 0; b < B; ++b) {
    POWERLAB_UNROLL
    for (int p = 0; p < P; ++p) acc[b][p] = clamp(acc[b][p], low, high);
  }
}

template <int B, int P>
static inline __attribute__((always_inline)) void conv_store(Vec (&acc)[B][P], const ConvTile& t) {
  if (t.last) conv_finish<B, P>(acc, t);
  // Reads t anew: else the addresses of all pixels would be kept, on the stack, from the first loads on.
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  float* out = t.out;
  const std::int64_t out_plane = t.out_plane, out_pixel = t.out_pixel;
  POWERLAB_UNROLL
  for (int b = 0; b < B; ++b) {
    POWERLAB_UNROLL
    for (int p = 0; p < P; ++p) store(out + b * out_plane + p * out_pixel, acc[b][p]);
  }
}

// Any kernel. S: how many vectors the pixels of x lie apart, or 0 where no number is compiled in.
template <int B, int P, int S>
static __attribute__((noinline)) void conv_tile(const ConvTile& t) {
  Vec acc[B][P];
  conv_start<B, P>(acc, t);
  const float* weights = t.weights;
  const char* prefetch = t.prefetch;
  const std::int64_t pixel = S ? S * kWidth : t.x_pixel, prefetch_step = t.prefetch_step;
  for (int block = 0; block < t.blocks; ++block) {
    const int lanes = block + 1 == t.blocks ? t.last_lanes : t.lanes;
    const float* block_weights = weights;
    for (int ky = t.rows.begin; ky < t.rows.end; ++ky) {
      weights = block_weights + (ky * t.kernel_w + t.columns.begin) * lanes * B * kWidth;
      const float* x = t.x + block * t.x_plane + ky * t.x_row + t.columns.begin * t.x_column;
      if (kFourLanes && S && lanes == 4) {
        for (int kx = t.columns.end - t.columns.begin; kx > 0; --kx, x += t.x_column) {
          conv_four_lanes<B, P>(acc, x, pixel, weights);
          weights += 4 * B * kWidth;
          __builtin_prefetch(prefetch, 0, 2);
          prefetch += 4 * prefetch_step;
        }
      } else {
        for (int kx = t.columns.begin; kx < t.columns.end; ++kx, x += t.x_column) {
          conv_lanes<B, P>(acc, x, pixel, lanes, weights, prefetch, prefetch_step);
        }
      }
    }
    weights = block_weights + t.kernel_h * t.kernel_w * lanes * B * kWidth;
  }
  conv_store<B, P>(acc, t);
}

// Kernels of 1 x 1, whose reductions may be so short that what surrounds them counts.
template <int B, int P, int S>
static __attribute__((noinline)) void conv_point(const ConvTile& t) {
  Vec acc[B][P];
  conv_start<B, P>(acc, t);
  const float* weights = t.weights;
  const char* prefetch = t.prefetch;
  const std::int64_t plane = t.x_plane, pixel = S ? S * kWidth : t.x_pixel, prefetch_step = t.prefetch_step;
  const float* x = t.x;
  int left = t.blocks;
  if (kFourLanes && S && t.lanes == 4) {
    const int whole = t.last_lanes == 4 ? left : left - 1;
    for (int block = whole; block > 0; --block, x += plane) {
      conv_four_lanes<B, P>(acc, x, pixel, weights);
      weights += 4 * B * kWidth;
      __builtin_prefetch(prefetch, 0, 2);
      prefetch += 4 * prefetch_step;
    }
    left -= whole;
  }
  for (; left > 0; --left, x += plane) {
    conv_lanes<B, P>(acc, x, pixel, left > 1 ? t.lanes : t.last_lanes, weights, prefetch, prefetch_step);
  }
  conv_store<B, P>(acc, t);
}

using ConvTileFunction = void (*)(const ConvTile&);

using AllTiles = typename MakeIndices<kMostBlocks * kLongPixels>::type;

struct ConvTileTable {
  ConvTileFunction at[kMostBlocks * kLongPixels];  // null for tiles of more sums than there are registers
};
// The most pixels of a tile of so many blocks. In long ones they follow on each other, or addresses would take more
// registers than there are.
constexpr int tile_pixels(std::int64_t blocks) {
  return blocks == 1 ? kLongPixels : blocks <= kTileBlocks ? kTilePixels : kTallPixels;
}
template <int B, int P, int S>
constexpr ConvTileFunction conv_tile_function() {
  if constexpr (P <= tile_pixels(B)) return &conv_tile<B, P, (P > kTilePixels ? 1 : S)>;
  return nullptr;
}
template <int B, int P, int S>
constexpr ConvTileFunction conv_point_function() {
  if constexpr (P <= tile_pixels(B)) return &conv_point<B, P, (P > kTilePixels ? 1 : S)>;
  return nullptr;
}
template <int S, int... I>
constexpr ConvTileTable make_conv_tiles(Indices<I...>) {
  return {{conv_tile_function<I / kLongPixels + 1, I % kLongPixels + 1, S>()...}};
}
template <int S, int... I>
constexpr ConvTileTable make_conv_points(Indices<I...>) {
  return {{conv_point_function<I / kLongPixels + 1, I % kLongPixels + 1, S>()...}};
}
// By how many vectors the pixels lie apart; x86's addresses have room for any number.
#if defined(__aarch64__)
static constexpr ConvTileTable kConvTiles[] = {make_conv_tiles<0>(AllTiles{}), make_conv_tiles<1>(AllTiles{}),
                                               make_conv_tiles<2>(AllTiles{})};
static constexpr ConvTileTable kConvPoints[] = {make_conv_points<0>(AllTiles{}), make_conv_points<1>(AllTiles{}),
                                                make_conv_points<2>(AllTiles{})};
#else
static constexpr ConvTileTable kConvTiles[] = {make_conv_tiles<0>(AllTiles{})};
static constexpr ConvTileTable kConvPoints[] = {make_conv_points<0>(AllTiles{})};
#endif

static inline const ConvTileTable& conv_functions(std::int64_t taps, std::int64_t pixel) {
  const std::int64_t apart = kFourLanes && (pixel == kWidth || pixel == 2 * kWidth) ? pixel / kWidth : 0;
  return taps == 1 ? kConvPoints[apart] : kConvTiles[apart];
}
static inline ConvTileFunction conv_function(const ConvTileTable& functions, std::int64_t blocks, std::int64_t pixels) {
  return functions.at[(blocks - 1) * kLongPixels + (pixels - 1)];
}

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

// All tiles of `tiles` for one unit and one chunk of the reduction. Where x is the whole image, taps that meet only its
// halo are left out.
static void conv_pass(const Step& s, const ConvUnit& unit, int chunk_begin, int chunk_end, Range tiles,
                      bool whole_image) {
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
  t.x_plane = s.x.plane;
  t.x_row = s.x.row * s.dilation_h;
  t.x_column = s.x.pixel * s.dilation_w;
  t.x_pixel = s.x.pixel * s.stride_w;
  t.out_plane = s.out.plane;
  t.out_pixel = s.out.pixel;
  t.residual_plane = s.y.plane;
  t.residual_pixel = s.y.pixel;
  t.blocks = chunk_end - chunk_begin;
  t.lanes = s.lanes;
  t.last_lanes = chunk_end == in_blocks ? s.last_lanes : s.lanes;
  t.kernel_h = s.kernel_h;
  t.kernel_w = s.kernel_w;
  t.rows = {0, s.kernel_h};
  t.columns = {0, s.kernel_w};
  t.first = chunk_begin == 0;
  t.last = chunk_end == in_blocks;
  t.slope = s.slope;
  t.low = s.low;
  t.high = s.high;
  const char* next_weights = reinterpret_cast<const char*>(t.weights) + chunk_steps * unit.blocks * kWidth * 4;
  const std::int64_t row_tiles = conv_row_tiles(s);
  const float* x_base =
      s.x.data + (unit.group * in_blocks + chunk_begin) * s.x.plane - s.pad_top * s.x.row - s.pad_left * s.x.pixel;
  const ConvTileTable& functions = conv_functions(taps, t.x_pixel);
  const std::int64_t wide = s.out.w / row_tiles, wider = s.out.w % row_tiles;  // so many tiles have one pixel more
  std::int64_t column = tiles.begin % row_tiles, row = tiles.begin / row_tiles;
  std::int64_t n = row / s.out.h, y = row % s.out.h;
  for (std::int64_t i = tiles.begin; i < tiles.end; ++i) {
    const std::int64_t begin = column * wide + (column < wider ? column : wider);
    const std::int64_t pixels = wide + (column < wider);
    t.x = x_base + n * s.x.image + y * s.stride_h * s.x.row + begin * t.x_pixel;
    t.out = s.out.data + n * s.out.image + unit.first_block * s.out.plane + y * s.out.row + begin * s.out.pixel;
    t.residual =
        s.y.data ? s.y.data + n * s.y.image + unit.first_block * s.y.plane + y * s.y.row + begin * s.y.pixel : nullptr;
    t.prefetch = next_weights + (i - tiles.begin) * tile_bytes;
    if (whole_image) {
      t.rows = taps_inside(s.kernel_h, s.dilation_h, y * s.stride_h - s.pad_top, 1, 1, s.x.h);
      t.columns = taps_inside(s.kernel_w, s.dilation_w, begin * s.stride_w - s.pad_left, s.stride_w, pixels, s.x.w);
    }
    conv_function(functions, unit.blocks, pixels)(t);
    if (t.last) finish(s, {t.out, t.out_plane, t.out_pixel, unit.blocks, pixels});
    if (++column == row_tiles) {
      column = 0;
      if (++y == s.out.h) {
        y = 0;
        ++n;
      }
    }
  }
}

static void conv_direct(const Step& s, int thread, int threads) {
  const int row_parts = threads / s.channel_split;
  const int channel_part = thread / row_parts, row_part = thread % row_parts;
  if (channel_part >= s.channel_split) return;  // threads that do not divide evenly
  const Range units = share(s.groups * conv_group_units(s), channel_part, s.channel_split);
  const std::int64_t row_tiles = conv_row_tiles(s);
  const Range tiles = share(s.out.n * s.out.h * row_tiles, row_part, row_parts);
  const int in_blocks = s.x.blocks / s.groups;
  for (std::int64_t begin = tiles.begin; begin < tiles.end; begin += s.chunk_tiles) {
    const std::int64_t end = begin + s.chunk_tiles < tiles.end ? begin + s.chunk_tiles : tiles.end;
    for (std::int64_t u = units.begin; u < units.end; ++u) {
      const ConvUnit unit = conv_unit(s, u);
      for (int chunk = 0; chunk < in_blocks; chunk += s.chunk_blocks) {
        const int chunk_end = chunk + s.chunk_blocks < in_blocks ? chunk + s.chunk_blocks : in_blocks;
        conv_pass(s, unit, chunk, chunk_end, {begin, end}, true);
      }
    }
  }
}

}  // namespace powerlab::engine::POWERLAB_TIER
