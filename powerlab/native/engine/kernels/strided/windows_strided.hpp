// Transposed convolutions and places of maxima over images of three axes as general tensors: weights that are computed
// while the network runs, and whatever the kernels in blocks do not take. Images of fewer axes have axes
// of one pixel before their own; the pixels of a row follow on each other in every operand.
//
// The last operand holds integers: groups, then strides, pixels of padding before the image, and dilations, three
// of each; for places of maxima what it says there.
#pragma once

#include "kernels/strided/strided.hpp"

namespace powerlab::engine::POWERLAB_TIER {

// The numbers of a step as they lie in its last operand.
struct WindowNumbers {
  std::int64_t first, stride[3], pad[3], dilation[3];
};
static inline const WindowNumbers& window_numbers(const Step& s) {
  return *static_cast<const WindowNumbers*>(s.operands[s.operand_count - 1].data);
}

static inline float* row_at(const Strided& t, std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) {
  return static_cast<float*>(t.data) + a * t.stride[0] + b * t.stride[1] + c * t.stride[2] + d * t.stride[3];
}

static inline std::int64_t rounded_up(std::int64_t value, std::int64_t divisor) {
  return value <= 0 ? -(-value / divisor) : (value + divisor - 1) / divisor;
}

// out[i * step + first] += w * x[i] wherever out has a pixel
static void spread_row(float* out, std::int64_t size, const float* x, std::int64_t count, std::int64_t step,
                       std::int64_t first, float w) {
  std::int64_t begin = first < 0 ? rounded_up(-first, step) : 0;
  std::int64_t end = size - first > 0 ? rounded_up(size - first, step) : 0;
  if (end > count) end = count;
  for (std::int64_t i = begin; i < end; ++i) out[i * step + first] += w * x[i];
}

// Where the pixel `at` of the result finds what tap `tap` multiplies; -1: nowhere.
template <bool kTransposed>
static inline std::int64_t source_of(const WindowNumbers& k, int axis, std::int64_t at, std::int64_t tap,
                                     std::int64_t size) {
  if constexpr (kTransposed) {
    const std::int64_t reached = at + k.pad[axis] - tap * k.dilation[axis];
    if (reached < 0 || reached % k.stride[axis] != 0) return -1;
    return reached / k.stride[axis] < size ? reached / k.stride[axis] : -1;
  } else {
    const std::int64_t found = at * k.stride[axis] - k.pad[axis] + tap * k.dilation[axis];
    return found < size ? found : -1;
  }
}

// Operands: out, x, weights (C, O / groups, ...), a bias or none, the numbers.
static void conv_transpose_strided(const Step& s, int thread, int threads) {
  const Strided &out = s.operands[0], &x = s.operands[1], &weights = s.operands[2];
  const float* bias = s.operand_count == 5 ? static_cast<const float*>(s.operands[3].data) : nullptr;
  const std::int64_t bias_step = s.operands[3].stride[0];
  const WindowNumbers& k = window_numbers(s);
  const std::int64_t outputs = out.size[1] / k.first, inputs = x.size[1] / k.first;
  const Range rows = share(out.size[0] * out.size[1] * out.size[2] * out.size[3], thread, threads);
  for (std::int64_t unit = rows.begin; unit < rows.end; ++unit) {
    const std::int64_t y = unit % out.size[3], z = unit / out.size[3] % out.size[2];
    const std::int64_t channel = unit / out.size[3] / out.size[2] % out.size[1];
    const std::int64_t n = unit / out.size[3] / out.size[2] / out.size[1], group = channel / outputs;
    float* row = row_at(out, n, channel, z, y);
    const float start = bias ? bias[channel * bias_step] : 0.0f;
    for (std::int64_t i = 0; i < out.size[4]; ++i) row[i] = start;
    for (std::int64_t input = 0; input < inputs; ++input) {
      const std::int64_t source = group * inputs + input;
      for (std::int64_t kz = 0; kz < weights.size[2]; ++kz) {
        const std::int64_t from_z = source_of<true>(k, 0, z, kz, x.size[2]);
        if (from_z < 0) continue;
        for (std::int64_t ky = 0; ky < weights.size[3]; ++ky) {
          const std::int64_t from_y = source_of<true>(k, 1, y, ky, x.size[3]);
          if (from_y < 0) continue;
          const float* pixels = row_at(x, n, source, from_z, from_y);
          const float* taps = row_at(weights, source, channel % outputs, kz, ky);
          for (std::int64_t kx = 0; kx < weights.size[4]; ++kx) {
            const std::int64_t at = kx * k.dilation[2] - k.pad[2];
            const float w = taps[kx * weights.stride[4]];
            spread_row(row, out.size[4], pixels, x.size[4], k.stride[2], at, w);
          }
        }
      }
    }
  }
}

// Operands: places, x, the numbers: first 1 where places count columns before rows, and behind them the kernel's sizes.
// A place counts the pixels of all images and channels; of equal maxima it is the first.
static void pool_places(const Step& s, int thread, int threads) {
  const Strided &out = s.operands[0], &x = s.operands[1];
  const WindowNumbers& k = window_numbers(s);
  const std::int64_t* kernel = reinterpret_cast<const std::int64_t*>(&k + 1);
  const std::int64_t plane = x.size[2] * x.size[3] * x.size[4];
  const Range pixels = share(out.size[0] * out.size[1] * out.size[2] * out.size[3] * out.size[4], thread, threads);
  for (std::int64_t unit = pixels.begin; unit < pixels.end; ++unit) {
    std::int64_t at[5], rest = unit;
    for (int axis = 4; axis >= 0; --axis) {
      at[axis] = rest % out.size[axis];
      rest /= out.size[axis];
    }
    std::int64_t best[3] = {0, 0, 0};
    float most = 0;
    bool found = false;
    for (std::int64_t kz = 0; kz < kernel[0]; ++kz) {
      for (std::int64_t ky = 0; ky < kernel[1]; ++ky) {
        const std::int64_t z = source_of<false>(k, 0, at[2], kz, x.size[2]);
        const std::int64_t y = source_of<false>(k, 1, at[3], ky, x.size[3]);
        if (z < 0 || y < 0) continue;
        const float* row = row_at(x, at[0], at[1], z, y);
        for (std::int64_t kx = 0; kx < kernel[2]; ++kx) {
          const std::int64_t column = source_of<false>(k, 2, at[4], kx, x.size[4]);
          if (column < 0 || (found && !(row[column] > most))) continue;
          most = row[column];
          found = true;
          best[0] = z;
          best[1] = y;
          best[2] = column;
        }
      }
    }
    const std::int64_t inside = k.first ? best[0] + x.size[2] * (best[1] + x.size[3] * best[2])
                                        : (best[0] * x.size[3] + best[1]) * x.size[4] + best[2];
    std::int64_t* to = static_cast<std::int64_t*>(out.data);
    for (int axis = 0; axis < 5; ++axis) to += at[axis] * out.stride[axis];
    *to = (at[0] * x.size[1] + at[1]) * plane + inside;
  }
}

// Operands: out, x, places of x's elements in a tensor of the sizes that the numbers say, the numbers: five sizes. Out,
// which is as large or larger, holds zeros elsewhere.
static void max_unpool(const Step& s, int thread, int threads) {
  const Strided &out = s.operands[0], &x = s.operands[1], &places = s.operands[2];
  const std::int64_t* size = static_cast<const std::int64_t*>(s.operands[3].data);
  std::int64_t elements = 1, whole = 1, inner = 1;
  for (int axis = 0; axis < 5; ++axis) {
    elements *= x.size[axis];
    whole *= size[axis];
    if (axis > 0) inner *= out.size[axis];
  }
  const Range images = share(out.size[0], thread, threads);
  for (std::int64_t n = images.begin; n < images.end; ++n) {
    float* image = row_at(out, n, 0, 0, 0);
    for (std::int64_t i = 0; i < inner; ++i) image[i] = 0.0f;
  }
  for (std::int64_t i = 0; i < elements; ++i) {
    std::int64_t from = 0, place = 0, rest = i;
    for (int axis = 4; axis >= 0; --axis) {
      from += rest % x.size[axis] * x.stride[axis];
      place += rest % x.size[axis] * places.stride[axis];
      rest /= x.size[axis];
    }
    std::int64_t left = static_cast<const std::int64_t*>(places.data)[place], to = 0, image = 0;
    if (left < 0 || left >= whole) {
      set_fault(s.fault, kIndexOutside);
      continue;
    }
    for (int axis = 4; axis >= 0; --axis) {
      image = left % size[axis];
      to += image * out.stride[axis];
      left /= size[axis];
    }
    if (image >= images.begin && image < images.end) {
      static_cast<float*>(out.data)[to] = static_cast<const float*>(x.data)[from];
    }
  }
}

}  // namespace powerlab::engine::POWERLAB_TIER
