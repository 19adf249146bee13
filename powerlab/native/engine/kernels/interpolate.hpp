// Resizing by any factors and coordinates in the blocked layout: every pixel of out is a weighted sum of pixels of x,
// whose places and weights are the same for all pixels of a row or of a column.
//
// Weights: for each row of out its kernel_h taps, for each tap the row of x (an integer) and its weight. Bias: the
// same for each column, kernel_w taps. Where the first tap lies at -1 there is nothing of x, and out is `offset`.
#pragma once

#include "kernels/vec.hpp"

namespace powerlab::engine::POWERLAB_TIER {

static void interpolate(const Step& s, int thread, int threads) {
  const Range rows = row_share(s.out, thread, threads);
  for (std::int64_t unit = rows.begin; unit < rows.end; ++unit) {
    const Row r = row_of(unit, s.out);
    const float* x = row_start(s.x, {r.n, r.block, 0});
    const float* down = s.weights + 2 * r.y * s.kernel_h;
    float* out = row_start(s.out, r);
    for (int column = 0; column < s.out.w; ++column, out += kWidth) {
      const float* across = s.bias + 2 * static_cast<std::int64_t>(column) * s.kernel_w;
      if (down[0] < 0 || across[0] < 0) {
        store(out, broadcast(s.offset));
        continue;
      }
      Vec sum{};
      for (int i = 0; i < s.kernel_h; ++i) {
        const float* row = x + static_cast<std::int64_t>(down[2 * i]) * s.x.row;
        Vec along{};
        for (int j = 0; j < s.kernel_w; ++j) {
          along += load(row + static_cast<std::int64_t>(across[2 * j]) * kWidth) * broadcast(across[2 * j + 1]);
        }
        sum += along * broadcast(down[2 * i + 1]);
      }
      store(out, sum);
    }
  }
}

}  // namespace powerlab::engine::POWERLAB_TIER
