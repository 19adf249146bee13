// Direct convolution of bytes: conv_direct.hpp's tiles and units, a word of four channels at a time.
//
// A tile of up to kByteTileBlocks vectors of sums x kByteTilePixels pixels stays in registers during the whole
// reduction: sums of 32 bits have no place in an output of bytes, and weights of one unit are few. The halo's zero
// points add what `bias` takes away again, so no tap is left out. Every convolution but the depthwise ones, fully
// connected layers (pixels = images or rows) and first layers (one word a pixel, a kernel row folded into the words)
// are views on it.
//
// Weights: [output unit][input block][kernel_h][kernel_w][word][vector of the unit][half][v], see words.hpp; of narrow
// ones there are no halves.
// Bias: for each vector of outputs v integers that the sums begin with, then v multipliers.
// out: bytes, or floats in blocks of v channels, of which the multipliers then are the scales; these may end with a
// function.
#pragma once

#include "kernels/bytes/requantize.hpp"

namespace powerlab::engine::POWERLAB_BASE_TIER {
void finish_tile(const Step& s, const OutTile& tile);  // in tiers/tier.cpp: floats as the tier computes them
}

namespace powerlab::engine::POWERLAB_TIER {

constexpr int kByteTileBlocks = POWERLAB_TILE_BLOCKS;
// Narrow weights need no register beside the sums, so that AVX2 has room for more pixels.
#if POWERLAB_VECTOR_WIDTH == 8
#define POWERLAB_NARROW_PIXELS 4
#else
#define POWERLAB_NARROW_PIXELS POWERLAB_TILE_PIXELS
#endif
template <bool N>
constexpr int kByteTilePixels = N ? POWERLAB_NARROW_PIXELS : POWERLAB_TILE_PIXELS;

struct ByteTile {
  const float* x;
  const std::uint8_t* weights;
  const float* bias;
  std::uint8_t* out;
  const std::uint8_t* residual;  // null where there is none
  const char* prefetch;
  std::int64_t prefetch_step;                                         // bytes
  std::int64_t x_plane, x_row, x_column, x_pixel;                     // words
  std::int64_t out_plane, out_pixel, residual_plane, residual_pixel;  // bytes
  int first_vector;  // of the unit, counted from the start of its group
  int blocks, words, last_words, kernel_h, kernel_w;
  Requantize requantize;
};

template <int B, int P>
static inline __attribute__((always_inline)) void byte_narrow_word([[maybe_unused]] IVec (&acc)[B][P],
                                                                   [[maybe_unused]] const float* x,
                                                                   [[maybe_unused]] const float* x3,
                                                                   [[maybe_unused]] std::int64_t pixel,
                                                                   [[maybe_unused]] const std::uint8_t* weights) {
#if defined(POWERLAB_NARROW)
  POWERLAB_UNROLL
  for (int p = 0; p < P; ++p) {
    const float* at = p < 3 ? x + p * pixel : p < 6 ? x3 + (p - 3) * pixel : x3 + p * pixel - 3 * pixel;
    const IVec value = every(*reinterpret_cast<const Word*>(at));
    POWERLAB_UNROLL
    for (int b = 0; b < B; ++b) acc[b][p] = dot_narrow(acc[b][p], value, load_ints(weights + b * 4 * kWidth));
    __atomic_signal_fence(__ATOMIC_SEQ_CST);  // weights are operands in memory: there are too few registers
  }
#endif
}

template <int H, int B, int P>
static inline __attribute__((always_inline)) void byte_half(IVec (&acc)[B][P], const float* x, const float* x3,
                                                            std::int64_t pixel, const std::uint8_t* weights) {
  IVec w[B];
  POWERLAB_UNROLL
  for (int b = 0; b < B; ++b) w[b] = load_ints(weights + (b * kHalves + H) * 4 * kWidth);
  POWERLAB_UNROLL
  for (int p = 0; p < P; ++p) {
    const float* at = p < 3 ? x + p * pixel : p < 6 ? x3 + (p - 3) * pixel : x3 + p * pixel - 3 * pixel;
    const IVec value = spread<H>(*reinterpret_cast<const Word*>(at));
    POWERLAB_UNROLL
    for (int b = 0; b < B; ++b) acc[b][p] = dot(acc[b][p], value, w[b]);
  }
}

template <bool N, int B, int P>
static inline __attribute__((always_inline)) void byte_word(IVec (&acc)[B][P], const float* x, const float* x3,
                                                            std::int64_t pixel, const std::uint8_t* weights) {
  if constexpr (N) return byte_narrow_word(acc, x, x3, pixel, weights);
  byte_half<0, B, P>(acc, x, x3, pixel, weights);
  if constexpr (kHalves == 2) {
    __atomic_signal_fence(__ATOMIC_SEQ_CST);  // x is loaded again: there are too few registers to keep all pixels
    byte_half<1, B, P>(acc, x, x3, pixel, weights);
  }
}

#if defined(__aarch64__)
// Four words at once: one load serves four steps.
template <int I, int B, int P>
static inline __attribute__((always_inline)) void byte_word_of(IVec (&acc)[B][P], const int8x16_t (&x)[P],
                                                               const std::uint8_t* weights) {
  POWERLAB_UNROLL
  for (int b = 0; b < B; ++b) {
    const IVec w = load_ints(weights + (I * B + b) * kWordBytes<false>);
    POWERLAB_UNROLL
    for (int p = 0; p < P; ++p) acc[b][p] = dot_of<I>(acc[b][p], x[p], w);
  }
}
template <bool N, int B, int P>
static inline __attribute__((always_inline)) void byte_four_words(IVec (&acc)[B][P], const float* x, const float*,
                                                                  std::int64_t pixel, const std::uint8_t* weights) {
  int8x16_t values[P];
  POWERLAB_UNROLL
  for (int p = 0; p < P; ++p) {
    const Block bytes = load_block(bytes_of(x + p * pixel));
    values[p] = (int8x16_t)(bytes ^ static_cast<std::uint8_t>(128));
  }
  byte_word_of<0, B, P>(acc, values, weights);
  byte_word_of<1, B, P>(acc, values, weights);
  byte_word_of<2, B, P>(acc, values, weights);
  byte_word_of<3, B, P>(acc, values, weights);
}
#else
template <bool N, int B, int P>
static inline __attribute__((always_inline)) void byte_four_words(IVec (&acc)[B][P], const float* x, const float* x3,
                                                                  std::int64_t pixel, const std::uint8_t* weights) {
  POWERLAB_UNROLL
  for (int i = 0; i < 4; ++i) byte_word<N, B, P>(acc, x + i, x3 + i, pixel, weights + i * B * kWordBytes<N>);
}
#endif

// The bytes of vector b of a tile lie so far from the first one's.
static inline std::int64_t byte_place(const ByteTile& t, int b, std::int64_t plane) {
  const int vector = t.first_vector % kBlockVectors + b;
  return vector / kBlockVectors * plane + vector % kBlockVectors * kWidth;
}

// F: floats; S: what is below 0 is multiplied by a slope; R: with a residual.
template <bool F, bool S, bool R, int B, int P>
static inline __attribute__((always_inline)) void byte_store(const IVec (&acc)[B][P], const ByteTile& t) {
  const Requantize r = t.requantize;
  const std::int64_t out_pixel = t.out_pixel, residual_pixel = t.residual_pixel;
  const auto steps_of = [&](int b, int p, Vec multiplier) {
    const Vec steps = products<S>(acc[b][p], multiplier, r);
    if constexpr (!R) return steps;
    const std::uint8_t* residual = t.residual + byte_place(t, b, t.residual_plane) + p * residual_pixel;
    return steps + scaled(load_bytes(residual), r);
  };
#if defined(__AVX512F__)
  if constexpr (!F) {
    Vec multipliers[B];
    POWERLAB_UNROLL
    for (int b = 0; b < B; ++b) multipliers[b] = load_unaligned(t.bias + (2 * b + 1) * kWidth);
    std::uint8_t* out = t.out;
    POWERLAB_UNROLL
    for (int p = 0; p < P; ++p, out += out_pixel) {
      Vec steps[B];
      POWERLAB_UNROLL
      for (int b = 0; b < B; ++b) steps[b] = steps_of(b, p, multipliers[b]);
      typedef long long Halves __attribute__((vector_size(64)));
      const Halves bytes = (Halves)packed(steps, r);
      store_block(out, (Block)__builtin_shufflevector(bytes, bytes, 0, 1));
      if constexpr (B > 1) store_block(out + t.out_plane, (Block)__builtin_shufflevector(bytes, bytes, 2, 3));
      if constexpr (B > 2) store_block(out + 2 * t.out_plane, (Block)__builtin_shufflevector(bytes, bytes, 4, 5));
      if constexpr (B > 3) store_block(out + 3 * t.out_plane, (Block)__builtin_shufflevector(bytes, bytes, 6, 7));
    }
    return;
  }
#endif
  POWERLAB_UNROLL
  for (int b = 0; b < B; ++b) {
    const Vec multiplier = load_unaligned(t.bias + (2 * b + 1) * kWidth);
    std::uint8_t* out = t.out + (F ? b * t.out_plane : byte_place(t, b, t.out_plane));
    POWERLAB_UNROLL
    for (int p = 0; p < P; ++p, out += out_pixel) {
      const Vec steps = steps_of(b, p, multiplier);
      if constexpr (F) {
        store_unaligned(reinterpret_cast<float*>(out), clamp(steps, r.low, r.high));
      } else {
        store_bytes(out, to_bytes(steps, r));
      }
    }
  }
}

template <bool F, bool S, int B, int P>
static inline __attribute__((always_inline)) void byte_finish(const IVec (&acc)[B][P], const ByteTile& t) {
  t.residual ? byte_store<F, S, true, B, P>(acc, t) : byte_store<F, S, false, B, P>(acc, t);
}

template <bool F, bool N, int B, int P>
static __attribute__((noinline)) void byte_tile(const ByteTile& t) {
  IVec acc[B][P];
  POWERLAB_UNROLL
  for (int b = 0; b < B; ++b) {
    const IVec begin = load_ints(t.bias + 2 * b * kWidth);
    POWERLAB_UNROLL
    for (int p = 0; p < P; ++p) acc[b][p] = begin;
  }
  const std::uint8_t* weights = t.weights;
  const char* prefetch = t.prefetch;
  const std::int64_t pixel = t.x_pixel, prefetch_step = t.prefetch_step;
  for (int block = 0; block < t.blocks; ++block) {
    const int words = block + 1 == t.blocks ? t.last_words : t.words;
    for (int ky = 0; ky < t.kernel_h; ++ky) {
      const float* x = t.x + block * t.x_plane + ky * t.x_row;
      for (int kx = 0; kx < t.kernel_w; ++kx, x += t.x_column) {
        const float* at = x;
        const float* at3 = x + 3 * pixel;
        int left = words;
        for (; left >= 4; left -= 4, at += 4, at3 += 4) {
          byte_four_words<N, B, P>(acc, at, at3, pixel, weights);
          weights += 4 * B * kWordBytes<N>;
          __builtin_prefetch(prefetch, 0, 2);
          prefetch += 4 * prefetch_step;
        }
        for (; left > 0; --left, ++at, ++at3) {
          byte_word<N, B, P>(acc, at, at3, pixel, weights);
          weights += B * kWordBytes<N>;
        }
      }
    }
  }
  // Reads t anew: else addresses of the results would be kept, on the stack, from the first loads on.
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  t.requantize.slope == 1 ? byte_finish<F, false, B, P>(acc, t) : byte_finish<F, true, B, P>(acc, t);
}

using ByteTileFunction = void (*)(const ByteTile&);
template <bool N>
struct ByteTileTable {
  ByteTileFunction at[kByteTileBlocks * kByteTilePixels<N>];
};
template <bool F, bool N, int... I>
constexpr ByteTileTable<N> make_byte_tiles(Indices<I...>) {
  return {{byte_tile<F, N, I / kByteTilePixels<N> + 1, I % kByteTilePixels<N> + 1>...}};
}
template <bool F, bool N>
constexpr ByteTileTable<N> kByteTiles =
    make_byte_tiles<F, N>(typename MakeIndices<kByteTileBlocks * kByteTilePixels<N>>::type{});

// Output vectors of a group, and how they are dealt to units.
static inline std::int64_t byte_group_vectors(const Step& s) { return (s.out.c / s.groups + kWidth - 1) / kWidth; }

template <bool F, bool N>
static void byte_pass(const Step& s, std::int64_t unit, Range tiles) {
  const std::int64_t vectors = byte_group_vectors(s);
  const std::int64_t units = (vectors + kByteTileBlocks - 1) / kByteTileBlocks;
  const std::int64_t group = unit / units, i = unit % units;
  const std::int64_t first = i * vectors / units, count = (i + 1) * vectors / units - first;
  const std::int64_t in_blocks = s.x.blocks / s.groups;
  const std::int64_t reduction = ((in_blocks - 1) * s.lanes + s.last_lanes) * s.kernel_h * s.kernel_w;
  const std::int64_t bytes = reduction * count * kWordBytes<N>;
  const std::int64_t out_first = group * (s.out.blocks / s.groups);
  const std::int64_t out_block = out_first + first / (F ? 1 : kBlockVectors);  // byte_place knows where in the block
  const std::int64_t y_block = group * (s.y.blocks / s.groups) + first / kBlockVectors;
  ByteTile t;
  t.weights = bytes_of(s.weights) + (group * vectors + first) * reduction * kWordBytes<N>;
  t.bias = s.bias + (group * vectors + first) * 2 * kWidth;
  t.prefetch_step = bytes / (tiles.end - tiles.begin) / reduction;
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
  const char* next_weights = reinterpret_cast<const char*>(t.weights) + bytes;
  const std::int64_t row_tiles = (s.out.w + kByteTilePixels<N> - 1) / kByteTilePixels<N>;
  const std::int64_t wide = s.out.w / row_tiles, wider = s.out.w % row_tiles;  // so many tiles have one pixel more
  const float* x_base = s.x.data + group * in_blocks * s.x.plane - s.pad_top * s.x.row - s.pad_left * s.x.pixel;
  std::int64_t column = tiles.begin % row_tiles, row = tiles.begin / row_tiles, n = row / s.out.h, y = row % s.out.h;
  for (std::int64_t tile = tiles.begin; tile < tiles.end; ++tile) {
    const std::int64_t begin = column * wide + (column < wider ? column : wider), pixels = wide + (column < wider);
    t.x = x_base + n * s.x.image + y * s.stride_h * s.x.row + begin * t.x_pixel;
    t.out = bytes_of(s.out.data + n * s.out.image + out_block * s.out.plane + y * s.out.row + begin * s.out.pixel);
    t.residual =
        s.y.data ? bytes_of(s.y.data + n * s.y.image + y_block * s.y.plane + y * s.y.row + begin * s.y.pixel) : nullptr;
    t.prefetch = next_weights + (tile - tiles.begin) * (bytes / (tiles.end - tiles.begin));
    kByteTiles<F, N>.at[(count - 1) * kByteTilePixels<N> + (pixels - 1)](t);
    if constexpr (F) {
      if (s.function != kNoFunction) {
        POWERLAB_BASE_TIER::finish_tile(
            s, {reinterpret_cast<float*>(t.out), s.out.plane, s.out.pixel, static_cast<std::int64_t>(count), pixels});
      }
    }
    if (++column < row_tiles) continue;
    column = 0;
    if (++y < s.out.h) continue;
    y = 0;
    ++n;
  }
}

template <bool F, bool N = false>
static void conv_bytes(const Step& s, int thread, int threads) {
  const int row_parts = threads / s.channel_split;
  const int channel_part = thread / row_parts, row_part = thread % row_parts;
  if (channel_part >= s.channel_split) return;  // threads that do not divide evenly
  const std::int64_t group_units = (byte_group_vectors(s) + kByteTileBlocks - 1) / kByteTileBlocks;
  const Range units = share(s.groups * group_units, channel_part, s.channel_split);
  const std::int64_t row_tiles = (s.out.w + kByteTilePixels<N> - 1) / kByteTilePixels<N>;
  const Range tiles = share(s.out.n * s.out.h * row_tiles, row_part, row_parts);
  for (std::int64_t begin = tiles.begin; begin < tiles.end; begin += s.chunk_tiles) {
    const std::int64_t end = begin + s.chunk_tiles < tiles.end ? begin + s.chunk_tiles : tiles.end;
    for (std::int64_t unit = units.begin; unit < units.end; ++unit) byte_pass<F, N>(s, unit, {begin, end});
  }
}

}  // namespace powerlab::engine::POWERLAB_TIER
