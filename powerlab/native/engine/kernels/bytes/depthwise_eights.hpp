// Depthwise convolutions of 3 x 3 on Arm, eight channels of a block at a time.
//
// With dot products four pixels of a row are turned until a lane has those of its channel; sdot multiplies them with a
// row of the kernel, and with strides of 1 they serve two pixels of the output. Without, bytes are widened to 16 bits,
// once for all taps, and smlal multiplies them one by one.
#pragma once

#include "kernels/bytes/requantize.hpp"

namespace powerlab::engine::POWERLAB_TIER {

constexpr int kEightVectors = 2;  // of four channels each
constexpr int kEightPixels = 4;   // of a tile
constexpr int kEightChannels = kEightVectors * kWidth;

// What eight channels are multiplied with, by kernel row: words of a lane, three weights and 0, or 0 and three weights;
// or weights of 16 bits.
struct DepthwiseEight {
#if defined(__ARM_FEATURE_DOTPROD)
  IVec words[3][2][kEightVectors];
#else
  int16x8_t weights[3][3];
#endif
  IVec begin[kEightVectors];  // sums
  Vec multiplier[kEightVectors];
};

// Weights and bias of `vectors` vectors, where there may be one of two; see depthwise_bytes.hpp.
static inline void make_eight(const std::int8_t* weights, const float* bias, std::int64_t vectors, DepthwiseEight& to) {
  to = {};
  for (int v = 0; v < kEightVectors && v < vectors; ++v) {
    to.begin[v] = load_ints(bias + 2 * v * kWidth);
    to.multiplier[v] = load_unaligned(bias + (2 * v + 1) * kWidth);
    for (int tap = 0; tap < 9; ++tap) {
      const std::int8_t* from = weights + (9 * v + tap) * kWidth;
#if defined(__ARM_FEATURE_DOTPROD)
      const IVec at = (load_signed(from) & 255) << (8 * (tap % 3));
      to.words[tap / 3][0][v] |= at;
      to.words[tap / 3][1][v] |= at << 8;
#else
      for (int lane = 0; lane < kWidth; ++lane) to.weights[tap / 3][tap % 3][v * kWidth + lane] = from[lane];
#endif
    }
  }
}

static inline __attribute__((always_inline)) int8x8_t eight_channels(const std::uint8_t* pixel) {
  return vld1_s8(reinterpret_cast<const std::int8_t*>(pixel));
}

#if defined(__ARM_FEATURE_DOTPROD)
// Adds a row of x to the sums of a row of kEightPixels pixels. S: strides.
template <int S, int R>
static inline __attribute__((always_inline)) void add_row(const std::uint8_t* x, int i, const DepthwiseEight& eight,
                                                          IVec (&acc)[R][kEightPixels][kEightVectors]) {
  constexpr int kStep = S == 1 ? 2 : 1;
  POWERLAB_UNROLL
  for (int p = 0; p < kEightPixels; p += kStep) {
    int8x16_t pixels[4];
    POWERLAB_UNROLL
    for (int c = 0; c < 4; ++c)
      pixels[c] = vcombine_s8(eight_channels(x + (p * S + (S == 1 || c < 3 ? c : 2)) * kBlockBytes), vcreate_s8(0));
    const int16x8_t left = (int16x8_t)vzip1q_s8(pixels[0], pixels[1]);
    const int16x8_t right = (int16x8_t)vzip1q_s8(pixels[2], pixels[3]);
    const IVec words[] = {(IVec)vzip1q_s16(left, right), (IVec)vzip2q_s16(left, right)};
    POWERLAB_UNROLL
    for (int j = 0; j < R; ++j) {
      const int ky = i - j * S;
      if (ky < 0 || ky > 2) continue;
      POWERLAB_UNROLL
      for (int v = 0; v < kEightVectors; ++v) {
        acc[j][p][v] = dot(acc[j][p][v], words[v], eight.words[ky][0][v]);
        if (kStep == 2) acc[j][p + 1][v] = dot(acc[j][p + 1][v], words[v], eight.words[ky][1][v]);
      }
    }
  }
}
#else
template <int S, int R>
static inline __attribute__((always_inline)) void add_row(const std::uint8_t* x, int i, const DepthwiseEight& eight,
                                                          IVec (&acc)[R][kEightPixels][kEightVectors]) {
  POWERLAB_UNROLL
  for (int column = 0; column < (kEightPixels - 1) * S + 3; ++column) {
    const int16x8_t wide = vmovl_s8(eight_channels(x + column * kBlockBytes));
    POWERLAB_UNROLL
    for (int j = 0; j < R; ++j) {
      const int ky = i - j * S;
      if (ky < 0 || ky > 2) continue;
      POWERLAB_UNROLL
      for (int kx = 0; kx < 3; ++kx) {
        const int p = (column - kx) / S;
        if (column < kx || (column - kx) % S || p >= kEightPixels) continue;
        const int16x8_t w = eight.weights[ky][kx];
        acc[j][p][0] = (IVec)vmlal_s16((int32x4_t)acc[j][p][0], vget_low_s16(wide), vget_low_s16(w));
        acc[j][p][1] = (IVec)vmlal_high_s16((int32x4_t)acc[j][p][1], wide, w);
      }
    }
  }
}
#endif

// R rows of kEightPixels pixels.
template <int S, int R>
static inline __attribute__((always_inline)) void add_rows(const std::uint8_t* x, std::int64_t row,
                                                           const DepthwiseEight& eight,
                                                           IVec (&acc)[R][kEightPixels][kEightVectors]) {
  POWERLAB_UNROLL
  for (int i = 0; i < (R - 1) * S + 3; ++i, x += row) {
    asm("" : "+r"(x));  // else GCC would keep an address for each pixel
    add_row<S>(x, i, eight, acc);
  }
}

// R rows of the output from x, the first tap of the first pixel on; A: what is below 0 is multiplied by a slope.
template <int S, int R, bool A>
static __attribute__((noinline)) void depthwise_eight(const Step& s, const DepthwiseEight& eight, const std::uint8_t* x,
                                                      std::uint8_t* out, const std::uint8_t* residual) {
  const Requantize r = requantize_of(s);
  const std::int64_t x_row = 4 * s.x.row, out_row = 4 * s.out.row, residual_row = 4 * s.y.row;
  for (std::int64_t first = 0; first < s.out.w; first += kEightPixels) {
    // The last tile computes some pixels again, if it must.
    const std::int64_t begin = (first + kEightPixels <= s.out.w ? first : s.out.w - kEightPixels) * kBlockBytes;
    IVec acc[R][kEightPixels][kEightVectors];
    POWERLAB_UNROLL
    for (int i = 0; i < R * kEightPixels; ++i) {
      POWERLAB_UNROLL
      for (int v = 0; v < kEightVectors; ++v) acc[i / kEightPixels][i % kEightPixels][v] = eight.begin[v];
    }
    add_rows<S>(x + begin * S, x_row, eight, acc);
    POWERLAB_UNROLL
    for (int j = 0; j < R; ++j) {
      std::uint8_t* to = out + j * out_row + begin;
      asm("" : "+r"(to));
      POWERLAB_UNROLL
      for (int p = 0; p < kEightPixels; ++p) {
        Vec steps[kEightVectors];
        POWERLAB_UNROLL
        for (int v = 0; v < kEightVectors; ++v) {
          steps[v] = products<A>(acc[j][p][v], eight.multiplier[v], r);
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
static inline void depthwise_eight_rows(const Step& s, const DepthwiseEight (&eights)[2], std::int64_t channels,
                                        const std::uint8_t* x, std::uint8_t* out, const std::uint8_t* residual) {
  const auto function = s.slope == 1 ? depthwise_eight<S, R, false> : depthwise_eight<S, R, true>;
  for (int half = 0; half < 2 && half * kEightChannels < channels; ++half) {
    const int at = half * kEightChannels;
    function(s, eights[half], x + at, out + at, residual ? residual + at : nullptr);
  }
}

// Kernels of 3 x 3 with strides of 1 or 2 on images of kEightPixels columns or more.
static void depthwise_by_eights(const Step& s, const Range& all) {
  DepthwiseEight eights[2];
  std::int64_t in_eights = -1;  // the block whose weights these are
  for (std::int64_t unit = all.begin, rows = 1; unit < all.end; unit += rows) {
    const Row r = row_of(unit, s.out);
    rows = r.y + 1 < s.out.h && unit + 1 < all.end ? 2 : 1;
    if (in_eights != r.block) {
      const std::int64_t vector = r.block * kBlockVectors, vectors = (s.out.c + kWidth - 1) / kWidth;
      for (int half = 0; half < 2; ++half) {
        const std::int64_t from = vector + half * kEightVectors;
        make_eight(reinterpret_cast<const std::int8_t*>(s.weights) + from * 9 * kWidth, s.bias + from * 2 * kWidth,
                   vectors - from, eights[half]);
      }
      in_eights = r.block;
    }
    const std::uint8_t* x =
        bytes_of(row_start(s.x, {r.n, r.block, r.y * s.stride_h - s.pad_top}) - s.pad_left * s.x.pixel);
    std::uint8_t* out = bytes_of(row_start(s.out, r));
    const std::uint8_t* residual = s.y.data ? bytes_of(row_start(s.y, r)) : nullptr;
    const auto run = s.stride_h == 1 ? (rows == 1 ? depthwise_eight_rows<1, 1> : depthwise_eight_rows<1, 2>)
                                     : (rows == 1 ? depthwise_eight_rows<2, 1> : depthwise_eight_rows<2, 2>);
    run(s, eights, s.out.c - r.block * kBlockBytes, x, out, residual);
  }
}

}  // namespace powerlab::engine::POWERLAB_TIER
