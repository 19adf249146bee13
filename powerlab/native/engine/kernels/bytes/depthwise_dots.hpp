// Depthwise convolutions of 3 x 3 by Arm's dot products, eight channels of a block at a time.
//
// Four pixels of a row are turned until a lane has those of its channel; sdot multiplies them with a row of the kernel.
// With strides of 1 they serve two pixels of the output.
#pragma once

#include "kernels/bytes/requantize.hpp"

namespace powerlab::engine::POWERLAB_TIER {

constexpr int kDotVectors = 2;  // of four channels each
constexpr int kDotPixels = 4;   // of a tile
constexpr int kDotChannels = kDotVectors * kWidth;

// What eight channels are multiplied with, as words of a lane each: three weights and 0, or 0 and three weights.
struct DepthwiseDots {
  IVec words[3][2][kDotVectors];  // by kernel row
  IVec begin[kDotVectors];        // sums
  Vec multiplier[kDotVectors];
};

// Weights and bias of `vectors` vectors, where there may be one of two; see depthwise_bytes.hpp.
static inline void make_dots(const std::int8_t* weights, const float* bias, std::int64_t vectors, DepthwiseDots& to) {
  to = {};
  for (int v = 0; v < kDotVectors && v < vectors; ++v) {
    to.begin[v] = load_ints(bias + 2 * v * kWidth);
    to.multiplier[v] = load_unaligned(bias + (2 * v + 1) * kWidth);
    for (int ky = 0; ky < 3; ++ky) {
      IVec word = {};
      for (int kx = 0; kx < 3; ++kx)
        word |= (load_signed(weights + ((3 * v + ky) * 3 + kx) * kWidth) & 255) << (8 * kx);
      to.words[ky][0][v] = word;
      to.words[ky][1][v] = word << 8;
    }
  }
}

static inline __attribute__((always_inline)) int8x16_t eight_channels(const std::uint8_t* pixel) {
  return vcombine_s8(vld1_s8(reinterpret_cast<const std::int8_t*>(pixel)), vcreate_s8(0));
}

// R rows of kDotPixels pixels. S: strides.
template <int S, int R>
static inline __attribute__((always_inline)) void add_dots(const std::uint8_t* x, std::int64_t row,
                                                           const DepthwiseDots& dots,
                                                           IVec (&acc)[R][kDotPixels][kDotVectors]) {
  constexpr int kStep = S == 1 ? 2 : 1;
  POWERLAB_UNROLL
  for (int i = 0; i < (R - 1) * S + 3; ++i, x += row) {
    asm("" : "+r"(x));  // else GCC would keep an address for each pixel
    POWERLAB_UNROLL
    for (int p = 0; p < kDotPixels; p += kStep) {
      int8x16_t pixels[4];
      POWERLAB_UNROLL
      for (int c = 0; c < 4; ++c) pixels[c] = eight_channels(x + (p * S + (S == 1 || c < 3 ? c : 2)) * kBlockBytes);
      const int16x8_t left = (int16x8_t)vzip1q_s8(pixels[0], pixels[1]);
      const int16x8_t right = (int16x8_t)vzip1q_s8(pixels[2], pixels[3]);
      const IVec words[] = {(IVec)vzip1q_s16(left, right), (IVec)vzip2q_s16(left, right)};
      POWERLAB_UNROLL
      for (int j = 0; j < R; ++j) {
        const int ky = i - j * S;
        if (ky < 0 || ky > 2) continue;
        POWERLAB_UNROLL
        for (int v = 0; v < kDotVectors; ++v) {
          acc[j][p][v] = dot(acc[j][p][v], words[v], dots.words[ky][0][v]);
          if (kStep == 2) acc[j][p + 1][v] = dot(acc[j][p + 1][v], words[v], dots.words[ky][1][v]);
        }
      }
    }
  }
}

// R rows of the output from x, the first tap of the first pixel on; A: what is below 0 is multiplied by a slope.
template <int S, int R, bool A>
static __attribute__((noinline)) void depthwise_dots(const Step& s, const DepthwiseDots& dots, const std::uint8_t* x,
                                                     std::uint8_t* out, const std::uint8_t* residual) {
  const Requantize r = requantize_of(s);
  const std::int64_t x_row = 4 * s.x.row, out_row = 4 * s.out.row, residual_row = 4 * s.y.row;
  for (std::int64_t first = 0; first < s.out.w; first += kDotPixels) {
    // The last tile computes some pixels again, if it must.
    const std::int64_t begin = (first + kDotPixels <= s.out.w ? first : s.out.w - kDotPixels) * kBlockBytes;
    IVec acc[R][kDotPixels][kDotVectors];
    POWERLAB_UNROLL
    for (int i = 0; i < R * kDotPixels; ++i) {
      POWERLAB_UNROLL
      for (int v = 0; v < kDotVectors; ++v) acc[i / kDotPixels][i % kDotPixels][v] = dots.begin[v];
    }
    add_dots<S, R>(x + begin * S, x_row, dots, acc);
    POWERLAB_UNROLL
    for (int j = 0; j < R; ++j) {
      std::uint8_t* to = out + j * out_row + begin;
      asm("" : "+r"(to));
      POWERLAB_UNROLL
      for (int p = 0; p < kDotPixels; ++p) {
        Vec steps[kDotVectors];
        POWERLAB_UNROLL
        for (int v = 0; v < kDotVectors; ++v) {
          steps[v] = products<A>(acc[j][p][v], dots.multiplier[v], r);
          if (residual)
            steps[v] += scaled(load_bytes(residual + j * residual_row + begin + p * kBlockBytes + v * kWidth), r);
        }
        vst1_s8(reinterpret_cast<std::int8_t*>(to + p * kBlockBytes), half_block(steps, r));
      }
    }
  }
}

// R rows of a block of which `channels` are computed.
template <int S, int R>
static inline void depthwise_dot_rows(const Step& s, const DepthwiseDots (&dots)[2], std::int64_t channels,
                                      const std::uint8_t* x, std::uint8_t* out, const std::uint8_t* residual) {
  const auto function = s.slope == 1 ? depthwise_dots<S, R, false> : depthwise_dots<S, R, true>;
  for (int half = 0; half < 2 && half * kDotChannels < channels; ++half) {
    const int at = half * kDotChannels;
    function(s, dots[half], x + at, out + at, residual ? residual + at : nullptr);
  }
}

// Kernels of 3 x 3 with strides of 1 or 2 on images of kDotPixels columns or more.
static void depthwise_by_dots(const Step& s, const Range& all) {
  DepthwiseDots dots[2];
  std::int64_t in_dots = -1;  // the block whose weights these are
  for (std::int64_t unit = all.begin, rows = 1; unit < all.end; unit += rows) {
    const Row r = row_of(unit, s.out);
    rows = r.y + 1 < s.out.h && unit + 1 < all.end ? 2 : 1;
    if (in_dots != r.block) {
      const std::int64_t vector = r.block * kBlockVectors, vectors = (s.out.c + kWidth - 1) / kWidth;
      for (int half = 0; half < 2; ++half) {
        const std::int64_t from = vector + half * kDotVectors;
        make_dots(reinterpret_cast<const std::int8_t*>(s.weights) + from * 9 * kWidth, s.bias + from * 2 * kWidth,
                  vectors - from, dots[half]);
      }
      in_dots = r.block;
    }
    const std::uint8_t* x =
        bytes_of(row_start(s.x, {r.n, r.block, r.y * s.stride_h - s.pad_top}) - s.pad_left * s.x.pixel);
    std::uint8_t* out = bytes_of(row_start(s.out, r));
    const std::uint8_t* residual = s.y.data ? bytes_of(row_start(s.y, r)) : nullptr;
    const auto run = s.stride_h == 1 ? (rows == 1 ? depthwise_dot_rows<1, 1> : depthwise_dot_rows<1, 2>)
                                     : (rows == 1 ? depthwise_dot_rows<2, 1> : depthwise_dot_rows<2, 2>);
    run(s, dots, s.out.c - r.block * kBlockBytes, x, out, residual);
  }
}

}  // namespace powerlab::engine::POWERLAB_TIER
