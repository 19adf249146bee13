// The tile of conv_bytes.hpp where Arm multiplies matrices of bytes (FEAT_I8MM): an instruction adds the products of
// two pixels' eight channels with those of two outputs, 32 of them, to four sums.
//
// Weights: [output unit][input block][kernel_h][kernel_w][two words][vector of the unit][v][8 channels]; where words
// are odd in number, zeros stand for the last.
#pragma once

#include "kernels/bytes/byte_tile.hpp"

#undef POWERLAB_BYTE_FORM
#define POWERLAB_BYTE_FORM "signed_eights"

namespace powerlab::engine::POWERLAB_TIER {

// Volatile, so that products stay in order: a tile of 4 x 6 leaves no register to move them.
static inline __attribute__((always_inline)) void add_products(int32x4_t& sums, int8x16_t x, int8x16_t w) {
  asm volatile("smmla %0.4s, %1.16b, %2.16b" : "+w"(sums) : "w"(x), "w"(w));
}

// Of a tile's sums: [vector][outputs 0 and 1, or 2 and 3][pixels two by two], each (pixel 0, 1) x (output 0, 1).
template <int B, int P>
struct Matrices {
  static constexpr int kPairs = (P + 1) / 2;
  int32x4_t at[B][2][kPairs] = {};

  // Eight channels of two pixels each; of an odd last one twice the same.
  inline __attribute__((always_inline)) void add(const int8x16_t (&x)[kPairs], const std::uint8_t* weights) {
    POWERLAB_UNROLL
    for (int b = 0; b < B; ++b) {
      const int8x16_t w[] = {(int8x16_t)load_ints(weights + 32 * b), (int8x16_t)load_ints(weights + 32 * b + 16)};
      POWERLAB_UNROLL
      for (int half = 0; half < 2; ++half) {
        POWERLAB_UNROLL
        for (int q = 0; q < kPairs; ++q) add_products(at[b][half][q], x[q], w[half]);
      }
    }
  }

  // A whole block.
  inline __attribute__((always_inline)) void add_block(const float* x, std::int64_t pixel,
                                                       const std::uint8_t* weights) {
    int8x16_t low[kPairs], high[kPairs];
    POWERLAB_UNROLL
    for (int q = 0; q < kPairs; ++q) {
      const uint64x2_t first = vreinterpretq_u64_u8(vld1q_u8(bytes_of(x + 2 * q * pixel)));
      const uint64x2_t second =
          vreinterpretq_u64_u8(vld1q_u8(bytes_of(x + (2 * q + 1 < P ? 2 * q + 1 : 2 * q) * pixel)));
      low[q] = vreinterpretq_s8_u64(vzip1q_u64(first, second));
      high[q] = vreinterpretq_s8_u64(vzip2q_u64(first, second));
    }
    add(low, weights);
    add(high, weights + B * 32);
  }

  // One word, or two.
  template <int W>
  inline __attribute__((always_inline)) void add_words(const float* x, std::int64_t pixel,
                                                       const std::uint8_t* weights) {
    const auto words_of = [&](int p) -> uint8x8_t {
      const float* at = x + (p < P ? p : p - 1) * pixel;
      if constexpr (W == 2) return vld1_u8(bytes_of(at));
      return vcreate_u8(static_cast<std::uint32_t>(*reinterpret_cast<const Word*>(at)));
    };
    int8x16_t both[kPairs];
    POWERLAB_UNROLL
    for (int q = 0; q < kPairs; ++q) both[q] = vreinterpretq_s8_u8(vcombine_u8(words_of(2 * q), words_of(2 * q + 1)));
    add(both, weights);
  }

  // Sums of a pixel's vector of outputs.
  inline __attribute__((always_inline)) IVec sums(int b, int p) const {
    const int64x2_t first = vreinterpretq_s64_s32(at[b][0][p / 2]), second = vreinterpretq_s64_s32(at[b][1][p / 2]);
    return (IVec)(p % 2 ? vzip2q_s64(first, second) : vzip1q_s64(first, second));
  }
};

template <int B, int P>
static inline __attribute__((always_inline)) void byte_sums(IVec (&acc)[B][P], const ByteTile& t) {
  Matrices<B, P> matrices;
  const std::uint8_t* weights = t.weights;
  const char* prefetch = t.prefetch;
  const std::int64_t pixel = t.x_pixel, prefetch_step = t.prefetch_step;
  for (int block = 0; block < t.blocks; ++block) {
    const int words = block + 1 == t.blocks ? t.last_words : t.words;
    for (int ky = 0; ky < t.kernel_h; ++ky) {
      const float* x = t.x + block * t.x_plane + ky * t.x_row;
      for (int kx = 0; kx < t.kernel_w; ++kx, x += t.x_column) {
        const float* at = x;
        int left = words;
        for (; left >= 4; left -= 4, at += 4, weights += B * 64) {
          matrices.add_block(at, pixel, weights);
          __builtin_prefetch(prefetch, 0, 2);
          prefetch += 4 * prefetch_step;
        }
        if (left >= 2) {
          matrices.template add_words<2>(at, pixel, weights);
          left -= 2, at += 2, weights += B * 32;
        }
        if (left > 0) {
          matrices.template add_words<1>(at, pixel, weights);
          weights += B * 32;
        }
      }
    }
  }
  read_anew();
  POWERLAB_UNROLL
  for (int b = 0; b < B; ++b) {
    const IVec begin = load_ints(t.bias + 2 * b * kWidth);
    POWERLAB_UNROLL
    for (int p = 0; p < P; ++p) acc[b][p] = begin + matrices.sums(b, p);
  }
}

template <bool F, int N, int B, int P>
static __attribute__((noinline)) void byte_tile(ByteTile& t) {
  do {
    IVec acc[B][P];
    byte_sums(acc, t);
    t.requantize.slope == 1 ? byte_finish<F, false, B, P>(acc, t) : byte_finish<F, true, B, P>(acc, t);
  } while (next_byte_tile(t));
}

}  // namespace powerlab::engine::POWERLAB_TIER
