// The kernels of training on random shapes: right, and the same bits on any threads.
#include "reference/training.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "tests/packing.hpp"
#include "tests/test.hpp"

namespace powerlab::engine::test {
namespace {

constexpr int kRounds = 40;
constexpr double kTolerance = 2e-5;

reference::Tensor random_tensor(int n, int c, int h, int w, Random& random) {
  reference::Tensor t(n, c, h, w);
  random.fill(t.values);
  return t;
}

// A general tensor of exactly its own size, one element behind the other.
struct Line {
  Floats memory;
  Strided tensor{};

  explicit Line(const std::vector<int>& sizes)
      : memory(static_cast<std::size_t>(std::accumulate(sizes.begin(), sizes.end(), 1, std::multiplies<>{})),
               std::numeric_limits<float>::quiet_NaN()) {
    tensor.data = memory.data();
    tensor.element = Element::kFloat;
    tensor.rank = static_cast<std::int32_t>(sizes.size());
    std::int64_t stride = 1;
    for (auto axis = sizes.size(); axis-- > 0; stride *= sizes[axis]) {
      tensor.size[axis] = sizes[axis];
      tensor.stride[axis] = stride;
    }
  }
  explicit Line(const std::vector<double>& values) : Line(std::vector{static_cast<int>(values.size())}) {
    for (std::size_t i = 0; i < values.size(); ++i) memory[i] = static_cast<float>(values[i]);
  }
  // As a share of the largest number, or of a summand where these are sums, which may cancel.
  double error(const std::vector<double>& expected, double summand = 1e-30) {
    double difference = 0, magnitude = summand;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const double apart = std::abs(static_cast<double>(memory[i]) - expected[i]);
      if (!(apart <= 1e30)) return std::numeric_limits<double>::infinity();
      difference = std::max(difference, apart);
      magnitude = std::max(magnitude, std::abs(expected[i]));
    }
    return difference / magnitude;
  }
  int different_bits(Line& other) {
    int count = 0;
    for (std::size_t i = 0; i < memory.size(); ++i) count += memory[i] != other.memory[i];
    return count;
  }
};

Step open_step() {
  Step step{};
  step.low = -std::numeric_limits<float>::infinity();
  step.high = std::numeric_limits<float>::infinity();
  return step;
}

std::string named(const KernelTable& table, const char* family, const reference::Tensor& x) {
  return std::string(find_kernel(table, family).name) + " " + std::to_string(x.n) + " " + std::to_string(x.c) + " " +
         std::to_string(x.h) + " " + std::to_string(x.w);
}

// Channels of a group on both sides, and groups that fill whole blocks together.
struct Groups {
  int groups, inputs, outputs, merged;
};

Groups random_groups(int width, Random& random) {
  if (random.coin()) return {1, random.whole(1, 2 * width + 3), random.whole(1, 7 * width), 1};
  if (random.coin()) return {random.whole(2, 3), width, 2 * width, 1};
  return {2 * width, 1, 2, width};
}

// choose() returns which kernel to run, and whether it multiplies bfloat16; run(its family, step, threads).
struct GradientKernel {
  const char* family;
  bool narrow;
  std::string name;
};
template <typename Choose, typename Run>
void check_gradient(int v, bool depthwise, Choose choose, Run run, Random& random, Report& report) {
  const Groups g = depthwise ? Groups{random.whole(2, 3 * v), 1, 1, 1} : random_groups(v, random);
  reference::Window window{random.whole(1, 3),
                           random.whole(1, 3),
                           random.whole(1, 2),
                           random.whole(1, 2),
                           random.whole(1, 2),
                           random.whole(1, 2),
                           0,
                           0};
  const int reach_h = (window.kernel_h - 1) * window.dilation_h, reach_w = (window.kernel_w - 1) * window.dilation_w;
  window.top = random.whole(0, reach_h);
  window.left = random.whole(0, reach_w);
  const int h = random.whole(1, 5), w = random.coin() ? random.whole(1, 9) : random.whole(130, 150);
  const int halo = std::max({reach_h, reach_w, 1}) + 1;
  const auto [family, narrow, kernel] = choose();
  auto dy = random_tensor(random.whole(1, 2), g.groups * g.outputs, h, w, random);
  auto x = random_tensor(dy.n, g.groups * g.inputs, std::max(1, (h - 1) * window.stride_h + 1 + reach_h - window.top),
                         (w - 1) * window.stride_w + 1 + std::max(0, reach_w - window.left), random);
  if (narrow) {  // what is multiplied is rounded, so that only sums are
    for (auto* values : {&x.values, &dy.values}) std::ranges::transform(*values, values->begin(), nearest_bfloat16);
  }
  reference::Tensor dw(dy.c, g.inputs, window.kernel_h, window.kernel_w);
  reference::conv_weight_gradient(x, dy, window, g.groups, dw);
  Placed in(x.n, x.c, x.h, x.w, v, halo), gradient(dy.n, dy.c, dy.h, dy.w, v, random.whole(0, 1));
  in.put(x);
  gradient.put(dy);
  Step step{};
  set_window(step, window);
  step.x = in.view;
  step.y = gradient.view;
  step.groups = g.groups / g.merged;
  step.numbers[0] = g.merged;
  const std::vector<int> sizes{g.groups, g.outputs, g.inputs, window.kernel_h, window.kernel_w};
  Line first(sizes), second(sizes);
  const int threads = random.whole(2, 9);
  const std::size_t room = static_cast<std::size_t>(4) * 3 * 6 * v * v + static_cast<std::size_t>(7) * 64 * v;
  Floats scratch(room * static_cast<std::size_t>(threads));
  step.scratch.data = scratch.data();
  step.scratch.image = static_cast<std::int64_t>(room);
  step.operands = &first.tensor;
  step.operand_count = 1;
  run(family, step, 1);
  step.operands = &second.tensor;
  run(family, step, threads);
  std::string name = kernel;
  for (const int size : {x.n, x.c, x.h, x.w}) name.append(1, ' ').append(std::to_string(size));
  report.check(name, first.error(dw.values), kTolerance);
  report.check(name + ", bits on several threads", first.different_bits(second), 0);
}

void check_weight_gradient(const KernelTable& table, Random& random, Report& report) {
  const bool depthwise = random.whole(0, 3) == 0;
  const auto choose = [&]() -> GradientKernel {
    const bool narrow = !depthwise && pair_table(table, "bf16") && random.coin();
    const char* family = depthwise ? "conv_depthwise_weight_gradient"
                         : narrow  ? "conv_weight_gradient_bf16"
                                   : "conv_weight_gradient";
    return {family, narrow, find_kernel(table, family).name};
  };
  const auto run = [&](const char* family, const Step& step, int threads) { run_kernel(table, family, step, threads); };
  check_gradient(table.vector_width, depthwise, choose, run, random, report);
}

std::vector<double> random_channels(int count, double low, Random& random) {
  std::vector<double> values(static_cast<std::size_t>(count));
  for (double& value : values) value = low + random.next();
  return values;
}

// activates: with a ReLU behind the norm, and a tensor that is added to the gradient.
void check_batch_norm(const KernelTable& table, bool activates, Random& random, Report& report) {
  const int v = table.vector_width;
  auto x = random_tensor(random.whole(1, 3), random.whole(1, 3 * v), random.whole(2, 7), random.whole(1, 7), random);
  for (double& value : x.values) value = static_cast<float>(value + 10);  // far from 0, where squares would cancel
  const auto dy = random_tensor(x.n, x.c, x.h, x.w, random);
  const auto scale = random_channels(x.c, 2, random), shift = random_channels(x.c, 0, random);
  const auto old_mean = random_channels(x.c, 0, random), old_variance = random_channels(x.c, 2, random);
  reference::Channels mean, variance, of_scale, of_shift;
  reference::Tensor out(x.n, x.c, x.h, x.w), dx(x.n, x.c, x.h, x.w);
  const double epsilon = 1e-3, kept = 0.75;
  reference::batch_norm(x, scale, shift, epsilon, mean, variance, out);
  auto passed = dy;
  const auto more = random_tensor(x.n, x.c, x.h, x.w, random);
  for (std::size_t i = 0; activates && i < out.values.size(); ++i) {
    if (out.values[i] <= 0) passed.values[i] = 0;
    out.values[i] = std::max(out.values[i], 0.0);
  }
  reference::batch_norm_gradient(x, passed, scale, epsilon, of_scale, of_shift, dx);
  for (std::size_t i = 0; activates && i < dx.values.size(); ++i) dx.values[i] += more.values[i];
  std::vector<double> moved_mean, moved_variance, inverse;
  for (std::size_t c = 0; c < mean.size(); ++c) {
    moved_mean.push_back(kept * old_mean[c] + (1 - kept) * mean[c]);
    moved_variance.push_back(kept * old_variance[c] + (1 - kept) * variance[c]);
    inverse.push_back(1 / std::sqrt(variance[c] + epsilon));
  }
  Placed in(x.n, x.c, x.h, x.w, v, random.whole(0, 1)), gradient(x.n, x.c, x.h, x.w, v, random.whole(0, 1));
  Placed summand(x.n, x.c, x.h, x.w, v, random.whole(0, 1));
  in.put(x);
  gradient.put(dy);
  summand.put(more);
  const View& rows = summand.view;
  const Strided added = strided(rows.data, {rows.n, rows.blocks, rows.h, std::int64_t{rows.w} * v},
                                {rows.image, rows.plane, rows.row, 1});
  Line scales(scale), shifts(shift), means(old_mean), variances(old_variance), exact_mean(mean), exact_inverse(inverse);
  Step step = open_step();
  step.slope = 1;
  if (activates) step.low = 0;
  step.alpha = static_cast<float>(epsilon);
  step.beta = static_cast<float>(kept);
  step.x = in.view;
  for (const int threads : {1, random.whole(2, 5)}) {
    Line made[] = {Line(std::vector{x.c}), Line(std::vector{x.c}), Line(std::vector{x.c}), Line(std::vector{x.c})};
    const Strided operands[] = {made[0].tensor, made[1].tensor, made[2].tensor, made[3].tensor,
                                scales.tensor,  shifts.tensor,  means.tensor,   variances.tensor};
    Placed normalised(x.n, x.c, x.h, x.w, v, 1);
    step.operands = operands;
    step.operand_count = 8;
    step.out = normalised.view;
    run_kernel(table, "batch_norm", step, threads);
    const std::string name =
        named(table, "batch_norm", x) + (activates ? ", activated" : "") + " on " + std::to_string(threads);
    report.check(name, error(normalised, out), kTolerance);
    report.check(name + ", running mean", made[0].error(moved_mean), kTolerance);
    report.check(name + ", running variance", made[1].error(moved_variance), kTolerance);
    report.check(name + ", mean", made[2].error(mean), kTolerance);
    report.check(name + ", deviation", made[3].error(inverse), kTolerance);
    report.check(name + ", written outside", written_outside(normalised), 0);
    const Strided back[] = {made[0].tensor,    made[1].tensor,       scales.tensor, shifts.tensor,
                            exact_mean.tensor, exact_inverse.tensor, added};
    Placed given(x.n, x.c, x.h, x.w, v, 1);
    Step backwards = step;
    backwards.y = gradient.view;
    backwards.out = given.view;
    backwards.operands = back;
    backwards.operand_count = activates ? 7 : 6;
    run_kernel(table, "batch_norm_gradient", backwards, threads);
    report.check(name + ", gradient", error(given, dx), kTolerance);
    report.check(name + ", gradient of scale", made[0].error(of_scale), kTolerance);
    report.check(name + ", gradient of shift", made[1].error(of_shift, 1), kTolerance);
    if (activates) continue;
    const Strided sum[] = {made[2].tensor};
    backwards.x = gradient.view;
    backwards.operands = sum;
    run_kernel(table, "channel_sums", backwards, threads);
    report.check(name + ", sums", made[2].error(of_shift, 1), kTolerance);
  }
}

// Runs a kernel from x and the gradient y on one thread and on several.
void check_images(const KernelTable& table, const char* family, Step step, const reference::Tensor& x,
                  const reference::Tensor& y, const reference::Tensor& expected, Random& random, Report& report) {
  const int v = table.vector_width;
  Placed in(x.n, x.c, x.h, x.w, v, random.whole(0, 1)), gradient(y.n, y.c, y.h, y.w, v, random.whole(0, 1));
  in.put(x);
  gradient.put(y);
  step.x = in.view;
  step.y = gradient.view;
  Placed first(expected.n, expected.c, expected.h, expected.w, v, 1);
  Placed second(expected.n, expected.c, expected.h, expected.w, v, 1);
  step.out = first.view;
  run_kernel(table, family, step, 1);
  step.out = second.view;
  run_kernel(table, family, step, random.whole(2, 9));
  const std::string name = named(table, family, expected);
  report.check(name, error(first, expected), kTolerance);
  report.check(name + ", bits on several threads", different_bits(first, second), 0);
  report.check(name + ", written outside", written_outside(first), 0);
}

void check_pool_gradients(const KernelTable& table, Random& random, Report& report) {
  reference::Window window{random.whole(1, 4), random.whole(1, 4), random.whole(1, 3), random.whole(1, 3), 1, 1, 0, 0};
  window.top = random.whole(0, window.kernel_h - 1);
  window.left = random.whole(0, window.kernel_w - 1);
  auto x = random_tensor(random.whole(1, 2), random.whole(1, 2 * table.vector_width), random.whole(1, 8),
                         random.whole(1, 8), random);
  for (double& value : x.values) value = std::round(4 * value);  // several pixels have the maximum
  const auto dy = random_tensor(x.n, x.c, (x.h - 1 + window.top) / window.stride_h + 1,
                                (x.w - 1 + window.left) / window.stride_w + 1, random);
  Step step = open_step();
  set_window(step, window);
  reference::Tensor most(x.n, x.c, x.h, x.w);
  reference::pool_max_gradient(x, dy, window, most);
  check_images(table, "pool_max_gradient", step, x, dy, most, random, report);
  for (const bool counts : {false, true}) {
    reference::Tensor average(x.n, x.c, x.h, x.w);
    reference::pool_average_gradient(dy, window, counts, average);
    step.count_padding = counts;
    check_images(table, "pool_average_gradient", step, x, dy, average, random, report);
  }
  const auto one = random_tensor(x.n, x.c, 1, 1, random);
  reference::Tensor whole(x.n, x.c, x.h, x.w);
  reference::pool_average_gradient(one, {x.h, x.w}, false, whole);
  check_images(table, "pool_global_average_gradient", step, one, one, whole, random, report);
}

void check_activations(const KernelTable& table, Random& random, Report& report) {
  const auto x = random_tensor(random.whole(1, 2), random.whole(1, 2 * table.vector_width), random.whole(1, 5),
                               random.whole(1, 5), random);
  const auto dy = random_tensor(x.n, x.c, x.h, x.w, random);
  reference::Tensor clipped(x.n, x.c, x.h, x.w), nothing(x.n, x.c, x.h, x.w);
  for (std::size_t i = 0; i < x.values.size(); ++i) {
    const double value = x.values[i], inside = value > -0.5 && value < 0.75 ? dy.values[i] : 0;
    clipped.values[i] = value < 0 ? 0.25 * inside : inside;
  }
  Step step = open_step();
  check_images(table, "zero", step, x, dy, nothing, random, report);
  step.low = -0.5f;
  step.high = 0.75f;
  step.slope = 0.25f;
  check_images(table, "clamp_gradient", step, x, dy, clipped, random, report);
}

void check_lrn_gradient(const KernelTable& table, Random& random, Report& report) {
  const int v = table.vector_width, size = random.whole(1, 2 * v + 1);
  const auto x = random_tensor(random.whole(1, 2), random.whole(1, 4 * v), random.whole(1, 3),
                               random.coin() ? random.whole(1, 5) : random.whole(15, 40), random);
  const auto dy = random_tensor(x.n, x.c, x.h, x.w, random);
  reference::Tensor dx(x.n, x.c, x.h, x.w);
  const double alpha = random.coin() ? 0.5 : 2, beta = random.coin() ? 0.75 : 0.6, offset = 1.5;
  reference::lrn_gradient(x, dy, size, alpha, beta, offset, dx);
  Step step = open_step();
  step.size = size;
  step.alpha = static_cast<float>(alpha);
  step.beta = static_cast<float>(beta);
  step.offset = static_cast<float>(offset);
  check_images(table, "lrn_gradient", step, x, dy, dx, random, report);
}

// The weights of Winograd's convolutions, with kernels turned around as those of a gradient are.
void check_winograd_packing(const KernelTable& table, Random& random, Report& report) {
  const int v = table.vector_width, m = random.coin() ? 2 : 4, most = random.whole(1, 4);
  const int groups = random.whole(1, 2), outputs = groups > 1 ? 2 * v : random.whole(v, 5 * v);
  const int inputs = random.whole(1, 9);
  const auto weights = random_tensor(groups * outputs, inputs, 3, 3, random);
  Line turned(std::vector{groups, inputs, outputs, 3, 3});
  for (int i = 0; i < static_cast<int>(turned.memory.size()); ++i) {
    const int tap = 8 - i % 9, output = i / 9 % outputs, input = i / 9 / outputs % inputs;
    turned.memory[static_cast<std::size_t>(i)] =
        static_cast<float>(weights.at(i / 9 / outputs / inputs * outputs + output, input, tap / 3, tap % 3, 0.0));
  }
  Strided kernels = turned.tensor;
  kernels.data = turned.memory.data() + 8;
  std::swap(kernels.size[1], kernels.size[2]);
  std::swap(kernels.stride[1], kernels.stride[2]);
  kernels.stride[3] = -3;
  kernels.stride[4] = -1;
  Floats wanted = pack_winograd(table, weights, m, groups, most);
  std::vector<double> expected;
  for (std::size_t i = 0; i < wanted.size(); ++i) expected.push_back(static_cast<double>(wanted[i]));
  Line packed(std::vector{static_cast<int>(wanted.size())});
  const Strided operands[] = {packed.tensor, kernels};
  Step step{};
  step.operands = operands;
  step.operand_count = 2;
  step.numbers[0] = most;
  const std::string family = "pack_winograd" + std::to_string(m) + "_kernels_f32";
  run_kernel(table, family.c_str(), step, random.whole(1, 5));
  report.check(family + " " + table.tier, packed.error(expected), 1e-6);
}

// How weights move, in place: by the definitions.
void check_updates(const KernelTable& table, Random& random, Report& report) {
  const int rows = random.whole(1, 3), length = random.coin() ? random.whole(1, 40) : random.whole(4090, 4110);
  std::vector<std::vector<double>> before(4);  // weight, gradient, what is kept
  for (auto& values : before) {
    values = random_channels(rows * length, 0, random);
    for (double& value : values) value = static_cast<double>(static_cast<float>(value));
  }
  for (double& value : before[3]) value = std::abs(value);
  const double share = 0.5;
  const std::vector<double> numbers{0.25, 0.5, 0.75, 0.25, 0.5, 0.5, 0.125, 0.0625};
  for (const std::string family : {"sgd_update_f32", "momentum_update_f32", "adam_update_f32"}) {
    const bool adam = family == "adam_update_f32";
    const std::size_t kept = adam ? 2 : family == "sgd_update_f32" ? 0 : 1;
    for (const bool other : {false, true}) {
      auto after = before;
      for (std::size_t i = 0; i < after[0].size(); ++i) {
        double &weight = after[0][i], gradient = before[1][i] * share, way = gradient;
        const double decay = numbers[adam ? 7 : 2];
        if (adam) {
          gradient += other ? 0 : weight * decay;
          weight *= other ? decay : 1;
          after[2][i] = numbers[2] * before[2][i] + numbers[3] * gradient;
          after[3][i] = numbers[4] * before[3][i] + numbers[5] * gradient * gradient;
          way = after[2][i] / (std::sqrt(after[3][i]) * numbers[1] + numbers[6]);
        } else {
          way = gradient += weight * decay;
          if (kept > 0) {
            after[2][i] = numbers[1] * before[2][i] + gradient;
            way = other ? gradient + numbers[1] * after[2][i] : after[2][i];
          }
        }
        weight -= numbers[0] * way;
      }
      for (const int threads : {1, random.whole(2, 5)}) {
        std::vector<Line> held, given;
        for (std::size_t i = 0; i < 2 + kept; ++i) {
          held.emplace_back(std::vector{rows, length});
          for (std::size_t at = 0; at < before[i].size(); ++at) held[i].memory[at] = static_cast<float>(before[i][at]);
        }
        for (const double number : numbers) given.emplace_back(std::vector<double>{number});
        std::vector<Strided> operands;
        const auto pass = [&](Line& line) {
          operands.push_back(line.tensor);
          operands.back().data = line.memory.data();  // a vector may have moved the line
        };
        pass(held[0]);
        for (std::size_t i = 0; i < kept; ++i) pass(held[2 + i]);
        for (Line& line : held) pass(line);
        for (Line& line : given) pass(line);
        Step step{};
        step.alpha = static_cast<float>(share);
        step.numbers[0] = other;
        step.operands = operands.data();
        step.operand_count = static_cast<std::int32_t>(operands.size());
        run_kernel(table, family.c_str(), step, threads);
        const std::string name = family + " " + table.tier + " " + std::to_string(length);
        report.check(name, held[0].error(after[0]), kTolerance);
        for (std::size_t i = 2; i < 2 + kept; ++i) report.check(name + ", kept", held[i].error(after[i]), kTolerance);
      }
    }
  }
}

// Packed weights by their places: [group][unit][input block][kh][kw][lane][block of the unit][v].
void check_packing(const KernelTable& table, Random& random, Report& report) {
  const int v = table.vector_width, lanes = random.coin() ? v : random.whole(1, v), most = random.whole(1, 4);
  const Groups g = random_groups(v, random);
  const bool point = random.coin(), turned = random.coin();  // as backwards, where outputs lie side by side
  const int kh = point ? 1 : random.whole(1, 3), kw = point ? 1 : random.whole(1, 3);
  Line weights(std::vector{g.groups, g.outputs, g.inputs, kh, kw});
  if (turned) {
    weights.tensor.stride[1] = std::int64_t{kh} * kw;
    weights.tensor.stride[2] = std::int64_t{g.outputs} * kh * kw;
  }
  for (std::size_t i = 0; i < weights.memory.size(); ++i) weights.memory[i] = static_cast<float>(random.next());
  const int outputs = g.outputs * g.merged, inputs = g.inputs * g.merged, blocks = (outputs + v - 1) / v;
  const int units = (blocks + most - 1) / most;
  std::vector<double> expected;
  for (int group = 0; group < g.groups / g.merged; ++group) {
    for (int unit = 0; unit < units; ++unit) {
      for (int first = 0; first < inputs; first += lanes) {
        for (int tap = 0; tap < kh * kw; ++tap) {
          for (int i = first; i < std::min(inputs, first + lanes); ++i) {
            for (int o = unit * blocks / units * v; o < (unit + 1) * blocks / units * v; ++o) {
              const bool own = o < outputs && o / g.outputs == i / g.inputs;
              const int of = group * g.merged + i / g.inputs;
              const int out = o % g.outputs, in = i % g.inputs;
              const int pair = turned ? in * g.outputs + out : out * g.inputs + in;
              const int at = (of * g.outputs * g.inputs + pair) * kh * kw + tap;
              expected.push_back(own ? static_cast<double>(weights.memory[static_cast<std::size_t>(at)]) : 0.0);
            }
          }
        }
      }
    }
  }
  Line packed(std::vector{static_cast<int>(expected.size())});
  const Strided operands[] = {packed.tensor, weights.tensor};
  Step step{};
  step.operands = operands;
  step.operand_count = 2;
  step.numbers[0] = most;
  step.numbers[1] = lanes;
  step.numbers[2] = g.merged;
  run_kernel(table, "pack_kernels_f32", step, random.whole(1, 5));
  report.check(std::string("pack_kernels ") + table.tier, packed.error(expected), 0);
}

void check_small_packing(const KernelTable& table, Random& random, Report& report) {
  const int v = table.vector_width, channels = random.whole(1, 3 * v), kh = random.whole(1, 3), kw = random.whole(1, 3);
  const int filled = (channels + v - 1) / v * v;
  Line weights(std::vector{channels, 1, 1, kh, kw});
  for (std::size_t i = 0; i < weights.memory.size(); ++i) weights.memory[i] = static_cast<float>(random.next());
  std::vector<double> expected;
  for (int first = 0; first < channels; first += v) {
    for (int tap = 0; tap < kh * kw; ++tap) {
      for (int c = first; c < first + v; ++c) {
        const auto at = static_cast<std::size_t>(c * kh * kw + tap);
        expected.push_back(c < channels ? static_cast<double>(weights.memory[at]) : 0.0);
      }
    }
  }
  Line packed(std::vector{static_cast<int>(expected.size())});
  const Strided operands[] = {packed.tensor, weights.tensor};
  Step step{};
  step.operands = operands;
  step.operand_count = 2;
  run_kernel(table, "pack_depthwise_kernels_f32", step, random.whole(1, 5));
  report.check(std::string("pack_depthwise_kernels ") + table.tier, packed.error(expected), 0);
  const auto bias = random_channels(channels, 0, random);
  Line numbers(bias), whole(std::vector{filled});
  auto with_zeros = bias;
  with_zeros.resize(static_cast<std::size_t>(filled));
  const Strided line[] = {whole.tensor, numbers.tensor};
  step.operands = line;
  run_kernel(table, "pack_channels_f32", step, random.whole(1, 5));
  report.check(std::string("pack_channels ") + table.tier, whole.error(with_zeros), 1e-7);
}

}  // namespace

void check_training(const KernelTable& table, Report& report) {
  Random random(23);
  for (int round = 0; round < kRounds; ++round) {
    check_weight_gradient(table, random, report);
    for (const bool activates : {false, true}) check_batch_norm(table, activates, random, report);
    check_pool_gradients(table, random, report);
    check_activations(table, random, report);
    check_packing(table, random, report);
    check_small_packing(table, random, report);
    check_lrn_gradient(table, random, report);
    check_winograd_packing(table, random, report);
  }
  for (int round = 0; round < kRounds / 8; ++round) check_updates(table, random, report);
}

void check_pair_gradients(int v, const PairTable& pairs, Report& report) {
  Random random(25);
  const auto choose = [&]() -> GradientKernel {
    return {"conv_weight_gradient_bf16", true, std::string(pairs.name) + " conv_weight_gradient_bf16"};
  };
  const auto run = [&](const char* family, const Step& step, int threads) { run_kernel(pairs, family, step, threads); };
  for (int i = 0; i < 30; ++i) check_gradient(v, false, choose, run, random, report);
}

}  // namespace powerlab::engine::test
