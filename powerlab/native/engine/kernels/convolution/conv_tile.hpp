// A register tile of a convolution or product: the sums of up to kTileBlocks channel blocks x kTilePixels pixels stay
// in registers while the reduction runs over input blocks, kernel rows, kernel columns and channels; every step
// broadcasts one input value per pixel and multiplies it with one weight vector per block. Tiles of equal width that
// follow on each other are a run, computed by one call: what a call costs would be a third of a tile's time where there
// are 16 channels.
//
// Where there are few registers, a row of 7 pixels in tiles of 4 and 3 leaves too few sums to hide their latency. Tall
// tiles have more blocks and fewer pixels; a step whose units have more blocks than kTileBlocks is computed in them.
// Groups of one block have long tiles, for the same reason.
#pragma once

#include "kernels/convolution/conv_block.hpp"

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

// The work of a run of tiles on one chunk of the reduction. It moves on as they are computed.
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
  bool adds_last;                                // the residual, to what the activation made
  std::int64_t count;                            // tiles of the run, at least one
  std::int64_t x_next, out_next, residual_next;  // from one to the next,
  std::int64_t prefetch_next;                    // in bytes,
  std::int64_t prefetch_row = 0;                 // from the last tap of a row to the next row,
  std::int64_t prefetch_block = 0;               // and from the last row, or channel, of a block to the next block
};

// Whether a tile's function goes through a run by itself. On Arm a loop around the tile would cost it the registers in
// which it keeps addresses.
#if defined(__aarch64__)
constexpr bool kRuns = false;
#else
constexpr bool kRuns = true;
#endif

// Moves on to the next tile of a run; false where there is none.
static inline __attribute__((always_inline)) bool conv_next(ConvTile& t) {
  if (--t.count == 0) return false;
  t.x += t.x_next;
  t.out += t.out_next;
  if (t.residual) t.residual += t.residual_next;
  t.prefetch += t.prefetch_next;
  return true;
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
  const auto add_residual = [&]() __attribute__((always_inline)) {
    const float* residual = t.residual;
    const std::int64_t plane = t.residual_plane, pixel = t.residual_pixel;
    POWERLAB_UNROLL
    for (int b = 0; b < B; ++b) {
      POWERLAB_UNROLL
      for (int p = 0; p < P; ++p) acc[b][p] += load(residual + b * plane + p * pixel);
    }
  };
  if (t.residual && !t.adds_last) add_residual();
  activate_tile(acc, t.slope, t.low, t.high);
  if (t.residual && t.adds_last) add_residual();
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

// A tile whose blocks are whole ones, for any kernel, and for those of 1 x 1.
template <int B, int P>
static inline __attribute__((always_inline)) void conv_whole_tile(const ConvTile& t) {
  constexpr int kTap = kWidth * B * kWidth;
  Vec acc[B][P];
  conv_start<B, P>(acc, t);
  const float* weights = t.weights;
  const char* prefetch = t.prefetch;
  const std::int64_t pixel = t.x_pixel, column = t.x_column, prefetch_step = t.prefetch_step;
  const std::int64_t prefetch_row = t.prefetch_row, prefetch_block = t.prefetch_block;
  for (int block = 0; block < t.blocks; ++block) {
    const float* block_weights = weights;
    for (int ky = t.rows.begin; ky < t.rows.end; ++ky) {
      weights = block_weights + (ky * t.kernel_w + t.columns.begin) * kTap;
      const float* x = t.x + block * t.x_plane + ky * t.x_row + t.columns.begin * column;
      int taps = t.columns.end - t.columns.begin;  // at least one
      do {
        conv_whole<B, P>(acc, x, pixel, weights, prefetch, prefetch_step);
        x += column;
        weights += kTap;
        prefetch += kWidth * prefetch_step;
      } while (--taps > 0);
      prefetch += prefetch_row;
    }
    prefetch += prefetch_block;
    weights = block_weights + t.kernel_h * t.kernel_w * kTap;
  }
  conv_store<B, P>(acc, t);
}

template <int B, int P>
static inline __attribute__((always_inline)) void conv_whole_point(const ConvTile& t) {
  Vec acc[B][P];
  conv_start<B, P>(acc, t);
  const float *x = t.x, *weights = t.weights;
  const char* prefetch = t.prefetch;
  const std::int64_t plane = t.x_plane, pixel = t.x_pixel, prefetch_step = t.prefetch_step;
  const std::int64_t prefetch_next = kWidth * prefetch_step + t.prefetch_block;
  int left = t.blocks;
  do {
    conv_whole<B, P>(acc, x, pixel, weights, prefetch, prefetch_step);
    x += plane;
    weights += kWidth * B * kWidth;
    prefetch += prefetch_next;
  } while (--left > 0);
  conv_store<B, P>(acc, t);
}

static inline bool has_whole_blocks(const ConvTile& t) {
  return kWholeBlocks && t.lanes == kWidth && t.last_lanes == kWidth;
}

// Any kernel. S: how many vectors the pixels of x lie apart, or 0 where no number is compiled in.
template <int B, int P, int S>
static __attribute__((noinline)) void conv_tile(ConvTile& t) {
  if (has_whole_blocks(t)) {
    do {
      conv_whole_tile<B, P>(t);
    } while (kRuns && conv_next(t));
    return;
  }
  do {
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
        if constexpr (kRuns) prefetch += t.prefetch_row;
      }
      if constexpr (kRuns) prefetch += t.prefetch_block;
      weights = block_weights + t.kernel_h * t.kernel_w * lanes * B * kWidth;
    }
    conv_store<B, P>(acc, t);
  } while (kRuns && conv_next(t));
}

// Kernels of 1 x 1, whose reductions may be so short that what surrounds them counts.
template <int B, int P, int S>
static __attribute__((noinline)) void conv_point(ConvTile& t) {
  if (has_whole_blocks(t)) {
    do {
      conv_whole_point<B, P>(t);
    } while (kRuns && conv_next(t));
    return;
  }
  do {
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
      if constexpr (kRuns) prefetch += t.prefetch_block;
    }
    conv_store<B, P>(acc, t);
  } while (kRuns && conv_next(t));
}

using ConvTileFunction = void (*)(ConvTile&);

// Computes a run.
static inline void conv_run(ConvTileFunction function, ConvTile& t) {
  do {
    function(t);
  } while (!kRuns && conv_next(t));
}

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

}  // namespace powerlab::engine::POWERLAB_TIER
