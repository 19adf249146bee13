// Depthwise convolution of floats, or of 16-bit floats, whose result is 16-bit floats, for the convolutions in them
// that read it: part of a plane at a time is computed as conv_depthwise.hpp does, into memory that the nearest cache
// holds, and rounded there.
#pragma once

#include <algorithm>
#include <type_traits>

#include "kernels/convolution/conv_depthwise.hpp"
#include "kernels/pairs/words.hpp"

namespace powerlab::engine::POWERLAB_TIER {

constexpr std::int64_t kNearFloats = 4096;  // 16 KB: half of the smallest nearest cache is left to what is read

struct NarrowPixels {
  static constexpr std::int64_t kApart = kBlockWords;
  static inline Vec read(const float* pixel) { return load_narrow(pixel); }
};

// Where the plane of a vector of channels begins in image n of x, which holds blocks of X.
template <class X>
static inline const float* plane_of_vector(const View& x, std::int64_t n, std::int64_t block, int vector) {
  if constexpr (std::is_same_v<X, FloatPixels>) return row_start(x, {n, block * kBlockVectors + vector, 0});
  return row_start(x, {n, block, 0}) + vector * (kWidth / 2);
}

// `rows` x `columns` pixels of a vector of channels, of which `lanes` are there.
static inline void narrow_near(const float* near, float* out, std::int64_t out_row, std::int64_t rows,
                               std::int64_t columns, int lanes) {
  for (std::int64_t y = 0; y < rows; ++y, out += out_row) {
    for (std::int64_t i = 0; i < columns; ++i, near += kWidth) {
      store_narrow(out + i * kBlockWords, lanes == kWidth ? load(near) : load_lanes(near, lanes));
    }
  }
}

// x in blocks of kWidth floats or as out, out in blocks of 16-bit floats, filled up with zeros; weights as
// conv_depthwise has them.
template <class X>
static void conv_depthwise_narrow(const Step& s, int thread, int threads) {
  alignas(4 * kWidth) float near[kNearFloats];
  const DepthwiseKind& kind = depthwise_kind<X>(s);
  const std::int64_t pixels = kNearFloats / kWidth, columns = std::min<std::int64_t>(s.out.w, pixels / kind.rows);
  const std::int64_t most_rows = pixels / columns / kind.rows * kind.rows;
  Step part = s;
  const Range units = row_share(s.out, thread, threads);
  for (std::int64_t unit = units.begin; unit < units.end;) {
    const Row r = row_of(unit, s.out);
    const std::int64_t count = std::min({units.end - unit, s.out.h - r.y, most_rows});
    for (int vector = 0; vector < kBlockVectors; ++vector) {
      const std::int64_t block = r.block * kBlockVectors + vector, left = s.x.c - block * kWidth;
      const int lanes = static_cast<int>(std::clamp<std::int64_t>(left, 0, kWidth));
      for (std::int64_t begin = 0; begin < s.out.w; begin += columns) {
        part.out.w = static_cast<std::int32_t>(std::min(columns, s.out.w - begin));
        part.out.row = part.out.w * kWidth;
        if (lanes > 0) {
          const float* x = plane_of_vector<X>(s.x, r.n, r.block, vector) - s.pad_top * s.x.row +
                           (begin * s.stride_w - s.pad_left) * X::kApart;
          depthwise_rows(part, kind, {x, s.x.row, r.y * s.stride_h, INT32_MAX}, block, count, near, nullptr);
        }
        float* out = row_start(s.out, r) + begin * kBlockWords + vector * (kWidth / 2);
        narrow_near(near, out, s.out.row, count, part.out.w, lanes);
      }
    }
    unit += count;
  }
}

}  // namespace powerlab::engine::POWERLAB_TIER
