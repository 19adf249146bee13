// Gradients of convolutions' weights in float32: gradient_pieces.hpp, and of those with a kernel a channel.
#pragma once

#include "kernels/training/gradient_pieces.hpp"

namespace powerlab::engine::POWERLAB_TIER {

struct FloatProducts {
  using Lane = float;
  static constexpr bool kOutputsFirst = false;
  struct Registers {};
  static constexpr std::int64_t kRoom = 0;
  static inline Lane lane(const float* x) { return *x; }
  static inline __attribute__((always_inline)) Vec add(Vec sum, Vec dy, Lane x) { return sum + dy * x; }
  static inline GradientTile outputs(const GradientTile& t, std::int64_t, float*) { return t; }
  static inline GradientTile inputs(const GradientTile& t, float*) { return t; }
  static void multiply(std::int64_t blocks, const GradientTile& t, std::int64_t lanes) {
    gradient_blocks<FloatProducts>(blocks, t, lanes, typename MakeIndices<kGradientBlocks>::type{});
  }
};

// Where every channel has a kernel of its own: dw is (channels, 1, 1, kh, kw).
static void conv_depthwise_weight_gradient(const Step& s, int thread, int threads) {
  const Strided& dw = s.operands[0];
  float* sums = s.scratch.data + thread * s.scratch.image;  // [kw][v]
  const Range own = share(static_cast<std::int64_t>(s.x.blocks) * s.kernel_h, thread, threads);
  for (std::int64_t i = own.begin; i < own.end; ++i) {
    const std::int64_t block = i / s.kernel_h, ky = i % s.kernel_h;
    const Range rows = gradient_rows(s, ky);
    for (std::int64_t kx = 0; kx < s.kernel_w; ++kx) store(sums + kx * kWidth, Vec{});
    for (std::int64_t n = 0; n < s.x.n; ++n) {
      for (std::int64_t row = rows.begin; row < rows.end; ++row) {
        const float* dy = row_start(s.y, {n, block, row});
        const float* line = row_start(s.x, {n, block, row * s.stride_h + ky * s.dilation_h - s.pad_top});
        for (std::int64_t kx = 0; kx < s.kernel_w; ++kx) {
          const float* x = line + (kx * s.dilation_w - s.pad_left) * kWidth;
          const std::int64_t apart = s.stride_w * static_cast<std::int64_t>(kWidth);
          Vec acc[4] = {};
          std::int64_t at = 0;
          for (; at + 4 <= s.y.w; at += 4) {
            POWERLAB_UNROLL
            for (int p = 0; p < 4; ++p) acc[p] += load(dy + (at + p) * kWidth) * load(x + (at + p) * apart);
          }
          for (; at < s.y.w; ++at) acc[0] += load(dy + at * kWidth) * load(x + at * apart);
          store(sums + kx * kWidth, load(sums + kx * kWidth) + ((acc[0] + acc[1]) + (acc[2] + acc[3])));
        }
      }
    }
    for (std::int64_t kx = 0; kx < s.kernel_w; ++kx) {
      for (std::int64_t lane = 0; lane < kWidth && block * kWidth + lane < dw.size[0]; ++lane) {
        static_cast<float*>(dw.data)[(block * kWidth + lane) * dw.stride[0] + ky * dw.stride[3] + kx * dw.stride[4]] =
            sums[kx * kWidth + lane];
      }
    }
  }
}

}  // namespace powerlab::engine::POWERLAB_TIER
