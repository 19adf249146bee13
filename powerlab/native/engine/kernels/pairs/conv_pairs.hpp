// Direct convolution of bfloat16 with sums in float32: conv_direct.hpp's tiles and units, a word of two channels at a
// time.
//
// A tile of up to kPairTileBlocks vectors of sums x kPairTilePixels pixels stays in registers during the whole
// reduction: interrupted sums would be rounded. Padding is the halo of x. Convolutions in blocks and linear layers
// (pixels = rows) are views on it. An input block has a multiple of four words; channels that fill it up are finite,
// and their weights 0.
//
// Weights: [output unit][input block][kernel_h][kernel_w][word][vector of the unit][v], a word being the weights of two
// channels. out: words in blocks of 16 channels, or floats in blocks of v. y: likewise, words where numbers[0] is 1.
#pragma once

#include "kernels/epilogue.hpp"
#include "kernels/pairs/words.hpp"

namespace powerlab::engine::POWERLAB_TIER {

constexpr int kPairTileBlocks = POWERLAB_TILE_BLOCKS;
constexpr int kPairTilePixels = POWERLAB_TILE_PIXELS;

struct PairTile {
  const float* x;
  const float* weights;
  const float* bias;
  float* out;
  const float* residual;  // null where there is none
  const char* prefetch;
  std::int64_t prefetch_step;  // bytes
  std::int64_t x_plane, x_row, x_column, x_pixel;
  std::int64_t out_plane, out_pixel, residual_plane, residual_pixel;
  const Step* step;
  int first_vector;  // of the unit, counted from the start of its group
  int blocks, words, kernel_h, kernel_w;
  bool narrow_residual;
};

template <int B, int P>
static inline __attribute__((always_inline)) void pair_word(Vec (&acc)[B][P], const float* x, const float* x3,
                                                            std::int64_t pixel, const float* weights) {
  Vec w[B];
  POWERLAB_UNROLL
  for (int b = 0; b < B; ++b) w[b] = load(weights + b * kWidth);
  POWERLAB_UNROLL
  for (int p = 0; p < P; ++p) {
    const float* at = p < 3 ? x + p * pixel : p < 6 ? x3 + (p - 3) * pixel : x3 + p * pixel - 3 * pixel;
    const Word value = *reinterpret_cast<const Word*>(at);
    POWERLAB_UNROLL
    for (int b = 0; b < B; ++b) acc[b][p] = dot_pairs(acc[b][p], value, w[b]);
  }
}

#if defined(__aarch64__)
// Four words at once: one load serves four steps.
template <int I, int B, int P>
static inline __attribute__((always_inline)) void pair_word_of(Vec (&acc)[B][P], const Vec (&x)[P],
                                                               const float* weights) {
  POWERLAB_UNROLL
  for (int b = 0; b < B; ++b) {
    const Vec w = load(weights + (I * B + b) * kWidth);
    POWERLAB_UNROLL
    for (int p = 0; p < P; ++p) acc[b][p] = dot_pairs_of<I>(acc[b][p], x[p], w);
  }
}
template <int B, int P>
static inline __attribute__((always_inline)) void pair_four_words(Vec (&acc)[B][P], const float* x, const float*,
                                                                  std::int64_t pixel, const float* weights) {
  Vec values[P];
  POWERLAB_UNROLL
  for (int p = 0; p < P; ++p) values[p] = load_unaligned(x + p * pixel);
  pair_word_of<0, B, P>(acc, values, weights);
  pair_word_of<1, B, P>(acc, values, weights);
  pair_word_of<2, B, P>(acc, values, weights);
  pair_word_of<3, B, P>(acc, values, weights);
}
#else
template <int B, int P>
static inline __attribute__((always_inline)) void pair_four_words(Vec (&acc)[B][P], const float* x, const float* x3,
                                                                  std::int64_t pixel, const float* weights) {
  POWERLAB_UNROLL
  for (int i = 0; i < 4; ++i) pair_word<B, P>(acc, x + i, x3 + i, pixel, weights + i * B * kWidth);
}
#endif

// Vector b of a tile lies so far from the first one's block.
static inline std::int64_t pair_place(const PairTile& t, int b, std::int64_t plane) {
  const int vector = t.first_vector % kBlockVectors + b;
  return vector / kBlockVectors * plane + vector % kBlockVectors * (kWidth / 2);
}

template <int B, int P>
static inline __attribute__((always_inline)) void pair_finish(Vec (&acc)[B][P], const PairTile& t) {
  if (t.residual) {
    POWERLAB_UNROLL
    for (int b = 0; b < B; ++b) {
      const float* residual =
          t.residual + (t.narrow_residual ? pair_place(t, b, t.residual_plane) : b * t.residual_plane);
      POWERLAB_UNROLL
      for (int p = 0; p < P; ++p) {
        const float* at = residual + p * t.residual_pixel;
        acc[b][p] += t.narrow_residual ? load_narrow(at) : load(at);
      }
    }
  }
  const float slope = t.step->slope, low = t.step->low, high = t.step->high;
  POWERLAB_UNROLL
  for (int b = 0; b < B; ++b) {
    POWERLAB_UNROLL
    for (int p = 0; p < P; ++p) acc[b][p] = activate(acc[b][p], slope, low, high);
  }
}

// Sums, [block][pixel], through the function that ends the convolution and into words.
static __attribute__((noinline)) void pair_functions(const PairTile& t, float* sums, int blocks, int pixels) {
  finish(*t.step, {sums, pixels * kWidth, kWidth, blocks, pixels});
  for (int b = 0; b < blocks; ++b) {
    float* out = t.out + pair_place(t, b, t.out_plane);
    for (int p = 0; p < pixels; ++p, sums += kWidth) store_narrow(out + p * t.out_pixel, load(sums));
  }
}

// F: whether the result is floats.
template <bool F, int B, int P>
static inline __attribute__((always_inline)) void pair_store(Vec (&acc)[B][P], const PairTile& t) {
  pair_finish<B, P>(acc, t);
  if constexpr (F) {
    POWERLAB_UNROLL
    for (int b = 0; b < B; ++b) {
      POWERLAB_UNROLL
      for (int p = 0; p < P; ++p) store(t.out + b * t.out_plane + p * t.out_pixel, acc[b][p]);
    }
    finish(*t.step, {t.out, t.out_plane, t.out_pixel, B, P});
    return;
  }
  if (t.step->function != kNoFunction) {
    alignas(64) float sums[B * P * kWidth];
    POWERLAB_UNROLL
    for (int b = 0; b < B; ++b) {
      POWERLAB_UNROLL
      for (int p = 0; p < P; ++p) store(sums + (b * P + p) * kWidth, acc[b][p]);
    }
    pair_functions(t, sums, B, P);
    return;
  }
  POWERLAB_UNROLL
  for (int b = 0; b < B; ++b) {
    float* out = t.out + pair_place(t, b, t.out_plane);
    POWERLAB_UNROLL
    for (int p = 0; p < P; ++p) store_narrow(out + p * t.out_pixel, acc[b][p]);
  }
}

template <bool F, int B, int P>
static __attribute__((noinline)) void pair_tile(const PairTile& t) {
  Vec acc[B][P];
  POWERLAB_UNROLL
  for (int b = 0; b < B; ++b) {
    const Vec begin = load(t.bias + b * kWidth);
    POWERLAB_UNROLL
    for (int p = 0; p < P; ++p) acc[b][p] = begin;
  }
  const float* weights = t.weights;
  const char* prefetch = t.prefetch;
  const std::int64_t pixel = t.x_pixel, prefetch_step = t.prefetch_step;
  for (int block = 0; block < t.blocks; ++block) {
    for (int ky = 0; ky < t.kernel_h; ++ky) {
      const float* x = t.x + block * t.x_plane + ky * t.x_row;
      for (int kx = 0; kx < t.kernel_w; ++kx, x += t.x_column) {
        const float* at = x;
        const float* at3 = x + 3 * pixel;
        for (int left = t.words; left > 0; left -= 4, at += 4, at3 += 4) {
          pair_four_words<B, P>(acc, at, at3, pixel, weights);
          weights += 4 * B * kWidth;
          __builtin_prefetch(prefetch, 0, 2);
          prefetch += 4 * prefetch_step;
        }
      }
    }
  }
  // Reads t anew: else addresses of the results would be kept, on the stack, from the first loads on.
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  pair_store<F, B, P>(acc, t);
}

using PairTileFunction = void (*)(const PairTile&);
struct PairTileTable {
  PairTileFunction at[kPairTileBlocks * kPairTilePixels];
};
template <bool F, int... I>
constexpr PairTileTable make_pair_tiles(Indices<I...>) {
  return {{pair_tile<F, I / kPairTilePixels + 1, I % kPairTilePixels + 1>...}};
}
template <bool F>
constexpr PairTileTable kPairTiles =
    make_pair_tiles<F>(typename MakeIndices<kPairTileBlocks * kPairTilePixels>::type{});

// Output vectors of a group, which are dealt to units.
static inline std::int64_t pair_group_vectors(const Step& s) { return (s.out.c / s.groups + kWidth - 1) / kWidth; }

template <bool F>
static void pair_pass(const Step& s, std::int64_t unit, Range tiles) {
  const std::int64_t vectors = pair_group_vectors(s);
  const std::int64_t units = (vectors + kPairTileBlocks - 1) / kPairTileBlocks;
  const std::int64_t group = unit / units, i = unit % units;
  const std::int64_t first = i * vectors / units, count = (i + 1) * vectors / units - first;
  const std::int64_t in_blocks = s.x.blocks / s.groups;
  const std::int64_t reduction = in_blocks * s.lanes * s.kernel_h * s.kernel_w;
  const std::int64_t bytes = reduction * count * kWidth * 4;
  const bool narrow_residual = s.numbers[0] == 1;
  const std::int64_t out_block = group * (s.out.blocks / s.groups) + first / (F ? 1 : kBlockVectors);
  const std::int64_t y_block = group * (s.y.blocks / s.groups) + first / (narrow_residual ? kBlockVectors : 1);
  PairTile t;
  t.weights = s.weights + (group * vectors + first) * reduction * kWidth;
  t.bias = s.bias + (group * vectors + first) * kWidth;
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
  t.first_vector = static_cast<int>(first);
  t.blocks = static_cast<int>(in_blocks);
  t.words = s.lanes;
  t.kernel_h = s.kernel_h;
  t.kernel_w = s.kernel_w;
  t.narrow_residual = narrow_residual;
  const char* next_weights = reinterpret_cast<const char*>(t.weights) + bytes;
  const std::int64_t row_tiles = (s.out.w + kPairTilePixels - 1) / kPairTilePixels;
  const std::int64_t wide = s.out.w / row_tiles, wider = s.out.w % row_tiles;  // so many tiles have one pixel more
  const float* x_base = s.x.data + group * in_blocks * s.x.plane - s.pad_top * s.x.row - s.pad_left * s.x.pixel;
  for (std::int64_t tile = tiles.begin; tile < tiles.end; ++tile) {
    const std::int64_t column = tile % row_tiles, row = tile / row_tiles, n = row / s.out.h, y = row % s.out.h;
    const std::int64_t begin = column * wide + (column < wider ? column : wider), pixels = wide + (column < wider);
    t.x = x_base + n * s.x.image + y * s.stride_h * s.x.row + begin * t.x_pixel;
    t.out = s.out.data + n * s.out.image + out_block * s.out.plane + y * s.out.row + begin * s.out.pixel;
    t.residual = s.y.data ? s.y.data + n * s.y.image + y_block * s.y.plane + y * s.y.row + begin * s.y.pixel : nullptr;
    t.prefetch = next_weights + (tile - tiles.begin) * (bytes / (tiles.end - tiles.begin));
    kPairTiles<F>.at[(count - 1) * kPairTilePixels + (pixels - 1)](t);
  }
}

template <bool F>
static void conv_pairs(const Step& s, int thread, int threads) {
  const int row_parts = threads / s.channel_split;
  const int channel_part = thread / row_parts, row_part = thread % row_parts;
  if (channel_part >= s.channel_split) return;  // threads that do not divide evenly
  const std::int64_t group_units = (pair_group_vectors(s) + kPairTileBlocks - 1) / kPairTileBlocks;
  const Range units = share(s.groups * group_units, channel_part, s.channel_split);
  const std::int64_t row_tiles = (s.out.w + kPairTilePixels - 1) / kPairTilePixels;
  const Range tiles = share(s.out.n * s.out.h * row_tiles, row_part, row_parts);
  for (std::int64_t begin = tiles.begin; begin < tiles.end; begin += s.chunk_tiles) {
    const std::int64_t end = begin + s.chunk_tiles < tiles.end ? begin + s.chunk_tiles : tiles.end;
    for (std::int64_t unit = units.begin; unit < units.end; ++unit) pair_pass<F>(s, unit, {begin, end});
  }
}

}  // namespace powerlab::engine::POWERLAB_TIER
