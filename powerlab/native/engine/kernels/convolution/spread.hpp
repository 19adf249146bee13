// Where the pixels of a result do not follow on each other, as in transposed convolutions.
#pragma once

#include "kernels/vec.hpp"

namespace powerlab::engine::POWERLAB_TIER {

// Vectors of x to out, pixel by pixel, between views of equal sizes and any strides.
static void spread(const Step& s, int thread, int threads) {
  const Range rows = row_share(s.out, thread, threads);
  for (std::int64_t unit = rows.begin; unit < rows.end; ++unit) {
    const Row r = row_of(unit, s.out);
    const float* x = row_start(s.x, r);
    float* out = row_start(s.out, r);
    for (int column = 0; column < s.out.w; ++column) store(out + column * s.out.pixel, load(x + column * s.x.pixel));
  }
}

// Out gets its halo, which the plan writes before each step; its pixels are what the steps behind write.
static void frame(const Step&, int, int) {}

}  // namespace powerlab::engine::POWERLAB_TIER
