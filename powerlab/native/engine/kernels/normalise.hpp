// Local response normalisation (Krizhevsky et al., 2012, section 3.3) in the blocked layout, and softmax in the planar.
#pragma once

#include <math.h>

#include "kernels/vec.hpp"

namespace powerlab::engine::POWERLAB_TIER {

// Squares of one channel block at a pixel; zero outside the tensor and in the channels that fill up the last block.
static inline Vec square_at(const View& x, const float* pixel, int block) {
  if (block >= x.blocks) return Vec{};
  const Vec v = load(pixel + block * x.plane);
  if ((block + 1) * kWidth <= x.c) return v * v;
  float lanes[kWidth] __attribute__((aligned(4 * kWidth)));
  store(lanes, v * v);
  for (int i = x.c - block * kWidth; i < kWidth; ++i) lanes[i] = 0.0f;
  return load(lanes);
}

// Raise each lane to -beta; the usual 0.75 without a call to pow.
static inline Vec power(Vec v, float beta) {
  float lanes[kWidth] __attribute__((aligned(4 * kWidth)));
  store(lanes, v);
  if (beta == 0.75f) {
    for (int i = 0; i < kWidth; ++i) {
      const float root = sqrtf(lanes[i]);
      lanes[i] = 1.0f / (root * sqrtf(root));
    }
  } else {
    for (int i = 0; i < kWidth; ++i) lanes[i] = powf(lanes[i], -beta);
  }
  return load(lanes);
}

// out = x * (offset + alpha / size * sum of the squares of the size channels around)^-beta
// size is at most 2 v + 1.
static void lrn(const Step& s, int thread, int threads) {
  const Range rows = share(static_cast<std::int64_t>(s.out.n) * s.out.h, thread, threads);
  const int before = (s.size - 1) / 2, after = s.size - 1 - before;
  const float alpha = s.alpha / static_cast<float>(s.size);
  for (std::int64_t unit = rows.begin; unit < rows.end; ++unit) {
    const Row r{unit / s.out.h, 0, unit % s.out.h};
    for (int column = 0; column < s.out.w; ++column) {
      const float* x = row_start(s.x, r) + column * static_cast<std::int64_t>(kWidth);
      float* out = row_start(s.out, r) + column * static_cast<std::int64_t>(kWidth);
      float squares[3 * kWidth] __attribute__((aligned(4 * kWidth)));
      store(squares, Vec{});
      store(squares + kWidth, square_at(s.x, x, 0));
      for (int block = 0; block < s.x.blocks; ++block) {
        store(squares + 2 * kWidth, square_at(s.x, x, block + 1));
        Vec sum{};
        for (int d = -before; d <= after; ++d) sum += load_unaligned(squares + kWidth + d);
        const Vec base = broadcast(s.offset) + sum * alpha;
        store(out + block * s.out.plane, load(x + block * s.x.plane) * power(base, s.beta));
        store(squares, load(squares + kWidth));
        store(squares + kWidth, load(squares + 2 * kWidth));
      }
    }
  }
}

// Softmax over h of a view of n x c x h x w, any strides, pixel = 1; computed as exp(x - max) / sum.
static void softmax(const Step& s, int thread, int threads) {
  const View& v = s.x;
  const Range units = share(static_cast<std::int64_t>(v.n) * v.c * v.w, thread, threads);
  for (std::int64_t unit = units.begin; unit < units.end; ++unit) {
    const std::int64_t column = unit % v.w, c = unit / v.w % v.c, n = unit / v.w / v.c;
    const float* x = v.data + n * v.image + c * v.plane + column;
    float* out = s.out.data + n * s.out.image + c * s.out.plane + column;
    float most = x[0];
    for (int i = 1; i < v.h; ++i) most = x[i * v.row] <= most ? most : x[i * v.row];
    double sum = 0;
    for (int i = 0; i < v.h; ++i) {
      const float e = expf(x[i * v.row] - most);
      out[i * s.out.row] = e;
      sum += static_cast<double>(e);
    }
    const float scale = static_cast<float>(1.0 / sum);
    for (int i = 0; i < v.h; ++i) out[i * s.out.row] *= scale;
  }
}

}  // namespace powerlab::engine::POWERLAB_TIER
