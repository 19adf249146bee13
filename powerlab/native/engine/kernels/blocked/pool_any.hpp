// Pools in the blocked layout whose windows are dilated, count some of their padding, or take Lp norms. Windows are cut
// at the edges of the plane, so x needs no halo.
#pragma once

#include <math.h>

#include "kernels/vec.hpp"

namespace powerlab::engine::POWERLAB_TIER {

// The pixels of a dilated window that lie inside [0, size): from `begin` on, `dilation` apart.
struct Taps {
  std::int64_t begin, end;
};
static inline Taps dilated_window(std::int64_t at, int stride, int pad, int dilation, int kernel, int size) {
  std::int64_t begin = at * stride - pad;
  const std::int64_t end = begin + static_cast<std::int64_t>(kernel - 1) * dilation + 1;
  if (begin < 0) begin += (-begin + dilation - 1) / dilation * dilation;
  return {begin, end > size ? size : end};
}

// What a pool begins with, how it takes up a pixel, and what it makes of the result; alpha is the p of an Lp norm.
struct MaxOf {
  static Vec start() { return broadcast(-__builtin_inff()); }
  static Vec take(Vec most, Vec v, float) { return ((most >= v) | (most != most)) ? most : v; }  // keeps not-a-number
  static Vec end(Vec most, float) { return most; }
};

struct SumOf {
  static Vec start() { return Vec{}; }
  static Vec take(Vec sum, Vec v, float) { return sum + v; }
  static Vec end(Vec sum, float) { return sum; }
};

static inline Vec lane_powers(Vec v, float exponent) {
  float lanes[kWidth] __attribute__((aligned(4 * kWidth)));
  store(lanes, v);
  for (float& lane : lanes) lane = powf(lane, exponent);
  return load(lanes);
}

// Beyond squares, powers are those of shares of the largest number so far: 4 to the 64th is no float any more, nor is
// 0.2 to it.
struct LpOf {
  struct Part {
    Vec sum, most;
  };
  static Part start() { return {Vec{}, Vec{}}; }
  static Part take(Part part, Vec v, float p) {
    const Vec size = v < broadcast(0) ? -v : v;
    if (p <= 2) return {part.sum + (p == 1 ? size : v * v), part.most};
    const Vec most = ((part.most >= size) | (part.most != part.most)) ? part.most : size;
    const Vec unit = most > broadcast(0) ? most : broadcast(1);
    return {part.sum * lane_powers(part.most / unit, p) + lane_powers(size / unit, p), most};
  }
  static Vec end(Part part, float p) {
    if (p == 1) return part.sum;
    if (p == 2) return lane_powers(part.sum, 0.5f);
    return part.most == broadcast(__builtin_inff()) ? part.most : part.most * lane_powers(part.sum, 1 / p);
  }
};

// Weights, where there are any: what a result is multiplied by, one number a row of out, then one a column.
template <class Pool>
static void pool_any(const Step& s, int thread, int threads) {
  const Range rows = row_share(s.out, thread, threads);
  const float* of_columns = s.weights ? s.weights + s.out.h : nullptr;
  for (std::int64_t unit = rows.begin; unit < rows.end; ++unit) {
    const Row r = row_of(unit, s.out);
    const float* x = row_start(s.x, {r.n, r.block, 0});
    float* out = row_start(s.out, r);
    const Taps ys = dilated_window(r.y, s.stride_h, s.pad_top, s.dilation_h, s.kernel_h, s.x.h);
    for (int column = 0; column < s.out.w; ++column) {
      const Taps xs = dilated_window(column, s.stride_w, s.pad_left, s.dilation_w, s.kernel_w, s.x.w);
      auto part = Pool::start();
      for (std::int64_t y = ys.begin; y < ys.end; y += s.dilation_h) {
        for (std::int64_t at = xs.begin; at < xs.end; at += s.dilation_w) {
          part = Pool::take(part, load(x + y * s.x.row + at * kWidth), s.alpha);
        }
      }
      Vec result = Pool::end(part, s.alpha);
      if (s.weights) result *= broadcast(s.weights[r.y] * of_columns[column]);
      store(out + column * static_cast<std::int64_t>(kWidth), result);
    }
  }
}

}  // namespace powerlab::engine::POWERLAB_TIER
