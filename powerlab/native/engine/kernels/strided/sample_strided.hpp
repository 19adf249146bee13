// Pixels taken from anywhere in an image: grids of coordinates (spatial transformers: M. Jaderberg et al.,
// https://arxiv.org/abs/1506.02025), as general tensors.
#pragma once

#include <math.h>

#include "kernels/strided/windows_strided.hpp"

namespace powerlab::engine::POWERLAB_TIER {

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
