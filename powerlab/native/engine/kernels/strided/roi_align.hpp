// Regions of interest (RoIAlign: K. He et al., https://arxiv.org/abs/1703.06870, section 3) of images in blocks: a
// sample takes its four pixels with one vector for each block of channels, and what is made has channels in planes.
#pragma once

#include <math.h>

#include "kernels/strided/strided.hpp"

namespace powerlab::engine::POWERLAB_TIER {

// Two neighbours along an axis and their weights; both zero outside the image.
struct Neighbours {
  std::int64_t low, high;
  float at_low, at_high;
};
static inline Neighbours neighbours(float at, std::int64_t size) {
  const float most = static_cast<float>(size);
  if (!(at >= -1.0f) || at > most) return {0, 0, 0.0f, 0.0f};
  if (at < 0) at = 0;
  const std::int64_t low = static_cast<std::int64_t>(at);
  if (low >= size - 1) return {size - 1, size - 1, 1.0f, 0.0f};
  const float part = at - static_cast<float>(low);
  return {low, low + 1, 1 - part, part};
}

// The samples of a region along one axis: as many in each bin. The first kKept are found once for all channels.
struct Samples {
  static constexpr std::int64_t kKept = 64;
  float start, step;
  std::int64_t each, size;
  Neighbours kept[kKept];

  Samples(float low, float high, std::int64_t bins, std::int64_t image, std::int64_t wanted, bool at_least_one)
      : start(low), size(image) {
    float length = high - low;
    if (at_least_one && length < 1) length = 1;
    step = length / static_cast<float>(bins);
    const float found = ceilf(step);
    each = wanted > 0 ? wanted : found > 0 ? static_cast<std::int64_t>(found) : 0;
    for (std::int64_t i = 0; i < bins * each && i < kKept; ++i) kept[i] = made(i);
  }

  Neighbours made(std::int64_t i) const {
    const float in_bin = (static_cast<float>(i % each) + 0.5f) * step / static_cast<float>(each);
    return neighbours(start + static_cast<float>(i / each) * step + in_bin, size);
  }
  Neighbours at(std::int64_t i) const { return i < kKept ? kept[i] : made(i); }
};

struct RoiRegion {
  Samples rows, columns;
  bool maxima;
};

constexpr int kBinsAtOnce = 16;

// A bin of `kBlocks` blocks of channels that begin at `from`.
template <int kBlocks>
static inline void align_bin(const RoiRegion& region, const Strided& x, const float* from, std::int64_t y,
                             std::int64_t column, float* to) {
  const std::int64_t down = region.rows.each, across = region.columns.each;
  Vec found[kBlocks] = {};
  for (std::int64_t i = 0; i < down; ++i) {
    const Neighbours a = region.rows.at(y * down + i);
    for (std::int64_t j = 0; j < across; ++j) {
      const Neighbours b = region.columns.at(column * across + j);
      const float *low = from + a.low * x.stride[2], *high = from + a.high * x.stride[2];
      const std::int64_t left = b.low * x.stride[3], right = b.high * x.stride[3];
      const float w[4] = {a.at_low * b.at_low, a.at_low * b.at_high, a.at_high * b.at_low, a.at_high * b.at_high};
      POWERLAB_UNROLL
      for (int k = 0; k < kBlocks; ++k) {
        const std::int64_t block = k * x.stride[1];
        const Vec p = w[0] * load(low + left + block), q = w[1] * load(low + right + block);
        const Vec r = w[2] * load(high + left + block), t = w[3] * load(high + right + block);
        if (!region.maxima) {
          found[k] += (p + q) + (r + t);
        } else {
          const Vec upper = p > q ? p : q, lower = r > t ? r : t, most = upper > lower ? upper : lower;
          found[k] = i == 0 && j == 0 ? most : (found[k] > most ? found[k] : most);
        }
      }
    }
  }
  const float samples = static_cast<float>(down * across > 0 && !region.maxima ? down * across : 1);
  POWERLAB_UNROLL
  for (int k = 0; k < kBlocks; ++k) store(to + k * kWidth, found[k] / samples);
}

// `kBlocks` blocks of channels of a region, of which `channels` are there; `to` is the first of them.
template <int kBlocks>
static void align_blocks(const RoiRegion& region, const Strided& out, const Strided& x, const float* from,
                         std::int64_t channels, float* to) {
  alignas(64) float bins[kBinsAtOnce][kBlocks * kWidth];
  for (std::int64_t y = 0; y < out.size[2]; ++y) {
    for (std::int64_t first = 0; first < out.size[3]; first += kBinsAtOnce) {
      const std::int64_t left = out.size[3] - first, count = left < kBinsAtOnce ? left : kBinsAtOnce;
      for (std::int64_t i = 0; i < count; ++i) align_bin<kBlocks>(region, x, from, y, first + i, bins[i]);
      float* row = to + y * out.stride[2] + first;
      for (std::int64_t c = 0; c < channels; ++c) {
        for (std::int64_t i = 0; i < count; ++i) row[c * out.stride[1] + i] = bins[i][c];
      }
    }
  }
}

// Operands: out (regions, C, rows, columns), columns side by side, x (N, blocks, H, W, channels of a block), regions
// (R, 4), the image of each. Numbers: samples an axis of a bin or 0, 1 for maxima, 1 where regions begin in the middle
// of pixels. alpha: pixels of x a unit of regions.
static void roi_align(const Step& s, int thread, int threads) {
  constexpr std::int64_t kGroup = 4;
  const Strided &out = s.operands[0], &x = s.operands[1], &regions = s.operands[2], &images = s.operands[3];
  const std::int64_t groups = (x.size[1] + kGroup - 1) / kGroup;
  const Range units = share(out.size[0] * groups, thread, threads);
  const float shift = s.numbers[2] ? 0.5f : 0.0f;
  const float* edges = static_cast<const float*>(regions.data);
  for (std::int64_t r = units.begin / groups; r * groups < units.end; ++r) {
    const std::int64_t image = static_cast<const std::int64_t*>(images.data)[r * images.stride[0]];
    if (image < 0 || image >= x.size[0]) {
      set_fault(s.fault, kIndexOutside);
      continue;
    }
    float edge[4];
    for (int i = 0; i < 4; ++i) edge[i] = edges[r * regions.stride[0] + i * regions.stride[1]] * s.alpha - shift;
    const bool at_least_one = !s.numbers[2];
    const RoiRegion region = {{edge[1], edge[3], out.size[2], x.size[2], s.numbers[0], at_least_one},
                              {edge[0], edge[2], out.size[3], x.size[3], s.numbers[0], at_least_one},
                              s.numbers[1] != 0};
    const std::int64_t begin = units.begin > r * groups ? units.begin - r * groups : 0;
    const std::int64_t end = units.end < (r + 1) * groups ? units.end - r * groups : groups;
    for (std::int64_t block = begin * kGroup; block < end * kGroup && block < x.size[1];) {
      const float* from = static_cast<const float*>(x.data) + image * x.stride[0] + block * x.stride[1];
      const std::int64_t first = block * kWidth, left = out.size[1] - first;
      float* to = static_cast<float*>(out.data) + r * out.stride[0] + first * out.stride[1];
      if (x.size[1] - block >= kGroup) {
        align_blocks<kGroup>(region, out, x, from, left < kGroup * kWidth ? left : kGroup * kWidth, to);
        block += kGroup;
      } else {
        align_blocks<1>(region, out, x, from, left < kWidth ? left : kWidth, to);
        ++block;
      }
    }
  }
}

}  // namespace powerlab::engine::POWERLAB_TIER
