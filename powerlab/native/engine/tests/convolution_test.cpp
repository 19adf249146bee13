#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tests/packing.hpp"
#include "tests/test.hpp"

namespace powerlab::engine::test {
namespace {

constexpr double kTolerance = 2e-5;
constexpr double kWinogradTolerance = 1e-4;

struct ConvCase {
  int n, in, out, h, w, kernel, stride, pad, dilation, groups;
  bool residual, relu;
};

std::string name(const char* family, const KernelTable& table, const ConvCase& c, int threads) {
  return std::string(find_kernel(table, family).name) + " n" + std::to_string(c.n) + " " + std::to_string(c.in) + "->" +
         std::to_string(c.out) + " " + std::to_string(c.h) + "x" + std::to_string(c.w) + " k" +
         std::to_string(c.kernel) + " s" + std::to_string(c.stride) + " p" + std::to_string(c.pad) + " d" +
         std::to_string(c.dilation) + " g" + std::to_string(c.groups) + " threads " + std::to_string(threads);
}

// All operands of one case, random; `expected` from the reference.
struct Problem {
  reference::Tensor x, weights, residual, expected;
  std::vector<double> bias;
  double low, high;

  static int out_size(int size, const ConvCase& c) {
    return (size + 2 * c.pad - (c.kernel - 1) * c.dilation - 1) / c.stride + 1;
  }

  explicit Problem(const ConvCase& c)
      : x(c.n, c.in, c.h, c.w),
        weights(c.out, c.in / c.groups, c.kernel, c.kernel),
        residual(c.n, c.out, out_size(c.h, c), out_size(c.w, c)),
        expected(residual.n, residual.c, residual.h, residual.w),
        bias(static_cast<std::size_t>(c.out)),
        low(c.relu ? 0.0 : -std::numeric_limits<double>::infinity()),
        high(c.relu ? 6.0 : std::numeric_limits<double>::infinity()) {
    Random random;
    random.fill(x.values);
    random.fill(weights.values);
    random.fill(residual.values);
    random.fill(bias);
    const reference::Window window{c.kernel, c.kernel, c.stride, c.stride, c.dilation, c.dilation, c.pad, c.pad};
    reference::conv(x, weights, bias, c.residual ? &residual : nullptr, window, c.groups, {low, high}, expected);
  }
};

Step step_of(const ConvCase& c, const Problem& problem) {
  Step step{};
  step.kernel_h = step.kernel_w = c.kernel;
  step.stride_h = step.stride_w = c.stride;
  step.dilation_h = step.dilation_w = c.dilation;
  step.pad_top = step.pad_left = c.pad;
  step.low = static_cast<float>(problem.low);
  step.high = static_cast<float>(problem.high);
  step.groups = c.groups;
  return step;
}

Floats filled(const std::vector<double>& values, int blocks, int width) {
  Floats floats(static_cast<std::size_t>(blocks) * width);
  for (std::size_t i = 0; i < values.size(); ++i) floats[i] = static_cast<float>(values[i]);
  return floats;
}

void check(const KernelTable& table, const char* family, const ConvCase& c, int lanes, Report& report) {
  const Problem problem(c);
  const std::string kind = family;
  Placed x(c.n, c.in, c.h, c.w, lanes, c.pad);
  Placed residual(c.n, c.out, problem.expected.h, problem.expected.w, table.vector_width, 0);
  x.put(problem.x);
  residual.put(problem.residual);
  Placed first(c.n, c.out, problem.expected.h, problem.expected.w, table.vector_width, 1);
  for (const int threads : {1, 2, 3}) {
    const int unit_blocks = threads == 2 && table.tall_blocks > 0 ? table.tall_blocks : table.tile_blocks;
    Floats weights = kind == "conv_direct"    ? pack_direct(table, problem.weights, c.groups, lanes, unit_blocks)
                     : kind == "conv_grouped" ? pack_grouped(table, problem.weights)
                                              : pack_depthwise(table, problem.weights);
    for (const int split : {1, threads}) {
      Placed out(c.n, c.out, problem.expected.h, problem.expected.w, table.vector_width, 1);
      Floats bias = filled(problem.bias, out.view.blocks, table.vector_width);
      Step step = step_of(c, problem);
      step.x = x.view;
      step.out = out.view;
      if (c.residual) step.y = residual.view;
      step.weights = weights.data();
      step.bias = bias.data();
      step.lanes = lanes;
      step.last_lanes = c.in / c.groups - (x.view.blocks / c.groups - 1) * lanes;
      step.chunk_blocks = threads;  // also tries several chunks
      step.chunk_tiles = threads == 1 ? 1 << 20 : 3;
      step.channel_split = split;
      step.unit_blocks = unit_blocks;
      run_kernel(table, family, step, threads);
      report.check(name(family, table, c, threads), error(out, problem.expected), kTolerance);
      if (threads == 1) {
        first = std::move(out);
      } else {  // nor does the register tile change a bit
        report.check(name(family, table, c, threads) + ", bits", different_bits(first, out), 0);
      }
    }
  }
}

void check_winograd(const KernelTable& table, const std::string& family, int m, const ConvCase& c, Report& report) {
  const Problem problem(c);
  const int v = table.vector_width, chunk_tiles = 5, size = m + c.kernel - 1;
  Placed x(c.n, c.in, c.h, c.w, v, c.pad + (m + 1) * c.dilation),
      residual(c.n, c.out, problem.expected.h, problem.expected.w, v, 0);
  x.put(problem.x);
  residual.put(problem.residual);
  for (const int threads : {1, 2, 3, 4}) {
    const int unit_blocks = threads % 2 == 0 ? 1 + threads / 4 : table.tile_blocks;
    Floats weights = pack_winograd(table, problem.weights, m, c.groups, unit_blocks);
    Placed out(c.n, c.out, problem.expected.h, problem.expected.w, v, 1);
    Floats bias = filled(problem.bias, out.view.blocks, v);
    Step step = step_of(c, problem);
    step.x = x.view;
    step.out = out.view;
    if (c.residual) step.y = residual.view;
    step.weights = weights.data();
    step.bias = bias.data();
    step.last_lanes = c.in / c.groups - (x.view.blocks / c.groups - 1) * v;
    step.chunk_tiles = chunk_tiles;
    step.channel_split = (threads + 1) / 2;  // 4 threads divide both tiles and channels
    step.unit_blocks = unit_blocks;
    step.scratch.image = size * size * ((x.view.blocks + table.tile_blocks) * chunk_tiles + 2) * v;
    Floats scratch(static_cast<std::size_t>(threads * step.scratch.image), std::numeric_limits<float>::quiet_NaN());
    step.scratch.data = scratch.data();
    run_kernel(table, family.c_str(), step, threads);
    report.check(name(family.c_str(), table, c, threads), error(out, problem.expected), kWinogradTolerance);
  }
}

}  // namespace

void check_convolutions(const KernelTable& table, Report& report) {
  const int v = table.vector_width;
  const ConvCase cases[] = {
      {1, v, v, 5, 5, 1, 1, 0, 1, 1, false, false},         {2, 2 * v, 4 * v, 7, 7, 3, 1, 1, 1, 1, true, true},
      {1, 3 * v, 5 * v, 6, 13, 3, 2, 1, 1, 1, false, true}, {1, 40, 72, 7, 7, 3, 1, 1, 1, 1, true, true},
      {1, v + 1, v + 3, 9, 8, 5, 1, 2, 1, 1, false, false}, {3, 2 * v, 3 * v, 4, 4, 1, 2, 0, 1, 1, false, false},
      {1, v, 2 * v, 11, 11, 3, 1, 2, 2, 1, true, false},    {1, 4 * v, 6 * v, 6, 6, 3, 1, 1, 1, 2, false, true},
      {2, 2 * v, 2 * v, 1, 1, 1, 1, 0, 1, 1, false, false},
  };
  for (const ConvCase& c : cases) check(table, "conv_direct", c, v, report);
  check(table, "conv_direct", {1, 3, 2 * v + 1, 11, 12, 7, 2, 3, 1, 1, false, true}, 3, report);  // interleaved
}

void check_winograd(const KernelTable& table, Report& report) {
  const int v = table.vector_width;
  const ConvCase cases[] = {
      {1, v, v, 8, 8, 3, 1, 1, 1, 1, false, false},         {2, 2 * v + 3, 5 * v + 1, 7, 9, 3, 1, 1, 1, 1, true, true},
      {1, 3 * v, 2 * v, 13, 6, 3, 1, 0, 1, 1, false, true}, {1, 1, 1, 3, 3, 3, 1, 0, 1, 1, false, false},
      {1, 6 * v, 9 * v, 6, 7, 3, 1, 1, 1, 3, true, true},   {2, v + 3, 2 * v, 13, 10, 3, 1, 2, 2, 1, true, true},
      {1, 2 * v, 4 * v, 9, 17, 3, 1, 3, 3, 2, false, true}, {1, v, v, 12, 11, 3, 1, 1, 4, 1, false, false},
  };
  for (const ConvCase& c : cases) {
    for (const int m : {2, 4, 6}) check_winograd(table, "conv_winograd" + std::to_string(m), m, c, report);
  }
  const ConvCase wide[] = {
      {1, v, v, 9, 9, 5, 1, 2, 1, 1, false, false},
      {2, 2 * v + 3, 5 * v + 1, 7, 10, 5, 1, 2, 1, 1, true, true},
      {1, 4 * v, 6 * v, 13, 6, 5, 1, 1, 1, 2, false, true},
      {1, 1, 1, 5, 5, 5, 1, 0, 1, 1, false, false},
  };
  for (const ConvCase& c : wide) check_winograd(table, "conv_winograd4x5", 4, c, report);
}

void check_depthwise(const KernelTable& table, Report& report) {
  const int v = table.vector_width;
  const ConvCase cases[] = {
      {1, v, v, 9, 9, 3, 1, 1, 1, v, false, true},
      {2, 3 * v, 3 * v, 7, 20, 3, 2, 1, 1, 3 * v, true, false},
      {1, v + 5, v + 5, 10, 10, 5, 1, 2, 1, v + 5, false, false},
      {1, 2 * v, 2 * v, 12, 12, 3, 1, 2, 2, 2 * v, false, false},
      {1, v, v, 7, 7, 3, 1, 1, 1, v, true, true},  // rows of one tile
      {1, v, v, 13, 13, 5, 2, 2, 1, v, true, false},
      {1, v, v, 9, 19, 7, 1, 3, 1, v, false, true},
      {1, v, v, 14, 15, 9, 1, 4, 1, v, true, false},
      {1, v, v, 15, 14, 7, 2, 3, 1, v, false, false},
      {1, v, v, 12, 13, 11, 1, 5, 1, v, false, false},
      {1, v, v, 8, 9, 4, 1, 1, 1, v, false, false},
  };
  for (const ConvCase& c : cases) check(table, "conv_depthwise", c, v, report);
}

void check_grouped(const KernelTable& table, Report& report) {
  const int v = table.vector_width;
  for (int channels = 4; channels <= 8 && channels <= v; channels += 4) {
    const int all = 3 * v + channels;
    check(table, "conv_grouped", {2, all, all, 9, 23, 3, 1, 1, 1, all / channels, true, true}, v, report);
    check(table, "conv_grouped", {1, v, v, 8, 19, 3, 2, 1, 1, v / channels, false, false}, v, report);
  }
}

}  // namespace powerlab::engine::test
