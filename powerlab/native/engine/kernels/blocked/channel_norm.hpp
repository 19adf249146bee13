// Normalisation over the channels of each pixel in the blocked layout: what layer normalisation (J. L. Ba et al., 2016)
// and root mean square normalisation (B. Zhang and R. Sennrich, 2019) are of images whose channels come first.
//
// weights, bias: scale and shift, one float a channel; 0 in the lanes that fill up the last block. alpha: what is added
// to the variance. A few pixels go through all blocks at a time: their sums stay in registers.
#pragma once

#include "kernels/strided/normalise_rows.hpp"

namespace powerlab::engine::POWERLAB_TIER {

constexpr int kNormPixels = 8;

// Calls block(b, lanes) for each channel block: lanes are those that are channels.
template <typename Block>
static inline void for_blocks(const View& x, Block block) {
  for (int b = 0; b < x.blocks; ++b) block(b, x.c - b * kWidth < kWidth ? x.c - b * kWidth : kWidth);
}

// The mean over the channels of function(element, pixel), for P pixels.
template <int P, typename Function>
static inline void channel_means(const View& view, const float* x, float (&means)[P], Function function) {
  Vec sums[P] = {};
  for_blocks(view, [&](int b, int lanes) {
    const float* at = x + b * view.plane;
    POWERLAB_UNROLL
    for (int p = 0; p < P; ++p) {
      const Vec v = function(load(at + p * kWidth), p);
      sums[p] += lanes == kWidth ? v : first_lanes(v, lanes);
    }
  });
  POWERLAB_UNROLL
  for (int p = 0; p < P; ++p) means[p] = sum_of(sums[p]) / static_cast<float>(view.c);
}

template <int P, bool Centred>
static void channel_norm_pixels(const Step& s, const float* x, float* out) {
  float means[P] = {}, squares[P];
  if (Centred) channel_means<P>(s.x, x, means, [](Vec v, int) { return v; });
  channel_means<P>(s.x, x, squares, [&](Vec v, int p) { return (v - means[p]) * (v - means[p]); });
  POWERLAB_UNROLL
  for (int p = 0; p < P; ++p) squares[p] = 1.0f / sqrtf(squares[p] + s.alpha);
  for_blocks(s.x, [&](int b, int) {
    const Vec scale = load(s.weights + b * kWidth), shift = load(s.bias + b * kWidth);
    POWERLAB_UNROLL
    for (int p = 0; p < P; ++p) {
      const Vec v = load(x + b * s.x.plane + p * kWidth);
      store(out + b * s.out.plane + p * kWidth, (v - means[p]) * squares[p] * scale + shift);
    }
  });
}

template <bool Centred>
static void channel_norm(const Step& s, int thread, int threads) {
  const std::int64_t tiles = (s.out.w + kNormPixels - 1) / kNormPixels;
  const Range own = share(s.out.n * s.out.h * tiles, thread, threads);
  for (std::int64_t unit = own.begin; unit < own.end; ++unit) {
    const std::int64_t row = unit / tiles, first = unit % tiles * kNormPixels;
    const Row r{row / s.out.h, 0, row % s.out.h};
    const float* x = row_start(s.x, r) + first * kWidth;
    float* out = row_start(s.out, r) + first * kWidth;
    if (first + kNormPixels <= s.out.w) {
      channel_norm_pixels<kNormPixels, Centred>(s, x, out);
      continue;
    }
    for (std::int64_t i = 0; i < s.out.w - first; ++i) {
      channel_norm_pixels<1, Centred>(s, x + i * kWidth, out + i * kWidth);
    }
  }
}

}  // namespace powerlab::engine::POWERLAB_TIER
