// The largest of a window's 16-bit floats: blocked/pool.hpp's maximum where convolutions in such floats lie around it.
#pragma once

#include "kernels/blocked/window.hpp"
#include "kernels/pairs/words.hpp"

namespace powerlab::engine::POWERLAB_TIER {

// x and out in blocks of 16-bit floats; windows are cut at the edges of the plane.
static void pool_max_narrow(const Step& s, int thread, int threads) {
  const Range rows = row_share(s.out, thread, threads);
  for (std::int64_t unit = rows.begin; unit < rows.end; ++unit) {
    const Row r = row_of(unit, s.out);
    const float* x = row_start(s.x, {r.n, r.block, 0});
    float* out = row_start(s.out, r);
    const Span ys = window(r.y, s.stride_h, s.pad_top, s.kernel_h, s.x.h);
    for (int column = 0; column < s.out.w; ++column, out += kBlockWords) {
      const Span xs = window(column, s.stride_w, s.pad_left, s.kernel_w, s.x.w);
      Vec most[kBlockVectors];
      POWERLAB_UNROLL
      for (int v = 0; v < kBlockVectors; ++v) most[v] = broadcast(-__builtin_inff());
      const float* row = x + ys.begin * s.x.row + xs.begin * static_cast<std::int64_t>(kBlockWords);
      for (int y = ys.begin; y < ys.end; ++y, row += s.x.row) {
        const float* pixel = row;
        for (int at = xs.begin; at < xs.end; ++at, pixel += kBlockWords) {
          POWERLAB_UNROLL
          for (int v = 0; v < kBlockVectors; ++v) most[v] = larger(most[v], load_narrow(pixel + v * (kWidth / 2)));
        }
      }
      POWERLAB_UNROLL
      for (int v = 0; v < kBlockVectors; ++v) store_narrow(out + v * (kWidth / 2), most[v]);
    }
  }
}

}  // namespace powerlab::engine::POWERLAB_TIER
