// Moving tensors between layouts.
#pragma once

#include <string.h>

#include "kernels/vec.hpp"

namespace powerlab::engine::POWERLAB_TIER {

// A row of an image of three channels, pixel by pixel: a third of the time that it takes channel by channel.
static inline void interleave_three(const float* x, std::int64_t plane, float* out, std::int64_t pixels) {
  for (std::int64_t i = 0; i < pixels; ++i) {
    out[3 * i] = x[i];
    out[3 * i + 1] = x[plane + i];
    out[3 * i + 2] = x[2 * plane + i];
  }
}

// Planar x to blocked or interleaved out: the number of channels in a block is out's pixel stride. Channels that fill
// up the last block become zero.
static void reorder_to_blocks(const Step& s, int thread, int threads) {
  const Range rows = row_share(s.out, thread, threads);
  const int lanes = static_cast<int>(s.out.pixel);
  for (std::int64_t unit = rows.begin; unit < rows.end; ++unit) {
    const Row r = row_of(unit, s.out);
    float* out = row_start(s.out, r);
    if (lanes == 3 && s.x.c == 3) {
      interleave_three(row_start(s.x, {r.n, 0, r.y}), s.x.plane, out, s.out.w);
      continue;
    }
    for (int lane = 0; lane < lanes; ++lane) {
      const std::int64_t c = r.block * lanes + lane;
      if (c < s.x.c) {
        const float* x = s.x.data + r.n * s.x.image + c * s.x.plane + r.y * s.x.row;
        for (int i = 0; i < s.out.w; ++i) out[i * s.out.pixel + lane] = x[i];
      } else {
        for (int i = 0; i < s.out.w; ++i) out[i * s.out.pixel + lane] = 0.0f;
      }
    }
  }
}

// Blocked x to planar out.
static void reorder_to_planes(const Step& s, int thread, int threads) {
  const Range rows = share(static_cast<std::int64_t>(s.out.n) * s.out.c * s.out.h, thread, threads);
  for (std::int64_t unit = rows.begin; unit < rows.end; ++unit) {
    const std::int64_t y = unit % s.out.h, c = unit / s.out.h % s.out.c, n = unit / s.out.h / s.out.c;
    const float* x = s.x.data + n * s.x.image + c / s.x.pixel * s.x.plane + y * s.x.row + c % s.x.pixel;
    float* out = s.out.data + n * s.out.image + c * s.out.plane + y * s.out.row;
    for (int i = 0; i < s.out.w; ++i) out[i] = x[i * s.x.pixel];
  }
}

// Rows of w * pixel floats, between views of equal sizes and any strides.
static void copy(const Step& s, int thread, int threads) {
  const Range rows = row_share(s.out, thread, threads);
  const std::size_t bytes = static_cast<std::size_t>(s.out.w * s.out.pixel) * sizeof(float);
  for (std::int64_t unit = rows.begin; unit < rows.end; ++unit) {
    const Row r = row_of(unit, s.out);
    memcpy(row_start(s.out, r), row_start(s.x, r), bytes);
  }
}

}  // namespace powerlab::engine::POWERLAB_TIER
