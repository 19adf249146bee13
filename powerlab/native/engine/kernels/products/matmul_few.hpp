// Products of a few rows, or over few of the inner axis: out = a b, where packing b would take as long as the product.
//
// b is read where it lies, in rows, a few of them side by side; their products are added to all rows of the result that
// a tile has, which stay in the nearest caches. Every sum is made in the order of the inner axis.
//
// Operands: out, [rows][columns]; a, [rows][inner], of any strides; b, [inner][columns]; columns follow on each other.
// numbers[0]: 1 where threads share rows and each row is made whole before the next, as where the inner axis is short;
// 0 where they share columns and b passes once. alpha: times a.
#pragma once

#include "kernels/strided/strided.hpp"

namespace powerlab::engine::POWERLAB_TIER {

constexpr int kFewRows = 8, kFewInner = 8;
constexpr std::int64_t kFewColumns = 512;  // that are taken together

struct FewTile {
  const float* b;
  float* out;
  std::int64_t b_row, out_row, columns;
  float a[kFewInner][kFewRows];
  bool first;
};

template <int P, int K>
static __attribute__((noinline)) void few_tile(const FewTile& t) {
  const auto vector = [&](std::int64_t at, int lanes) {
    const bool whole = lanes == kWidth;
    Vec acc[P];
    POWERLAB_UNROLL
    for (int p = 0; p < P; ++p) {
      const float* held = t.out + p * t.out_row + at;
      acc[p] = t.first ? Vec{} : whole ? load_unaligned(held) : load_lanes(held, lanes);
    }
    POWERLAB_UNROLL
    for (int k = 0; k < K; ++k) {
      const float* from = t.b + k * t.b_row + at;
      __builtin_prefetch(from + K * t.b_row);
      const Vec b = whole ? load_unaligned(from) : load_lanes(from, lanes);
      POWERLAB_UNROLL
      for (int p = 0; p < P; ++p) acc[p] += b * t.a[k][p];
    }
    POWERLAB_UNROLL
    for (int p = 0; p < P; ++p) {
      float* to = t.out + p * t.out_row + at;
      if (whole) {
        store_unaligned(to, acc[p]);
      } else {
        store_lanes(to, acc[p], lanes);
      }
    }
  };
  std::int64_t at = 0;
  for (; at + kWidth <= t.columns; at += kWidth) vector(at, kWidth);
  if (at < t.columns) vector(at, static_cast<int>(t.columns - at));
}

template <int K, int... P>
static inline void few_rows(int rows, const FewTile& t, Indices<P...>) {
  using Function = void (*)(const FewTile&);
  static constexpr Function at[] = {&few_tile<P + 1, K>...};
  at[rows - 1](t);
}

// Some columns of a tile of rows, over some of the inner axis: a chunk of kFewInner, or what is left, one by one.
static void few_chunk(const Step& s, Range rows, Range columns, Range inner) {
  const Strided &out = s.operands[0], &a = s.operands[1], &b = s.operands[2];
  const int height = static_cast<int>(rows.end - rows.begin);
  const int together = inner.end - inner.begin == kFewInner ? kFewInner : 1;
  FewTile t;
  t.b_row = b.stride[0];
  t.out_row = out.stride[0];
  t.out = static_cast<float*>(out.data) + rows.begin * out.stride[0] + columns.begin;
  t.columns = columns.end - columns.begin;
  for (std::int64_t first = inner.begin; first < inner.end; first += together) {
    for (int k = 0; k < together; ++k) {
      const float* column = static_cast<const float*>(a.data) + (first + k) * a.stride[1] + rows.begin * a.stride[0];
      for (int p = 0; p < height; ++p) t.a[k][p] = column[p * a.stride[0]] * s.alpha;
    }
    t.b = static_cast<const float*>(b.data) + first * b.stride[0] + columns.begin;
    t.first = first == 0;
    if (together == kFewInner) {
      few_rows<kFewInner>(height, t, typename MakeIndices<kFewRows>::type{});
    } else {
      few_rows<1>(height, t, typename MakeIndices<kFewRows>::type{});
    }
  }
}

static inline Range piece(Range whole, std::int64_t from, std::int64_t most) {
  return {from, whole.end - from < most ? whole.end : from + most};
}

static void matmul_few(const Step& s, int thread, int threads) {
  const std::int64_t all_columns = s.operands[0].size[1];
  const Range all_rows{0, s.operands[0].size[0]}, all_inner{0, s.operands[1].size[1]};
  if (s.numbers[0] != 0) {
    const std::int64_t tiles = (all_rows.end + kFewRows - 1) / kFewRows;
    const Range own = share(tiles, thread, threads), every{0, all_columns};
    for (std::int64_t tile = own.begin; tile < own.end; ++tile) {
      const Range rows = piece(all_rows, tile * kFewRows, kFewRows);
      for (std::int64_t at = 0; at < all_columns; at += kFewColumns) {
        const Range columns = piece(every, at, kFewColumns);
        for (std::int64_t k = 0; k < all_inner.end; k += kFewInner) {
          few_chunk(s, rows, columns, piece(all_inner, k, kFewInner));
        }
      }
    }
    return;
  }
  const Range vectors = share((all_columns + kWidth - 1) / kWidth, thread, threads);
  const Range own{vectors.begin * kWidth, vectors.end * kWidth < all_columns ? vectors.end * kWidth : all_columns};
  for (std::int64_t at = own.begin; at < own.end; at += kFewColumns) {
    const Range columns = piece(own, at, kFewColumns);
    for (std::int64_t k = 0; k < all_inner.end; k += kFewInner) {
      for (std::int64_t row = 0; row < all_rows.end; row += kFewRows) {
        few_chunk(s, piece(all_rows, row, kFewRows), columns, piece(all_inner, k, kFewInner));
      }
    }
  }
}

}  // namespace powerlab::engine::POWERLAB_TIER
