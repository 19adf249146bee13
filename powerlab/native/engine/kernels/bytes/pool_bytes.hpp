// Pools of bytes. Windows are cut at the edges of the plane, so x needs no halo.
//
// Maxima keep scale and zero point. Averages are round(sum of steps of x * (beta / pixels counted)) steps of out, the
// quotient being rounded to float first.
#pragma once

#include <string.h>

#include "kernels/bytes/requantize.hpp"

namespace powerlab::engine::POWERLAB_TIER {

struct ByteSpan {
  int begin, end;
};
static inline ByteSpan byte_window(std::int64_t at, int stride, int pad, int kernel, int size) {
  const int begin = static_cast<int>(at) * stride - pad, end = begin + kernel;
  return {begin < 0 ? 0 : begin, end > size ? size : end};
}

// As many bytes as a vector has: pixels that follow on each other.
typedef Stored Pixels __attribute__((vector_size(4 * kWidth)));
constexpr int kVectorPixels = 4 * kWidth / kBlockBytes;

// Windows of a row of out: `rows` of x, from `x` on, have a part in them.
struct MaxWindows {
  const std::uint8_t* x;
  std::int64_t row_bytes;
  int rows, columns;
};

// The columns of out whose windows are not cut at an edge of x.
static inline Range columns_inside(const Step& s) {
  const std::int64_t first = (s.pad_left + s.stride_w - 1) / s.stride_w, room = s.x.w + s.pad_left - s.kernel_w;
  const std::int64_t behind = room < 0 ? 0 : room / s.stride_w + 1, columns = s.out.w;
  const std::int64_t begin = first < columns ? first : columns, end = behind < columns ? behind : columns;
  return {begin, end < begin ? begin : end};
}

// The larger bytes of `most` and of `C` vectors, `apart` bytes from each other.
template <typename V, int C>
static inline void keep_larger(V (&most)[C], const std::uint8_t* x, std::int64_t apart) {
  POWERLAB_UNROLL
  for (int i = 0; i < C; ++i) {
    V v;
    memcpy(&v, x + i * apart, sizeof v);
    most[i] = most[i] > v ? most[i] : v;
  }
}

// The largest bytes of `columns` pixels of each row, from `x` on, for `C` vectors side by side, for one alone would
// wait for itself. K: the columns where they are known, else 0.
template <typename V, int C, int K>
static inline void store_largest(const MaxWindows& w, const std::uint8_t* x, int columns, std::int64_t apart,
                                 std::uint8_t* out) {
  V most[C];
  POWERLAB_UNROLL
  for (int i = 0; i < C; ++i) most[i] = V{} + static_cast<Stored>(kLeastStored);
  for (int y = 0; y < w.rows; ++y, x += w.row_bytes) {
    if constexpr (K > 0) {
      POWERLAB_UNROLL
      for (int column = 0; column < K; ++column) keep_larger(most, x + column * kBlockBytes, apart);
    } else {
      for (int column = 0; column < columns; ++column) keep_larger(most, x + column * kBlockBytes, apart);
    }
  }
  memcpy(out, most, sizeof most);
}

// `count` windows inside x, the first of which begins at `x`, `C` vectors of `N` of them at a time; the last vectors
// begin where they end with the last window.
template <typename V, int C, int N, int K>
static void pool_inside(const MaxWindows& w, const std::uint8_t* x, std::int64_t apart, std::int64_t count,
                        std::uint8_t* out) {
  for (std::int64_t at = 0; at < count; at += C * N) {
    if (at > count - C * N) at = count - C * N;
    store_largest<V, C, K>(w, x + at * apart, w.columns, N * apart, out + at * kBlockBytes);
  }
}

template <int K>
static void pool_inside(const MaxWindows& w, const std::uint8_t* x, std::int64_t apart, std::int64_t count,
                        std::uint8_t* out) {
  if (apart == kBlockBytes && count >= 2 * kVectorPixels) {
    pool_inside<Pixels, 2, kVectorPixels, K>(w, x, apart, count, out);
  } else if (apart == kBlockBytes && count >= kVectorPixels) {
    pool_inside<Pixels, 1, kVectorPixels, K>(w, x, apart, count, out);
  } else if (count >= 4) {
    pool_inside<Block, 4, 1, K>(w, x, apart, count, out);
  } else {
    pool_inside<Block, 1, 1, K>(w, x, apart, count, out);
  }
}

static void pool_max_bytes(const Step& s, int thread, int threads) {
  const std::int64_t apart = s.stride_w * static_cast<std::int64_t>(kBlockBytes), columns = s.out.w;
  const Range rows = row_share(s.out, thread, threads), inside = columns_inside(s);
  MaxWindows w{nullptr, s.x.row * std::int64_t{sizeof(float)}, 0, s.kernel_w};
  for (std::int64_t unit = rows.begin; unit < rows.end; ++unit) {
    const Row r = row_of(unit, s.out);
    const ByteSpan down = byte_window(r.y, s.stride_h, s.pad_top, s.kernel_h, s.x.h);
    w.x = bytes_of(row_start(s.x, {r.n, r.block, down.begin}));
    w.rows = down.end - down.begin;
    std::uint8_t* out = bytes_of(row_start(s.out, r));
    const auto at_edge = [&](std::int64_t at) {
      const ByteSpan across = byte_window(at, s.stride_w, s.pad_left, s.kernel_w, s.x.w);
      store_largest<Block, 1, 0>(w, w.x + across.begin * kBlockBytes, across.end - across.begin, 0,
                                 out + at * kBlockBytes);
    };
    for (std::int64_t at = 0; at < inside.begin; ++at) at_edge(at);
    for (std::int64_t at = inside.end; at < columns; ++at) at_edge(at);
    const std::uint8_t* x = w.x + inside.begin * apart - s.pad_left * static_cast<std::int64_t>(kBlockBytes);
    const std::int64_t count = inside.end - inside.begin;
    out += inside.begin * kBlockBytes;
    if (w.columns == 2) {
      pool_inside<2>(w, x, apart, count, out);
    } else if (w.columns == 3) {
      pool_inside<3>(w, x, apart, count, out);
    } else {
      pool_inside<0>(w, x, apart, count, out);
    }
  }
}

// The average of a window of x at one vector of channels of one block.
static inline void average_bytes(const Step& s, const Row& r, const ByteSpan& down, const ByteSpan& across, int divisor,
                                 std::uint8_t* out) {
  const Requantize requantize = requantize_of(s);
  const std::int32_t count = (down.end - down.begin) * (across.end - across.begin);
  for (int part = 0; part < kBlockVectors; ++part) {
    IVec sums = every(-count * stored_zero(s, 2));
    for (int y = down.begin; y < down.end; ++y) {
      const std::uint8_t* x = bytes_of(row_start(s.x, {r.n, r.block, y})) + part * kWidth;
      for (int column = across.begin; column < across.end; ++column) sums += load_bytes(x + column * kBlockBytes);
    }
    const Vec steps = __builtin_convertvector(sums, Vec) * (s.beta / static_cast<float>(divisor));
    store_bytes(out + part * kWidth, to_bytes(steps, requantize));
  }
}

static void pool_average_bytes(const Step& s, int thread, int threads) {
  const Range rows = row_share(s.out, thread, threads);
  for (std::int64_t unit = rows.begin; unit < rows.end; ++unit) {
    const Row r = row_of(unit, s.out);
    const ByteSpan down = byte_window(r.y, s.stride_h, s.pad_top, s.kernel_h, s.x.h);
    std::uint8_t* out = bytes_of(row_start(s.out, r));
    for (int at = 0; at < s.out.w; ++at) {
      const ByteSpan across = byte_window(at, s.stride_w, s.pad_left, s.kernel_w, s.x.w);
      const int inside = (down.end - down.begin) * (across.end - across.begin);
      average_bytes(s, r, down, across, s.count_padding ? s.kernel_h * s.kernel_w : inside, out + at * kBlockBytes);
    }
  }
}

static void pool_global_average_bytes(const Step& s, int thread, int threads) {
  const Range rows = row_share(s.out, thread, threads);
  for (std::int64_t unit = rows.begin; unit < rows.end; ++unit) {
    const Row r = row_of(unit, s.out);
    average_bytes(s, r, {0, s.x.h}, {0, s.x.w}, s.x.h * s.x.w, bytes_of(row_start(s.out, r)));
  }
}

}  // namespace powerlab::engine::POWERLAB_TIER
