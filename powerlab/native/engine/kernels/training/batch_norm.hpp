// Batch normalisation by the statistics of the batch (S. Ioffe and C. Szegedy, https://arxiv.org/abs/1502.03167), what
// it gives back, and sums over all pixels of a channel. Threads share channel blocks. Rows are summed in floats, and
// rows among each other in doubles, so that no sum is long.
#pragma once

#include "kernels/vec.hpp"

namespace powerlab::engine::POWERLAB_TIER {

// Two sums a channel over the pixels of one block.
struct ChannelSums {
  double first[kWidth], second[kWidth];
};

// Calls row(n, y) for each row of the images.
template <typename OfRow>
static inline void for_rows(const View& v, OfRow row) {
  for (std::int64_t n = 0; n < v.n; ++n) {
    for (std::int64_t y = 0; y < v.h; ++y) row(n, y);
  }
}

// Adds to the sums what pixel(column, first, second) adds to two vectors, for the pixels of one row.
template <typename OfPixel>
static inline void add_row(ChannelSums& sums, std::int64_t pixels, OfPixel pixel) {
  Vec first[2] = {}, second[2] = {};
  std::int64_t at = 0;
  for (; at + 2 <= pixels; at += 2) {
    pixel(at, first[0], second[0]);
    pixel(at + 1, first[1], second[1]);
  }
  if (at < pixels) pixel(at, first[0], second[0]);
  const Vec one = first[0] + first[1], two = second[0] + second[1];
  for (int lane = 0; lane < kWidth; ++lane) {
    sums.first[lane] += static_cast<double>(one[lane]);
    sums.second[lane] += static_cast<double>(two[lane]);
  }
}

static inline float* channel_of(const Strided& v, std::int64_t channel) {
  return static_cast<float*>(v.data) + channel * v.stride[0];
}

// out = activate((x - mean) / deviation * scale + shift), by the mean and variance of all pixels of a channel.
//
// operands, one number a channel each: written are the running mean and variance, the mean of the batch, and one over
// its deviation; read are scale, shift, and the running mean and variance before. alpha: added to the variance; beta:
// share of the running ones that is kept.
static void batch_norm(const Step& s, int thread, int threads) {
  const Range own = share(s.x.blocks, thread, threads);
  const double pixels = static_cast<double>(s.x.n) * s.x.h * s.x.w;
  for (std::int64_t block = own.begin; block < own.end; ++block) {
    const Vec pivot = load(row_start(s.x, {0, block, 0}));  // near the mean, so that squares do not cancel
    ChannelSums sums{};
    for_rows(s.x, [&](std::int64_t n, std::int64_t y) {
      const float* x = row_start(s.x, {n, block, y});
      add_row(sums, s.x.w, [&](std::int64_t at, Vec& first, Vec& second) {
        const Vec apart = load(x + at * kWidth) - pivot;
        first += apart;
        second += apart * apart;
      });
    });
    alignas(4 * kWidth) float scales[kWidth] = {}, shifts[kWidth] = {};
    for (int lane = 0; lane < kWidth && block * kWidth + lane < s.x.c; ++lane) {
      const std::int64_t c = block * kWidth + lane;
      const double moved = sums.first[lane] / pixels, square = sums.second[lane] / pixels - moved * moved;
      const double mean = static_cast<double>(pivot[lane]) + moved, variance = square > 0 ? square : 0;
      const double inverse = 1 / __builtin_sqrt(variance + static_cast<double>(s.alpha));
      const double kept = static_cast<double>(s.beta);
      *channel_of(s.operands[0], c) =
          static_cast<float>(kept * static_cast<double>(*channel_of(s.operands[6], c)) + (1 - kept) * mean);
      *channel_of(s.operands[1], c) =
          static_cast<float>(kept * static_cast<double>(*channel_of(s.operands[7], c)) + (1 - kept) * variance);
      *channel_of(s.operands[2], c) = static_cast<float>(mean);
      *channel_of(s.operands[3], c) = static_cast<float>(inverse);
      const double scale = static_cast<double>(*channel_of(s.operands[4], c)) * inverse;
      scales[lane] = static_cast<float>(scale);
      shifts[lane] = static_cast<float>(static_cast<double>(*channel_of(s.operands[5], c)) - mean * scale);
    }
    const Vec scale = load(scales), shift = load(shifts);
    for_rows(s.x, [&](std::int64_t n, std::int64_t y) {
      const float* x = row_start(s.x, {n, block, y});
      float* out = row_start(s.out, {n, block, y});
      for (std::int64_t at = 0; at < s.x.w; ++at) {
        store(out + at * kWidth, activate(load(x + at * kWidth) * scale + shift, s));
      }
    });
  }
}

// What a batch normalisation of x gives back for y, the gradient of its result: out, the gradient of x.
//
// operands, one number a channel each: written are the gradients of scale and shift; read are the scale, the batch's
// mean, and one over its deviation.
static void batch_norm_gradient(const Step& s, int thread, int threads) {
  const Range own = share(s.x.blocks, thread, threads);
  const double pixels = static_cast<double>(s.x.n) * s.x.h * s.x.w;
  for (std::int64_t block = own.begin; block < own.end; ++block) {
    alignas(4 * kWidth) float means[kWidth] = {}, steep[kWidth] = {}, bent[kWidth] = {}, level[kWidth] = {};
    const std::int64_t left = s.x.c - block * kWidth, lanes = left < kWidth ? left : kWidth;
    for (int lane = 0; lane < lanes; ++lane) means[lane] = *channel_of(s.operands[3], block * kWidth + lane);
    const Vec mean = load(means);
    ChannelSums sums{};
    for_rows(s.x, [&](std::int64_t n, std::int64_t y) {
      const float *x = row_start(s.x, {n, block, y}), *dy = row_start(s.y, {n, block, y});
      add_row(sums, s.x.w, [&](std::int64_t at, Vec& first, Vec& second) {
        const Vec gradient = load(dy + at * kWidth);
        first += gradient;
        second += gradient * (load(x + at * kWidth) - mean);
      });
    });
    for (int lane = 0; lane < lanes; ++lane) {
      const std::int64_t c = block * kWidth + lane;
      const double inverse = static_cast<double>(*channel_of(s.operands[4], c));
      const double scale = static_cast<double>(*channel_of(s.operands[2], c)) * inverse;
      *channel_of(s.operands[0], c) = static_cast<float>(sums.second[lane] * inverse);
      *channel_of(s.operands[1], c) = static_cast<float>(sums.first[lane]);
      steep[lane] = static_cast<float>(scale);
      bent[lane] = static_cast<float>(-scale * inverse * inverse * sums.second[lane] / pixels);
      level[lane] = static_cast<float>(-scale * sums.first[lane] / pixels);
    }
    const Vec of_gradient = load(steep), of_x = load(bent), of_both = load(level);
    for_rows(s.x, [&](std::int64_t n, std::int64_t y) {
      const float *x = row_start(s.x, {n, block, y}), *dy = row_start(s.y, {n, block, y});
      float* out = row_start(s.out, {n, block, y});
      for (std::int64_t at = 0; at < s.x.w; ++at) {
        const Vec gradient = load(dy + at * kWidth);
        store(out + at * kWidth, gradient * of_gradient + ((load(x + at * kWidth) - mean) * of_x + of_both));
      }
    });
  }
}

// The sum of all pixels of each channel of x. operands: the sums.
static void channel_sums(const Step& s, int thread, int threads) {
  const Range own = share(s.x.blocks, thread, threads);
  for (std::int64_t block = own.begin; block < own.end; ++block) {
    ChannelSums sums{};
    for_rows(s.x, [&](std::int64_t n, std::int64_t y) {
      const float* x = row_start(s.x, {n, block, y});
      add_row(sums, s.x.w, [&](std::int64_t at, Vec& first, Vec&) { first += load(x + at * kWidth); });
    });
    for (int lane = 0; lane < kWidth && block * kWidth + lane < s.x.c; ++lane) {
      *channel_of(s.operands[0], block * kWidth + lane) = static_cast<float>(sums.first[lane]);
    }
  }
}

}  // namespace powerlab::engine::POWERLAB_TIER
