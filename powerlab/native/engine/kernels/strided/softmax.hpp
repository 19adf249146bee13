// Softmax over another axis than the last: exp(x - largest) / sum down the columns of planes, some vectors of columns
// side by side.
#pragma once

#include "kernels/blocked/pool.hpp"
#include "kernels/functions.hpp"

namespace powerlab::engine::POWERLAB_TIER {

constexpr int kSoftmaxVectors = 4;  // of columns, side by side
constexpr int kSoftmaxRows = 128;   // whose sum is added to the others' when it is complete: each float joins few

struct Columns {
  const float* x;
  float* out;
  std::int64_t x_row, out_row;
  int rows;
  int lanes;  // of the last vector
};

template <int N>
static inline __attribute__((always_inline)) void load_vectors(Vec (&row)[N], const float* from, int lanes) {
  POWERLAB_UNROLL
  for (int i = 0; i < N - 1; ++i) row[i] = load_unaligned(from + i * kWidth);
  row[N - 1] = lanes == kWidth ? load_unaligned(from + (N - 1) * kWidth) : load_lanes(from + (N - 1) * kWidth, lanes);
}

template <int N>
static inline __attribute__((always_inline)) void store_vectors(float* to, const Vec (&row)[N], int lanes) {
  POWERLAB_UNROLL
  for (int i = 0; i < N - 1; ++i) store_unaligned(to + i * kWidth, row[i]);
  if (lanes == kWidth) {
    store_unaligned(to + (N - 1) * kWidth, row[N - 1]);
  } else {
    store_lanes(to + (N - 1) * kWidth, row[N - 1], lanes);
  }
}

template <int N>
static void softmax_columns(const Columns& c) {
  Vec row[N], most[N], sums[N] = {};
  load_vectors<N>(most, c.x, c.lanes);
  for (int i = 1; i < c.rows; ++i) {
    load_vectors<N>(row, c.x + i * c.x_row, c.lanes);
    POWERLAB_UNROLL
    for (int k = 0; k < N; ++k) most[k] = larger(most[k], row[k]);
  }
  for (int first = 0; first < c.rows; first += kSoftmaxRows) {
    const int end = c.rows - first < kSoftmaxRows ? c.rows : first + kSoftmaxRows;
    Vec part[N] = {};
    for (int i = first; i < end; ++i) {
      load_vectors<N>(row, c.x + i * c.x_row, c.lanes);
      POWERLAB_UNROLL
      for (int k = 0; k < N; ++k) {
        row[k] = exponential_below(row[k] - most[k]);
        part[k] += row[k];
      }
      store_vectors<N>(c.out + i * c.out_row, row, c.lanes);
    }
    POWERLAB_UNROLL
    for (int k = 0; k < N; ++k) sums[k] += part[k];
  }
  POWERLAB_UNROLL
  for (int k = 0; k < N; ++k) sums[k] = broadcast(1) / sums[k];
  for (int i = 0; i < c.rows; ++i) {
    load_vectors<N>(row, c.out + i * c.out_row, c.lanes);
    POWERLAB_UNROLL
    for (int k = 0; k < N; ++k) row[k] *= sums[k];
    store_vectors<N>(c.out + i * c.out_row, row, c.lanes);
  }
}

struct SoftmaxTable {
  void (*at[kSoftmaxVectors])(const Columns&);
};
template <int... I>
constexpr SoftmaxTable make_softmax(Indices<I...>) {
  return {{&softmax_columns<I + 1>...}};
}

// Over h of a view of n x c x h x w, any strides, pixel = 1.
static void softmax(const Step& s, int thread, int threads) {
  static constexpr SoftmaxTable kSoftmax = make_softmax(typename MakeIndices<kSoftmaxVectors>::type{});
  const View &x = s.x, &out = s.out;
  const std::int64_t vectors = (x.w + kWidth - 1) / kWidth, groups = (vectors + kSoftmaxVectors - 1) / kSoftmaxVectors;
  const Range units = share(static_cast<std::int64_t>(x.n) * x.c * groups, thread, threads);
  for (std::int64_t unit = units.begin; unit < units.end; ++unit) {
    const std::int64_t group = unit % groups, c = unit / groups % x.c, n = unit / groups / x.c;
    const std::int64_t begin = group * vectors / groups, end = (group + 1) * vectors / groups;
    const std::int64_t left = x.w - (end - 1) * kWidth;
    Columns columns;
    columns.x = x.data + n * x.image + c * x.plane + begin * kWidth;
    columns.out = out.data + n * out.image + c * out.plane + begin * kWidth;
    columns.x_row = x.row;
    columns.out_row = out.row;
    columns.rows = x.h;
    columns.lanes = left < kWidth ? static_cast<int>(left) : kWidth;
    kSoftmax.at[end - begin - 1](columns);
  }
}

}  // namespace powerlab::engine::POWERLAB_TIER
