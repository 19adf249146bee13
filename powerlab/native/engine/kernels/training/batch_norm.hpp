// Batch normalisation by the statistics of the batch (S. Ioffe and C. Szegedy, https://arxiv.org/abs/1502.03167), what
// it gives back, and sums over all pixels of a channel. Threads share channel blocks. Rows are summed in floats, and
// rows among each other in doubles, so that no sum is long.
#pragma once

#include "kernels/training/gradients.hpp"

namespace powerlab::engine::POWERLAB_TIER {

constexpr int kNormOperands = 6;  // of a gradient, that are one number a channel

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

// What a batch normalisation multiplies a block's pixels with, and adds. Backwards the mean and the deviation are the
// rounded ones, so that a number may be on the other side of a kink where its last digit decides.
struct NormBlock {
  alignas(4 * kWidth) float scales[kWidth] = {}, shifts[kWidth] = {};
};
static inline void put_channel(NormBlock& block, std::int64_t lane, float scale, float shift, double mean,
                               double inverse) {
  const double steep = static_cast<double>(scale) * inverse;
  block.scales[lane] = static_cast<float>(steep);
  block.shifts[lane] = static_cast<float>(static_cast<double>(shift) - mean * steep);
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
    NormBlock norm;
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
      put_channel(norm, lane, *channel_of(s.operands[4], c), *channel_of(s.operands[5], c), mean, inverse);
    }
    const Vec scale = load(norm.scales), shift = load(norm.shifts);
    for_rows(s.x, [&](std::int64_t n, std::int64_t y) {
      const float* x = row_start(s.x, {n, block, y});
      float* out = row_start(s.out, {n, block, y});
      for (std::int64_t at = 0; at < s.x.w; ++at) {
        store(out + at * kWidth, activate(load(x + at * kWidth) * scale + shift, s));
      }
    });
  }
}

// The gradient of what the normalisation itself made, from that of its result: `Activates` says whether these differ.
// What it made is computed again, from what is read anyway.
template <bool Activates>
static inline Vec gradient_of_norm(Vec gradient, Vec x, Vec scale, Vec shift, const Step& s) {
  if constexpr (!Activates) return gradient;
  return activation_gradient(activate(x * scale + shift, s), gradient, s);
}

template <bool Activates>
static void norm_gradient(const Step& s, int thread, int threads) {
  const Range own = share(s.x.blocks, thread, threads);
  const double pixels = static_cast<double>(s.x.n) * s.x.h * s.x.w;
  const Strided* summand = s.operand_count > kNormOperands ? &s.operands[kNormOperands] : nullptr;
  for (std::int64_t block = own.begin; block < own.end; ++block) {
    alignas(4 * kWidth) float means[kWidth] = {}, steep[kWidth] = {}, bent[kWidth] = {}, level[kWidth] = {};
    const std::int64_t left = s.x.c - block * kWidth, lanes = left < kWidth ? left : kWidth;
    NormBlock norm;
    for (int lane = 0; lane < lanes; ++lane) {
      const std::int64_t c = block * kWidth + lane;
      means[lane] = *channel_of(s.operands[4], c);
      put_channel(norm, lane, *channel_of(s.operands[2], c), *channel_of(s.operands[3], c),
                  static_cast<double>(means[lane]), static_cast<double>(*channel_of(s.operands[5], c)));
    }
    const Vec mean = load(means), scales = load(norm.scales), shifts = load(norm.shifts);
    ChannelSums sums{};
    for_rows(s.x, [&](std::int64_t n, std::int64_t y) {
      const float *x = row_start(s.x, {n, block, y}), *dy = row_start(s.y, {n, block, y});
      add_row(sums, s.x.w, [&](std::int64_t at, Vec& first, Vec& second) {
        const Vec v = load(x + at * kWidth);
        const Vec gradient = gradient_of_norm<Activates>(load(dy + at * kWidth), v, scales, shifts, s);
        first += gradient;
        second += gradient * (v - mean);
      });
    });
    for (int lane = 0; lane < lanes; ++lane) {
      const std::int64_t c = block * kWidth + lane;
      const double inverse = static_cast<double>(*channel_of(s.operands[5], c));
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
      const auto gradient_at = [&](std::int64_t at) {
        const Vec v = load(x + at * kWidth);
        const Vec gradient = gradient_of_norm<Activates>(load(dy + at * kWidth), v, scales, shifts, s);
        return gradient * of_gradient + ((v - mean) * of_x + of_both);
      };
      if (summand) {
        const float* more = static_cast<const float*>(summand->data) + n * summand->stride[0] +
                            block * summand->stride[1] + y * summand->stride[2];
        for (std::int64_t at = 0; at < s.x.w; ++at) {
          store(out + at * kWidth, gradient_at(at) + load(more + at * kWidth));
        }
      } else {
        for (std::int64_t at = 0; at < s.x.w; ++at) store(out + at * kWidth, gradient_at(at));
      }
    });
  }
}

// What a batch normalisation of x gives back for y, the gradient of its activated result: out, the gradient of x.
//
// operands, one number a channel each: written are the gradients of scale and shift; read are the scale, the shift, the
// batch's mean, and one over its deviation. One more, if there is one, is added to out: [image][block][row][pixel and
// channel].
static void batch_norm_gradient(const Step& s, int thread, int threads) {
  const bool open = s.slope == 1 && s.low == -__builtin_inff() && s.high == __builtin_inff();
  (open ? norm_gradient<false> : norm_gradient<true>)(s, thread, threads);
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
