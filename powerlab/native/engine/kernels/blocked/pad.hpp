// Images padded with pixels of their own, as ONNX's Pad does in its modes reflect and edge: pad_top rows and pad_left
// columns before the image, as many behind it as the size of out says. Reflected, less is added than the image has.
// Words are moved, floats or those of bytes, in any layout in which the pixels of a row follow on each other.
#pragma once

#include <string.h>

#include "kernels/vec.hpp"

namespace powerlab::engine::POWERLAB_TIER {

// The pixel of `size` that stands `at` pixels from the first one, perhaps outside.
template <bool kReflected>
static inline int pixel_inside(int at, int size) {
  if (at < 0) return kReflected ? -at : 0;
  if (at < size) return at;
  return kReflected ? 2 * (size - 1) - at : size - 1;
}

template <bool kReflected>
static void pad_image(const Step& s, int thread, int threads) {
  const Range rows = row_share(s.out, thread, threads);
  const std::int64_t pixel = s.x.pixel;
  const size_t pixel_bytes = static_cast<size_t>(pixel) * sizeof(float);
  for (std::int64_t unit = rows.begin; unit < rows.end; ++unit) {
    const Row r = row_of(unit, s.out);
    const float* x = row_start(s.x, {r.n, r.block, pixel_inside<kReflected>(static_cast<int>(r.y) - s.pad_top, s.x.h)});
    float* out = row_start(s.out, r);
    const auto put = [&](int at) {
      memcpy(out + at * pixel, x + pixel_inside<kReflected>(at - s.pad_left, s.x.w) * pixel, pixel_bytes);
    };
    for (int at = 0; at < s.pad_left; ++at) put(at);
    memcpy(out + s.pad_left * pixel, x, pixel_bytes * static_cast<size_t>(s.x.w));
    for (int at = s.pad_left + s.x.w; at < s.out.w; ++at) put(at);
  }
}

}  // namespace powerlab::engine::POWERLAB_TIER
