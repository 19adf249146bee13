// Pooling in the blocked layout. Windows are cut at the edges of the plane, so x needs no halo.
#pragma once

#include "kernels/vec.hpp"

namespace powerlab::engine::POWERLAB_TIER {

// The part of a window that lies inside [0, size).
struct Span {
  int begin, end;
};
static inline Span window(std::int64_t at, int stride, int pad, int kernel, int size) {
  const int begin = static_cast<int>(at) * stride - pad;
  const int end = begin + kernel;
  return {begin < 0 ? 0 : begin, end > size ? size : end};
}

// The larger of two; not-a-number wins.
static inline Vec larger(Vec most, Vec v) { return ((most >= v) | (most != most)) ? most : v; }

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

static void pool_max(const Step& s, int thread, int threads) {
  const Range rows = row_share(s.out, thread, threads);
  for (std::int64_t unit = rows.begin; unit < rows.end; ++unit) {
    const Row r = row_of(unit, s.out);
    const float* x = row_start(s.x, {r.n, r.block, 0});
    float* out = row_start(s.out, r);
    const Span ys = window(r.y, s.stride_h, s.pad_top, s.kernel_h, s.x.h);
    for (int column = 0; column < s.out.w; ++column) {
      const Span xs = window(column, s.stride_w, s.pad_left, s.kernel_w, s.x.w);
      Vec most = broadcast(-__builtin_inff());
      for (int y = ys.begin; y < ys.end; ++y) {
        const float* row = x + y * s.x.row + xs.begin * static_cast<std::int64_t>(kWidth);
        most = largest_pixel(row, xs.end - xs.begin, most);
      }
      store(out + column * static_cast<std::int64_t>(kWidth), most);
    }
  }
}

static void pool_average(const Step& s, int thread, int threads) {
  const Range rows = row_share(s.out, thread, threads);
  for (std::int64_t unit = rows.begin; unit < rows.end; ++unit) {
    const Row r = row_of(unit, s.out);
    const float* x = row_start(s.x, {r.n, r.block, 0});
    float* out = row_start(s.out, r);
    const Span ys = window(r.y, s.stride_h, s.pad_top, s.kernel_h, s.x.h);
    for (int column = 0; column < s.out.w; ++column) {
      const Span xs = window(column, s.stride_w, s.pad_left, s.kernel_w, s.x.w);
      Vec sum{};
      for (int y = ys.begin; y < ys.end; ++y) {
        for (int at = xs.begin; at < xs.end; ++at) {
          sum += load(x + y * s.x.row + at * static_cast<std::int64_t>(kWidth));
        }
      }
      const int count = s.count_padding ? s.kernel_h * s.kernel_w : (ys.end - ys.begin) * (xs.end - xs.begin);
      store(out + column * static_cast<std::int64_t>(kWidth), sum * (1.0f / static_cast<float>(count)));
    }
  }
}

static void pool_global_average(const Step& s, int thread, int threads) {
  const Range planes = row_share(s.out, thread, threads);
  const float scale = 1.0f / (static_cast<float>(s.x.h) * static_cast<float>(s.x.w));
  for (std::int64_t unit = planes.begin; unit < planes.end; ++unit) {
    const Row r = row_of(unit, s.out);
    const float* x = row_start(s.x, {r.n, r.block, 0});
    Vec sum{};
    for (int y = 0; y < s.x.h; ++y) {
      Vec row{};
      for (int at = 0; at < s.x.w; ++at) row += load(x + y * s.x.row + at * static_cast<std::int64_t>(kWidth));
      sum += row;
    }
    store(row_start(s.out, r), sum * scale);
  }
}

}  // namespace powerlab::engine::POWERLAB_TIER
