// What local response normalisation gives back, in the blocked layout: with s = offset + alpha / size * sum of squares,
//   dx = dy * s^-beta - 2 alpha beta / size * x * sum of (dy * x * s^(-beta - 1)),
// the last sum over the channels in whose windows the channel lies. x is what was normalised, y the gradient.
#pragma once

#include "kernels/blocked/normalise.hpp"

namespace powerlab::engine::POWERLAB_TIER {

// Some numbers of the block before, of this one and of the next, for some pixels.
struct LrnBlocks {
  alignas(4 * kWidth) float at[kLrnPixels][3 * kWidth] = {};
  void push(int pixel, Vec next) {
    float* from = at[pixel];
    store(from, load(from + kWidth));
    store(from + kWidth, load(from + 2 * kWidth));
    store(from + 2 * kWidth, next);
  }
  // The sum of `size` channels, from `before` channels before each of this block's on.
  Vec around(int pixel, int before, int size) const {
    const float* lowest = at[pixel] + kWidth - before;
    Vec sum{};
    for (int d = 0; d < size; ++d) sum += load_unaligned(lowest + d);
    return sum;
  }
};

// size is at most 2 v + 1.
static void lrn_gradient(const Step& s, int thread, int threads) {
  const Range rows = share(static_cast<std::int64_t>(s.out.n) * s.out.h, thread, threads);
  const int before = (s.size - 1) / 2, behind = s.size / 2;
  const float alpha = s.alpha / static_cast<float>(s.size), common = 2 * alpha * s.beta;
  for (std::int64_t unit = rows.begin; unit < rows.end; ++unit) {
    const Row r{unit / s.out.h, 0, unit % s.out.h};
    for (int first = 0; first < s.out.w; first += kLrnPixels) {
      const int count = s.out.w - first < kLrnPixels ? s.out.w - first : kLrnPixels;
      const std::int64_t at = first * static_cast<std::int64_t>(kWidth);
      const float *x = row_start(s.x, r) + at, *dy = row_start(s.y, r) + at;
      float* out = row_start(s.out, r) + at;
      LrnBlocks squares, shares;
      alignas(4 * kWidth) float powers[kLrnPixels][2 * kWidth];  // of the block before, and of this one
      for (int i = 0; i < count; ++i) squares.push(i, square_at(s.x, x + i * kWidth, 0));
      for (int block = 0; block <= s.x.blocks; ++block) {  // the result is one block behind
        for (int i = 0; i < count; ++i) squares.push(i, square_at(s.x, x + i * kWidth, block + 1));
        for (int i = 0; i < count; ++i) {
          store(powers[i], load(powers[i] + kWidth));
          if (block == s.x.blocks) {
            shares.push(i, Vec{});
            continue;
          }
          const Vec base = broadcast(s.offset) + squares.around(i, before, s.size) * alpha;
          const Vec raised = power(base, s.beta);
          store(powers[i] + kWidth, raised);
          const Vec made = load(x + block * s.x.plane + i * kWidth) * raised;
          shares.push(i, inside_channels(s.x, load(dy + block * s.y.plane + i * kWidth) * made / base, block));
        }
        if (block == 0) continue;
        for (int i = 0; i < count; ++i) {
          const Vec direct = load(dy + (block - 1) * s.y.plane + i * kWidth) * load(powers[i]);
          const Vec of_all = shares.around(i, behind, s.size) * common;
          store(out + (block - 1) * s.out.plane + i * kWidth,
                direct - load(x + (block - 1) * s.x.plane + i * kWidth) * of_all);
        }
      }
    }
  }
}

}  // namespace powerlab::engine::POWERLAB_TIER
