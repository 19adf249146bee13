// Depthwise convolution in the blocked layout: one filter a channel; out = activate(conv(x) + bias + y).
//
// Weights: [block][kernel_h][kernel_w][v]. Padding is the halo of x. Up to eight pixels of a row stay in registers.
#pragma once

#include "kernels/vec.hpp"

namespace powerlab::engine::POWERLAB_TIER {

template <int P>
static inline __attribute__((always_inline)) void depthwise_tile(const Step& s, const float* x, const float* weights,
                                                                 Vec bias, float* out, const float* residual) {
  Vec acc[P];
  POWERLAB_UNROLL
  for (int p = 0; p < P; ++p) acc[p] = bias;
  const std::int64_t step = kWidth * static_cast<std::int64_t>(s.stride_w);
  for (int ky = 0; ky < s.kernel_h; ++ky) {
    for (int kx = 0; kx < s.kernel_w; ++kx) {
      const float* tap = x + ky * s.dilation_h * s.x.row + kx * s.dilation_w * static_cast<std::int64_t>(kWidth);
      const Vec w = load(weights);
      weights += kWidth;
      POWERLAB_UNROLL
      for (int p = 0; p < P; ++p) acc[p] += w * load(tap + p * step);
    }
  }
  POWERLAB_UNROLL
  for (int p = 0; p < P; ++p) {
    Vec v = acc[p];
    if (residual) v += load(residual + p * kWidth);
    store(out + p * kWidth, activate(v, s));
  }
}

static void conv_depthwise(const Step& s, int thread, int threads) {
  constexpr int kPixels = 8;
  const Range rows = row_share(s.out, thread, threads);
  const std::int64_t taps = static_cast<std::int64_t>(s.kernel_h) * s.kernel_w;
  for (std::int64_t unit = rows.begin; unit < rows.end; ++unit) {
    const Row r = row_of(unit, s.out);
    const float* x = s.x.data + r.n * s.x.image + r.block * s.x.plane + (r.y * s.stride_h - s.pad_top) * s.x.row -
                     s.pad_left * s.x.pixel;
    const float* weights = s.weights + r.block * taps * kWidth;
    const float* residual = s.y.data ? row_start(s.y, r) : nullptr;
    const Vec bias = load(s.bias + r.block * kWidth);
    float* out = row_start(s.out, r);
    const std::int64_t x_step = s.stride_w * static_cast<std::int64_t>(kWidth);
    int column = 0;
    for (; column + kPixels <= s.out.w; column += kPixels) {
      const std::int64_t at = column * static_cast<std::int64_t>(kWidth);
      depthwise_tile<kPixels>(s, x + column * x_step, weights, bias, out + at, residual ? residual + at : nullptr);
    }
    for (; column < s.out.w; ++column) {
      const std::int64_t at = column * static_cast<std::int64_t>(kWidth);
      depthwise_tile<1>(s, x + column * x_step, weights, bias, out + at, residual ? residual + at : nullptr);
    }
  }
}

}  // namespace powerlab::engine::POWERLAB_TIER
