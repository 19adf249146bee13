// Chains of random convolutions: right to rounding, the same bits however the work is cut, and nothing written
// elsewhere.
#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <vector>

#include "tests/packing.hpp"
#include "tests/test.hpp"

namespace powerlab::engine::test {
namespace {

constexpr int kRounds = 40;
constexpr double kTolerance = 4e-5;  // the roundings of three convolutions

struct Chain {
  int n, in, hidden, out, h, w;
  reference::Window head, depthwise;
  bool tail, residual;

  static int result(int size, int padding, int kernel, int dilation, int stride) {
    return (size + 2 * padding - (kernel - 1) * dilation - 1) / stride + 1;
  }
  int hidden_h() const { return result(h, head.top, head.kernel_h, 1, head.stride_h); }
  int hidden_w() const { return result(w, head.left, head.kernel_w, 1, head.stride_w); }
  int out_h() const {
    return result(hidden_h(), depthwise.top, depthwise.kernel_h, depthwise.dilation_h, depthwise.stride_h);
  }
  int out_w() const {
    return result(hidden_w(), depthwise.left, depthwise.kernel_w, depthwise.dilation_w, depthwise.stride_w);
  }
  int channels() const { return tail ? out : hidden; }
  int reach_h() const { return (depthwise.kernel_h - 1) * depthwise.dilation_h + 1; }
  std::string text() const {
    std::string text;
    for (const int value : {n, in, hidden, out, h, w, head.kernel_h, head.stride_h, head.top, depthwise.kernel_h,
                            depthwise.kernel_w, depthwise.stride_h, depthwise.stride_w, depthwise.dilation_h,
                            depthwise.dilation_w, depthwise.top, depthwise.left, static_cast<int>(tail)}) {
      text.append(1, ' ').append(std::to_string(value));
    }
    return text;
  }
};

Chain random_chain(Random& random, int v) {
  Chain c{};
  c.n = random.whole(1, 3);
  c.in = random.whole(1, 3 * v);
  c.hidden = random.whole(2, 6 * v);
  c.out = random.whole(1, 5 * v);
  c.tail = random.coin();
  c.residual = c.tail && random.coin();
  if (random.coin()) {  // not 1 x 1
    c.head.kernel_h = c.head.kernel_w = 3;
    c.head.stride_h = c.head.stride_w = random.whole(1, 2);
    c.head.top = c.head.left = 1;
  }
  reference::Window& window = c.depthwise;
  const int square = random.whole(1, 5);
  window.kernel_h = square;
  window.kernel_w = random.coin() ? square : random.whole(1, 5);
  window.stride_h = random.whole(1, 3);
  window.stride_w = random.whole(1, 3);
  window.dilation_h = random.whole(1, 2);
  window.dilation_w = random.whole(1, 2);
  window.top = random.whole(0, 3);
  window.left = random.whole(0, 3);
  do {
    c.h = random.whole(3, 26);
    c.w = random.whole(3, 30);
  } while (c.hidden_h() + 2 * window.top < c.reach_h() ||
           c.hidden_w() + 2 * window.left < (window.kernel_w - 1) * window.dilation_w + 1);
  return c;
}

// One convolution of the chain with its weights, and the clamp behind it.
struct Layer {
  reference::Tensor weights;
  std::vector<double> bias;
  reference::Clamp clamp;
  int unit_blocks;
  Floats packed, packed_bias;

  Layer(const KernelTable& table, Random& random, int outputs, int inputs, const reference::Window& window,
        bool depthwise)
      : weights(outputs, depthwise ? 1 : inputs, window.kernel_h, window.kernel_w),
        bias(static_cast<std::size_t>(outputs)),
        clamp{-0.5, random.coin() ? 1.0 : std::numeric_limits<double>::infinity()},
        unit_blocks(table.tall_blocks > 0 && random.coin() ? table.tall_blocks : table.tile_blocks),
        packed(0),
        packed_bias(static_cast<std::size_t>((outputs + table.vector_width - 1) / table.vector_width) *
                    static_cast<std::size_t>(table.vector_width)) {
    random.fill(weights.values);
    for (double& value : weights.values) value /= weights.c;
    random.fill(bias);
    clamp.slope = random.coin() ? 1 : 0.25;
    packed =
        depthwise ? pack_depthwise(table, weights) : pack_direct(table, weights, 1, table.vector_width, unit_blocks);
    for (std::size_t i = 0; i < bias.size(); ++i) packed_bias[i] = static_cast<float>(bias[i]);
  }

  Step step(const reference::Window& window) {
    Step step{};
    step.unit_blocks = unit_blocks;
    set_window(step, window);
    set_clamp(step, clamp);
    step.groups = 1;
    step.weights = packed.data();
    step.bias = packed_bias.data();
    return step;
  }
};

View view_of(int n, int c, int h, int w, int v, int left, int right) {
  View view{};
  view.n = n;
  view.c = c;
  view.h = h;
  view.w = w;
  view.blocks = (c + v - 1) / v;
  view.pixel = v;
  view.row = static_cast<std::int64_t>(left + w + right) * v;
  view.plane = h * view.row;
  view.image = view.blocks * view.plane;
  view.left = left;
  view.right = right;
  return view;
}

struct Cut {
  int threads, channel_split, chunk_blocks, rows;
};

struct Problem {
  const KernelTable& table;
  Chain c;
  Layer head, depthwise, tail;
  reference::Tensor x, residual, expected;

  Problem(const KernelTable& table_, const Chain& chain, Random& random)
      : table(table_),
        c(chain),
        head(table, random, c.hidden, c.in, c.head, false),
        depthwise(table, random, c.hidden, c.hidden, c.depthwise, true),
        tail(table, random, c.out, c.hidden, {}, false),
        x(c.n, c.in, c.h, c.w),
        residual(c.n, c.channels(), c.out_h(), c.out_w()),
        expected(residual) {
    random.fill(x.values);
    random.fill(residual.values);
    reference::Tensor first(c.n, c.hidden, c.hidden_h(), c.hidden_w());
    reference::Tensor second(c.n, c.hidden, c.out_h(), c.out_w());
    reference::conv(x, head.weights, head.bias, nullptr, c.head, 1, head.clamp, first);
    reference::conv(first, depthwise.weights, depthwise.bias, nullptr, c.depthwise, c.hidden, depthwise.clamp, second);
    if (c.tail) {
      reference::conv(second, tail.weights, tail.bias, c.residual ? &residual : nullptr, {}, 1, tail.clamp, expected);
    } else {
      expected = second;
    }
  }

  // What the parts are, but for how the reduction is cut.
  std::array<Step, 3> parts(const Cut& cut, const Placed& in) {
    const int v = table.vector_width, right = c.depthwise.left + c.reach_h() + 16;
    const int slots = (cut.rows - 1) * c.depthwise.stride_h + c.reach_h();
    const int stored = c.tail ? c.hidden : head.unit_blocks * v;
    std::array<Step, 3> parts{head.step(c.head), depthwise.step(c.depthwise), tail.step({})};
    parts[1].x = view_of(1, stored, slots, c.hidden_w(), v, c.depthwise.left, right);
    parts[0].out = view_of(1, c.hidden, c.hidden_h(), c.hidden_w(), v, c.depthwise.left, right);
    parts[0].out.plane = parts[1].x.plane;
    parts[1].out = view_of(1, c.hidden, cut.rows, c.out_w(), v, 0, 0);
    parts[0].x = in.view;
    parts[2].x = parts[1].out;
    for (Step& part : parts) {
      part.lanes = v;
      part.last_lanes = part.x.c - (part.x.blocks - 1) * v;
      part.chunk_blocks = std::min(cut.chunk_blocks, part.x.blocks);
    }
    return parts;
  }

  // Runs the chain; returns how many elements of the output do not belong to exactly one thread.
  int run(Placed& in, Placed& added, Placed& out, const Cut& cut) {
    const std::array<Step, 3> steps = parts(cut, in);
    Step step{};
    step.x = in.view;
    step.out = out.view;
    if (c.residual) step.y = added.view;
    step.parts = steps.data();
    step.part_count = c.tail ? 3 : 2;
    step.channel_split = cut.channel_split;
    step.chunk_tiles = cut.rows;
    step.scratch.image = steps[1].x.image + steps[1].out.image;
    Floats scratch(static_cast<std::size_t>(cut.threads * step.scratch.image), std::numeric_limits<float>::quiet_NaN());
    step.scratch.data = scratch.data();
    run_kernel(table, "conv_chain", step, cut.threads);
    return misowned(table, "conv_chain", step, out.view, cut.threads);
  }
};

void check_chain(const KernelTable& table, Random& random, Report& report) {
  const int v = table.vector_width;
  Problem problem(table, random_chain(random, v), random);
  const Chain& c = problem.c;
  Placed in(c.n, c.in, c.h, c.w, v, 1), added(c.n, c.channels(), c.out_h(), c.out_w(), v, random.whole(0, 1));
  in.put(problem.x);
  added.put(problem.residual);
  Placed whole(c.n, c.channels(), c.out_h(), c.out_w(), v, random.whole(0, 1));
  const std::string name = std::string(find_kernel(table, "conv_chain").name) + c.text();
  report.check(name + ", shares", problem.run(in, added, whole, {1, 1, 1 << 20, c.out_h()}), 0);
  report.check(name, error(whole, problem.expected), kTolerance);
  for (int i = 0; i < 3; ++i) {
    Cut cut{random.whole(1, 5), 1, random.whole(1, 3), random.whole(1, c.out_h())};
    if (!c.tail) cut.channel_split = random.whole(1, cut.threads);
    Placed out(c.n, c.channels(), c.out_h(), c.out_w(), v, 1);
    const std::string text = name + ", " + std::to_string(cut.threads) + " threads, split " +
                             std::to_string(cut.channel_split) + ", rows " + std::to_string(cut.rows) + ", ";
    report.check(text + "shares", problem.run(in, added, out, cut), 0);
    report.check(text + "bits", different_bits(whole, out), 0);
    report.check(text + "written outside", written_outside(out), 0);
  }
}

}  // namespace

void check_random_chains(const KernelTable& table, Report& report) {
  Random random(52);
  for (int round = 0; round < kRounds; ++round) check_chain(table, random, report);
}

}  // namespace powerlab::engine::test
