#include <array>
#include <atomic>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/test.hpp"

namespace powerlab::engine::test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

reference::Tensor random_tensor(int n, int c, int h, int w) {
  reference::Tensor t(n, c, h, w);
  Random random;
  random.fill(t.values);
  return t;
}

Step plain_step() {
  Step step{};
  step.low = -std::numeric_limits<float>::infinity();
  step.high = std::numeric_limits<float>::infinity();
  return step;
}

// Runs `family` on x (and y) with 1 to 3 threads and compares with `expected`.
void check(const KernelTable& table, const char* family, Step step, const reference::Tensor& x,
           const reference::Tensor* y, const reference::Tensor& expected, double tolerance, Report& report) {
  const int v = table.vector_width;
  Placed placed_x(x.n, x.c, x.h, x.w, v, 0), placed_y(expected.n, expected.c, expected.h, expected.w, v, 1);
  placed_x.put(x);
  if (y) placed_y.put(*y);
  for (const int threads : {1, 2, 3}) {
    Placed out(expected.n, expected.c, expected.h, expected.w, v, 1);
    step.x = placed_x.view;
    step.out = out.view;
    if (y) step.y = placed_y.view;
    run_kernel(table, family, step, threads);
    report.check(std::string(find_kernel(table, family).name) + " " + std::to_string(x.c) + "x" + std::to_string(x.h) +
                     "x" + std::to_string(x.w) + " threads " + std::to_string(threads),
                 error(out, expected), tolerance);
  }
}

}  // namespace

void check_pools(const KernelTable& table, Report& report) {
  for (const int channels : {table.vector_width, 2 * table.vector_width + 1}) {
    const auto x = random_tensor(2, channels, 9, 8);
    const reference::Window window{3, 3, 2, 2, 1, 1, 1, 1};
    Step step = plain_step();
    step.kernel_h = step.kernel_w = 3;
    step.stride_h = step.stride_w = 2;
    step.pad_top = step.pad_left = 1;
    reference::Tensor out(2, channels, 5, 4);
    reference::pool_max(x, window, out);
    check(table, "pool_max", step, x, nullptr, out, 0, report);
    for (const bool count_padding : {false, true}) {
      step.count_padding = count_padding;
      reference::pool_average(x, window, count_padding, out);
      check(table, "pool_average", step, x, nullptr, out, 1e-6, report);
    }
    reference::Tensor average(2, channels, 1, 1);
    reference::pool_global_average(x, average);
    check(table, "pool_global_average", step, x, nullptr, average, 1e-5, report);
  }
}

void check_elementwise(const KernelTable& table, Report& report) {
  const int channels = table.vector_width + 3;
  const auto x = random_tensor(2, channels, 3, 5);
  auto y = x;
  for (double& value : y.values) value = value * 0.5 - 0.125;
  reference::Tensor out(2, channels, 3, 5);
  for (const reference::Clamp clamp :
       {reference::Clamp{-kInfinity, kInfinity}, reference::Clamp{0, 0.5},
        reference::Clamp{-kInfinity, kInfinity, 0.125}, reference::Clamp{-0.0625, 0.5, 0.25}}) {
    Step step = plain_step();
    step.low = static_cast<float>(clamp.low);
    step.high = static_cast<float>(clamp.high);
    step.slope = static_cast<float>(clamp.slope);
    reference::add(x, y, clamp, out);
    check(table, "add", step, x, &y, out, 1e-6, report);

    const reference::Tensor zero(2, channels, 3, 5);
    reference::add(x, zero, clamp, out);
    check(table, "clamp", step, x, nullptr, out, 0, report);

    std::vector<double> scale(static_cast<std::size_t>(channels)), shift(scale.size());
    Floats scales(static_cast<std::size_t>(2 * table.vector_width)), shifts(scales.size());
    for (std::size_t i = 0; i < scale.size(); ++i) {
      scales[i] = static_cast<float>(scale[i] = 0.25 * static_cast<double>(i) - 1);
      shifts[i] = static_cast<float>(shift[i] = 1 - 0.5 * static_cast<double>(i));
    }
    step.weights = scales.data();
    step.bias = shifts.data();
    reference::scale_shift(x, scale, shift, clamp, out);
    check(table, "scale_shift", step, x, nullptr, out, 1e-6, report);
  }
}

void check_peak(const KernelTable& table, Report& report) {
  constexpr int kThreads = 3, kSums = 12, kRounds = 50;
  constexpr double kFactor = -0.25;
  const int width = table.vector_width;
  auto x = random_tensor(kThreads, width, 1, 1);
  Placed in(kThreads, width, 1, 1, width, 0), out(kThreads, width, 1, 1, width, 0);
  in.put(x);
  reference::Tensor expected(kThreads, width, 1, 1);
  for (std::size_t lane = 0; lane < x.values.size(); ++lane) {
    std::array<double, kSums> sums;
    sums.fill(x.values[lane]);
    for (int round = 0; round < kRounds; ++round) {
      for (std::size_t i = 0; i < kSums; ++i) sums[i] += kFactor * sums[(i + 1) % kSums];
    }
    for (const double sum : sums) expected.values[lane] += sum;
  }
  Step step = plain_step();
  step.x = in.view;
  step.out = out.view;
  step.size = kRounds;
  step.alpha = static_cast<float>(kFactor);
  run_kernel(table, "peak", step, kThreads);
  report.check(std::string(table.tier) + " peak", error(out, expected), 1e-5);
}

void check_normalisations(const KernelTable& table, Report& report) {
  for (const int channels : {3, table.vector_width, 3 * table.vector_width + 2}) {
    for (const double beta : {0.75, 0.5}) {
      const auto x = random_tensor(2, channels, 4, 3);
      reference::Tensor out(2, channels, 4, 3);
      Step step = plain_step();
      step.size = 5;
      step.alpha = 0.5f;
      step.beta = static_cast<float>(beta);
      step.offset = 1.5f;
      reference::lrn(x, 5, 0.5, beta, 1.5, out);
      check(table, "lrn", step, x, nullptr, out, 1e-6, report);
    }
  }
  for (const int columns : {1, 3}) {
    auto x = random_tensor(2, 3, 50, columns);
    for (double& value : x.values) value *= 32;
    reference::Tensor expected(2, 3, 50, columns);
    reference::softmax_over_rows(x, expected);
    Placed in(2, 3, 50, columns, 1, 0), out(2, 3, 50, columns, 1, 0);
    in.put(x);
    Step step = plain_step();
    step.x = in.view;
    step.out = out.view;
    run_kernel(table, "softmax", step, 2);
    report.check(std::string(table.tier) + " softmax", error(out, expected), 1e-5);
  }
}

void check_reorders(const KernelTable& table, Report& report) {
  for (const int lanes : {3, table.vector_width}) {
    for (const int channels : {lanes, 2 * table.vector_width + 1}) {
      const auto x = random_tensor(2, channels, 5, 4);
      Placed rows(2, channels, 5, 4, 1, 0), blocks(2, channels, 5, 4, lanes, 1), back(2, channels, 5, 4, 1, 0);
      Placed copied(2, channels, 5, 4, lanes, 0);
      rows.put(x);
      Step step = plain_step();
      const auto move = [&](const char* family, Placed& from, Placed& to) {
        step.x = from.view;
        step.out = to.view;
        run_kernel(table, family, step, 3);
        report.check(std::string(table.tier) + " " + family, error(to, x), 0);
      };
      move("reorder_to_blocks", rows, blocks);
      double filling = 0;
      for (int c = channels; c < blocks.view.blocks * lanes; ++c) filling += std::abs(blocks.at(1, c, 4, 3));
      report.check(std::string(table.tier) + " reorder_to_blocks, channels that fill up", filling, 0);
      move("copy", blocks, copied);
      move("reorder_to_planes", copied, back);
    }
  }
}

}  // namespace powerlab::engine::test
