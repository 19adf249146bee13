// Element by element, over rows of whole vectors. A planar tensor passes as one block of image / v pixels.
#pragma once

#include "kernels/vec.hpp"

namespace powerlab::engine::POWERLAB_TIER {

// out = activate(x + y)
static void add(const Step& s, int thread, int threads) {
  const Range rows = row_share(s.out, thread, threads);
  const std::int64_t count = s.out.w * static_cast<std::int64_t>(kWidth);
  for (std::int64_t unit = rows.begin; unit < rows.end; ++unit) {
    const Row r = row_of(unit, s.out);
    const float *x = row_start(s.x, r), *y = row_start(s.y, r);
    float* out = row_start(s.out, r);
    for (std::int64_t i = 0; i < count; i += kWidth) store(out + i, activate(load(x + i) + load(y + i), s));
  }
}

// out = activate(x * y); y may have one number a channel of each image, blocked layout
static void multiply(const Step& s, int thread, int threads) {
  const Range rows = row_share(s.out, thread, threads);
  const std::int64_t count = s.out.w * static_cast<std::int64_t>(kWidth);
  const bool per_channel = s.y.h != s.out.h || s.y.w != s.out.w;
  for (std::int64_t unit = rows.begin; unit < rows.end; ++unit) {
    const Row r = row_of(unit, s.out);
    const float *x = row_start(s.x, r), *y = row_start(s.y, per_channel ? Row{r.n, r.block, 0} : r);
    const std::int64_t along = per_channel ? 0 : 1;
    float* out = row_start(s.out, r);
    for (std::int64_t i = 0; i < count; i += kWidth) store(out + i, activate(load(x + i) * load(y + along * i), s));
  }
}

// out = activate(x)
static void clamp_all(const Step& s, int thread, int threads) {
  const Range rows = row_share(s.out, thread, threads);
  const std::int64_t count = s.out.w * static_cast<std::int64_t>(kWidth);
  for (std::int64_t unit = rows.begin; unit < rows.end; ++unit) {
    const Row r = row_of(unit, s.out);
    const float* x = row_start(s.x, r);
    float* out = row_start(s.out, r);
    for (std::int64_t i = 0; i < count; i += kWidth) store(out + i, activate(load(x + i), s));
  }
}

// out = activate(x * weights[channel] + bias[channel]), blocked layout
static void scale_shift(const Step& s, int thread, int threads) {
  const Range rows = row_share(s.out, thread, threads);
  const std::int64_t count = s.out.w * static_cast<std::int64_t>(kWidth);
  for (std::int64_t unit = rows.begin; unit < rows.end; ++unit) {
    const Row r = row_of(unit, s.out);
    const Vec scale = load(s.weights + r.block * kWidth), shift = load(s.bias + r.block * kWidth);
    const float* x = row_start(s.x, r);
    float* out = row_start(s.out, r);
    for (std::int64_t i = 0; i < count; i += kWidth) {
      store(out + i, activate(load(x + i) * scale + shift, s));
    }
  }
}

}  // namespace powerlab::engine::POWERLAB_TIER
