// Convolutions of random shapes: right to rounding, the same bits however the work is cut, and nothing written
// elsewhere.
#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "tests/packing.hpp"
#include "tests/test.hpp"

namespace powerlab::engine::test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr int kRounds = 25;

// One random convolution with its operands.
struct Convolution {
  int n, in, out, h, w, groups;
  reference::Window window;
  int bottom, right;  // padding
  int halo;           // enough for every tap of every output
  reference::Clamp clamp;
  bool residual;
  int unit_blocks = 0;

  int out_h() const { return (h + window.top + bottom - reach_h()) / window.stride_h + 1; }
  int out_w() const { return (w + window.left + right - reach_w()) / window.stride_w + 1; }
  int reach_h() const { return (window.kernel_h - 1) * window.dilation_h + 1; }
  int reach_w() const { return (window.kernel_w - 1) * window.dilation_w + 1; }
  std::string text() const {
    std::string text;
    for (const int value :
         {n, in, out, h, w, groups, window.kernel_h, window.kernel_w, window.stride_h, window.stride_w,
          window.dilation_h, window.dilation_w, window.top, window.left, bottom, right}) {
      text.append(1, ' ').append(std::to_string(value));
    }
    return text;
  }
};

Convolution random_convolution(Random& random) {
  Convolution c{};
  c.n = random.whole(1, 3);
  c.groups = 1;
  reference::Window& window = c.window;
  window.kernel_h = random.whole(1, 5);
  window.kernel_w = random.whole(1, 5);
  window.stride_h = random.whole(1, 3);
  window.stride_w = random.whole(1, 3);
  window.dilation_h = random.whole(1, 2);
  window.dilation_w = random.whole(1, 3);
  window.top = random.whole(0, 3);
  window.left = random.whole(0, 3);
  c.bottom = random.whole(0, 3);
  c.right = random.whole(0, 3);
  c.h = random.whole(std::max(1, c.reach_h() - window.top - c.bottom), c.reach_h() + 8);
  c.w = random.whole(std::max(1, c.reach_w() - window.left - c.right), c.reach_w() + 17);
  c.halo = std::max({window.top, window.left, c.bottom, c.right});
  c.residual = random.coin();
  c.clamp = random.coin() ? reference::Clamp{-kInfinity, kInfinity} : reference::Clamp{-0.5, 1};
  c.clamp.slope = random.coin() ? 1 : random.whole(0, 8) / 8.0;
  c.clamp.adds_last = random.coin();
  return c;
}

struct Operands {
  reference::Tensor x, weights, residual, expected;
  std::vector<double> bias;

  Operands(const Convolution& c, Random& random)
      : x(c.n, c.in, c.h, c.w),
        weights(c.out, c.in / c.groups, c.window.kernel_h, c.window.kernel_w),
        residual(c.n, c.out, c.out_h(), c.out_w()),
        expected(c.n, c.out, c.out_h(), c.out_w()),
        bias(static_cast<std::size_t>(c.out)) {
    random.fill(x.values);
    random.fill(weights.values);
    random.fill(residual.values);
    random.fill(bias);
    reference::conv(x, weights, bias, c.residual ? &residual : nullptr, c.window, c.groups, c.clamp, expected);
  }
};

Step step_of(const Convolution& c) {
  Step step{};
  set_window(step, c.window);
  set_clamp(step, c.clamp);
  step.groups = c.groups;
  step.unit_blocks = c.unit_blocks;
  return step;
}

struct Cut {
  int threads, channel_split, chunk_blocks, chunk_tiles;
};

Cut random_cut(Random& random, int in_blocks) {
  const int threads = random.whole(1, 7);
  return {threads, random.whole(1, threads), random.whole(1, in_blocks), random.whole(1, 40)};
}

// Runs `family` whole and then cut at random, and compares.
void check(const KernelTable& table, const std::string& family, const Convolution& c, int lanes, int scratch_positions,
           Floats& weights, const Operands& operands, double tolerance, Random& random, Report& report) {
  const int v = table.vector_width;
  Placed x(c.n, c.in, c.h, c.w, lanes, c.halo), residual(c.n, c.out, c.out_h(), c.out_w(), v, 2);
  x.put(operands.x);
  residual.put(operands.residual);
  Placed whole(c.n, c.out, c.out_h(), c.out_w(), v, 1);
  Floats bias(static_cast<std::size_t>(whole.view.blocks) * v);
  for (std::size_t i = 0; i < operands.bias.size(); ++i) bias[i] = static_cast<float>(operands.bias[i]);
  const auto run = [&](Placed& out, const Cut& cut) {
    Step step = step_of(c);
    step.x = x.view;
    step.out = out.view;
    if (c.residual) step.y = residual.view;
    step.weights = weights.data();
    step.bias = bias.data();
    step.lanes = lanes;
    step.last_lanes = c.in / c.groups - (x.view.blocks / c.groups - 1) * lanes;
    step.chunk_blocks = cut.chunk_blocks;
    step.chunk_tiles = cut.chunk_tiles;
    step.channel_split = cut.channel_split;
    step.scratch.image = scratch_positions * ((x.view.blocks + table.tile_blocks) * cut.chunk_tiles + 2) * v;
    Floats scratch(static_cast<std::size_t>(cut.threads * step.scratch.image), std::numeric_limits<float>::quiet_NaN());
    step.scratch.data = scratch.data();
    run_kernel(table, family.c_str(), step, cut.threads);
    return misowned(table, family.c_str(), step, out.view, cut.threads);
  };
  const int in_blocks = x.view.blocks / c.groups;
  run(whole, {1, 1, in_blocks, scratch_positions ? 64 : 1 << 20});
  const std::string name = std::string(find_kernel(table, family).name) + c.text();
  report.check(name, error(whole, operands.expected), tolerance);
  report.check(name + ", written outside", written_outside(whole), 0);
  for (int i = 0; i < 3; ++i) {
    const Cut cut = random_cut(random, in_blocks);
    Placed out(c.n, c.out, c.out_h(), c.out_w(), v, 1);
    report.check(name + ", shares of " + std::to_string(cut.threads) + " threads", run(out, cut), 0);
    report.check(name + ", bits with " + std::to_string(cut.threads) + " threads, split " +
                     std::to_string(cut.channel_split) + ", chunks " + std::to_string(cut.chunk_blocks) + " and " +
                     std::to_string(cut.chunk_tiles),
                 different_bits(whole, out), 0);
    report.check(name + ", written outside", written_outside(out), 0);
  }
}

void check_direct(const KernelTable& table, Random& random, Report& report) {
  const int v = table.vector_width;
  Convolution c = random_convolution(random);
  int lanes = v;
  c.in = random.whole(1, 4 * v);
  c.out = random.whole(1, 9 * v);
  if (random.whole(0, 2) == 0) {  // groups of whole blocks
    c.groups = random.whole(2, 3);
    c.in = c.groups * v * random.whole(1, 2);
    c.out = c.groups * v * random.whole(1, 5);
  } else if (random.whole(0, 2) == 0) {  // interleaved
    lanes = c.in = random.whole(1, 5);
  }
  const Operands operands(c, random);
  c.unit_blocks = table.tall_blocks > 0 && random.coin() ? table.tall_blocks : table.tile_blocks;
  Floats weights = pack_direct(table, operands.weights, c.groups, lanes, c.unit_blocks);
  check(table, "conv_direct", c, lanes, 0, weights, operands, 2e-5, random, report);
}

void check_depthwise(const KernelTable& table, Random& random, Report& report) {
  Convolution c = random_convolution(random);
  c.in = c.out = c.groups = random.whole(1, 4 * table.vector_width);
  const Operands operands(c, random);
  Floats weights = pack_depthwise(table, operands.weights);
  check(table, "conv_depthwise", c, table.vector_width, 0, weights, operands, 2e-5, random, report);
}

void check_grouped(const KernelTable& table, Random& random, Report& report) {
  Convolution c = random_convolution(random);
  const int stride = random.whole(1, 2), channels = table.vector_width > 4 && random.coin() ? 8 : 4;
  c.window = {3, 3, stride, stride, 1, 1, c.window.top, c.window.left};
  c.h = random.whole(std::max(1, 3 - c.window.top - c.bottom), 12);
  c.w = random.whole(std::max(1, 3 - c.window.left - c.right), 40);
  c.groups = random.whole(1, 3 * table.vector_width / channels);
  c.in = c.out = c.groups * channels;
  const Operands operands(c, random);
  Floats weights = pack_grouped(table, operands.weights);
  check(table, "conv_grouped", c, table.vector_width, 0, weights, operands, 2e-5, random, report);
}

void check_winograd(const KernelTable& table, int m, int taps, Random& random, Report& report) {
  const int v = table.vector_width;
  Convolution c = random_convolution(random);
  c.window = {taps, taps, 1, 1, 1, 1, c.window.top, c.window.left};
  c.h = random.whole(std::max(1, taps - c.window.top - c.bottom), 14);
  c.w = random.whole(std::max(1, taps - c.window.left - c.right), 14);
  c.in = random.whole(1, 3 * v);
  c.out = random.whole(1, 6 * v);
  if (random.whole(0, 3) == 0) {  // groups of whole blocks
    c.groups = random.whole(2, 3);
    c.in = c.groups * v * random.whole(1, 2);
    c.out = c.groups * v * random.whole(1, 5);
  }
  c.halo += m - 1;  // whole tiles are read
  const Operands operands(c, random);
  Floats weights = pack_winograd(table, operands.weights, m, c.groups, table.tile_blocks);
  const std::string family = "conv_winograd" + std::to_string(m) + (taps == 5 ? "x5" : "");
  const int size = m + taps - 1;
  // A slope makes half of the answers smaller, which errors are measured against, and the others' errors stay. Eight
  // points make longer transforms.
  const double tolerance = 1.5 * (size == 8 ? 3e-4 : 1e-4);
  check(table, family, c, v, size * size, weights, operands, tolerance, random, report);
}

}  // namespace

void check_random_convolutions(const KernelTable& table, Report& report) {
  Random random(2026);
  for (int round = 0; round < kRounds; ++round) {
    check_direct(table, random, report);
    check_depthwise(table, random, report);
    check_grouped(table, random, report);
    check_winograd(table, 2, 3, random, report);
    check_winograd(table, 4, 3, random, report);
    check_winograd(table, 6, 3, random, report);
    check_winograd(table, 4, 5, random, report);
  }
}

}  // namespace powerlab::engine::test
