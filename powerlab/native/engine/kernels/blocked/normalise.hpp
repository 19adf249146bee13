// Local response normalisation (Krizhevsky et al., 2012, section 3.3) in the blocked layout.
#pragma once

#include <math.h>

#include "kernels/vec.hpp"

namespace powerlab::engine::POWERLAB_TIER {

// A channel block with zeros in the channels that fill up the last one.
static inline Vec inside_channels(const View& x, Vec v, int block) {
  if ((block + 1) * kWidth <= x.c) return v;
  float lanes[kWidth] __attribute__((aligned(4 * kWidth)));
  store(lanes, v);
  for (int i = x.c - block * kWidth; i < kWidth; ++i) lanes[i] = 0.0f;
  return load(lanes);
}

// Squares of one channel block at a pixel; zero outside the tensor and in the channels that fill up the last block.
static inline Vec square_at(const View& x, const float* pixel, int block) {
  if (block >= x.blocks) return Vec{};
  const Vec v = load(pixel + block * x.plane);
  return inside_channels(x, v * v, block);
}

// Raise each lane to -beta; the usual 0.75 without a call to pow.
static inline Vec power(Vec v, float beta) {
  float lanes[kWidth] __attribute__((aligned(4 * kWidth)));
  store(lanes, v);
  if (beta == 0.75f) {
    for (int i = 0; i < kWidth; ++i) {
      const float root = sqrtf(lanes[i]);
      lanes[i] = 1.0f / (root * sqrtf(root));
    }
  } else {
    for (int i = 0; i < kWidth; ++i) lanes[i] = powf(lanes[i], -beta);
  }
  return load(lanes);
}

// Pixels taken together: what one stored is read again when it has long arrived in the cache.
constexpr int kLrnPixels = 16;

// The squares of the block before, of this one and of the next, for some pixels.
struct LrnSquares {
  alignas(4 * kWidth) float at[kLrnPixels][3 * kWidth];
};

// out = x * (offset + alpha / size * sum of the squares of the size channels around)^-beta
// size is at most 2 v + 1.
static void lrn(const Step& s, int thread, int threads) {
  const Range rows = share(static_cast<std::int64_t>(s.out.n) * s.out.h, thread, threads);
  const int before = (s.size - 1) / 2;
  const float alpha = s.alpha / static_cast<float>(s.size);
  for (std::int64_t unit = rows.begin; unit < rows.end; ++unit) {
    const Row r{unit / s.out.h, 0, unit % s.out.h};
    for (int first = 0; first < s.out.w; first += kLrnPixels) {
      const int count = s.out.w - first < kLrnPixels ? s.out.w - first : kLrnPixels;
      const float* x = row_start(s.x, r) + first * static_cast<std::int64_t>(kWidth);
      float* out = row_start(s.out, r) + first * static_cast<std::int64_t>(kWidth);
      LrnSquares squares;
      for (int i = 0; i < count; ++i) {
        store(squares.at[i] + kWidth, Vec{});
        store(squares.at[i] + 2 * kWidth, square_at(s.x, x + i * kWidth, 0));
      }
      for (int block = 0; block < s.x.blocks; ++block) {
        for (int i = 0; i < count; ++i) {
          float* at = squares.at[i];
          store(at, load(at + kWidth));
          store(at + kWidth, load(at + 2 * kWidth));
          store(at + 2 * kWidth, square_at(s.x, x + i * kWidth, block + 1));
        }
        for (int i = 0; i < count; ++i) {
          const float* lowest = squares.at[i] + kWidth - before;
          Vec sum{};
          for (int d = 0; d < s.size; ++d) sum += load_unaligned(lowest + d);
          const Vec base = broadcast(s.offset) + sum * alpha;
          store(out + block * s.out.plane + i * kWidth, load(x + block * s.x.plane + i * kWidth) * power(base, s.beta));
        }
      }
    }
  }
}

}  // namespace powerlab::engine::POWERLAB_TIER
