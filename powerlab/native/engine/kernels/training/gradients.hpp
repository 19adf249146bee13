// What activations and pools give back, in the blocked layout; x is what they read or made, y the gradient of what they
// made. Pools: threads share planes, since windows overlap.
#pragma once

#include "kernels/blocked/pool.hpp"

namespace powerlab::engine::POWERLAB_TIER {

// Of activate(): the gradient passes where what that made lies inside the bounds, times the slope where it is below 0.
static inline Vec activation_gradient(Vec made, Vec gradient, const Step& s) {
  const Vec zero{}, sloped = made < zero ? gradient * broadcast(s.slope) : gradient;
  return ((made > broadcast(s.low)) & (made < broadcast(s.high))) ? sloped : zero;
}

// Of activate(): x is its result.
static void clamp_gradient(const Step& s, int thread, int threads) {
  const Range rows = row_share(s.out, thread, threads);
  const std::int64_t count = s.out.w * static_cast<std::int64_t>(kWidth);
  for (std::int64_t unit = rows.begin; unit < rows.end; ++unit) {
    const Row r = row_of(unit, s.out);
    const float *x = row_start(s.x, r), *y = row_start(s.y, r);
    float* out = row_start(s.out, r);
    for (std::int64_t i = 0; i < count; i += kWidth) {
      store(out + i, activation_gradient(load(x + i), load(y + i), s));
    }
  }
}

// Writes 0 to every pixel of out, which may lie any distance apart.
static void zero(const Step& s, int thread, int threads) {
  const Range rows = row_share(s.out, thread, threads);
  for (std::int64_t unit = rows.begin; unit < rows.end; ++unit) {
    float* out = row_start(s.out, row_of(unit, s.out));
    for (int column = 0; column < s.out.w; ++column) store(out + column * s.out.pixel, Vec{});
  }
}

// Calls window(ys, xs, dy) for each window over a plane, dy being where its gradient lies, after the plane's gradient
// was set to 0.
template <typename OfWindow>
static inline void for_windows(const Step& s, std::int64_t n, std::int64_t block, OfWindow of_window) {
  for (std::int64_t y = 0; y < s.out.h; ++y) {
    float* out = row_start(s.out, {n, block, y});
    for (std::int64_t i = 0; i < s.out.w; ++i) store(out + i * kWidth, Vec{});
  }
  for (std::int64_t y = 0; y < s.y.h; ++y) {
    const float* dy = row_start(s.y, {n, block, y});
    const Span ys = window(y, s.stride_h, s.pad_top, s.kernel_h, s.out.h);
    for (std::int64_t x = 0; x < s.y.w; ++x) {
      of_window(ys, window(x, s.stride_w, s.pad_left, s.kernel_w, s.out.w), load(dy + x * kWidth));
    }
  }
}

// The gradient goes to the first of the largest pixels of a window.
static void pool_max_gradient(const Step& s, int thread, int threads) {
  const Range own = share(static_cast<std::int64_t>(s.out.n) * s.out.blocks, thread, threads);
  for (std::int64_t plane = own.begin; plane < own.end; ++plane) {
    const std::int64_t n = plane / s.out.blocks, block = plane % s.out.blocks;
    for_windows(s, n, block, [&](Span ys, Span xs, Vec dy) {
      Vec most = broadcast(-__builtin_inff());
      for (int y = ys.begin; y < ys.end; ++y) {
        const float* x = row_start(s.x, {n, block, y});
        for (int at = xs.begin; at < xs.end; ++at) most = larger(most, load(x + at * std::int64_t{kWidth}));
      }
      Vec left = dy;  // what no pixel took yet
      for (int y = ys.begin; y < ys.end; ++y) {
        const float* x = row_start(s.x, {n, block, y});
        float* out = row_start(s.out, {n, block, y});
        for (int at = xs.begin; at < xs.end; ++at) {
          const Vec v = load(x + at * std::int64_t{kWidth});
          float* to = out + at * std::int64_t{kWidth};
          store(to, v == most ? load(to) + left : load(to));
          left = v == most ? Vec{} : left;
        }
      }
    });
  }
}

// The gradient goes to all pixels of a window alike.
static void pool_average_gradient(const Step& s, int thread, int threads) {
  const Range own = share(static_cast<std::int64_t>(s.out.n) * s.out.blocks, thread, threads);
  for (std::int64_t plane = own.begin; plane < own.end; ++plane) {
    const std::int64_t n = plane / s.out.blocks, block = plane % s.out.blocks;
    for_windows(s, n, block, [&](Span ys, Span xs, Vec dy) {
      const int count = s.count_padding ? s.kernel_h * s.kernel_w : (ys.end - ys.begin) * (xs.end - xs.begin);
      const Vec part = dy * (1.0f / static_cast<float>(count));
      for (int y = ys.begin; y < ys.end; ++y) {
        float* out = row_start(s.out, {n, block, y});
        for (int at = xs.begin; at < xs.end; ++at) {
          float* to = out + at * std::int64_t{kWidth};
          store(to, load(to) + part);
        }
      }
    });
  }
}

// Of an average over whole planes: y has one pixel a plane.
static void pool_global_average_gradient(const Step& s, int thread, int threads) {
  const Range rows = row_share(s.out, thread, threads);
  const float part = 1.0f / (static_cast<float>(s.out.h) * static_cast<float>(s.out.w));
  for (std::int64_t unit = rows.begin; unit < rows.end; ++unit) {
    const Row r = row_of(unit, s.out);
    const Vec gradient = load(row_start(s.y, {r.n, r.block, 0})) * part;
    float* out = row_start(s.out, r);
    for (int column = 0; column < s.out.w; ++column) store(out + column * std::int64_t{kWidth}, gradient);
  }
}

}  // namespace powerlab::engine::POWERLAB_TIER
