// Numbers at the edge of what float32 holds: kernels neither hide not-a-number nor make one where there is none.
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/test.hpp"

namespace powerlab::engine::test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kLargest = std::numeric_limits<float>::max();
constexpr float kSmallest = std::numeric_limits<float>::denorm_min();

bool same(float found, float expected, float tolerance = 0) {
  if (std::isnan(expected)) return std::isnan(found);
  if (std::isinf(expected)) return found == expected;
  return std::abs(found - expected) <= tolerance;
}

// Runs `family` on one image of one row, `values` being its channels; returns those of the result.
std::vector<float> over_channels(const KernelTable& table, const char* family, Step step,
                                 const std::vector<float>& values) {
  const int count = static_cast<int>(values.size());
  Placed x(1, count, 1, 1, table.vector_width, 0), out(1, count, 1, 1, table.vector_width, 0);
  for (int i = 0; i < count; ++i) x.at(0, i, 0, 0) = values[static_cast<std::size_t>(i)];
  step.x = x.view;
  step.out = out.view;
  run_kernel(table, family, step, 2);
  std::vector<float> found;
  for (int i = 0; i < count; ++i) found.push_back(out.at(0, i, 0, 0));
  return found;
}

// The same over the columns of one row, for softmax over rows: h = values.
std::vector<float> softmax(const KernelTable& table, const std::vector<float>& values) {
  const int count = static_cast<int>(values.size());
  Placed x(1, 1, count, 1, 1, 0), out(1, 1, count, 1, 1, 0);
  for (int i = 0; i < count; ++i) x.at(0, 0, i, 0) = values[static_cast<std::size_t>(i)];
  Step step{};
  step.x = x.view;
  step.out = out.view;
  run_kernel(table, "softmax", step, 1);
  std::vector<float> found;
  for (int i = 0; i < count; ++i) found.push_back(out.at(0, 0, i, 0));
  return found;
}

void compare(const std::string& what, const std::vector<float>& found, const std::vector<float>& expected,
             float tolerance, Report& report) {
  int wrong = found.size() == expected.size() ? 0 : 1;
  for (std::size_t i = 0; wrong == 0 && i < found.size(); ++i) wrong += !same(found[i], expected[i], tolerance);
  report.check(what, wrong, 0);
}

void check_softmax(const KernelTable& table, Report& report) {
  const std::string name = std::string(table.tier) + " softmax of ";
  compare(name + "one value", softmax(table, {-kLargest}), {1}, 0, report);
  compare(name + "large values", softmax(table, {kLargest, kLargest, -kLargest}), {0.5f, 0.5f, 0}, 0, report);
  compare(name + "values far apart", softmax(table, {0, 200, -200}), {0, 1, 0}, 0, report);
  compare(name + "minus infinity", softmax(table, {-kInfinity, 3, 3}), {0, 0.5f, 0.5f}, 0, report);
  compare(name + "infinity", softmax(table, {kInfinity, 1, 2}), {kNan, kNan, kNan}, 0, report);
  compare(name + "nothing but minus infinity", softmax(table, {-kInfinity, -kInfinity}), {kNan, kNan}, 0, report);
  compare(name + "not-a-number first", softmax(table, {kNan, 1, 2}), {kNan, kNan, kNan}, 0, report);
  compare(name + "not-a-number last", softmax(table, {1, 2, kNan}), {kNan, kNan, kNan}, 0, report);
  // A million equal terms in float32 alone would add up to something else.
  const auto many = softmax(table, std::vector<float>(1 << 20, 7.0f));
  report.check(name + "many values", std::abs(static_cast<double>(many.back()) * (1 << 20) - 1), 1e-6);
}

void check_lrn(const KernelTable& table, Report& report) {
  Step step{};
  step.size = 3;
  step.alpha = 3;  // alpha / size = 1
  step.offset = 1;
  const std::string name = std::string(table.tier) + " LRN of ";
  for (const float beta : {0.75f, 0.5f}) {
    step.beta = beta;
    // The square of 1e30 is infinite: the quotient is zero, as in IEEE arithmetic, and zeros beside it stay zero.
    compare(name + "large values", over_channels(table, "lrn", step, {1e30f, 0, 0, 0}), {0, 0, 0, 0}, 0, report);
    compare(name + "tiny values", over_channels(table, "lrn", step, {kSmallest, -1e-30f}), {kSmallest, -1e-30f}, 0,
            report);
    compare(name + "not-a-number", over_channels(table, "lrn", step, {0, 2, 0, kNan, 0, 0, 2}),
            {0, 2 * std::pow(5.0f, -beta), kNan, kNan, kNan, 0, 2 * std::pow(5.0f, -beta)}, 1e-6f, report);
    compare(name + "an infinity", over_channels(table, "lrn", step, {0, 1, kInfinity, 1, 0}), {0, 0, kNan, 0, 0}, 1e-6f,
            report);
  }
  step.alpha = 0;
  step.beta = 0.75f;
  compare(name + "alpha 0", over_channels(table, "lrn", step, {5, -7, 1e15f}), {5, -7, 1e15f}, 0, report);
}

void check_clamps(const KernelTable& table, Report& report) {
  const std::vector<float> values{kNan, kInfinity, -kInfinity, kLargest, -kLargest, kSmallest, -0.0f, 0.25f, 7};
  Step step{};
  const std::string name = std::string(table.tier) + " clamp ";
  step.low = -kInfinity;
  step.high = kInfinity;
  compare(name + "to anything", over_channels(table, "clamp", step, values), values, 0, report);
  step.low = 0;
  compare(name + "from below", over_channels(table, "clamp", step, values),
          {kNan, kInfinity, 0, kLargest, 0, kSmallest, 0, 0.25f, 7}, 0, report);
  step.high = 6;
  compare(name + "from both sides", over_channels(table, "clamp", step, values),
          {kNan, 6, 0, 6, 0, kSmallest, 0, 0.25f, 6}, 0, report);
  step.low = step.high = 0.25f;
  compare(name + "to one number", over_channels(table, "clamp", step, values),
          {kNan, 0.25f, 0.25f, 0.25f, 0.25f, 0.25f, 0.25f, 0.25f, 0.25f}, 0, report);
}

// One row of `values` in every channel, a window of 2 without stride: what each window yields.
void check_pool(const KernelTable& table, const char* family, const std::vector<float>& values,
                const std::vector<float>& expected, Report& report) {
  const int w = static_cast<int>(values.size()), v = table.vector_width;
  Placed x(1, v, 1, w, v, 0), out(1, v, 1, w - 1, v, 0);
  for (int c = 0; c < v; ++c) {
    for (int i = 0; i < w; ++i) x.at(0, c, 0, i) = values[static_cast<std::size_t>(i)];
  }
  Step step{};
  step.kernel_h = step.stride_h = step.stride_w = 1;
  step.kernel_w = 2;
  step.x = x.view;
  step.out = out.view;
  run_kernel(table, family, step, 1);
  for (int c = 0; c < v; ++c) {
    std::vector<float> found;
    for (int i = 0; i + 1 < w; ++i) found.push_back(out.at(0, c, 0, i));
    compare(std::string(find_kernel(table, family).name) + " at the edges", found, expected, 0, report);
  }
}

}  // namespace

void check_extremes(const KernelTable& table, Report& report) {
  check_softmax(table, report);
  check_lrn(table, report);
  check_clamps(table, report);
  const std::vector<float> values{-kInfinity, -kInfinity, -kLargest, kNan, 1, kInfinity, 2};
  check_pool(table, "pool_max", values, {-kInfinity, -kLargest, kNan, kNan, kInfinity, kInfinity}, report);
  check_pool(table, "pool_average", values, {-kInfinity, -kInfinity, kNan, kNan, kInfinity, kInfinity}, report);
}

}  // namespace powerlab::engine::test
