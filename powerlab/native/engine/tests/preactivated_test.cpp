// Convolutions of what they scale, shift and activate themselves, of random shapes: right to rounding, the same bits
// however the work is cut, and nothing written elsewhere.
#include <limits>
#include <string>
#include <vector>

#include "tests/packing.hpp"
#include "tests/test.hpp"

namespace powerlab::engine::test {
namespace {

constexpr int kRounds = 40;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

// One random convolution with its operands.
struct Preactivated {
  reference::Tensor x, weights, residual, expected;
  std::vector<double> bias, scale, shift;
  reference::Clamp before, after;
  bool with_residual;

  Preactivated(const KernelTable& table, Random& random)
      : x(random.whole(1, 3), random.whole(1, 5 * table.vector_width), random.whole(1, 9), random.whole(1, 19)),
        weights(random.whole(1, 9 * table.vector_width), x.c, 1, 1),
        residual(x.n, weights.n, x.h, x.w),
        expected(x.n, weights.n, x.h, x.w),
        bias(static_cast<std::size_t>(weights.n)),
        scale(static_cast<std::size_t>(x.c)),
        shift(scale.size()),
        before(clamp(random)),
        after(clamp(random)),
        with_residual(random.coin()) {
    after.adds_last = random.coin();
    for (auto* values : {&x.values, &weights.values, &residual.values, &bias, &scale, &shift}) random.fill(*values);
    reference::Tensor activated(x.n, x.c, x.h, x.w);
    reference::scale_shift(x, scale, shift, before, activated);
    reference::conv(activated, weights, bias, with_residual ? &residual : nullptr, {}, 1, after, expected);
  }

  static reference::Clamp clamp(Random& random) {
    switch (random.whole(0, 2)) {
      case 0:
        return {0, kInfinity};
      case 1:
        return {-kInfinity, kInfinity, random.whole(0, 8) / 8.0};
      default:
        return {-0.25, 0.5, random.whole(0, 8) / 8.0};
    }
  }

  // Bias, scales and shifts, each filled up to whole blocks; what fills up x is no number, since nobody may count on
  // it.
  Floats channels(int width) const {
    std::vector<float> all;
    const auto append = [&](const std::vector<double>& values, float filling) {
      for (const double value : values) all.push_back(static_cast<float>(value));
      while (all.size() % static_cast<std::size_t>(width) != 0) all.push_back(filling);
    };
    append(bias, 0);
    append(scale, std::numeric_limits<float>::quiet_NaN());
    append(shift, std::numeric_limits<float>::quiet_NaN());
    Floats floats(all.size());
    for (std::size_t i = 0; i < all.size(); ++i) floats[i] = all[i];
    return floats;
  }
};

// [chunk][output unit][input block][lane][block of the unit][v], as kernels/convolution/conv_preactivated.hpp says.
Floats pack(const KernelTable& table, const reference::Tensor& weights, int chunk_blocks) {
  const int v = table.vector_width, lanes = chunk_blocks * v, blocks = (weights.n + v - 1) / v;
  Floats packed(static_cast<std::size_t>(blocks * v) * static_cast<std::size_t>(weights.c));
  std::size_t at = 0;
  for (int first = 0; first < weights.c; first += lanes) {
    reference::Tensor part(weights.n, lanes < weights.c - first ? lanes : weights.c - first, 1, 1);
    for (int o = 0; o < part.n; ++o) {
      for (int i = 0; i < part.c; ++i) part.at(o, i, 0, 0) = weights.at(o, first + i, 0, 0, 0.0);
    }
    Floats chunk = pack_direct(table, part, 1, v, table.tile_blocks);
    for (std::size_t i = 0; i < chunk.size(); ++i) packed[at++] = chunk[i];
  }
  return packed;
}

struct Cut {
  int threads, channel_split, chunk_blocks, chunk_tiles;
};

void check(const KernelTable& table, const Preactivated& conv, Random& random, Report& report) {
  const int v = table.vector_width;
  const reference::Tensor& expected = conv.expected;
  Placed x(conv.x.n, conv.x.c, conv.x.h, conv.x.w, v, random.whole(0, 2));
  Placed residual(expected.n, expected.c, expected.h, expected.w, v, 1);
  x.put(conv.x);
  residual.put(conv.residual);
  Floats channels = conv.channels(v);
  const auto run = [&](Placed& out, const Cut& cut) {
    Floats weights = pack(table, conv.weights, cut.chunk_blocks);
    Step step{};
    step.x = x.view;
    step.out = out.view;
    if (conv.with_residual) step.y = residual.view;
    step.weights = weights.data();
    step.bias = channels.data();
    step.low = static_cast<float>(conv.after.low);
    step.high = static_cast<float>(conv.after.high);
    step.slope = static_cast<float>(conv.after.slope);
    step.adds_last = conv.after.adds_last;
    step.x_low = static_cast<float>(conv.before.low);
    step.x_high = static_cast<float>(conv.before.high);
    step.x_slope = static_cast<float>(conv.before.slope);
    step.groups = 1;
    step.last_lanes = conv.x.c - (x.view.blocks - 1) * v;
    step.channel_split = cut.channel_split;
    step.chunk_blocks = cut.chunk_blocks;
    step.chunk_tiles = cut.chunk_tiles;
    step.scratch.image = (cut.chunk_blocks + out.view.blocks) * (cut.chunk_tiles * table.tile_pixels + 1) * v;
    Floats scratch(static_cast<std::size_t>(cut.threads * step.scratch.image), std::numeric_limits<float>::quiet_NaN());
    step.scratch.data = scratch.data();
    run_kernel(table, "conv_preactivated", step, cut.threads);
    return misowned(table, "conv_preactivated", step, out.view, cut.threads);
  };
  const std::string name = std::string(find_kernel(table, "conv_preactivated").name) + " " + std::to_string(conv.x.n) +
                           " " + std::to_string(conv.x.c) + " " + std::to_string(conv.x.h) + " " +
                           std::to_string(conv.x.w) + " to " + std::to_string(expected.c);
  Placed whole(expected.n, expected.c, expected.h, expected.w, v, 1);
  run(whole, {1, 1, x.view.blocks, 200});
  report.check(name, error(whole, expected), 2e-5);
  report.check(name + ", written outside", written_outside(whole), 0);
  for (int i = 0; i < 3; ++i) {
    const int threads = random.whole(1, 7);
    const Cut cut{threads, random.whole(1, threads), random.whole(1, x.view.blocks), random.whole(1, 9)};
    const std::string how = ", " + std::to_string(cut.threads) + " threads, channels in " +
                            std::to_string(cut.channel_split) + " parts, chunks " + std::to_string(cut.chunk_blocks) +
                            " and " + std::to_string(cut.chunk_tiles);
    Placed out(expected.n, expected.c, expected.h, expected.w, v, 1);
    report.check(name + how + ", shares", run(out, cut), 0);
    report.check(name + how + ", bits", different_bits(whole, out), 0);
    report.check(name + how + ", written outside", written_outside(out), 0);
  }
}

}  // namespace

void check_preactivated(const KernelTable& table, Report& report) {
  Random random(1603);
  for (int round = 0; round < kRounds; ++round) check(table, Preactivated(table, random), random, report);
}

}  // namespace powerlab::engine::test
