// Depthwise convolution of bytes: one filter a channel, in vectors of the tier's width within blocks of 16 channels.
//
// Each byte is widened once and multiplied by a weight widened likewise; there is no sum over channels for dot products
// to shorten. Kernels of 3 x 3 with strides of 1 or 2 load each pixel of a tile once, for two rows of the output. On
// AVX-512 VNNI dot products add up a row of such a kernel: four pixels of a block are a vector of bytes, which is
// turned until a lane has the four pixels of its channel. Arm's kernels of 3 x 3: depthwise_eights.hpp.
//
// Weights: [vector][kernel_h][kernel_w][v] signed bytes. Bias: as in conv_bytes.hpp.
#pragma once

#include "kernels/bytes/requantize.hpp"
#if defined(__aarch64__)
#include "kernels/bytes/depthwise_eights.hpp"
#endif

namespace powerlab::engine::POWERLAB_TIER {

#if defined(__AVX512VNNI__) && defined(__AVX512F__)
constexpr bool kDepthwiseWords = true;
#else
constexpr bool kDepthwiseWords = false;
#endif

// Pixels of a tile: of 3 x 3, which keep a row of the image in registers, and of any other kernel.
#if defined(__AVX512VNNI__) && defined(__AVX512F__)
constexpr int kByteDepthwisePixels = 8;
#elif defined(__AVX512F__) || defined(__aarch64__)
constexpr int kByteDepthwisePixels = 7;
#else
constexpr int kByteDepthwisePixels = 3;
#endif
constexpr int kAnyDepthwisePixels = 8;

struct ByteDepthwiseTile {
  const Step* step;
  const std::uint8_t* x;       // the first tap of the first pixel, at the vector's channels
  const std::int8_t* weights;  // of 3 x 3 with kDepthwiseWords: a word a lane and kernel row
  const float* bias;
  std::uint8_t* out;
  const std::uint8_t* residual;  // null where there is none
  Requantize requantize;
};

// Pixels First to First + P of a row.
template <bool S, int First, int P, int All>
static inline __attribute__((always_inline)) void byte_depthwise_store_pixels(const ByteDepthwiseTile& t, int row,
                                                                              Vec multiplier, const IVec (&acc)[All],
                                                                              const Requantize& r) {
  Vec steps[P];
  POWERLAB_UNROLL
  for (int p = 0; p < P; ++p) {
    steps[p] = products<S>(acc[First + p], multiplier, r);
    if (t.residual) {
      const std::uint8_t* residual = t.residual + row * 4 * t.step->y.row + (First + p) * kBlockBytes;
      steps[p] += scaled(load_bytes(residual), r);
    }
  }
  store_pixels(t.out + row * 4 * t.step->out.row + First * kBlockBytes, steps, r);
}

template <bool S, int R, int P>
static inline __attribute__((always_inline)) void byte_depthwise_store_as(const ByteDepthwiseTile& t,
                                                                          const IVec (&acc)[R][P]) {
  const Requantize r = t.requantize;
  const Vec multiplier = load_unaligned(t.bias + kWidth);
  POWERLAB_UNROLL
  for (int i = 0; i < R; ++i) {
    byte_depthwise_store_pixels < S, 0, P<4 ? P : 4>(t, i, multiplier, acc[i], r);
    if constexpr (P > 4) byte_depthwise_store_pixels<S, 4, P - 4>(t, i, multiplier, acc[i], r);
  }
}

template <int R, int P>
static inline __attribute__((always_inline)) void byte_depthwise_store(const ByteDepthwiseTile& t,
                                                                       const IVec (&acc)[R][P]) {
  t.step->slope == 1 ? byte_depthwise_store_as<false>(t, acc) : byte_depthwise_store_as<true>(t, acc);
}

template <int R, int P>
static inline __attribute__((always_inline)) void byte_depthwise_start(const ByteDepthwiseTile& t, IVec (&acc)[R][P]) {
  const IVec begin = load_ints(t.bias);
  POWERLAB_UNROLL
  for (int i = 0; i < R; ++i) {
    POWERLAB_UNROLL
    for (int p = 0; p < P; ++p) acc[i][p] = begin;
  }
}

#if defined(__AVX512VNNI__) && defined(__AVX512F__)
// Pixels of a block, three or four, as words of a channel each.
template <int Pixels>
static inline __attribute__((always_inline)) IVec pixels_of_channels(const std::uint8_t* p) {
  const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
  const __m512i within =
      _mm512_maskz_broadcast_i32x4(kAllLanes, _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15));
  const __m512i pixels = _mm512_maskz_loadu_epi32(static_cast<__mmask16>((1 << 4 * Pixels) - 1), p);
  return (IVec)_mm512_shuffle_epi8(_mm512_maskz_permutexvar_epi32(kAllLanes, order, pixels), within);
}

// Weights of a vector as words: three of a kernel row, and 0.
static inline void depthwise_words(const std::int8_t* weights, std::int8_t* to) {
  for (int ky = 0; ky < 3; ++ky) {
    IVec word = {};
    for (int kx = 0; kx < 3; ++kx) word |= (load_signed(weights + (3 * ky + kx) * kWidth) & 255) << (8 * kx);
    *reinterpret_cast<UnalignedIVec*>(to + 4 * ky * kWidth) = word;
  }
}

// A kernel of 3 x 3, strides S, R rows of the output. With strides of 1 a word of four pixels serves two of the output.
template <int S, int R, int P>
static __attribute__((noinline)) void byte_depthwise_3x3(const ByteDepthwiseTile& t) {
  IVec acc[R][P], w[3];
  byte_depthwise_start(t, acc);
  POWERLAB_UNROLL
  for (int ky = 0; ky < 3; ++ky) w[ky] = load_ints(t.weights + 4 * ky * kWidth);
  const std::int64_t row = 4 * t.step->x.row;
  constexpr int kStep = S == 1 ? 2 : 1;
  POWERLAB_UNROLL
  for (int i = 0; i < (R - 1) * S + 3; ++i) {
    POWERLAB_UNROLL
    for (int p = 0; p < P; p += kStep) {
      const bool both = S == 1 && p + 1 < P;
      const std::uint8_t* from = t.x + i * row + p * S * kBlockBytes;
      const IVec x = both ? pixels_of_channels<4>(from) : pixels_of_channels<3>(from);
      POWERLAB_UNROLL
      for (int j = 0; j < R; ++j) {
        const int ky = i - j * S;
        if (ky < 0 || ky > 2) continue;
        acc[j][p] = dot(acc[j][p], x, w[ky]);
        if (both) acc[j][p + 1] = dot(acc[j][p + 1], x, w[ky] << 8);
      }
    }
  }
  byte_depthwise_store(t, acc);
}
#else
static inline void depthwise_words(const std::int8_t*, std::int8_t*) {}

// A kernel of 3 x 3, strides S, R rows of the output.
template <int S, int R, int P>
static __attribute__((noinline)) void byte_depthwise_3x3(const ByteDepthwiseTile& t) {
  IVec acc[R][P];
  byte_depthwise_start(t, acc);
  const std::int64_t row = 4 * t.step->x.row;
  POWERLAB_UNROLL
  for (int i = 0; i < (R - 1) * S + 3; ++i) {
    constexpr int kColumns = (P - 1) * S + 3;
    IVec x[kColumns];
    POWERLAB_UNROLL
    for (int c = 0; c < kColumns; ++c) x[c] = load_bytes(t.x + i * row + c * kBlockBytes);
    POWERLAB_UNROLL
    for (int j = 0; j < R; ++j) {
      const int ky = i - j * S;
      if (ky < 0 || ky > 2) continue;
      POWERLAB_UNROLL
      for (int kx = 0; kx < 3; ++kx) {
        const IVec w = load_signed(t.weights + (ky * 3 + kx) * kWidth);
        POWERLAB_UNROLL
        for (int p = 0; p < P; ++p) acc[j][p] = multiply_add(acc[j][p], x[p * S + kx], w);
      }
    }
  }
  byte_depthwise_store(t, acc);
}
#endif

// Any kernel, one row of the output.
template <int P>
static __attribute__((noinline)) void byte_depthwise_any(const ByteDepthwiseTile& t) {
  const Step& s = *t.step;
  IVec acc[1][P];
  byte_depthwise_start(t, acc);
  const std::int64_t stride = kBlockBytes * static_cast<std::int64_t>(s.stride_w);
  const std::int8_t* weights = t.weights;
  for (int ky = 0; ky < s.kernel_h; ++ky) {
    const std::uint8_t* x = t.x + ky * s.dilation_h * 4 * s.x.row;
    for (int kx = 0; kx < s.kernel_w; ++kx, weights += kWidth, x += s.dilation_w * kBlockBytes) {
      const IVec w = load_signed(weights);
      POWERLAB_UNROLL
      for (int p = 0; p < P; ++p) acc[0][p] = multiply_add(acc[0][p], load_bytes(x + p * stride), w);
    }
  }
  byte_depthwise_store(t, acc);
}

using ByteDepthwiseFunction = void (*)(const ByteDepthwiseTile&);
struct ByteDepthwiseTable {
  ByteDepthwiseFunction at[kAnyDepthwisePixels];
};
template <int S, int R, int... P>
constexpr ByteDepthwiseTable make_byte_depthwise(Indices<P...>) {
  if constexpr (S == 0) return {{byte_depthwise_any<P + 1>...}};
  return {{byte_depthwise_3x3 < S == 0 ? 1 : S, R, P + 1 > ...}};
}
// By stride (0: any kernel) and rows.
template <int S, int R>
constexpr ByteDepthwiseTable kByteDepthwise =
    make_byte_depthwise<S, R>(typename MakeIndices<(S == 0 ? kAnyDepthwisePixels : kByteDepthwisePixels)>::type{});

static void depthwise_bytes(const Step& s, int thread, int threads) {
  const bool square = s.kernel_h == 3 && s.kernel_w == 3 && s.stride_h == s.stride_w && s.stride_h <= 2 &&
                      s.dilation_h == 1 && s.dilation_w == 1;
  const int most = square ? kByteDepthwisePixels : kAnyDepthwisePixels;
  const std::int64_t tiles = (s.out.w + most - 1) / most;
  const Range all = row_share(s.out, thread, threads);
#if defined(__aarch64__)
  if (square && s.out.w >= kEightPixels) return depthwise_by_eights(s, all);
#endif
  alignas(4 * kWidth) std::int8_t words[12 * kWidth];
  std::int64_t in_words = -1;  // the vector whose weights these are
  ByteDepthwiseTile t;
  t.step = &s;
  t.requantize = requantize_of(s);
  for (std::int64_t unit = all.begin, rows = 1; unit < all.end; unit += rows) {
    const Row r = row_of(unit, s.out);
    rows = square && r.y + 1 < s.out.h && unit + 1 < all.end ? 2 : 1;
    const ByteDepthwiseTable& table = !square           ? kByteDepthwise<0, 1>
                                      : s.stride_h == 1 ? (rows == 1 ? kByteDepthwise<1, 1> : kByteDepthwise<1, 2>)
                                                        : (rows == 1 ? kByteDepthwise<2, 1> : kByteDepthwise<2, 2>);
    const std::uint8_t* x =
        bytes_of(row_start(s.x, {r.n, r.block, r.y * s.stride_h - s.pad_top}) - s.pad_left * s.x.pixel);
    std::uint8_t* out = bytes_of(row_start(s.out, r));
    const std::uint8_t* residual = s.y.data ? bytes_of(row_start(s.y, r)) : nullptr;
    for (int part = 0; part < kBlockVectors; ++part) {
      const std::int64_t vector = r.block * kBlockVectors + part;
      if (vector * kWidth >= s.out.c) break;
      t.weights = reinterpret_cast<const std::int8_t*>(s.weights) + vector * s.kernel_h * s.kernel_w * kWidth;
      t.bias = s.bias + vector * 2 * kWidth;
      if (kDepthwiseWords && square) {
        if (in_words != vector) depthwise_words(t.weights, words);
        in_words = vector;
        t.weights = words;
      }
      for (std::int64_t tile = 0; tile < tiles; ++tile) {
        const std::int64_t begin = tile * s.out.w / tiles, end = (tile + 1) * s.out.w / tiles;
        t.x = x + begin * s.stride_w * kBlockBytes + part * kWidth;
        t.out = out + begin * kBlockBytes + part * kWidth;
        t.residual = residual ? residual + begin * kBlockBytes + part * kWidth : nullptr;
        table.at[end - begin - 1](t);
      }
    }
  }
}

}  // namespace powerlab::engine::POWERLAB_TIER
