// A tile of conv_pairs.hpp, and what becomes of its sums.
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
  int first_vector;                                   // of the unit, counted from the start of its group
  int blocks, words, last_words, kernel_h, kernel_w;  // words of a block, and of the last one, that are not all zero
  bool narrow_residual;
};

// Vector b of a tile lies so far from the first one's block.
static inline std::int64_t pair_place(const PairTile& t, int b, std::int64_t plane) {
  const int vector = t.first_vector % kBlockVectors + b;
  return vector / kBlockVectors * plane + vector % kBlockVectors * (kWidth / 2);
}

template <int B, int P>
static inline __attribute__((always_inline)) void pair_finish(Vec (&acc)[B][P], const PairTile& t) {
  const auto add_residual = [&]() __attribute__((always_inline)) {
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
  };
  if (t.residual && !t.step->adds_last) add_residual();
  activate_tile(acc, t.step->slope, t.step->low, t.step->high);
  if (t.residual && t.step->adds_last) add_residual();
}

// Sums, [block][pixel], through the function that ends the convolution and into words.
static __attribute__((noinline)) void pair_functions(const PairTile& t, float* sums, int blocks, int pixels) {
  finish(*t.step, {sums, pixels * kWidth, kWidth, blocks, pixels});
  for (int b = 0; b < blocks; ++b) {
    float* out = t.out + pair_place(t, b, t.out_plane);
    for (int p = 0; p < pixels; ++p, sums += kWidth) store_narrow(out + p * t.out_pixel, load(sums));
  }
}

// The sums of a vector of channels, one pixel behind the other.
template <int P>
static inline __attribute__((always_inline)) void pair_narrow(Vec (&acc)[P], float* out, std::int64_t pixel) {
#if defined(__AVX512BF16__)
  if (kBlockVectors == 1 && pixel == kBlockWords) {
    POWERLAB_UNROLL
    for (int p = 0; p + 1 < P; p += 2) store_two_narrow(out + p * kBlockWords, acc[p], acc[p + 1]);
    if constexpr (P % 2 == 1) store_narrow(out + (P - 1) * kBlockWords, acc[P - 1]);
    return;
  }
#endif
  POWERLAB_UNROLL
  for (int p = 0; p < P; ++p) store_narrow(out + p * pixel, acc[p]);
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
    pair_narrow<P>(acc[b], t.out + pair_place(t, b, t.out_plane), t.out_pixel);
  }
}

// Sums of vectors of outputs in memory, [vector][row][v], become the results of a tile's pixels: four at a time, so that
// what is asked of the step is asked once for them. first: of the tile's vectors.
template <bool F>
static __attribute__((noinline)) void pair_finish_sums(const PairTile& t, int first, const float* sums, int vectors,
                                                       int pixels, int rows) {
  PairTile one = t;
  for (int b = first; b < first + vectors; ++b) {
    const int vector = t.first_vector % kBlockVectors + b;
    one.first_vector = t.first_vector + b;
    one.out = t.out + (F ? b * t.out_plane : vector / kBlockVectors * t.out_plane);
    if (t.residual)
      one.residual =
          t.residual + (t.narrow_residual ? vector / kBlockVectors * t.residual_plane : b * t.residual_plane);
    const Vec bias = load(t.bias + b * kWidth);
    const float* row = sums + (b - first) * rows * kWidth;
    const auto pixels_of = [&]<int P>(Count<P>) __attribute__((always_inline)) {
      Vec acc[1][P];
      POWERLAB_UNROLL
      for (int p = 0; p < P; ++p) acc[0][p] = load(row + p * kWidth) + bias;
      pair_store<F, 1, P>(acc, one);
      row += P * kWidth;
      one.out += P * t.out_pixel;
      if (t.residual) one.residual += P * t.residual_pixel;
    };
    int p = 0;
    for (; p + 4 <= pixels; p += 4) pixels_of(Count<4>{});
    if (p + 2 <= pixels) pixels_of(Count<2>{});
    if (pixels % 2) pixels_of(Count<1>{});
  }
}

}  // namespace powerlab::engine::POWERLAB_TIER
