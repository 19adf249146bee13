// What takes whole rows of a general tensor, runs along its last axis whose elements follow on each other: layer
// normalisation (J. L. Ba et al., 2016), root mean square normalisation (B. Zhang and R. Sennrich, 2019), division by
// the norm, and softmax with its relatives. Operands: out, x, [axes ...][row] both; normalisations then scale and
// shift, [row], or neither.
#pragma once

#include <math.h>

#include "kernels/functions.hpp"
#include "kernels/lanes.hpp"
#include "kernels/products/matmul.hpp"

namespace powerlab::engine::POWERLAB_TIER {

// Calls row(out, x) for each row of this thread.
template <typename Row>
static inline void for_rows(const Step& s, int thread, int threads, Row row) {
  const Strided &out = s.operands[0], &x = s.operands[1];
  const Range own = share(count_of(out, out.rank - 1), thread, threads);
  for (std::int64_t i = own.begin; i < own.end; ++i) {
    row(static_cast<float*>(out.data) + offset_of(out, out.rank - 1, i),
        static_cast<const float*>(x.data) + offset_of(x, x.rank - 1, i));
  }
}

// The sum of function(element) over a row, a vector at a time.
template <typename Function>
static inline float sum_over(const float* x, std::int64_t count, Function function) {
  Vec sums{};
  std::int64_t i = 0;
  for (; i + kWidth <= count; i += kWidth) sums += function(load_unaligned(x + i));
  if (i < count) {
    const int left = static_cast<int>(count - i);
    sums += first_lanes(function(load_lanes(x + i, left)), left);
  }
  return sum_of(sums);
}

// out = function(element), a vector at a time.
template <typename Function>
static inline void map_row(float* out, const float* x, std::int64_t count, Function function) {
  std::int64_t i = 0;
  for (; i + kWidth <= count; i += kWidth) store_unaligned(out + i, function(load_unaligned(x + i)));
  if (i < count) {
    const int left = static_cast<int>(count - i);
    store_lanes(out + i, function(load_lanes(x + i, left)), left);
  }
}

// (x - mean) / sqrt(variance + alpha) * scale + shift, in one multiplication and one addition an element.
static inline void normalise_row(const Step& s, float* out, const float* x, std::int64_t count, float mean,
                                 float inverse) {
  const Vec middle = broadcast(mean), factor = broadcast(inverse);
  if (s.operand_count == 2) {
    map_row(out, x, count, [&](Vec v) { return (v - middle) * factor; });
    return;
  }
  const float* scale = static_cast<const float*>(s.operands[2].data);
  const float* shift = s.operand_count > 3 ? static_cast<const float*>(s.operands[3].data) : nullptr;
  std::int64_t i = 0;
  for (; i + kWidth <= count; i += kWidth) {
    const Vec made = (load_unaligned(x + i) - middle) * factor * load_unaligned(scale + i);
    store_unaligned(out + i, shift ? made + load_unaligned(shift + i) : made);
  }
  if (i < count) {
    const int left = static_cast<int>(count - i);
    const Vec made = (load_lanes(x + i, left) - middle) * factor * load_lanes(scale + i, left);
    store_lanes(out + i, shift ? made + load_lanes(shift + i, left) : made, left);
  }
}

// alpha: what is added to the variance.
static void layer_norm(const Step& s, int thread, int threads) {
  const std::int64_t count = s.operands[0].size[s.operands[0].rank - 1];
  const float share_of_one = 1.0f / static_cast<float>(count);
  for_rows(s, thread, threads, [&](float* out, const float* x) {
    const float mean = sum_over(x, count, [](Vec v) { return v; }) * share_of_one;
    const Vec middle = broadcast(mean);
    const float variance = sum_over(x, count, [&](Vec v) { return (v - middle) * (v - middle); }) * share_of_one;
    normalise_row(s, out, x, count, mean, 1.0f / sqrtf(variance + s.alpha));
  });
}

// alpha: what is added to the mean square.
static void rms_norm(const Step& s, int thread, int threads) {
  const std::int64_t count = s.operands[0].size[s.operands[0].rank - 1];
  const float share_of_one = 1.0f / static_cast<float>(count);
  for_rows(s, thread, threads, [&](float* out, const float* x) {
    const float square = sum_over(x, count, [](Vec v) { return v * v; }) * share_of_one;
    normalise_row(s, out, x, count, 0.0f, 1.0f / sqrtf(square + s.alpha));
  });
}

// The root of the sum of squares, also where these would be too large or too small for a float.
static inline float norm_of(const float* x, std::int64_t count) {
  const float sum = sum_over(x, count, [](Vec v) { return v * v; });
  if (sum > 1e-30f && sum < 1e30f) return sqrtf(sum);
  double exact = 0;
  for (std::int64_t i = 0; i < count; ++i) exact += static_cast<double>(x[i]) * x[i];
  return static_cast<float>(sqrt(exact));
}

// x / its norm. alpha: the smallest number that is divided by.
static void l2_norm(const Step& s, int thread, int threads) {
  const std::int64_t count = s.operands[0].size[s.operands[0].rank - 1];
  for_rows(s, thread, threads, [&](float* out, const float* x) {
    const float norm = norm_of(x, count);
    normalise_row(s, out, x, count, 0.0f, 1.0f / (norm < s.alpha ? s.alpha : norm));
  });
}

// The largest element; not-a-number wins.
static inline float largest(const float* x, std::int64_t count) {
  if (count < kWidth) {
    float found = x[0];
    for (std::int64_t i = 1; i < count; ++i) found = x[i] <= found ? found : x[i];
    return found;
  }
  Vec most = load_unaligned(x);
  std::int64_t i = kWidth;
  if (count >= 4 * kWidth) {  // in four, which do not wait for one another
    Vec second = load_unaligned(x + kWidth), third = load_unaligned(x + 2 * kWidth),
        fourth = load_unaligned(x + 3 * kWidth);
    for (i = 4 * kWidth; i + 4 * kWidth <= count; i += 4 * kWidth) {
      most = larger(most, load_unaligned(x + i));
      second = larger(second, load_unaligned(x + i + kWidth));
      third = larger(third, load_unaligned(x + i + 2 * kWidth));
      fourth = larger(fourth, load_unaligned(x + i + 3 * kWidth));
    }
    most = larger(larger(most, second), larger(third, fourth));
  }
  for (; i + kWidth <= count; i += kWidth) most = larger(most, load_unaligned(x + i));
  return largest_of(larger(most, load_unaligned(x + count - kWidth)));
}

// out = exp(x - largest); returns the sum.
static inline float exponentials(float* out, const float* x, std::int64_t count, Vec most) {
  Vec sums{};
  std::int64_t i = 0;
  for (; i + kWidth <= count; i += kWidth) {
    const Vec found = exponential_below(load_unaligned(x + i) - most);
    store_unaligned(out + i, found);
    sums += found;
  }
  if (i < count) {
    const int left = static_cast<int>(count - i);
    const Vec found = exponential_below(load_lanes(x + i, left) - most);
    store_lanes(out + i, found, left);
    sums += first_lanes(found, left);
  }
  return sum_of(sums);
}

// The softmax of a row of N vectors, the last of which may be filled in part: all of it stays in registers.
template <int N>
static void softmax_short(float* out, const float* x, std::int64_t count, bool masked) {
  const int left = static_cast<int>(count - (N - 1) * kWidth);
  Vec row[N], sums{};
  POWERLAB_UNROLL
  for (int i = 0; i < N - 1; ++i) row[i] = load_unaligned(x + i * kWidth);
  row[N - 1] = lane_numbers() < left ? load_lanes(x + (N - 1) * kWidth, left) : broadcast(-__builtin_inff());
  Vec most = row[0];
  POWERLAB_UNROLL
  for (int i = 1; i < N; ++i) most = larger(most, row[i]);
  const float found = largest_of(most);
  const bool nothing = masked && found == -__builtin_inff();
  most = broadcast(nothing ? 0.0f : found);
  POWERLAB_UNROLL
  for (int i = 0; i < N; ++i) {
    row[i] = exponential_below(row[i] - most);
    sums += row[i];
  }
  const Vec factor = broadcast(nothing ? 0.0f : 1.0f / sum_of(sums));
  POWERLAB_UNROLL
  for (int i = 0; i < N - 1; ++i) store_unaligned(out + i * kWidth, row[i] * factor);
  store_lanes(out + (N - 1) * kWidth, row[N - 1] * factor, left);
}

constexpr int kShortVectors = 8;
struct ShortRows {
  void (*at[kShortVectors])(float* out, const float* x, std::int64_t count, bool masked);
};
template <int... I>
constexpr ShortRows make_short_rows(Indices<I...>) {
  return {{&softmax_short<I + 1>...}};
}
static constexpr ShortRows kShortRows = make_short_rows(typename MakeIndices<kShortVectors>::type{});

// exp(x - largest) / its sum. masked: a row of -inf becomes zeros, as attention's masks want it.
static inline void softmax_row(float* out, const float* x, std::int64_t count, bool masked) {
  const std::int64_t vectors = (count + kWidth - 1) / kWidth;
  if (vectors <= kShortVectors) {
    kShortRows.at[vectors - 1](out, x, count, masked);
    return;
  }
  const float found = largest(x, count);
  const Vec most = broadcast(found), nothing{};
  if (masked && found == -__builtin_inff()) {
    map_row(out, x, count, [&](Vec) { return nothing; });
    return;
  }
  const Vec factor = broadcast(1.0f / exponentials(out, x, count, most));
  map_row(out, out, count, [&](Vec v) { return v * factor; });
}

// number[0]: 1 where rows are masked.
static void softmax_rows(const Step& s, int thread, int threads) {
  const std::int64_t count = s.operands[0].size[s.operands[0].rank - 1];
  for_rows(s, thread, threads, [&](float* out, const float* x) { softmax_row(out, x, count, s.numbers[0] == 1); });
}

// x - largest - log(sum of exp(x - largest))
static void log_softmax_rows(const Step& s, int thread, int threads) {
  const std::int64_t count = s.operands[0].size[s.operands[0].rank - 1];
  for_rows(s, thread, threads, [&](float* out, const float* x) {
    const Vec most = broadcast(largest(x, count));
    const Vec rest = broadcast(logf(sum_over(x, count, [&](Vec v) { return exponential(v - most); })));
    map_row(out, x, count, [&](Vec v) { return v - most - rest; });
  });
}

// 1 where the largest element is, the first of several, else 0; what is not a number counts as the largest, as in
// ArgMax.
static void hardmax_rows(const Step& s, int thread, int threads) {
  const std::int64_t count = s.operands[0].size[s.operands[0].rank - 1];
  for_rows(s, thread, threads, [&](float* out, const float* x) {
    std::int64_t at = 0;
    for (std::int64_t i = 0; i < count; ++i) {
      out[i] = 0.0f;
      if (x[i] > x[at] || (x[i] != x[i] && x[at] == x[at])) at = i;
    }
    out[at] = 1.0f;
  });
}

}  // namespace powerlab::engine::POWERLAB_TIER
