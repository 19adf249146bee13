// Pools over images whose rows lie in memory one by one, as general tensors: of volumes, and of what was not in blocks
// anyway. Down the rows first, a line of columns at a time, then across.
#pragma once

#include "kernels/strided/strided.hpp"

namespace powerlab::engine::POWERLAB_TIER {

constexpr std::int64_t kPoolLine = 2048;  // columns; a window has no more than half of them

template <bool kMax>
static inline float pooled(float one, float other) {
  return kMax ? (other > one ? other : one) : one + other;
}

// line[i] of the rows `low` .. `high` - 1, of which there is one at least.
template <bool kMax>
static void pool_down(const float* from, std::int64_t row, std::int64_t low, std::int64_t high, std::int64_t count,
                      float* __restrict line) {
  for (std::int64_t i = 0; i < count; ++i) line[i] = from[low * row + i];
  for (std::int64_t y = low + 1; y < high; ++y) {
    const float* pixels = from + y * row;
    for (std::int64_t i = 0; i < count; ++i) line[i] = pooled<kMax>(line[i], pixels[i]);
  }
}

// A row of the result from a line of the columns from `begin` on; columns of the window outside the image are none.
struct Across {
  std::int64_t kernel, step, pad, size;
  bool counts_padding;
  float rows;  // that an average counts

  std::int64_t first(std::int64_t column) const { return column * step - pad; }
  bool is_inside(std::int64_t column) const { return first(column) >= 0 && first(column) + kernel <= size; }
};

template <bool kMax>
static float pool_one(const Across& a, const float* line, std::int64_t begin, std::int64_t column) {
  const std::int64_t first = a.first(column), low = first < 0 ? 0 : first;
  const std::int64_t high = first + a.kernel < a.size ? first + a.kernel : a.size;
  float found = line[low - begin];
  for (std::int64_t i = low + 1; i < high; ++i) found = pooled<kMax>(found, line[i - begin]);
  return kMax ? found : found / (a.rows * static_cast<float>(a.counts_padding ? a.kernel : high - low));
}

template <bool kMax>
static void pool_across(const Across& a, const float* line, std::int64_t begin, std::int64_t from, std::int64_t to,
                        float* __restrict out) {
  std::int64_t low = from, high = to;
  while (low < high && !a.is_inside(low)) ++low;
  while (high > low && !a.is_inside(high - 1)) --high;
  for (std::int64_t column = from; column < low; ++column) out[column] = pool_one<kMax>(a, line, begin, column);
  for (std::int64_t column = high; column < to; ++column) out[column] = pool_one<kMax>(a, line, begin, column);
  const std::int64_t step = a.step;
  const float* const window = line - a.pad - begin;
  for (std::int64_t column = low; column < high; ++column) out[column] = window[column * step];
  for (std::int64_t i = 1; i < a.kernel; ++i) {
    for (std::int64_t column = low; column < high; ++column) {
      out[column] = pooled<kMax>(out[column], window[column * step + i]);
    }
  }
  if (kMax) return;
  const float all = a.rows * static_cast<float>(a.kernel);
  for (std::int64_t column = low; column < high; ++column) out[column] /= all;
}

// Operands: out (N, C, H', W'), x (N, C, H, W), the pixels of a row side by side in both.
template <bool kMax>
static void pool_rows(const Step& s, int thread, int threads) {
  const Strided &out = s.operands[0], &x = s.operands[1];
  const Range rows = share(out.size[0] * out.size[1] * out.size[2], thread, threads);
  const std::int64_t together = (kPoolLine - s.kernel_w) / s.stride_w + 1;  // columns of the result
  float line[kPoolLine];
  for (std::int64_t unit = rows.begin; unit < rows.end; ++unit) {
    const std::int64_t y = unit % out.size[2], c = unit / out.size[2] % out.size[1],
                       n = unit / out.size[2] / out.size[1];
    const std::int64_t first = y * s.stride_h - s.pad_top, low = first < 0 ? 0 : first;
    const std::int64_t high = first + s.kernel_h < x.size[2] ? first + s.kernel_h : x.size[2];
    const float counted = static_cast<float>(s.count_padding ? s.kernel_h : high - low);
    const Across across{s.kernel_w, s.stride_w, s.pad_left, x.size[3], s.count_padding != 0, counted};
    const float* image = static_cast<const float*>(x.data) + n * x.stride[0] + c * x.stride[1];
    float* to = static_cast<float*>(out.data) + n * out.stride[0] + c * out.stride[1] + y * out.stride[2];
    for (std::int64_t column = 0; column < out.size[3]; column += together) {
      const std::int64_t last = column + together < out.size[3] ? column + together : out.size[3];
      const std::int64_t from = across.first(column), until = across.first(last - 1) + across.kernel;
      const std::int64_t begin = from < 0 ? 0 : from, end = until < x.size[3] ? until : x.size[3];
      pool_down<kMax>(image + begin, x.stride[2], low, high, end - begin, line);
      pool_across<kMax>(across, line, begin, column, last, to);
    }
  }
}

}  // namespace powerlab::engine::POWERLAB_TIER
