// Normalisation of groups of channels by their own mean and variance: instance normalisation (D. Ulyanov et al.,
// https://arxiv.org/abs/1607.08022) where each channel is a group, and group normalisation (Y. Wu, K. He,
// https://arxiv.org/abs/1803.08494). The variance is that of differences from the mean, so that it loses no digits.
#pragma once

#include <math.h>

#include "kernels/strided/strided.hpp"

namespace powerlab::engine::POWERLAB_TIER {

constexpr std::int64_t kSummedAtOnce = 4096;  // in float; pieces are summed in double

constexpr int kNormSums = 4;

// The sum of x - less, or of its squares.
template <bool kSquared>
static double sum_of(const float* x, std::int64_t count, float less) {
  double sum = 0;
  for (std::int64_t first = 0; first < count; first += kSummedAtOnce) {
    const std::int64_t end = count - first < kSummedAtOnce ? count : first + kSummedAtOnce;
    Vec parts[kNormSums] = {};  // several, which do not wait for one another
    std::int64_t i = first;
    for (; i + kNormSums * kWidth <= end; i += kNormSums * kWidth) {
      POWERLAB_UNROLL
      for (int k = 0; k < kNormSums; ++k) {
        const Vec v = load_unaligned(x + i + k * kWidth) - broadcast(less);
        parts[k] += kSquared ? v * v : v;
      }
    }
    Vec part = parts[0];
    for (int k = 1; k < kNormSums; ++k) part += parts[k];
    float lanes[kWidth] __attribute__((aligned(4 * kWidth)));
    store(lanes, part);
    for (const float lane : lanes) sum += static_cast<double>(lane);
    for (; i < end; ++i) {
      const double v = static_cast<double>(x[i] - less);
      sum += kSquared ? v * v : v;
    }
  }
  return sum;
}

// Operands: out and x (N, groups, channels of a group, pixels), what follows on each other but for images; scale and
// shift, a number a channel (groups, channels of a group). offset is added to the variance; the result is activated.
static void group_norm(const Step& s, int thread, int threads) {
  const float slope = s.slope, low = s.low, high = s.high;
  const Strided &out = s.operands[0], &x = s.operands[1], &scale = s.operands[2], &shift = s.operands[3];
  const Range units = share(x.size[0] * x.size[1], thread, threads);
  const std::int64_t channels = x.size[2], pixels = x.size[3], count = channels * pixels;
  for (std::int64_t unit = units.begin; unit < units.end; ++unit) {
    const std::int64_t n = unit / x.size[1], group = unit % x.size[1];
    const float* from = static_cast<const float*>(x.data) + n * x.stride[0] + group * x.stride[1];
    float* to = static_cast<float*>(out.data) + n * out.stride[0] + group * out.stride[1];
    const float mean = static_cast<float>(sum_of<false>(from, count, 0.0f) / static_cast<double>(count));
    const double variance = sum_of<true>(from, count, mean) / static_cast<double>(count);
    const float factor = static_cast<float>(1 / sqrt(variance + static_cast<double>(s.offset)));
    for (std::int64_t c = 0; c < channels; ++c) {
      const auto of = [&](const Strided& t) {
        return static_cast<const float*>(t.data)[group * t.stride[0] + c * t.stride[1]];
      };
      const float times = of(scale) * factor, plus = of(shift);
      const float* in = from + c * pixels;
      float* result = to + c * pixels;
      for (std::int64_t i = 0; i < pixels; ++i) {
        const float v = (in[i] - mean) * times + plus, sloped = v < 0 ? v * slope : v;
        const float least = sloped < low ? low : sloped;
        result[i] = least > high ? high : least;
      }
    }
  }
}

// The sum of x - less over some blocks of an image, or of its squares.
template <bool kSquared>
static double sum_of_blocks(const View& x, std::int64_t n, Range blocks, float less) {
  double sum = 0;
  for (std::int64_t block = blocks.begin; block < blocks.end; ++block) {
    for (std::int64_t y = 0; y < x.h; ++y) {
      sum += sum_of<kSquared>(row_start(x, {n, block, y}), x.w * x.pixel, less);
    }
  }
  return sum;
}

// The same in blocks, each group being some of them: weights, bias: scale and shift, one float a channel; alpha is
// added to the variance. Threads share out the blocks, and each that has a part of a group adds up all of it. Results
// are activated.
static void group_norm_blocks(const Step& s, int thread, int threads) {
  const std::int64_t group_blocks = s.x.blocks / s.groups;
  const double count = static_cast<double>(group_blocks * kWidth) * s.x.h * s.x.w;
  const Range own = share(static_cast<std::int64_t>(s.x.n) * s.x.blocks, thread, threads);
  for (std::int64_t unit = own.begin; unit < own.end;) {
    const std::int64_t n = unit / s.x.blocks, block = unit % s.x.blocks, first = block / group_blocks * group_blocks;
    const Range group{first, first + group_blocks};
    const std::int64_t left = own.end - unit, end = left < group.end - block ? block + left : group.end;
    const float mean = static_cast<float>(sum_of_blocks<false>(s.x, n, group, 0.0f) / count);
    const double variance = sum_of_blocks<true>(s.x, n, group, mean) / count;
    const float factor = static_cast<float>(1 / sqrt(variance + static_cast<double>(s.alpha)));
    for (std::int64_t b = block; b < end; ++b) {
      const Vec times = load(s.weights + b * kWidth) * factor, plus = load(s.bias + b * kWidth);
      for (std::int64_t y = 0; y < s.x.h; ++y) {
        const float* x = row_start(s.x, {n, b, y});
        float* out = row_start(s.out, {n, b, y});
        for (std::int64_t i = 0; i < s.x.w * kWidth; i += kWidth) {
          store(out + i, activate((load(x + i) - broadcast(mean)) * times + plus, s));
        }
      }
    }
    unit += end - block;
  }
}

// The sums of x - less, or of its squares, of each channel of a block, over so many pixels.
template <bool kSquared>
static void sums_of_channels(const View& x, Row r, Vec less, double (&sums)[kWidth]) {
  for (double& sum : sums) sum = 0;
  for (r.y = 0; r.y < x.h; ++r.y) {
    const float* row = row_start(x, r);
    Vec parts[kNormSums] = {};
    const auto add = [&](int k, int at) {
      const Vec v = load(row + static_cast<std::int64_t>(at) * kWidth) - less;
      parts[k] += kSquared ? v * v : v;
    };
    int at = 0;
    for (; at + kNormSums <= x.w; at += kNormSums) {
      POWERLAB_UNROLL
      for (int k = 0; k < kNormSums; ++k) add(k, at + k);
    }
    for (; at < x.w; ++at) add(0, at);
    Vec part = parts[0];
    for (int k = 1; k < kNormSums; ++k) part += parts[k];
    for (int lane = 0; lane < kWidth; ++lane) sums[lane] += static_cast<double>(part[lane]);
  }
}

// The same where each channel is a group. Threads share out the blocks.
static void instance_norm(const Step& s, int thread, int threads) {
  const double count = static_cast<double>(s.x.h) * s.x.w;
  const Range own = share(static_cast<std::int64_t>(s.x.n) * s.x.blocks, thread, threads);
  for (std::int64_t unit = own.begin; unit < own.end; ++unit) {
    Row r{unit / s.x.blocks, unit % s.x.blocks, 0};
    double sums[kWidth];
    Vec mean{}, factor{};
    sums_of_channels<false>(s.x, r, mean, sums);
    for (int lane = 0; lane < kWidth; ++lane) mean[lane] = static_cast<float>(sums[lane] / count);
    sums_of_channels<true>(s.x, r, mean, sums);
    for (int lane = 0; lane < kWidth; ++lane) {
      factor[lane] = static_cast<float>(1 / sqrt(sums[lane] / count + static_cast<double>(s.alpha)));
    }
    const Vec times = load(s.weights + r.block * kWidth) * factor, plus = load(s.bias + r.block * kWidth);
    for (r.y = 0; r.y < s.x.h; ++r.y) {
      const float* x = row_start(s.x, r);
      float* out = row_start(s.out, r);
      for (std::int64_t i = 0; i < s.x.w * static_cast<std::int64_t>(kWidth); i += kWidth) {
        store(out + i, activate((load(x + i) - mean) * times + plus, s));
      }
    }
  }
}

}  // namespace powerlab::engine::POWERLAB_TIER
