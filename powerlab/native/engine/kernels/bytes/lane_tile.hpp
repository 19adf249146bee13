// The tile of conv_bytes.hpp on Arm, in registers: up to kByteTileBlocks vectors of sums x kByteTilePixels pixels. A
// pixel's block is one register, whose lanes are its words.
#pragma once

#include "kernels/bytes/byte_tile.hpp"
#include "kernels/bytes/lane_words.hpp"

namespace powerlab::engine::POWERLAB_TIER {

// Adds the products of whole blocks; returns where the weights of what is left begin. Several are added in a turn, so
// that counting and moving on take few instructions beside the products: the taps of a row of three, or four blocks
// under a kernel of 1 x 1.
template <int B, int P>
static inline __attribute__((always_inline)) const std::uint8_t* add_whole_blocks(IVec (&acc)[B][P], const ByteTile& t,
                                                                                  int whole) {
  constexpr std::int64_t kBytes = kBlockWords * B * kWordBytes<1>;  // weights of a block
  const std::uint8_t* weights = t.weights;
  const char* prefetch = t.prefetch;
  const std::int64_t pixel = t.x_pixel, prefetch_step = kBlockWords * t.prefetch_step;
  const float* x = t.x;
  // From one block to the next, and on from the last one.
  const auto add = [&]<int... I>(Indices<I...>, std::int64_t next, std::int64_t on) __attribute__((always_inline)) {
    constexpr int kCount = sizeof...(I);
    const auto add_one = [&]<int Of>(Count<Of>) __attribute__((always_inline)) {
      byte_words<kBlockWords>(acc, x, pixel, weights + Of * kBytes);
      x += Of + 1 < kCount ? next : on;
    };
    (add_one(Count<I>{}), ...);
    weights += kCount * kBytes;
    __builtin_prefetch(prefetch, 0, 2);
    prefetch += kCount * prefetch_step;
  };
  if (t.kernel_h * t.kernel_w == 1) {
    for (int fours = whole / 4; fours > 0; --fours) add(Indices<0, 1, 2, 3>{}, t.x_plane, t.x_plane);
    for (int left = whole % 4; left > 0; --left) add(Indices<0>{}, 0, t.x_plane);
    return weights;
  }
  if (t.kernel_w == 3) {
    // On from a row, and from the last one to the next block.
    const std::int64_t row = t.x_row - 2 * t.x_column, block = t.x_plane - t.kernel_h * t.x_row;
    for (int blocks = whole; blocks > 0; --blocks, x += block) {
      for (int ky = t.kernel_h; ky > 0; --ky) add(Indices<0, 1, 2>{}, t.x_column, row);
    }
    return weights;
  }
  const std::int64_t row = t.x_row - t.kernel_w * t.x_column, block = t.x_plane - t.kernel_h * t.x_row;
  for (int blocks = whole; blocks > 0; --blocks, x += block) {
    for (int ky = t.kernel_h; ky > 0; --ky, x += row) {
      for (int kx = t.kernel_w; kx > 0; --kx) add(Indices<0>{}, 0, t.x_column);
    }
  }
  return weights;
}

// The words of a first layer, or those of a last block that is not full.
template <int B, int P>
static inline __attribute__((always_inline)) void add_last_words(IVec (&acc)[B][P], const ByteTile& t,
                                                                 const std::uint8_t* weights) {
  const std::int64_t pixel = t.x_pixel;
  for (int ky = 0; ky < t.kernel_h; ++ky) {
    const float* row = t.x + (t.blocks - 1) * t.x_plane + ky * t.x_row;
    for (int kx = 0; kx < t.kernel_w; ++kx, row += t.x_column) {
      const float* x = row;
      int words = t.last_words;
      for (; words >= kBlockWords; words -= kBlockWords, x += kBlockWords) {
        byte_words<kBlockWords>(acc, x, pixel, weights);
        weights += kBlockWords * B * kWordBytes<1>;
      }
      if (words == 1) byte_words<1>(acc, x, pixel, weights);
      if (words == 2) byte_words<2>(acc, x, pixel, weights);
      if (words == 3) byte_words<3>(acc, x, pixel, weights);
      weights += words * B * kWordBytes<1>;
    }
  }
}

template <bool F, int N, int B, int P>
static __attribute__((noinline)) void byte_tile(ByteTile& t) {
  do {
    IVec acc[B][P];
    POWERLAB_UNROLL
    for (int b = 0; b < B; ++b) {
      const IVec begin = load_ints(t.bias + 2 * b * kWidth);
      POWERLAB_UNROLL
      for (int p = 0; p < P; ++p) acc[b][p] = begin;
    }
    const int whole = t.last_words == kBlockWords ? t.blocks : t.blocks - 1;
    const std::uint8_t* weights = whole > 0 ? add_whole_blocks(acc, t, whole) : t.weights;
    read_anew();
    if (t.last_words != kBlockWords) add_last_words(acc, t, weights);
    read_anew();
    t.requantize.slope == 1 ? byte_finish<F, false, B, P>(acc, t) : byte_finish<F, true, B, P>(acc, t);
    read_anew();
  } while (next_byte_tile(t));
}

}  // namespace powerlab::engine::POWERLAB_TIER
