// What a tile of a convolution of bytes reads and writes, and how its sums become bytes or floats.
#pragma once

#include "kernels/bytes/requantize.hpp"
#include "kernels/image_rows.hpp"

namespace powerlab::engine::POWERLAB_TIER {

// Sums of narrow weights are added to once for several products, so that few of them hide its latency. Of AVX2's
// registers, five pixels leave none for weights, which four do; but rows of 14 or 28 pixels take fewer tiles.
#if POWERLAB_VECTOR_WIDTH == 8
#define POWERLAB_NARROW_BLOCKS 2
#define POWERLAB_NARROW_PIXELS 5
#else
#define POWERLAB_NARROW_BLOCKS POWERLAB_TILE_BLOCKS
#define POWERLAB_NARROW_PIXELS POWERLAB_TILE_PIXELS
#endif
template <int N>
constexpr int kByteTileBlocks = N > 1 ? POWERLAB_NARROW_BLOCKS : POWERLAB_TILE_BLOCKS;
template <int N>
constexpr int kByteTilePixels = N > 1 ? POWERLAB_NARROW_PIXELS : POWERLAB_TILE_PIXELS;

// Words of weights that a block of so many has.
static inline std::int64_t packed_words(std::int32_t words) {
#if defined(__ARM_FEATURE_MATMUL_INT8)
  return (words + 1) / 2 * 2;
#else
  return words;
#endif
}

// Whether a tile's function goes through a run, tiles of equal width that follow on each other, by itself; elsewhere
// each tile is a call.
#if defined(__aarch64__)
constexpr bool kByteRuns = true;
#else
constexpr bool kByteRuns = false;
#endif

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
  TileOfRows rows;
  std::int64_t count, x_next, out_next, residual_next, prefetch_next;  // of a run: tiles, and from one to the next
};

// Moves on to the next tile of a run; false where there is none.
static inline __attribute__((always_inline)) bool next_byte_tile(ByteTile& t) {
  if (--t.count == 0) return false;
  t.x += t.x_next;
  t.out += t.out_next;
  t.residual += t.residual_next;
  t.prefetch += t.prefetch_next;
  return true;
}

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
  const auto steps_of = [&](int b, int p, Vec multiplier) __attribute__((always_inline)) {
    const Vec steps = products<S>(acc[b][p], multiplier, r);
    if constexpr (!R) return steps;
    const std::uint8_t* residual = t.residual + byte_place(t, b, t.residual_plane) + p * residual_pixel;
    return steps + scaled(load_bytes(residual), r);
  };
#if defined(__AVX512F__)
  if constexpr (!F) {
    const auto multiplier = [&](int b) { return load_unaligned(t.bias + (2 * b + 1) * kWidth); };
    typedef long long Halves __attribute__((vector_size(64)));
    // Of pixel p, the blocks' bytes.
    const auto store_blocks = [&](int p) __attribute__((always_inline)) {
      std::uint8_t* out = t.out + p * out_pixel;
      Vec steps[B];
      POWERLAB_UNROLL
      for (int b = 0; b < B; ++b) steps[b] = steps_of(b, p, multiplier(b));
      const Halves bytes = (Halves)packed(steps, r);
      store_block(out, (Block)__builtin_shufflevector(bytes, bytes, 0, 1));
      if constexpr (B > 1) store_block(out + t.out_plane, (Block)__builtin_shufflevector(bytes, bytes, 2, 3));
      if constexpr (B > 2) store_block(out + 2 * t.out_plane, (Block)__builtin_shufflevector(bytes, bytes, 4, 5));
      if constexpr (B > 3) store_block(out + 3 * t.out_plane, (Block)__builtin_shufflevector(bytes, bytes, 6, 7));
    };
    // Of pixel p and the next one, the bytes of two blocks.
    [[maybe_unused]] const auto store_two = [&](int p) __attribute__((always_inline)) {
      std::uint8_t *out = t.out + p * out_pixel, *next = out + out_pixel;
      const Vec steps[] = {steps_of(0, p, multiplier(0)), steps_of(B - 1, p, multiplier(B - 1)),
                           steps_of(0, p + 1, multiplier(0)), steps_of(B - 1, p + 1, multiplier(B - 1))};
      const Halves bytes = (Halves)packed(steps, r);
      store_block(out, (Block)__builtin_shufflevector(bytes, bytes, 0, 1));
      store_block(out + t.out_plane, (Block)__builtin_shufflevector(bytes, bytes, 2, 3));
      store_block(next, (Block)__builtin_shufflevector(bytes, bytes, 4, 5));
      store_block(next + t.out_plane, (Block)__builtin_shufflevector(bytes, bytes, 6, 7));
    };
    // Of up to four pixels from p on, the bytes of block b.
    const auto store_pixels_of = [&]<int... I>(int b, int p, Indices<I...>) __attribute__((always_inline)) {
      const Vec steps[] = {steps_of(b, p + I, multiplier(b))...};
      store_pixels(t.out + b * t.out_plane + p * kBlockBytes, steps, r);
    };
    if constexpr (P >= 4 || (B == 1 && P > 1)) {
      if (out_pixel == kBlockBytes) {  // pixels of a block are one store
        POWERLAB_UNROLL
        for (int b = 0; b < B; ++b) {
          POWERLAB_UNROLL
          for (int p = 0; p + 4 <= P; p += 4) store_pixels_of(b, p, Indices<0, 1, 2, 3>{});
        }
        if constexpr (B == 1 && P % 4 > 1) {
          store_pixels_of(0, P / 4 * 4, typename MakeIndices<P % 4>::type{});
        } else {
          POWERLAB_UNROLL
          for (int p = P / 4 * 4; p < P; ++p) store_blocks(p);
        }
        return;
      }
    }
    if constexpr (B == 2) {
      POWERLAB_UNROLL
      for (int p = 0; p + 2 <= P; p += 2) store_two(p);
      if constexpr (P % 2 == 1) store_blocks(P - 1);
    } else {
      POWERLAB_UNROLL
      for (int p = 0; p < P; ++p) store_blocks(p);
    }
    return;
  }
#elif defined(__AVX2__)
  if constexpr (!F && B == kBlockVectors) {
    if (t.first_vector % kBlockVectors == 0) {  // whole blocks, of two pixels at a time
      const Vec multipliers[] = {load_unaligned(t.bias + kWidth), load_unaligned(t.bias + 3 * kWidth)};
      std::uint8_t* out = t.out;
      POWERLAB_UNROLL
      for (int p = 0; p < P; p += 2) {
        const int next = p + 1 < P ? p + 1 : p;
        const Vec steps[] = {steps_of(0, p, multipliers[0]), steps_of(1, p, multipliers[1]),
                             steps_of(0, next, multipliers[0]), steps_of(1, next, multipliers[1])};
        const __m256i bytes = (__m256i)packed(steps, r);
        store_block(out + p * out_pixel, (Block)_mm256_castsi256_si128(bytes));
        if (next > p) store_block(out + next * out_pixel, (Block)_mm256_extracti128_si256(bytes, 1));
      }
      return;
    }
  }
#elif defined(__aarch64__)
  if constexpr (!F && B == kBlockVectors) {
    if (t.first_vector % kBlockVectors == 0) {  // whole blocks
      Vec steps[P][B];
      POWERLAB_UNROLL
      for (int b = 0; b < B; ++b) {
        const Vec multiplier = load_unaligned(t.bias + (2 * b + 1) * kWidth);
        POWERLAB_UNROLL
        for (int p = 0; p < P; ++p) steps[p][b] = products<S>(acc[b][p], multiplier, r);
      }
      const std::uint8_t* residual = t.residual;
      std::uint8_t* out = t.out;
      POWERLAB_UNROLL
      for (int p = 0; p < P; ++p, out += out_pixel, residual += residual_pixel) {
        if constexpr (R) add_scaled(steps[p], residual, r);
        store_block(out, whole_block(steps[p], r));
      }
      return;
    }
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

}  // namespace powerlab::engine::POWERLAB_TIER
