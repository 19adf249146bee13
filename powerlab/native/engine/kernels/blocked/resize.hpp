// Nearest neighbour by whole factors in the blocked layout: every pixel of x becomes stride_h x stride_w pixels of out.
#pragma once

#include "kernels/vec.hpp"

namespace powerlab::engine::POWERLAB_TIER {

static void resize_nearest(const Step& s, int thread, int threads) {
  const Range rows = row_share(s.out, thread, threads);
  for (std::int64_t unit = rows.begin; unit < rows.end; ++unit) {
    const Row r = row_of(unit, s.out);
    const float* x = row_start(s.x, {r.n, r.block, r.y / s.stride_h});
    float* out = row_start(s.out, r);
    for (int column = 0; column < s.x.w; ++column) {
      const Vec pixel = load(x + column * static_cast<std::int64_t>(kWidth));
      for (int copy = 0; copy < s.stride_w; ++copy, out += kWidth) store(out, pixel);
    }
  }
}

}  // namespace powerlab::engine::POWERLAB_TIER
