// Resizing by any factors and coordinates in the blocked layout: every pixel of out is a weighted sum of pixels of x,
// whose places and weights are the same for all pixels of a row or of a column.
//
// Weights: for each row of out its kernel_h taps, for each tap the row of x (an integer) and its weight. Bias: the
// same for each column, kernel_w taps. Where the first tap lies at -1 there is nothing of x, and out is `offset`.
#pragma once

#include "kernels/vec.hpp"

namespace powerlab::engine::POWERLAB_TIER {

// One row of out. H, W: taps down and across, or 0 where no number is compiled in. With numbers, places and weights of
// the rows stay in registers.
template <int H, int W>
static inline void interpolate_row(const Step& s, const float* x, const float* down, float* out) {
  const int taps_down = H ? H : s.kernel_h, taps_across = W ? W : s.kernel_w;
  const float* rows[H ? H : 1];
  Vec shares[H ? H : 1];
  for (int i = 0; i < H; ++i) {
    rows[i] = x + static_cast<std::int64_t>(down[2 * i]) * s.x.row;
    shares[i] = broadcast(down[2 * i + 1]);
  }
  const float* across = s.bias;
  for (int column = 0; column < s.out.w; ++column, out += kWidth, across += 2 * taps_across) {
    if (across[0] < 0) {
      store(out, broadcast(s.offset));
      continue;
    }
    Vec sum{};
    for (int i = 0; i < taps_down; ++i) {
      const float* row = H ? rows[i] : x + static_cast<std::int64_t>(down[2 * i]) * s.x.row;
      Vec along{};
      for (int j = 0; j < taps_across; ++j) {
        along += load(row + static_cast<std::int64_t>(across[2 * j]) * kWidth) * broadcast(across[2 * j + 1]);
      }
      sum += along * (H ? shares[i] : broadcast(down[2 * i + 1]));
    }
    store(out, sum);
  }
}

static void interpolate(const Step& s, int thread, int threads) {
  const Range rows = row_share(s.out, thread, threads);
  const bool linear = s.kernel_h == 2 && s.kernel_w == 2;
  for (std::int64_t unit = rows.begin; unit < rows.end; ++unit) {
    const Row r = row_of(unit, s.out);
    const float* x = row_start(s.x, {r.n, r.block, 0});
    const float* down = s.weights + 2 * r.y * s.kernel_h;
    float* out = row_start(s.out, r);
    if (down[0] < 0) {
      for (int column = 0; column < s.out.w; ++column) store(out + column * kWidth, broadcast(s.offset));
    } else if (linear) {
      interpolate_row<2, 2>(s, x, down, out);
    } else {
      interpolate_row<0, 0>(s, x, down, out);
    }
  }
}

}  // namespace powerlab::engine::POWERLAB_TIER
