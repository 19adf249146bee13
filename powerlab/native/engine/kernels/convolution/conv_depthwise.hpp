// Depthwise convolution in the blocked layout: one filter a channel; out = activate(conv(x) + bias + y).
//
// Weights: [block][kernel_h][kernel_w][v]. Padding is the halo of x. A row is cut into tiles of nearly equal width;
// equal ones side by side, or below each other where a row is one tile, are a run, computed by one call. Rows of x may
// lie in a ring, as in conv_chain.hpp. A load for each multiplication would be too many. So where there are 32
// registers, kernels of 3 x 3 and 5 x 5 with strides of 1 or 2 load each pixel of a tile once into registers, for two
// rows of the output where they are 3 x 3, and larger ones of strides 1 compute two rows of the output with each pixel
// they load. Where there are 16, tiles are of one row and eight pixels, whose sums do not wait for themselves, and a
// row of a usual kernel is compiled as a whole, so that a pixel stays in a register for as many taps as there is room.
// All ways add up in the same order. How the pixels of x lie is a parameter of them all: see FloatPixels.
#pragma once

#include "kernels/epilogue.hpp"

namespace powerlab::engine::POWERLAB_TIER {

#if defined(__AVX512F__) || defined(__aarch64__)
constexpr bool kDepthwiseHolds = true;  // all pixels of a tile: 32 registers
constexpr int kDepthwisePixels = 7;
#else
constexpr bool kDepthwiseHolds = false;
constexpr int kDepthwisePixels = 8;
#endif

// Pixels of x as vectors of floats: how many floats one lies behind the other, and how one is loaded.
struct FloatPixels {
  static constexpr std::int64_t kApart = kWidth;
  static inline Vec read(const float* pixel) { return load(pixel); }
};

// The rows of x that the first row of the output reads: row i of them is row (first + i) modulo `slots` of `data`.
struct RowRing {
  const float* data;  // at the first column the first output reads
  std::int64_t row, first, slots;
};
static inline const float* ring_row(const RowRing& ring, std::int64_t i) {
  const std::int64_t slot = ring.first + i;  // a ring has all rows that one row of the output reads
  return ring.data + (slot < ring.slots ? slot : slot - ring.slots) * ring.row;
}

// A run of `count` tiles of equal width, which moves on as they are computed. `residual` is null where there is none;
// rows of out and of the residual lie so many floats apart.
struct DepthwiseTile {
  const Step* step;
  RowRing* ring;
  const float* weights;
  const float* bias;
  float* out;
  const float* residual;
  std::int64_t x_offset, out_row, residual_row, count;
  std::int64_t x_next, ring_next, out_next, residual_next;  // from one to the next: floats, and rows of the ring
};

// Moves on to the next tile of a run; false where there is none.
static inline __attribute__((always_inline)) bool depthwise_next(DepthwiseTile& t) {
  if (--t.count == 0) return false;
  t.x_offset += t.x_next;
  t.out += t.out_next;
  if (t.residual) t.residual += t.residual_next;
  t.ring->first += t.ring_next;
  if (t.ring->first >= t.ring->slots) t.ring->first -= t.ring->slots;
  return true;
}

template <int R, int P>
static inline __attribute__((always_inline)) void depthwise_finish(const DepthwiseTile& t, Vec (&acc)[R][P]) {
  if (t.residual && !t.step->adds_last) {
    POWERLAB_UNROLL
    for (int r = 0; r < R; ++r) {
      POWERLAB_UNROLL
      for (int p = 0; p < P; ++p) acc[r][p] += load(t.residual + r * t.residual_row + p * kWidth);
    }
  }
  if (t.step->slope != 1) {
    const Vec slope = broadcast(t.step->slope);
    POWERLAB_UNROLL
    for (int r = 0; r < R; ++r) {
      POWERLAB_UNROLL
      for (int p = 0; p < P; ++p) acc[r][p] = acc[r][p] < broadcast(0) ? acc[r][p] * slope : acc[r][p];
    }
  }
  const Vec low = broadcast(t.step->low), high = broadcast(t.step->high);
  float* out = t.out;
  const std::int64_t row = t.out_row;
  if (t.residual && t.step->adds_last) {
    POWERLAB_UNROLL
    for (int r = 0; r < R; ++r) {
      POWERLAB_UNROLL
      for (int p = 0; p < P; ++p) {
        store(out + r * row + p * kWidth,
              clamp(acc[r][p], low, high) + load(t.residual + r * t.residual_row + p * kWidth));
      }
    }
    return;
  }
  POWERLAB_UNROLL
  for (int r = 0; r < R; ++r) {
    POWERLAB_UNROLL
    for (int p = 0; p < P; ++p) store(out + r * row + p * kWidth, clamp(acc[r][p], low, high));
  }
}

template <int R, int P>
static inline __attribute__((always_inline)) void depthwise_start(const DepthwiseTile& t, Vec (&acc)[R][P]) {
  const Vec bias = load(t.bias);
  POWERLAB_UNROLL
  for (int r = 0; r < R; ++r) {
    POWERLAB_UNROLL
    for (int p = 0; p < P; ++p) acc[r][p] = bias;
  }
}

// One kernel row over the pixels of one row of x, which are in registers.
template <int K, int S, int P>
static inline __attribute__((always_inline)) void depthwise_taps(Vec (&acc)[P], const Vec (&x)[(P - 1) * S + K],
                                                                 const float* weights) {
  POWERLAB_UNROLL
  for (int kx = 0; kx < K; ++kx) {
    const Vec w = load(weights + kx * kWidth);
    POWERLAB_UNROLL
    for (int p = 0; p < P; ++p) acc[p] += w * x[p * S + kx];
  }
}

template <class X, int N>
static inline __attribute__((always_inline)) void depthwise_load(Vec (&x)[N], const float* from) {
  POWERLAB_UNROLL
  for (int i = 0; i < N; ++i) x[i] = X::read(from + i * X::kApart);
}

// A kernel of 3 x 3, strides S, R rows of the output.
template <class X, int S, int R, int P>
static __attribute__((noinline)) void depthwise_3x3(DepthwiseTile& t) {
  do {
    Vec acc[R][P];
    depthwise_start(t, acc);
    POWERLAB_UNROLL
    for (int i = 0; i < (R - 1) * S + 3; ++i) {
      Vec x[(P - 1) * S + 3];
      depthwise_load<X>(x, ring_row(*t.ring, i) + t.x_offset);
      POWERLAB_UNROLL
      for (int r = 0; r < R; ++r) {
        const int ky = i - r * S;
        if (ky >= 0 && ky < 3) depthwise_taps<3, S, P>(acc[r], x, t.weights + ky * 3 * kWidth);
      }
    }
    depthwise_finish(t, acc);
  } while (depthwise_next(t));
}

// A kernel of 5 x 5, strides S, one row of the output.
template <class X, int S, int P>
static __attribute__((noinline)) void depthwise_5x5(DepthwiseTile& t) {
  do {
    Vec acc[1][P];
    depthwise_start(t, acc);
    for (int ky = 0; ky < 5; ++ky) {
      Vec x[(P - 1) * S + 5];
      depthwise_load<X>(x, ring_row(*t.ring, ky) + t.x_offset);
      depthwise_taps<5, S, P>(acc[0], x, t.weights + ky * 5 * kWidth);
    }
    depthwise_finish(t, acc);
  } while (depthwise_next(t));
}

// A kernel of K x K, strides S, one row of the output.
template <class X, int K, int S, int P>
static __attribute__((noinline)) void depthwise_square(DepthwiseTile& t) {
  do {
    Vec acc[1][P];
    depthwise_start(t, acc);
    const float* weights = t.weights;
    for (int ky = 0; ky < K; ++ky, weights += K * kWidth) {
      const float* x = ring_row(*t.ring, ky) + t.x_offset;
      POWERLAB_UNROLL
      for (int kx = 0; kx < K; ++kx) {
        const Vec w = load(weights + kx * kWidth);
        POWERLAB_UNROLL
        for (int p = 0; p < P; ++p) acc[0][p] += w * X::read(x + (p * S + kx) * X::kApart);
      }
    }
    depthwise_finish(t, acc);
  } while (depthwise_next(t));
}

// One kernel row over one row of x, pixels that are multiplied `stride` floats apart and taps `across`.
template <class X, int P>
static inline __attribute__((always_inline)) void depthwise_row(Vec (&acc)[P], const float* x, const float* weights,
                                                                int taps, std::int64_t across, std::int64_t stride) {
  for (int kx = 0; kx < taps; ++kx, weights += kWidth, x += across) {
    const Vec w = load(weights);
    POWERLAB_UNROLL
    for (int p = 0; p < P; ++p) acc[p] += w * X::read(x + p * stride);
  }
}

// Any kernel, one row of the output.
template <class X, int P>
static __attribute__((noinline)) void depthwise_any(DepthwiseTile& t) {
  const Step& s = *t.step;
  const std::int64_t stride = X::kApart * s.stride_w, across = X::kApart * s.dilation_w;
  do {
    Vec acc[1][P];
    depthwise_start(t, acc);
    const float* weights = t.weights;
    for (int ky = 0; ky < s.kernel_h; ++ky, weights += s.kernel_w * kWidth) {
      const float* x = ring_row(*t.ring, ky * static_cast<std::int64_t>(s.dilation_h)) + t.x_offset;
      depthwise_row<X, P>(acc[0], x, weights, s.kernel_w, across, stride);
    }
    depthwise_finish(t, acc);
  } while (depthwise_next(t));
}

// Dense kernels of strides 1, two rows of the output: most rows of x are read for both, so that two multiplications
// take one load.
template <class X, int P>
static __attribute__((noinline)) void depthwise_two(DepthwiseTile& t) {
  const int taps = t.step->kernel_w, rows = t.step->kernel_h;
  // Compilers that know it keep pixels for the next taps in registers, which only some processors have enough of.
  const std::int64_t pixel = kDepthwiseHolds ? X::kApart : t.step->x.pixel;
  const std::int64_t row = taps * kWidth;
  do {
    Vec acc[2][P];
    depthwise_start(t, acc);
    depthwise_row<X, P>(acc[0], ring_row(*t.ring, 0) + t.x_offset, t.weights, taps, pixel, pixel);
    const float* weights = t.weights;
    for (int i = 1; i < rows; ++i) {
      const float* x = ring_row(*t.ring, i) + t.x_offset;
      for (int kx = 0; kx < taps; ++kx, weights += kWidth, x += pixel) {
        const Vec first = load(weights + row), second = load(weights);
        POWERLAB_UNROLL
        for (int p = 0; p < P; ++p) {
          const Vec value = X::read(x + p * pixel);
          acc[0][p] += first * value;
          acc[1][p] += second * value;
        }
      }
    }
    depthwise_row<X, P>(acc[1], ring_row(*t.ring, rows) + t.x_offset, weights, taps, pixel, pixel);
    depthwise_finish(t, acc);
  } while (depthwise_next(t));
}

using DepthwiseFunction = void (*)(DepthwiseTile&);

// The functions for one kind of kernel: for one row and for two, by width.
struct DepthwiseKind {
  int rows, pixels;  // of the output, at most
  DepthwiseFunction one[kDepthwisePixels], two[kDepthwisePixels];
  int channels = 1;             // of the input that make one of the output
  std::int64_t apart = kWidth;  // pixels of x, in floats
};

template <int... P>
struct DepthwiseWidths {};
#if defined(__AVX512F__) || defined(__aarch64__)
using AllDepthwiseWidths = DepthwiseWidths<1, 2, 3, 4, 5, 6, 7>;
using TwoDepthwiseWidths = AllDepthwiseWidths;
#else
using AllDepthwiseWidths = DepthwiseWidths<1, 2, 3, 4, 5, 6, 7, 8>;
using TwoDepthwiseWidths = DepthwiseWidths<1, 2, 3, 4, 5, 6>;
#endif

template <class X, int... P>
constexpr DepthwiseKind make_any(DepthwiseWidths<P...>) {
  return {1, kDepthwisePixels, {depthwise_any<X, P>...}, {}, 1, X::kApart};
}
template <class X, int... P>
constexpr DepthwiseKind make_two(DepthwiseWidths<P...>) {
  return {2, static_cast<int>(sizeof...(P)), {depthwise_any<X, P>...}, {depthwise_two<X, P>...}, 1, X::kApart};
}
template <class X>
constexpr DepthwiseKind kDepthwiseAny = make_any<X>(AllDepthwiseWidths{});
template <class X>
constexpr DepthwiseKind kDepthwiseTwo = make_two<X>(TwoDepthwiseWidths{});

#if defined(__AVX512F__) || defined(__aarch64__)
template <class X, int S, int... P>
constexpr DepthwiseKind make_3x3(DepthwiseWidths<P...>) {
  return {2, kDepthwisePixels, {depthwise_3x3<X, S, 1, P>...}, {depthwise_3x3<X, S, 2, P>...}, 1, X::kApart};
}
template <class X, int S, int... P>
constexpr DepthwiseKind make_5x5(DepthwiseWidths<P...>) {
  return {1, kDepthwisePixels, {depthwise_5x5<X, S, P>...}, {}, 1, X::kApart};
}
template <class X>
constexpr DepthwiseKind kDepthwiseSquare[][2] = {
    {make_3x3<X, 1>(AllDepthwiseWidths{}), make_3x3<X, 2>(AllDepthwiseWidths{})},
    {make_5x5<X, 1>(AllDepthwiseWidths{}), make_5x5<X, 2>(AllDepthwiseWidths{})},
    {kDepthwiseTwo<X>, kDepthwiseAny<X>},
    {kDepthwiseTwo<X>, kDepthwiseAny<X>}};
#else
template <class X, int K, int S, int... P>
constexpr DepthwiseKind make_square(DepthwiseWidths<P...>) {
  return {1, kDepthwisePixels, {depthwise_square<X, K, S, P>...}, {}, 1, X::kApart};
}
template <class X>
constexpr DepthwiseKind kDepthwiseSquare[][2] = {
    {make_square<X, 3, 1>(AllDepthwiseWidths{}), make_square<X, 3, 2>(AllDepthwiseWidths{})},
    {make_square<X, 5, 1>(AllDepthwiseWidths{}), make_square<X, 5, 2>(AllDepthwiseWidths{})},
    {make_square<X, 7, 1>(AllDepthwiseWidths{}), kDepthwiseAny<X>},
    {make_square<X, 9, 1>(AllDepthwiseWidths{}), kDepthwiseAny<X>}};
#endif

template <class X = FloatPixels>
static const DepthwiseKind& depthwise_kind(const Step& s) {
  const bool square = s.kernel_h == s.kernel_w && s.stride_h == s.stride_w && s.stride_h <= 2;
  const bool dense = s.dilation_h == 1 && s.dilation_w == 1, odd = s.kernel_h % 2 == 1;
  if (square && dense && odd && s.kernel_h >= 3 && s.kernel_h <= 9) {
    return kDepthwiseSquare<X>[s.kernel_h / 2 - 1][s.stride_h - 1];
  }
  return dense && s.stride_h == 1 && s.stride_w == 1 && s.kernel_h > 1 ? kDepthwiseTwo<X> : kDepthwiseAny<X>;
}

// `count` rows of one block of s.out, which begin at `out`; `ring` is where the first one reads.
static void depthwise_rows(const Step& s, const DepthwiseKind& kind, const RowRing& ring, std::int64_t block,
                           std::int64_t count, float* out, const float* residual) {
  const std::int64_t tiles = (s.out.w + kind.pixels - 1) / kind.pixels;
  const std::int64_t wide = s.out.w / tiles, wider = s.out.w % tiles;  // so many tiles have one pixel more
  RowRing from = ring;
  DepthwiseTile t;
  t.step = &s;
  t.ring = &from;
  t.weights = s.weights + block * s.kernel_h * s.kernel_w * kind.channels * kWidth;
  t.bias = s.bias + block * kWidth;
  t.out_row = s.out.row;
  t.residual_row = s.y.row;
  const bool below = tiles == 1;
  for (std::int64_t y = 0, rows = 1; y < count; y += rows) {
    const std::int64_t together = kind.rows < count - y ? kind.rows : count - y;
    rows = below ? (count - y) / together * together : together;
    from.first = (ring.first + y * s.stride_h) % ring.slots;
    const DepthwiseFunction* functions = together == 1 ? kind.one : kind.two;
    const auto compute = [&](std::int64_t begin, std::int64_t pixels, std::int64_t tiles_alike) {
      t.x_offset = begin * s.stride_w * kind.apart;
      t.out = out + y * s.out.row + begin * kWidth;
      t.residual = residual ? residual + y * s.y.row + begin * kWidth : nullptr;
      t.count = below ? rows / together : tiles_alike;
      t.x_next = below ? 0 : pixels * s.stride_w * kind.apart;
      t.ring_next = below ? together * s.stride_h : 0;
      t.out_next = below ? together * s.out.row : pixels * kWidth;
      t.residual_next = below ? together * s.y.row : pixels * kWidth;
      functions[pixels - 1](t);
    };
    if (wider > 0) compute(0, wide + 1, wider);
    compute(wider * (wide + 1), wide, tiles - wider);
    for (std::int64_t row = y; row < y + rows; ++row) finish(s, {out + row * s.out.row, 0, kWidth, 1, s.out.w});
  }
}

static void depthwise_share(const Step& s, const DepthwiseKind& kind, int thread, int threads) {
  const Range rows = row_share(s.out, thread, threads);
  for (std::int64_t unit = rows.begin; unit < rows.end;) {
    const Row r = row_of(unit, s.out);
    const std::int64_t left = rows.end - unit, count = left < s.out.h - r.y ? left : s.out.h - r.y;
    // The halo's first row is row 0 of a ring that has no end.
    const float* x = row_start(s.x, {r.n, r.block, -s.pad_top}) - s.pad_left * s.x.pixel;
    const RowRing ring{x, s.x.row, r.y * s.stride_h, INT32_MAX};
    depthwise_rows(s, kind, ring, r.block, count, row_start(s.out, r), s.y.data ? row_start(s.y, r) : nullptr);
    unit += count;
  }
}

[[maybe_unused]] static void conv_depthwise(const Step& s, int thread, int threads) {
  depthwise_share(s, depthwise_kind(s), thread, threads);
}

}  // namespace powerlab::engine::POWERLAB_TIER
