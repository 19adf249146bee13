// A tile of conv_pairs.hpp, and what becomes of its sums.
#pragma once

#include "kernels/epilogue.hpp"
#include "kernels/image_rows.hpp"
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
  TileOfRows rows;
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

// The sums of vectors of channels, one pixel behind the other: two that follow on each other are one store.
template <int B, int P>
static inline __attribute__((always_inline)) void pair_narrow(Vec (&acc)[B][P], const PairTile& t) {
#if defined(__AVX512BF16__)
  if constexpr (B == kBlockVectors && B == 2) {
    if (t.first_vector % 2 == 0) {
      POWERLAB_UNROLL
      for (int p = 0; p < P; ++p) store_two_narrow(t.out + p * t.out_pixel, acc[0][p], acc[1][p]);
      return;
    }
  }
#endif
  POWERLAB_UNROLL
  for (int b = 0; b < B; ++b) {
    float* out = t.out + pair_place(t, b, t.out_plane);
#if defined(__AVX512BF16__)
    if (kBlockVectors == 1 && t.out_pixel == kBlockWords) {
      POWERLAB_UNROLL
      for (int p = 0; p + 1 < P; p += 2) store_two_narrow(out + p * kBlockWords, acc[b][p], acc[b][p + 1]);
      if constexpr (P % 2 == 1) store_narrow(out + (P - 1) * kBlockWords, acc[b][P - 1]);
      continue;
    }
#endif
    POWERLAB_UNROLL
    for (int p = 0; p < P; ++p) store_narrow(out + p * t.out_pixel, acc[b][p]);
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
  pair_narrow<B, P>(acc, t);
}

// Sums of V vectors of outputs in memory, `plane` floats apart, [row][v], become the results of a tile's pixels: four
// at a time, so that what is asked of the step is asked once for them.
template <bool F, int V>
static inline __attribute__((always_inline)) void pair_finish_vectors(PairTile t, const float* sums, std::int64_t plane,
                                                                      int pixels) {
  const auto pixels_of = [&]<int P>(Count<P>) __attribute__((always_inline)) {
    Vec acc[V][P];
    POWERLAB_UNROLL
    for (int b = 0; b < V; ++b) {
      const Vec bias = load(t.bias + b * kWidth);
      POWERLAB_UNROLL
      for (int p = 0; p < P; ++p) acc[b][p] = load(sums + b * plane + p * kWidth) + bias;
    }
    pair_store<F, V, P>(acc, t);
    sums += P * kWidth;
    t.out += P * t.out_pixel;
    if (t.residual) t.residual += P * t.residual_pixel;
  };
  for (int p = 0; p + 4 <= pixels; p += 4) pixels_of(Count<4>{});
  if (pixels & 2) pixels_of(Count<2>{});
  if (pixels & 1) pixels_of(Count<1>{});
}

// The same of some vectors of a tile, the first of them `first`; [vector][row][v].
template <bool F>
static __attribute__((noinline)) void pair_finish_sums(const PairTile& t, int first, const float* sums, int vectors,
                                                       int pixels, int rows) {
  PairTile part = t;
  for (int b = first, together = 1; b < first + vectors; b += together) {
    const int vector = t.first_vector % kBlockVectors + b;
    part.first_vector = t.first_vector + b;
    part.bias = t.bias + b * kWidth;
    part.out = t.out + (F ? b * t.out_plane : vector / kBlockVectors * t.out_plane);
    if (t.residual)
      part.residual =
          t.residual + (t.narrow_residual ? vector / kBlockVectors * t.residual_plane : b * t.residual_plane);
    const float* from = sums + (b - first) * rows * kWidth;
    const bool whole = kBlockVectors == 2 && vector % 2 == 0 && b + 2 <= first + vectors;
    together = whole ? 2 : 1;
    if (whole)
      pair_finish_vectors<F, 2>(part, from, rows * kWidth, pixels);
    else
      pair_finish_vectors<F, 1>(part, from, rows * kWidth, pixels);
  }
}

}  // namespace powerlab::engine::POWERLAB_TIER
