// Depthwise convolution of bytes with any kernel that is not dilated: neighbouring pixels of a row share a lane.
//
// A dot product then adds up as many taps as a lane has pixels: four bytes, or two of 16 bits where bytes are widened
// to be multiplied. Pixels are put side by side once for all rows of the output that read them: strips of columns,
// narrow enough for the rows of a kernel to stay in the first-level cache, are gone through from top to bottom.
//
// Weights: [vector][kernel_h][kernel_w / neighbours][v][neighbours], 32 bits a lane. Bias: as in conv_bytes.hpp.
#pragma once

#include "kernels/bytes/depthwise_bytes.hpp"

namespace powerlab::engine::POWERLAB_TIER {

#if defined(__AVX512VNNI__) || defined(__AVXVNNI__) || defined(__ARM_FEATURE_DOTPROD)
#define POWERLAB_NEIGHBOURS 4
#elif defined(__SSE4_1__)
#define POWERLAB_NEIGHBOURS 2
#else
#define POWERLAB_NEIGHBOURS 0  // nothing adds up products: the kernel is not there
#endif

#if POWERLAB_NEIGHBOURS > 0
constexpr int kNeighbours = POWERLAB_NEIGHBOURS;
constexpr int kColumnBytes = 4 * kBlockBytes;  // a lane for each channel of a block
constexpr int kStripColumns = 384;             // of all rows that are kept: 24 KiB
constexpr int kNeighbourPixels = 8;            // of a tile

// A column: neighbours from a pixel on, of which `pixels` are there. What fills lanes up meets weights of 0.
static inline __attribute__((always_inline)) void put_side_by_side(const std::uint8_t* pixel, std::int64_t pixels,
                                                                   std::uint8_t* to) {
  const auto at = [&](std::int64_t i) { return pixel + (i < pixels ? i : pixels - 1) * kBlockBytes; };
#if defined(__aarch64__)
  const uint8x16_t x[] = {vld1q_u8(at(0)), vld1q_u8(at(1)), vld1q_u8(at(2)), vld1q_u8(at(3))};
  const uint16x8_t low = (uint16x8_t)vzip1q_u8(x[0], x[1]), high = (uint16x8_t)vzip2q_u8(x[0], x[1]);
  const uint16x8_t low_next = (uint16x8_t)vzip1q_u8(x[2], x[3]), high_next = (uint16x8_t)vzip2q_u8(x[2], x[3]);
  vst1q_u8(to, (uint8x16_t)vzip1q_u16(low, low_next));
  vst1q_u8(to + 16, (uint8x16_t)vzip2q_u16(low, low_next));
  vst1q_u8(to + 32, (uint8x16_t)vzip1q_u16(high, high_next));
  vst1q_u8(to + 48, (uint8x16_t)vzip2q_u16(high, high_next));
#else
  const auto load = [&](std::int64_t i) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at(i))); };
  const auto store = [&](int quarter, __m128i v) { _mm_store_si128(reinterpret_cast<__m128i*>(to) + quarter, v); };
  const __m128i low = _mm_unpacklo_epi8(load(0), load(1)), high = _mm_unpackhi_epi8(load(0), load(1));
  if constexpr (kNeighbours == 4) {
    const __m128i low_next = _mm_unpacklo_epi8(load(2), load(3)), high_next = _mm_unpackhi_epi8(load(2), load(3));
    store(0, _mm_unpacklo_epi16(low, low_next));
    store(1, _mm_unpackhi_epi16(low, low_next));
    store(2, _mm_unpacklo_epi16(high, high_next));
    store(3, _mm_unpackhi_epi16(high, high_next));
  } else {
    const __m128i zero = _mm_setzero_si128();
    store(0, _mm_unpacklo_epi8(low, zero));
    store(1, _mm_unpackhi_epi8(low, zero));
    store(2, _mm_unpacklo_epi8(high, zero));
    store(3, _mm_unpackhi_epi8(high, zero));
  }
#endif
}

static inline __attribute__((always_inline)) IVec add_neighbours(IVec sums, const std::uint8_t* x, IVec w) {
  return kNeighbours == 4 ? dot(sums, load_ints(x), w) : multiply_add(sums, load_ints(x), w);
}

// The columns that a strip of `width` outputs of a row reads.
struct Columns {
  std::int64_t count, stride;  // in pixels
  std::int64_t pixels;         // that there are

  Columns(const Step& s, std::int64_t width)
      : count(width + behind(s)), stride(s.stride_w), pixels((width - 1) * s.stride_w + s.kernel_w) {}
  // Columns that the last output of a row reads behind its first one.
  static std::int64_t behind(const Step& s) { return (s.kernel_w - 1) / kNeighbours * (kNeighbours / s.stride_w); }
};

static void make_columns(const Columns& columns, const std::uint8_t* x, std::uint8_t* to) {
  for (std::int64_t c = 0; c < columns.count; ++c, to += kColumnBytes) {
    const std::int64_t first = c * columns.stride, left = columns.pixels - first;
    if (left >= kNeighbours) {
      put_side_by_side(x + first * kBlockBytes, kNeighbours, to);
    } else {
      put_side_by_side(x + first * kBlockBytes, left, to);
    }
  }
}

// P pixels of a row, whose groups of taps lie so many bytes behind t.x, the first column.
template <int P>
static __attribute__((noinline)) void depthwise_columns(const ByteDepthwiseTile& t, const std::int32_t* taps,
                                                        std::int64_t count) {
  IVec acc[1][P];
  byte_depthwise_start(t, acc);
  const std::int8_t* weights = t.weights;
  for (std::int64_t tap = 0; tap < count; ++tap, weights += 4 * kWidth) {
    const IVec w = load_ints(weights);
    const std::uint8_t* x = t.x + taps[tap];
    POWERLAB_UNROLL
    for (int p = 0; p < P; ++p) acc[0][p] = add_neighbours(acc[0][p], x + p * kColumnBytes, w);
  }
  byte_depthwise_store(t, acc);
}

using ColumnsFunction = void (*)(const ByteDepthwiseTile&, const std::int32_t*, std::int64_t);
struct ColumnsTable {
  ColumnsFunction at[kNeighbourPixels];
};
template <int... P>
constexpr ColumnsTable make_columns_table(Indices<P...>) {
  return {{depthwise_columns<P + 1>...}};
}
constexpr ColumnsTable kDepthwiseColumns = make_columns_table(MakeIndices<kNeighbourPixels>::type{});

// Outputs begin to end of `rows` rows from r on. The rows of x that a row of outputs reads are kept in turn.
static void depthwise_strip(const Step& s, const Row& r, std::int64_t rows, std::int64_t begin, std::int64_t end) {
  alignas(64) std::uint8_t kept[kStripColumns * kColumnBytes];
  std::int32_t taps[kStripColumns];
  const Columns columns(s, end - begin);
  const std::int64_t row_bytes = columns.count * kColumnBytes,
                     tiles = (end - begin + kNeighbourPixels - 1) / kNeighbourPixels;
  const std::int64_t groups = (s.kernel_w + kNeighbours - 1) / kNeighbours, count = s.kernel_h * groups;
  const float* x = row_start(s.x, {r.n, r.block, -s.pad_top}) + (begin * s.stride_w - s.pad_left) * s.x.pixel;
  std::int64_t made = r.y * s.stride_h;
  ByteDepthwiseTile t;
  t.step = &s;
  t.requantize = requantize_of(s);
  for (std::int64_t y = r.y; y < r.y + rows; ++y) {
    const std::int64_t first = y * s.stride_h;
    for (made = made < first ? first : made; made < first + s.kernel_h; ++made)
      make_columns(columns, bytes_of(x + made * s.x.row), kept + made % s.kernel_h * row_bytes);
    for (std::int64_t ky = 0; ky < s.kernel_h; ++ky) {
      for (std::int64_t group = 0; group < groups; ++group)
        taps[ky * groups + group] = static_cast<std::int32_t>((first + ky) % s.kernel_h * row_bytes +
                                                              group * (kNeighbours / s.stride_w) * kColumnBytes);
    }
    std::uint8_t* out = bytes_of(row_start(s.out, {r.n, r.block, y}) + begin * s.out.pixel);
    const std::uint8_t* residual = s.y.data ? bytes_of(row_start(s.y, {r.n, r.block, y}) + begin * s.y.pixel) : nullptr;
    for (int part = 0; part < kBlockVectors; ++part) {
      const std::int64_t vector = r.block * kBlockVectors + part;
      if (vector * kWidth >= s.out.c) break;
      t.weights = reinterpret_cast<const std::int8_t*>(s.weights) + vector * count * 4 * kWidth;
      t.bias = s.bias + vector * 2 * kWidth;
      for (std::int64_t tile = 0; tile < tiles; ++tile) {
        const std::int64_t at = tile * (end - begin) / tiles, until = (tile + 1) * (end - begin) / tiles;
        t.x = kept + at * kColumnBytes + part * 4 * kWidth;
        t.out = out + at * kBlockBytes + part * kWidth;
        t.residual = residual ? residual + at * kBlockBytes + part * kWidth : nullptr;
        kDepthwiseColumns.at[until - at - 1](t, taps, count);
      }
    }
  }
}

static void depthwise_neighbours(const Step& s, int thread, int threads) {
  const std::int64_t most = kStripColumns / s.kernel_h - Columns::behind(s), strips = (s.out.w + most - 1) / most;
  const Range all = row_share(s.out, thread, threads);
  for (std::int64_t unit = all.begin; unit < all.end;) {
    const Row r = row_of(unit, s.out);
    const std::int64_t below = s.out.h - r.y, left = all.end - unit, rows = below < left ? below : left;
    for (std::int64_t strip = 0; strip < strips; ++strip)
      depthwise_strip(s, r, rows, strip * s.out.w / strips, (strip + 1) * s.out.w / strips);
    unit += rows;
  }
}
#endif

}  // namespace powerlab::engine::POWERLAB_TIER
