// Pixels a stride apart become channels, so that a convolution of that stride becomes one of stride 1.
#pragma once

#include <string.h>

#include "kernels/vec.hpp"

namespace powerlab::engine::POWERLAB_TIER {

// One row of x becomes kRun channels of each pixel of a row of out that holds zeros.
template <int kRun>
static void fold_columns(const float* x, int x_columns, int pad_left, float* out, int out_columns) {
  for (int column = 0; column < out_columns; ++column, out += kWidth) {
    const int first = column * kRun - pad_left;
    if (first >= 0 && first + kRun <= x_columns) {
      memcpy(out, x + first, kRun * sizeof(float));
    } else {
      for (int i = 0; i < kRun; ++i) {
        if (first + i >= 0 && first + i < x_columns) out[i] = x[first + i];
      }
    }
  }
}

// Planar x to blocked out, for strides of 2 and 4: channel (c * stride_h + dy) * stride_w + dx of out's pixel (y, i) is
// x's channel c at row y * stride_h - pad_top + dy and column i * stride_w - pad_left + dx, zero where x has none.
static void space_to_depth(const Step& s, int thread, int threads) {
  const Range rows = row_share(s.out, thread, threads);
  const int runs = kWidth / s.stride_w;  // rows of x that make a block of channels
  const auto fold = s.stride_w == 4 ? fold_columns<4> : fold_columns<2>;
  for (std::int64_t unit = rows.begin; unit < rows.end; ++unit) {
    const Row r = row_of(unit, s.out);
    float* out = row_start(s.out, r);
    memset(out, 0, static_cast<std::size_t>(s.out.w) * kWidth * sizeof(float));
    for (int run = 0; run < runs; ++run) {
      const std::int64_t from = r.block * runs + run, c = from / s.stride_h;
      const std::int64_t y = r.y * s.stride_h - s.pad_top + from % s.stride_h;
      if (c >= s.x.c || y < 0 || y >= s.x.h) continue;
      fold(s.x.data + r.n * s.x.image + c * s.x.plane + y * s.x.row, s.x.w, s.pad_left, out + run * s.stride_w,
           s.out.w);
    }
  }
}

}  // namespace powerlab::engine::POWERLAB_TIER
