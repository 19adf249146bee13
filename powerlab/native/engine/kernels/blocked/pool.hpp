// Pooling in the blocked layout. Windows are cut at the edges of the plane, so x needs no halo.
#pragma once

#include "kernels/blocked/window.hpp"

namespace powerlab::engine::POWERLAB_TIER {

// The largest of `count` pixels that follow on each other, four at a time: one alone would wait for itself.
static inline Vec largest_pixel(const float* x, int count, Vec most) {
  int at = 0;
  if (count >= 8) {
    Vec mosts[4] = {most, most, most, most};
    for (; at + 4 <= count; at += 4) {
      POWERLAB_UNROLL
      for (int i = 0; i < 4; ++i) mosts[i] = larger(mosts[i], load(x + (at + i) * static_cast<std::int64_t>(kWidth)));
    }
    most = larger(larger(mosts[0], mosts[1]), larger(mosts[2], mosts[3]));
  }
  for (; at < count; ++at) most = larger(most, load(x + at * static_cast<std::int64_t>(kWidth)));
  return most;
}

// Windows that are computed side by side where they lie inside a row of x: one alone would wait for itself.
constexpr int kPoolPixels = 4;

static inline bool windows_inside(const Step& s, std::int64_t column) {
  const std::int64_t first = column * s.stride_w - s.pad_left;
  const std::int64_t last = first + (kPoolPixels - 1) * static_cast<std::int64_t>(s.stride_w) + s.kernel_w;
  return column + kPoolPixels <= s.out.w && first >= 0 && last <= s.x.w;
}

// Reduces such windows, the first of which begins at `x`, in the order of their pixels.
template <Vec (*F)(Vec, Vec)>
static inline void reduce_windows(const Step& s, const float* x, int rows, Vec (&results)[kPoolPixels]) {
  const std::int64_t apart = s.stride_w * static_cast<std::int64_t>(kWidth);
  for (int y = 0; y < rows; ++y, x += s.x.row) {
    for (int kx = 0; kx < s.kernel_w; ++kx) {
      POWERLAB_UNROLL
      for (int p = 0; p < kPoolPixels; ++p) results[p] = F(results[p], load(x + kx * kWidth + p * apart));
    }
  }
}

static void pool_max(const Step& s, int thread, int threads) {
  const Range rows = row_share(s.out, thread, threads);
  for (std::int64_t unit = rows.begin; unit < rows.end; ++unit) {
    const Row r = row_of(unit, s.out);
    const float* x = row_start(s.x, {r.n, r.block, 0});
    float* out = row_start(s.out, r);
    const Span ys = window(r.y, s.stride_h, s.pad_top, s.kernel_h, s.x.h);
    for (int column = 0; column < s.out.w;) {
      const Span xs = window(column, s.stride_w, s.pad_left, s.kernel_w, s.x.w);
      const float* first = x + ys.begin * s.x.row + xs.begin * static_cast<std::int64_t>(kWidth);
      Vec most[kPoolPixels];
      POWERLAB_UNROLL
      for (int p = 0; p < kPoolPixels; ++p) most[p] = broadcast(-__builtin_inff());
      if (windows_inside(s, column)) {
        reduce_windows<larger>(s, first, ys.end - ys.begin, most);
        POWERLAB_UNROLL
        for (int p = 0; p < kPoolPixels; ++p) store(out + (column + p) * static_cast<std::int64_t>(kWidth), most[p]);
        column += kPoolPixels;
        continue;
      }
      for (int y = ys.begin; y < ys.end; ++y, first += s.x.row) {
        most[0] = largest_pixel(first, xs.end - xs.begin, most[0]);
      }
      store(out + column * static_cast<std::int64_t>(kWidth), most[0]);
      ++column;
    }
  }
}

static inline Vec plus(Vec sum, Vec v) { return sum + v; }

static void pool_average(const Step& s, int thread, int threads) {
  const Range rows = row_share(s.out, thread, threads);
  for (std::int64_t unit = rows.begin; unit < rows.end; ++unit) {
    const Row r = row_of(unit, s.out);
    const float* x = row_start(s.x, {r.n, r.block, 0});
    float* out = row_start(s.out, r);
    const Span ys = window(r.y, s.stride_h, s.pad_top, s.kernel_h, s.x.h);
    for (int column = 0; column < s.out.w;) {
      const Span xs = window(column, s.stride_w, s.pad_left, s.kernel_w, s.x.w);
      const int count = s.count_padding ? s.kernel_h * s.kernel_w : (ys.end - ys.begin) * (xs.end - xs.begin);
      const float scale = 1.0f / static_cast<float>(count);
      const float* first = x + ys.begin * s.x.row + xs.begin * static_cast<std::int64_t>(kWidth);
      Vec sums[kPoolPixels] = {};
      if (windows_inside(s, column)) {
        reduce_windows<plus>(s, first, ys.end - ys.begin, sums);
        POWERLAB_UNROLL
        for (int p = 0; p < kPoolPixels; ++p) {
          store(out + (column + p) * static_cast<std::int64_t>(kWidth), sums[p] * scale);
        }
        column += kPoolPixels;
        continue;
      }
      for (int y = ys.begin; y < ys.end; ++y, first += s.x.row) {
        for (int at = 0; at < xs.end - xs.begin; ++at) sums[0] += load(first + at * static_cast<std::int64_t>(kWidth));
      }
      store(out + column * static_cast<std::int64_t>(kWidth), sums[0] * scale);
      ++column;
    }
  }
}

// The sum of `count` pixels that follow on each other, four at a time: one alone would wait for itself.
static inline Vec sum_of_pixels(const float* x, std::int64_t count) {
  Vec sums[4] = {};
  std::int64_t at = 0;
  for (; at + 4 <= count; at += 4) {
    POWERLAB_UNROLL
    for (int i = 0; i < 4; ++i) sums[i] += load(x + (at + i) * kWidth);
  }
  for (; at < count; ++at) sums[0] += load(x + at * kWidth);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

static void pool_global_average(const Step& s, int thread, int threads) {
  const Range planes = row_share(s.out, thread, threads);
  const float scale = 1.0f / (static_cast<float>(s.x.h) * static_cast<float>(s.x.w));
  for (std::int64_t unit = planes.begin; unit < planes.end; ++unit) {
    const Row r = row_of(unit, s.out);
    const float* x = row_start(s.x, {r.n, r.block, 0});
    Vec sum{};
    for (int y = 0; y < s.x.h; ++y) sum += sum_of_pixels(x + y * s.x.row, s.x.w);
    store(row_start(s.out, r), sum * scale);
  }
}

}  // namespace powerlab::engine::POWERLAB_TIER
