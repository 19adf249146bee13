// Kernels on bfloat16 against double precision, on random shapes: what they read is rounded to bfloat16 before, so that
// only sums and results are rounded.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "tests/test.hpp"

namespace powerlab::engine::test {
namespace {

constexpr int kBlock = 16;
constexpr std::uint16_t kUnwritten = 0xEEEE;

// A tensor of bfloat16 in the kernels' layout, with a halo of zeros; what fills up the last block is finite.
struct PlacedPairs {
  Floats memory;
  View view;

  PlacedPairs(int n, int c, int h, int w, int halo)
      : memory(static_cast<std::size_t>(n) * ((c + kBlock - 1) / kBlock) * (kBlock / 2) * (h + 2 * halo) *
               (w + 2 * halo)),
        view(view_in_blocks(memory.data(), n, c, h, w, kBlock, kBlock / 2, halo)) {
    std::memset(memory.data(), 0xEE, memory.size() * sizeof(float));
  }
  std::uint16_t& at(int n, int c, int y, int x) {
    float* pixel = view.data + n * view.image + c / kBlock * view.plane + y * view.row + x * view.pixel;
    return reinterpret_cast<std::uint16_t*>(pixel)[c % kBlock];
  }
  void put(const reference::Tensor& t) {
    std::memset(memory.data(), 0, memory.size() * sizeof(float));
    for (int n = 0; n < t.n; ++n) {
      for (int c = 0; c < view.blocks * kBlock; ++c) {
        for (int y = 0; y < t.h; ++y) {
          for (int x = 0; x < t.w; ++x) at(n, c, y, x) = bfloat16_bits(c < t.c ? t.at(n, c, y, x, 0.0) : 3);
        }
      }
    }
  }
  // Largest difference over the largest expected magnitude; infinite where a result is not a number.
  double error(const reference::Tensor& t) {
    double difference = 0, magnitude = 1e-30;
    for (int n = 0; n < t.n; ++n) {
      for (int c = 0; c < t.c; ++c) {
        for (int y = 0; y < t.h; ++y) {
          for (int x = 0; x < t.w; ++x) {
            const double d = std::abs(of_bfloat16(at(n, c, y, x)) - t.at(n, c, y, x, 0.0));
            if (!(d < 1e30)) return std::numeric_limits<double>::infinity();
            difference = std::max(difference, d);
            magnitude = std::max(magnitude, std::abs(t.at(n, c, y, x, 0.0)));
          }
        }
      }
    }
    return difference / magnitude;
  }
  int written_around() {
    int count = 0;
    const View& v = view;
    for (int n = 0; n < v.n; ++n) {
      for (int c = 0; c < v.blocks * kBlock; ++c) {
        for (int y = -v.top; y < v.h + v.bottom; ++y) {
          for (int x = -v.left; x < v.w + v.right; ++x) {
            if (y < 0 || y >= v.h || x < 0 || x >= v.w) count += at(n, c, y, x) != kUnwritten;
          }
        }
      }
    }
    return count;
  }
};

// [unit][input block][kernel_h][kernel_w][word][vector][v][channel of the word], as kernels/pairs/conv_pairs.hpp says.
Floats packed_weights(const reference::Tensor& weights, int groups, int v, int tile_blocks) {
  const int outputs = weights.n / groups, vectors = (outputs + v - 1) / v;
  const int units = (vectors + tile_blocks - 1) / tile_blocks, blocks = (weights.c + kBlock - 1) / kBlock;
  std::vector<std::uint16_t> packed;
  for (int group = 0; group < groups; ++group) {
    for (int unit = 0; unit < units; ++unit) {
      for (int at = 0; at < blocks * weights.h * weights.w * kBlock / 2; ++at) {
        const int word = at % (kBlock / 2), tap = at / (kBlock / 2) % (weights.h * weights.w);
        const int block = at / (kBlock / 2) / (weights.h * weights.w);
        for (int o = unit * vectors / units * v; o < (unit + 1) * vectors / units * v; ++o) {
          for (int i = block * kBlock + 2 * word; i < block * kBlock + 2 * word + 2; ++i) {
            const bool there = o < outputs && i < weights.c;
            packed.push_back(
                there ? bfloat16_bits(weights.at(group * outputs + o, i, tap / weights.w, tap % weights.w, 0.0))
                      : std::uint16_t{0});
          }
        }
      }
    }
  }
  Floats floats(packed.size() / 2);
  std::memcpy(floats.data(), packed.data(), packed.size() * 2);
  return floats;
}

struct PairCase {
  int n, groups, in, out, h, w;  // channels of a group
  reference::Window window;
  bool floats, residual, narrow_residual, function;
};

PairCase random_case(Random& random) {
  PairCase c{};
  c.n = random.whole(1, 2);
  c.groups = random.coin() ? 1 : random.whole(2, 3);
  c.in = c.groups > 1 ? 16 * random.whole(1, 2) : random.whole(1, 50);
  c.out = c.groups > 1 ? 16 * random.whole(1, 5) : random.whole(1, 150);
  c.window.kernel_h = random.whole(1, 3);
  c.window.kernel_w = random.whole(1, 3);
  c.window.stride_h = random.whole(1, 2);
  c.window.stride_w = random.whole(1, 2);
  c.window.dilation_h = random.whole(1, 2);
  c.window.dilation_w = random.whole(1, 2);
  c.window.top = random.whole(0, 1);
  c.window.left = random.whole(0, 1);
  c.h = random.whole(5, 8);
  c.w = random.whole(5, 16);
  c.floats = random.coin();
  c.residual = random.coin();
  c.narrow_residual = random.coin();
  c.function = random.coin();
  return c;
}

double silu(double x) { return x / (1 + std::exp(-x)); }

void check_conv(const KernelTable& table, const PairTable& pairs, const PairCase& c, Random& random, Report& report) {
  const int v = table.vector_width, in = c.in * c.groups, out = c.out * c.groups;
  const int out_h =
      (c.h + 2 * c.window.top - (c.window.kernel_h - 1) * c.window.dilation_h - 1) / c.window.stride_h + 1;
  const int out_w =
      (c.w + 2 * c.window.left - (c.window.kernel_w - 1) * c.window.dilation_w - 1) / c.window.stride_w + 1;
  reference::Tensor x(c.n, in, c.h, c.w), weights(out, c.in, c.window.kernel_h, c.window.kernel_w);
  reference::Tensor residual(c.n, out, out_h, out_w), summed(c.n, out, out_h, out_w), expected(c.n, out, out_h, out_w);
  std::vector<double> bias(static_cast<std::size_t>(out));
  for (auto* values : {&x.values, &weights.values, &residual.values, &bias}) {
    random.fill(*values);
    std::ranges::transform(*values, values->begin(), nearest_bfloat16);
  }
  const reference::Clamp clamp = random.coin() ? reference::Clamp{-0.5, 2, 0.25} : reference::Clamp{-1e30, 1e30};
  reference::conv(x, weights, bias, c.residual ? &residual : nullptr, c.window, c.groups, clamp, summed);
  reference::function(summed, c.function ? silu : [](double value) { return value; }, expected);

  PlacedPairs placed(c.n, in, c.h, c.w, 2), narrow_residual(c.n, out, out_h, out_w, 1);
  placed.put(x);
  narrow_residual.put(residual);
  Placed wide_residual(c.n, out, out_h, out_w, v, 1);
  wide_residual.put(residual);
  Floats packed = packed_weights(weights, c.groups, v, pairs.tile_blocks);
  Floats biases(static_cast<std::size_t>((out + v - 1) / v * v));
  for (std::size_t i = 0; i < bias.size(); ++i) biases[i] = static_cast<float>(bias[i]);
  Step step{};
  step.x = placed.view;
  if (c.residual) step.y = c.narrow_residual ? narrow_residual.view : wide_residual.view;
  step.numbers[0] = c.narrow_residual;
  step.weights = packed.data();
  step.bias = biases.data();
  set_window(step, c.window);
  set_clamp(step, clamp);
  step.function = c.function ? kSilu : kNoFunction;
  step.groups = c.groups;
  step.lanes = step.last_lanes = kBlock / 2;
  const std::string what = std::string(c.floats ? "bf16 conv to floats" : "bf16 conv ") + std::to_string(c.groups) +
                           " x " + std::to_string(c.in) + " to " + std::to_string(c.out) + " kernel " +
                           std::to_string(c.window.kernel_h) + "x" + std::to_string(c.window.kernel_w);
  const char* family = c.floats ? "conv_direct_bf16_f32" : "conv_direct_bf16";
  std::vector<float> first;
  for (const int threads : {1, 2, 3, 4}) {
    step.channel_split = threads == 4 ? 2 : threads;
    step.chunk_tiles = random.whole(1, 40);
    if (c.floats) {
      Placed made(c.n, out, out_h, out_w, v, 1);
      step.out = made.view;
      run_kernel(table, family, step, threads);
      report.check(what, error(made, expected), 1e-5);
      report.check(what + " writes elsewhere", written_outside(made), 0);
      report.check(what + " owners", misowned(table, family, step, made.view, threads), 0);
      continue;
    }
    PlacedPairs made(c.n, out, out_h, out_w, 1);
    step.out = made.view;
    run_kernel(table, family, step, threads);
    report.check(what, made.error(expected), 1.0 / 256);
    report.check(what + " writes elsewhere", made.written_around(), 0);
    const std::vector<float> all(made.memory.data(), made.memory.data() + made.memory.size());
    if (threads == 1) first = all;
    report.check(what + " on threads", std::memcmp(first.data(), all.data(), all.size() * sizeof(float)) != 0, 0);
  }
}

// Numbers whose lower halves lie between two bfloat16, and the even one of two that are as near.
void check_conversions(const KernelTable& table, Random& random, Report& report) {
  const int v = table.vector_width;
  for (const int channels : {1, 15, 16, 40}) {
    reference::Tensor x(2, channels, 3, 5);
    random.fill(x.values);
    x.values[0] = 1.00390625;
    x.values[1] = 1.01171875;
    Placed from(2, channels, 3, 5, v, 1);
    from.put(x);
    for (const int threads : {1, 3}) {
      PlacedPairs to(2, channels, 3, 5, 1);
      Step step{};
      step.x = from.view;
      step.out = to.view;
      run_kernel(table, "narrow_blocks", step, threads);
      int wrong = 0;
      for (int n = 0; n < 2; ++n) {
        for (int c = 0; c < to.view.blocks * kBlock; ++c) {
          for (int i = 0; i < 15; ++i) {
            wrong += to.at(n, c, i / 5, i % 5) != (c < channels ? bfloat16_bits(x.at(n, c, i / 5, i % 5, 0.0)) : 0);
          }
        }
      }
      report.check("floats in blocks to bf16", wrong, 0);
      report.check("floats in blocks to bf16 writes elsewhere", to.written_around(), 0);
    }
  }
  {
    // x / 2 + 1/4, what is below 0 halved, all below 3/8: exact.
    const int channels = 40;
    reference::Tensor x(2, channels, 3, 5), expected = x;
    for (double& value : x.values) value = random.whole(-64, 64) / 64.0;
    for (std::size_t i = 0; i < x.values.size(); ++i) {
      const double value = x.values[i] / 2 + 0.25;
      expected.values[i] = std::min(value < 0 ? value / 2 : value, 0.375);
    }
    Placed from(2, channels, 3, 5, v, 1);
    from.put(x);
    Floats scale(48, 0.5f), shift(48, 0.25f);
    PlacedPairs to(2, channels, 3, 5, 1);
    Step step{};
    step.x = from.view;
    step.out = to.view;
    step.weights = scale.data();
    step.bias = shift.data();
    step.x_low = -9;
    step.x_high = 0.375f;
    step.x_slope = 0.5f;
    run_kernel(table, "narrow_changed", step, 3);
    report.check("changed floats to bf16", to.error(expected), 0);
  }
  for (const int features : {1, 16, 37, 64}) {
    const int rows = 5, words = (features + kBlock - 1) / kBlock * kBlock / 2;
    Floats from(static_cast<std::size_t>(rows * features)), to(static_cast<std::size_t>(rows * words));
    for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<float>(random.next());
    Step step{};
    step.x.data = from.data();
    step.x.w = step.x.row = features;
    step.out.data = to.data();
    step.out.h = rows;
    step.out.w = step.out.row = words;
    run_kernel(table, "narrow_rows", step, 2);
    int wrong = 0;
    for (int row = 0; row < rows; ++row) {
      const auto* halves = reinterpret_cast<const std::uint16_t*>(to.data() + row * words);
      for (int i = 0; i < 2 * words; ++i) {
        wrong += halves[i] != (i < features ? bfloat16_bits(from[static_cast<std::size_t>(row * features + i)]) : 0);
      }
    }
    report.check("rows of floats to bf16", wrong, 0);
  }
}

// Weights packed in a run as they are when a model is loaded; the groups of a convolution of few channels become one.
void check_packing(const KernelTable& table, const PairTable& pairs, Random& random, Report& report) {
  const int merged = random.coin() ? 1 : 16, groups = merged > 1 ? 2 : random.whole(1, 2);
  const int outputs = merged > 1 ? 2 : groups > 1 ? 16 * random.whole(1, 6) : random.whole(1, 130);
  const int inputs = merged > 1 ? 1 : random.whole(1, 40), kh = random.whole(1, 3), kw = random.whole(1, 3);
  reference::Tensor own(groups * merged * outputs, inputs, kh, kw);
  random.fill(own.values);
  reference::Tensor whole(own.n, inputs * merged, kh, kw);
  Floats from(own.values.size()), turned(own.values.size());
  const int taps = kh * kw, each = outputs * inputs * taps;
  for (std::size_t at = 0; at < from.size(); ++at) {
    const int i = static_cast<int>(at), output = i / taps / inputs, input = i / taps % inputs, tap = i % taps;
    whole.values[static_cast<std::size_t>(((output * merged + output / outputs % merged) * inputs + input) * taps +
                                          tap)] = own.values[at];
    from[at] = static_cast<float>(own.values[at]);
    const int place = output / outputs * each + (input * outputs + output % outputs) * taps + taps - 1 - tap;
    turned[static_cast<std::size_t>(place)] = from[at];
  }
  Floats wanted = packed_weights(whole, groups, table.vector_width, pairs.tile_blocks), packed(wanted.size());
  const std::int64_t one = each, row = static_cast<std::int64_t>(inputs) * taps;
  const std::vector<std::int64_t> sizes{groups * merged, outputs, inputs, kh, kw};
  for (const bool backwards : {false, true}) {  // as for the gradient of what a convolution read
    const std::int64_t column = static_cast<std::int64_t>(outputs) * taps;
    const Strided weights = backwards ? strided(turned.data() + taps - 1, sizes, {one, taps, column, -kw, -1})
                                      : strided(from.data(), sizes, {one, row, taps, kw, 1});
    const Strided operands[] = {strided(packed.data(), {static_cast<std::int64_t>(packed.size())}, {1}), weights};
    Step step{};
    step.operands = operands;
    step.operand_count = 2;
    step.numbers[0] = pairs.tile_blocks;
    step.numbers[1] = merged;
    run_kernel(table, "pack_kernels_bf16", step, random.whole(1, 5));
    report.check("weights packed to bf16", std::memcmp(packed.data(), wanted.data(), 4 * packed.size()) != 0, 0);
  }
}

}  // namespace

void check_pairs(const KernelTable& table, Report& report) {
  const PairTable* pairs = pair_table(table);
  if (!pairs) return;
  Random random(19);
  for (int round = 0; round < 120; ++round) check_conv(table, *pairs, random_case(random), random, report);
  for (int round = 0; round < 40; ++round) check_packing(table, *pairs, random, report);
  check_conversions(table, random, report);
  std::printf("%s: %s: kernels on bfloat16\n", table.tier, pairs->name);
}

}  // namespace powerlab::engine::test
