// Pixels taken from anywhere in an image: regions of interest (RoIAlign: K. He et al.,
// https://arxiv.org/abs/1703.06870, section 3) and grids of coordinates (spatial transformers: M. Jaderberg et al.,
// https://arxiv.org/abs/1506.02025), as general tensors.
#pragma once

#include <math.h>

#include "kernels/strided/windows_strided.hpp"

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

// The samples of one bin along an axis.
struct Bins {
  float start, step;
  std::int64_t samples;
};
static inline Bins bins_of(float low, float high, std::int64_t count, std::int64_t samples, bool at_least_one) {
  float length = high - low;
  if (at_least_one && length < 1) length = 1;
  const float step = length / static_cast<float>(count);
  const float wanted = ceilf(step);
  return {low, step, samples > 0 ? samples : wanted > 0 ? static_cast<std::int64_t>(wanted) : 0};
}
static inline float sample_at(const Bins& bins, std::int64_t bin, std::int64_t i) {
  return bins.start + static_cast<float>(bin) * bins.step +
         (static_cast<float>(i) + 0.5f) * bins.step / static_cast<float>(bins.samples);
}

// A region of interest: its bins, and the neighbours of its samples along a row, which all rows and channels have.
struct Region {
  static constexpr std::int64_t kSamples = 128;
  Bins rows, columns;
  std::int64_t samples;  // along a row; no more than kSamples are kept
  Neighbours kept[kSamples];

  Region(const float* edge, const Strided& out, const Strided& x, const std::int64_t* k)
      : rows(bins_of(edge[1], edge[3], out.size[2], k[0], !k[2])),
        columns(bins_of(edge[0], edge[2], out.size[3], k[0], !k[2])),
        samples(out.size[3] * columns.samples) {
    if (samples > kSamples) return;
    for (std::int64_t i = 0; i < samples; ++i) kept[i] = made(i, x.size[3]);
  }

  Neighbours made(std::int64_t i, std::int64_t width) const {
    return neighbours(sample_at(columns, i / columns.samples, i % columns.samples), width);
  }
};

// One channel of a region.
static inline void align_channel(const Region& region, const Strided& out, const Strided& x, bool maxima,
                                 const float* from, float* to) {
  const std::int64_t each = region.columns.samples, of_bin = region.rows.samples * each;
  const bool kept = region.samples <= Region::kSamples;
  for (std::int64_t y = 0; y < out.size[2]; ++y, to += out.stride[2]) {
    for (std::int64_t column = 0; column < out.size[3]; ++column) to[column * out.stride[3]] = 0;
    for (std::int64_t i = 0; i < region.rows.samples; ++i) {
      const Neighbours a = neighbours(sample_at(region.rows, y, i), x.size[2]);
      const float *low = from + a.low * x.stride[2], *high = from + a.high * x.stride[2];
      std::int64_t sample = 0;
      for (std::int64_t column = 0; column < out.size[3]; ++column) {
        float found = to[column * out.stride[3]];
        for (std::int64_t j = 0; j < each; ++j, ++sample) {
          const Neighbours b = kept ? region.kept[sample] : region.made(sample, x.size[3]);
          const std::int64_t left = b.low * x.stride[3], right = b.high * x.stride[3];
          const float p = a.at_low * b.at_low * low[left], q = a.at_low * b.at_high * low[right];
          const float r = a.at_high * b.at_low * high[left], t = a.at_high * b.at_high * high[right];
          if (maxima) {
            float most = p > q ? p : q;
            most = r > most ? r : most;
            most = t > most ? t : most;
            found = (i == 0 && j == 0) || most > found ? most : found;
          } else {
            found += p + q + r + t;
          }
        }
        to[column * out.stride[3]] = found;
      }
    }
    if (maxima) continue;
    const float samples = static_cast<float>(of_bin > 0 ? of_bin : 1);
    for (std::int64_t column = 0; column < out.size[3]; ++column) to[column * out.stride[3]] /= samples;
  }
}

// Operands: out (regions, C, rows, columns), x (N, C, H, W), regions (R, 4), the image of each, numbers: samples an
// axis of a bin or 0, 1 for maxima, 1 where regions begin in the middle of pixels. alpha: pixels of x a unit of
// regions.
static void roi_align(const Step& s, int thread, int threads) {
  const Strided &out = s.operands[0], &x = s.operands[1], &regions = s.operands[2], &images = s.operands[3];
  const std::int64_t* k = static_cast<const std::int64_t*>(s.operands[4].data);
  const Range units = share(out.size[0] * out.size[1], thread, threads);
  const float shift = k[2] ? 0.5f : 0.0f;
  for (std::int64_t unit = units.begin; unit < units.end;) {
    const std::int64_t r = unit / out.size[1], next = (r + 1) * out.size[1];
    const std::int64_t begin = unit % out.size[1], end = begin + (next < units.end ? next : units.end) - unit;
    unit += end - begin;
    const std::int64_t image = static_cast<const std::int64_t*>(images.data)[r * images.stride[0]];
    if (image < 0 || image >= x.size[0]) {
      set_fault(s.fault, kIndexOutside);
      continue;
    }
    float edge[4];
    for (int i = 0; i < 4; ++i) {
      edge[i] =
          static_cast<const float*>(regions.data)[r * regions.stride[0] + i * regions.stride[1]] * s.alpha - shift;
    }
    const Region region(edge, out, x, k);
    for (std::int64_t c = begin; c < end; ++c) {
      align_channel(region, out, x, k[1] != 0,
                    static_cast<const float*>(x.data) + image * x.stride[0] + c * x.stride[1],
                    static_cast<float*>(out.data) + r * out.stride[0] + c * out.stride[1]);
    }
  }
}

enum Sampling : std::int64_t { kNearest, kLinear, kCubic };
enum Outside : std::int64_t { kZeros, kBorder, kReflection };

// Back into [low, high], mirrored at both ends as often as needed.
static inline float reflected(float at, float low, float high) {
  const float range = high - low;
  if (range <= 0) return low;
  const float away = at < low ? low - at : at > high ? at - high : 0.0f;
  if (away == 0) return at;
  const float whole = floorf(away / range), rest = away - whole * range;
  const bool even = fmodf(whole, 2.0f) == 0;
  return (at < low) == even ? low + rest : high - rest;
}

// The pixels along an axis of which a coordinate is made: places inside the image, and weights.
struct Along {
  std::int64_t place[4];
  float weight[4];
  int count;
};
static inline Along along_axis(float at, std::int64_t size, const std::int64_t* k) {
  const float most = static_cast<float>(size);
  at = k[2] ? (at + 1) / 2 * (most - 1) : ((at + 1) * most - 1) / 2;
  const float low = k[2] ? 0.0f : -0.5f, high = k[2] ? most - 1 : most - 0.5f;
  if (k[0] == kNearest) at = nearbyintf(at);
  if (k[0] != kCubic && (at < low || at > high)) {  // cubic weights are those of where the coordinate was asked for
    if (k[1] == kBorder) at = at < 0 ? 0.0f : at > most - 1 ? most - 1 : at;
    if (k[1] == kReflection) at = reflected(at, low, high);
  }
  Along found{};
  if (!(at > -1e9f && at < 1e9f)) return found;  // nowhere near the image, or not a number
  const float base = k[0] == kNearest ? at : floorf(at), part = at - base;
  constexpr float kA = -0.75f;
  float weights[4] = {1, 0, 0, 0};
  int first = 0;
  found.count = 1;
  if (k[0] == kLinear) {
    found.count = 2;
    weights[0] = 1 - part;
    weights[1] = part;
  } else if (k[0] == kCubic) {
    found.count = 4;
    first = -1;
    for (int i = 0; i < 4; ++i) {
      const float d = fabsf(part - static_cast<float>(i - 1));
      weights[i] = d <= 1 ? ((kA + 2) * d - (kA + 3)) * d * d + 1 : ((kA * d - 5 * kA) * d + 8 * kA) * d - 4 * kA;
    }
  }
  for (int i = 0; i < found.count; ++i) {
    std::int64_t place = static_cast<std::int64_t>(base) + first + i;
    float weight = weights[i];
    if (place < 0 || place >= size) {
      if (k[1] == kZeros) weight = 0;
      const float back = k[1] == kReflection ? reflected(static_cast<float>(place), low, high) : 0.0f;
      if (k[1] == kReflection) place = static_cast<std::int64_t>(back);
      place = place < 0 ? 0 : place >= size ? size - 1 : place;
    }
    found.place[i] = place;
    found.weight[i] = weight;
  }
  return found;
}

// Operands: out (N, C, D', H', W'), x (N, C, D, H, W), grid (N, D', H', W', axes), numbers: a Sampling, an Outside, 1
// where -1 and 1 are the middles of the outermost pixels. Coordinates stand in the order of columns, rows, planes.
static void grid_sample(const Step& s, int thread, int threads) {
  const Strided &out = s.operands[0], &x = s.operands[1], &grid = s.operands[2];
  const std::int64_t* k = static_cast<const std::int64_t*>(s.operands[3].data);
  const std::int64_t axes = grid.size[4];
  const Range pixels = share(out.size[0] * out.size[2] * out.size[3] * out.size[4], thread, threads);
  for (std::int64_t unit = pixels.begin; unit < pixels.end; ++unit) {
    const std::int64_t column = unit % out.size[4], row = unit / out.size[4] % out.size[3];
    const std::int64_t plane = unit / out.size[4] / out.size[3] % out.size[2];
    const std::int64_t n = unit / out.size[4] / out.size[3] / out.size[2];
    const float* at = static_cast<const float*>(grid.data) + n * grid.stride[0] + plane * grid.stride[1] +
                      row * grid.stride[2] + column * grid.stride[3];
    Along along[3];
    along[0] = Along{{0, 0, 0, 0}, {1, 0, 0, 0}, 1};
    for (int axis = 0; axis < axes; ++axis) {
      along[2 - axis] = along_axis(at[axis * grid.stride[4]], x.size[4 - axis], k);
    }
    for (std::int64_t c = 0; c < out.size[1]; ++c) {
      const float* from = static_cast<const float*>(x.data) + n * x.stride[0] + c * x.stride[1];
      float sum = 0;
      for (int z = 0; z < along[0].count; ++z) {
        for (int y = 0; y < along[1].count; ++y) {
          const float weight = along[0].weight[z] * along[1].weight[y];
          const float* pixel = from + along[0].place[z] * x.stride[2] + along[1].place[y] * x.stride[3];
          for (int i = 0; i < along[2].count; ++i) {
            const float w = weight * along[2].weight[i];
            if (w != 0) sum += w * pixel[along[2].place[i] * x.stride[4]];
          }
        }
      }
      row_at(out, n, c, plane, row)[column * out.stride[4]] = sum;
    }
  }
}

// Operands: out (N, points, axes), an affine transform of each image (N, axes, axes + 1), points (points, axes + 1).
static void affine_grid(const Step& s, int thread, int threads) {
  const Strided &out = s.operands[0], &theta = s.operands[1], &points = s.operands[2];
  const Range units = share(out.size[0] * out.size[1], thread, threads);
  for (std::int64_t unit = units.begin; unit < units.end; ++unit) {
    const std::int64_t n = unit / out.size[1], point = unit % out.size[1];
    for (std::int64_t axis = 0; axis < out.size[2]; ++axis) {
      float sum = 0;
      for (std::int64_t i = 0; i < theta.size[2]; ++i) {
        sum +=
            static_cast<const float*>(theta.data)[n * theta.stride[0] + axis * theta.stride[1] + i * theta.stride[2]] *
            static_cast<const float*>(points.data)[point * points.stride[0] + i * points.stride[1]];
      }
      static_cast<float*>(out.data)[n * out.stride[0] + point * out.stride[1] + axis * out.stride[2]] = sum;
    }
  }
}

}  // namespace powerlab::engine::POWERLAB_TIER
