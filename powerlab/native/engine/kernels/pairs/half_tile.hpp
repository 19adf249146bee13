// The tile of conv_pairs.hpp in float16: vectors of twice as many outputs as a vector of floats has.
//
// Sums are float16 for kSummedWords words at most, which may not be more: of n products a sum in float16 is off by
// about sqrt(n / 6) / 2^11 of itself (rounded n times by up to half a unit, while it grows). Then they are added to
// sums in float32, which lie in memory.
//
// Weights: [output unit][input block][kernel_h][kernel_w][channel][vector of the unit][2 v], float16.
#pragma once

#include "kernels/pairs/pair_tile.hpp"

namespace powerlab::engine::POWERLAB_TIER {

constexpr int kSummedWords = 64;
constexpr int kFloatVectors = 2;  // of sums, that a vector of float16 becomes
constexpr int kHalfTileVectors = kPairTileBlocks / kFloatVectors;

template <int I, int B, int P>
static inline __attribute__((always_inline)) void half_channel(HalfVec (&acc)[B][P], const EightHalves (&x)[P],
                                                               const float* weights) {
  HalfVec w[B];
  POWERLAB_UNROLL
  for (int b = 0; b < B; ++b) w[b] = load_halves(weights + (I * B + b) * kWidth);
  POWERLAB_UNROLL
  for (int p = 0; p < P; ++p) {
    POWERLAB_UNROLL
    for (int b = 0; b < B; ++b) acc[b][p] = multiply_add<I>(acc[b][p], w[b], x[p]);
  }
}

template <int B, int P>
static inline __attribute__((always_inline)) void half_four_words(HalfVec (&acc)[B][P], const float* at,
                                                                  std::int64_t pixel, const float* weights) {
  EightHalves x[P];
  POWERLAB_UNROLL
  for (int p = 0; p < P; ++p) x[p] = load_eight(at + p * pixel);
  half_channel<0, B, P>(acc, x, weights);
  half_channel<1, B, P>(acc, x, weights);
  half_channel<2, B, P>(acc, x, weights);
  half_channel<3, B, P>(acc, x, weights);
  half_channel<4, B, P>(acc, x, weights);
  half_channel<5, B, P>(acc, x, weights);
  half_channel<6, B, P>(acc, x, weights);
  half_channel<7, B, P>(acc, x, weights);
}

// Sums in memory: [vector of floats][pixel][v].
template <int B, int P>
static inline __attribute__((always_inline)) void add_up(HalfVec (&acc)[B][P], float* sums) {
  POWERLAB_UNROLL
  for (int b = 0; b < B; ++b) {
    POWERLAB_UNROLL
    for (int p = 0; p < P; ++p) {
      float* low = sums + (kFloatVectors * b * P + p) * kWidth;
      float* high = low + P * kWidth;
      store(low, load(low) + lower_floats(acc[b][p]));
      store(high, load(high) + upper_floats(acc[b][p]));
      acc[b][p] = HalfVec{};
    }
  }
}

template <int B, int P>
static __attribute__((noinline)) void half_tile(const PairTile& t, float* sums) {
  HalfVec acc[B][P] = {};
  POWERLAB_UNROLL
  for (int i = 0; i < kFloatVectors * B * P; ++i) store(sums + i * kWidth, Vec{});
  const float* weights = t.weights;
  const char* prefetch = t.prefetch;
  const std::int64_t pixel = t.x_pixel, prefetch_step = t.prefetch_step;
  int room = kSummedWords;
  for (int block = 0; block < t.blocks; ++block) {
    for (int ky = 0; ky < t.kernel_h; ++ky) {
      const float* x = t.x + block * t.x_plane + ky * t.x_row;
      for (int kx = 0; kx < t.kernel_w; ++kx, x += t.x_column) {
        const float* at = x;
        for (int left = t.words; left > 0;) {
          const int words = left < room ? left : room;
          left -= words;
          room -= words;
          for (int i = words; i > 0; i -= 4, at += 4) {
            half_four_words<B, P>(acc, at, pixel, weights);
            weights += 8 * B * kWidth;
            __builtin_prefetch(prefetch, 0, 2);
            prefetch += 4 * prefetch_step;
          }
          if (room > 0) continue;
          add_up<B, P>(acc, sums);
          room = kSummedWords;
        }
      }
    }
  }
  add_up<B, P>(acc, sums);
}

using HalfTileFunction = void (*)(const PairTile&, float*);
struct HalfTileTable {
  HalfTileFunction at[kHalfTileVectors * kPairTilePixels];
};
template <int... I>
constexpr HalfTileTable make_half_tiles(Indices<I...>) {
  return {{half_tile<I / kPairTilePixels + 1, I % kPairTilePixels + 1>...}};
}
constexpr HalfTileTable kHalfTiles = make_half_tiles(typename MakeIndices<kHalfTileVectors * kPairTilePixels>::type{});

// Registers want nothing before or after a step.
struct PairTiles {
  explicit PairTiles(const Step&) {}
  static std::int64_t at_once(std::int64_t tiles) { return tiles; }
  static void begin(std::int64_t, std::int64_t) {}
};

template <bool F>
static inline void run_pair_tile(const PairTile& t, std::int64_t vectors, std::int64_t pixels, PairTiles&) {
  alignas(64) float sums[kPairTileBlocks * kPairTilePixels * kWidth];
  const std::int64_t halves = (vectors + kFloatVectors - 1) / kFloatVectors;
  kHalfTiles.at[(halves - 1) * kPairTilePixels + (pixels - 1)](t, sums);
  pair_finish_sums<F>(t, 0, sums, static_cast<int>(vectors), static_cast<int>(pixels), static_cast<int>(pixels));
}
template <bool F>
static inline void end_pair_tiles(std::int64_t, PairTiles&) {}

}  // namespace powerlab::engine::POWERLAB_TIER
