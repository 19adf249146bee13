// Copies between two views of general tensors. A copy may go in any order, so it goes in the one that memory likes: in
// square tiles where one view runs across the other, as in a transpose, and along the longest axis where the last is
// short, as where channels become pixels.
#pragma once

#include "kernels/strided/strided_functions.hpp"
#include "kernels/transpose_tile.hpp"

namespace powerlab::engine::POWERLAB_TIER {

constexpr std::int64_t kCopyTile = 16;  // elements: a cache line of floats

// Where the element of the given number lies in each of two views, if the axes `but` and `nor` stay at 0.
struct Places {
  std::int64_t out, x;
};

static inline Places places(const Strided& out, const Strided& x, std::int64_t number, int but, int nor) {
  Places at{0, 0};
  for (int axis = out.rank - 1; axis >= 0; --axis) {
    if (axis == but || axis == nor) continue;
    const std::int64_t index = number % out.size[axis];
    number /= out.size[axis];
    at.out += index * out.stride[axis];
    at.x += index * x.stride[axis];
  }
  return at;
}

// The axis along which a view is contiguous, but for the last; -1 where there is none.
static inline int contiguous_axis(const Strided& v) {
  for (int axis = v.rank - 2; axis >= 0; --axis) {
    if (v.stride[axis] == 1 && v.size[axis] >= kCopyTile) return axis;
  }
  return -1;
}

// A tile of kCopyTile by kCopyTile: `to` has its rows so far apart, `from` its columns.
template <typename T>
static inline void copy_tile(T* __restrict to, std::int64_t row_step, const T* __restrict from,
                             std::int64_t column_step) {
  for (std::int64_t i = 0; i < kCopyTile; ++i) {
    for (std::int64_t j = 0; j < kCopyTile; ++j) to[i * row_step + j] = from[j * column_step + i];
  }
}
static inline void copy_tile(float* __restrict to, std::int64_t row_step, const float* __restrict from,
                             std::int64_t column_step) {
  for (std::int64_t row = 0; row < kCopyTile; row += kWidth) {
    for (std::int64_t column = 0; column < kCopyTile; column += kWidth) {
      Vec tile[kWidth];
      for (int j = 0; j < kWidth; ++j) tile[j] = load_unaligned(from + (column + j) * column_step + row);
      transpose_tile(tile);
      for (int i = 0; i < kWidth; ++i) store_unaligned(to + (row + i) * row_step + column, tile[i]);
    }
  }
}

// Copies tiles of the last axis, along which `out` is contiguous, and the axis `across`, along which `x` is.
template <typename T>
static void copy_tiles(const Strided& out, const Strided& x, int across, int thread, int threads) {
  const int last = out.rank - 1;
  const std::int64_t rows = out.size[across], columns = out.size[last];
  const std::int64_t row_tiles = (rows + kCopyTile - 1) / kCopyTile,
                     column_tiles = (columns + kCopyTile - 1) / kCopyTile;
  const std::int64_t others = elements(out, 0, out.rank) / (rows * columns);
  const std::int64_t row_step = out.stride[across], column_step = x.stride[last];
  const Range range = share(others * row_tiles * column_tiles, thread, threads);
  for (std::int64_t unit = range.begin; unit < range.end; ++unit) {
    const std::int64_t column = unit % column_tiles * kCopyTile, row = unit / column_tiles % row_tiles * kCopyTile;
    const Places at = places(out, x, unit / column_tiles / row_tiles, last, across);
    T* __restrict to = static_cast<T*>(out.data) + at.out + row * row_step + column;
    const T* __restrict from = static_cast<const T*>(x.data) + at.x + row + column * column_step;
    if (row + kCopyTile <= rows && column + kCopyTile <= columns) {
      copy_tile(to, row_step, from, column_step);
      continue;
    }
    const std::int64_t height = rows - row < kCopyTile ? rows - row : kCopyTile;
    const std::int64_t width = columns - column < kCopyTile ? columns - column : kCopyTile;
    for (std::int64_t i = 0; i < height; ++i) {
      for (std::int64_t j = 0; j < width; ++j) to[i * row_step + j] = from[j * column_step + i];
    }
  }
}

// Copies lines along an axis.
template <typename T>
static void copy_along(const Strided& out, const Strided& x, int along, int thread, int threads) {
  const std::int64_t count = out.size[along], to_step = out.stride[along], from_step = x.stride[along];
  const std::int64_t pieces = (count + kPiece - 1) / kPiece;
  const Range range = share(elements(out, 0, out.rank) / count * pieces, thread, threads);
  for (std::int64_t unit = range.begin; unit < range.end; ++unit) {
    const std::int64_t first = unit % pieces * kPiece, end = count - first < kPiece ? count : first + kPiece;
    const Places at = places(out, x, unit / pieces, along, along);
    T* __restrict to = static_cast<T*>(out.data) + at.out;
    const T* __restrict from = static_cast<const T*>(x.data) + at.x;
    for (std::int64_t i = first; i < end; ++i) to[i * to_step] = from[i * from_step];
  }
}

// So many elements of the last axis, contiguous in both views, are a run: too few for a call each.
constexpr std::int64_t kRun = 128;

static inline void copy_run(Int* to, const Int* from, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) to[i] = from[i];
}

// Copies runs, along another axis.
template <typename T>
static void copy_runs(const Strided& out, const Strided& x, int along, int thread, int threads) {
  const int last = out.rank - 1;
  const std::int64_t run = out.size[last], count = out.size[along];
  const std::int64_t to_step = out.stride[along], from_step = x.stride[along];
  const std::int64_t most = kPiece / run + 1, pieces = (count + most - 1) / most;
  const Range range = share(elements(out, 0, out.rank) / (run * count) * pieces, thread, threads);
  for (std::int64_t unit = range.begin; unit < range.end; ++unit) {
    const std::int64_t first = unit % pieces * most, end = count - first < most ? count : first + most;
    const Places at = places(out, x, unit / pieces, last, along);
    T* to = static_cast<T*>(out.data) + at.out + first * to_step;
    const T* from = static_cast<const T*>(x.data) + at.x + first * from_step;
    for (std::int64_t i = first; i < end; ++i, to += to_step, from += from_step) copy_run(to, from, run);
  }
}

// Copies lines of `x` into each other: the last axis, which is short and along which `out` is contiguous, and the one
// before it, along which `x` is.
template <typename T, std::int64_t L>
static void copy_woven(const Strided& out, const Strided& x, int thread, int threads) {
  const int last = out.rank - 1;
  const std::int64_t count = out.size[last - 1], lines = L ? L : out.size[last], apart = x.stride[last];
  const Range range = share(elements(out, 0, last - 1), thread, threads);
  for (std::int64_t unit = range.begin; unit < range.end; ++unit) {
    const Places at = places(out, x, unit, last, last - 1);
    T* __restrict to = static_cast<T*>(out.data) + at.out;
    const T* __restrict from = static_cast<const T*>(x.data) + at.x;
    for (std::int64_t i = 0; i < count; ++i) {
      for (std::int64_t line = 0; line < lines; ++line) to[i * lines + line] = from[line * apart + i];
    }
  }
}

template <typename T>
static void copy_strided(const Step& s, int thread, int threads) {
  const Strided &out = s.operands[0], &x = s.operands[1];
  const int last = out.rank - 1;
  if (last > 0 && out.size[last] < kCopyTile && out.stride[last] == 1 && out.stride[last - 1] == out.size[last] &&
      x.stride[last] != 1 && x.stride[last - 1] == 1) {
    switch (out.size[last]) {
      case 2:
        return copy_woven<T, 2>(out, x, thread, threads);
      case 3:
        return copy_woven<T, 3>(out, x, thread, threads);
      case 4:
        return copy_woven<T, 4>(out, x, thread, threads);
      default:
        return copy_woven<T, 0>(out, x, thread, threads);
    }
  }
  if (out.rank > 1 && out.size[last] <= kRun && out.stride[last] == 1 && x.stride[last] == 1) {
    int longest = last - 1;
    for (int axis = last - 2; axis >= 0; --axis) {
      if (out.size[axis] > out.size[longest]) longest = axis;
    }
    return copy_runs<T>(out, x, longest, thread, threads);
  }
  if (out.size[last] >= kCopyTile) {
    const int across = out.stride[last] == 1 && x.stride[last] != 1 ? contiguous_axis(x) : -1;
    if (across >= 0) return copy_tiles<T>(out, x, across, thread, threads);
    return for_lines(s, thread, threads, &Each<copy_of<T>>::line);
  }
  int longest = last;
  for (int axis = last - 1; axis >= 0; --axis) {
    if (out.size[axis] > out.size[longest]) longest = axis;
  }
  copy_along<T>(out, x, longest, thread, threads);
}

}  // namespace powerlab::engine::POWERLAB_TIER
