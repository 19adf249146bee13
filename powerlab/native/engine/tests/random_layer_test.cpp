// The kernels beside the convolutions, on random shapes: right, the same bits on any threads, nothing written
// elsewhere.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "tests/test.hpp"

namespace powerlab::engine::test {
namespace {

constexpr int kRounds = 40;

reference::Tensor random_tensor(int n, int c, int h, int w, Random& random) {
  reference::Tensor t(n, c, h, w);
  random.fill(t.values);
  return t;
}

Step open_step() {
  Step step{};
  step.low = -std::numeric_limits<float>::infinity();
  step.high = std::numeric_limits<float>::infinity();
  return step;
}

// Runs `family` from blocks with a halo to blocks with another, on one thread and on several.
void check(const KernelTable& table, const char* family, Step step, const reference::Tensor& x,
           const reference::Tensor* y, const reference::Tensor& expected, double tolerance, Random& random,
           Report& report) {
  const int v = table.vector_width;
  const reference::Tensor& second_operand = y ? *y : x;
  Placed in(x.n, x.c, x.h, x.w, v, random.whole(0, 2));
  Placed other(x.n, x.c, second_operand.h, second_operand.w, v, random.whole(0, 2));
  in.put(x);
  if (y) other.put(*y);
  Placed first(expected.n, expected.c, expected.h, expected.w, v, 1);
  Placed second(expected.n, expected.c, expected.h, expected.w, v, 1);
  step.x = in.view;
  if (y) step.y = other.view;
  step.out = first.view;
  run_kernel(table, family, step, 1);
  step.out = second.view;
  const int threads = random.whole(2, 9);
  run_kernel(table, family, step, threads);
  const std::string name = std::string(find_kernel(table, family).name) + " " + std::to_string(x.n) + " " +
                           std::to_string(x.c) + " " + std::to_string(x.h) + " " + std::to_string(x.w);
  report.check(name, error(first, expected), tolerance);
  report.check(name + ", bits with " + std::to_string(threads) + " threads", different_bits(first, second), 0);
  report.check(name + ", shares", misowned(table, family, step, second.view, threads), 0);
  report.check(name + ", written outside", written_outside(first) + written_outside(second), 0);
}

void check_pools(const KernelTable& table, Random& random, Report& report) {
  const reference::Window window{random.whole(1, 5), random.whole(1, 5), random.whole(1, 4), random.whole(1, 4), 1, 1,
                                 random.whole(0, 4), random.whole(0, 4)};
  const auto x = random_tensor(random.whole(1, 3), random.whole(1, 3 * table.vector_width), random.whole(1, 9),
                               random.whole(1, 9), random);
  // As far as windows go that reach the image, which every pool of a checked graph does.
  const int top = std::min(window.top, window.kernel_h - 1), left = std::min(window.left, window.kernel_w - 1);
  const int h = random.whole(1, (x.h - 1 + top) / window.stride_h + 1);
  const int w = random.whole(1, (x.w - 1 + left) / window.stride_w + 1);
  reference::Window inside = window;
  inside.top = top;
  inside.left = left;
  Step step = open_step();
  step.kernel_h = window.kernel_h;
  step.kernel_w = window.kernel_w;
  step.stride_h = window.stride_h;
  step.stride_w = window.stride_w;
  step.pad_top = top;
  step.pad_left = left;
  reference::Tensor out(x.n, x.c, h, w);
  reference::pool_max(x, inside, out);
  check(table, "pool_max", step, x, nullptr, out, 0, random, report);
  auto summed = x;  // of one sign: errors are told beside averages, and those of numbers that cancel are hardly any
  for (double& value : summed.values) value = std::abs(value);
  for (const bool count_padding : {false, true}) {
    step.count_padding = count_padding;
    reference::pool_average(summed, inside, count_padding, out);
    check(table, "pool_average", step, summed, nullptr, out, 1e-6, random, report);
  }
  reference::Tensor average(x.n, x.c, 1, 1);
  reference::pool_global_average(summed, average);
  check(table, "pool_global_average", step, summed, nullptr, average, 1e-6, random, report);
}

void check_resize(const KernelTable& table, Random& random, Report& report) {
  const auto x = random_tensor(random.whole(1, 3), random.whole(1, 3 * table.vector_width), random.whole(1, 7),
                               random.whole(1, 7), random);
  Step step = open_step();
  step.stride_h = random.whole(1, 4);
  step.stride_w = random.whole(1, 4);
  reference::Tensor out(x.n, x.c, x.h * step.stride_h, x.w * step.stride_w);
  reference::resize_nearest(x, step.stride_h, step.stride_w, out);
  check(table, "resize_nearest", step, x, nullptr, out, 0, random, report);
}

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
double gelu(double x) { return x * std::erfc(-x * std::sqrt(0.5)) / 2; }
double gelu_tanh(double x) { return x * sigmoid(2 * std::sqrt(2 / std::acos(-1.0)) * (x + 0.044715 * x * x * x)); }

void check_functions(const KernelTable& table, Random& random, Report& report) {
  auto x = random_tensor(random.whole(1, 2), random.whole(1, 3 * table.vector_width), random.whole(1, 7),
                         random.whole(1, 7), random);
  const double reach = std::ldexp(1.0, random.whole(-6, 6));  // from where series matter to where all is 0, 1 or large
  for (double& value : x.values) value = static_cast<double>(static_cast<float>(value * reach));
  Step step = open_step();
  step.alpha = 0.25f;
  step.beta = 0.5f;
  using Case = std::pair<const char*, double (*)(double)>;
  for (const auto& [family, function] : {
           Case{"sigmoid", sigmoid},
           Case{"silu", [](double v) { return v * sigmoid(v); }},
           Case{"tanh", [](double v) { return std::tanh(v); }},
           Case{"exp", [](double v) { return std::exp(v); }},
           Case{"erf", [](double v) { return std::erf(v); }},
           Case{"gelu", gelu},
           Case{"hard_sigmoid", [](double v) { return std::clamp(0.25 * v + 0.5, 0.0, 1.0); }},
           Case{"hard_swish", [](double v) { return v * std::clamp(v / 6 + 0.5, 0.0, 1.0); }},
           Case{"fake_quantize",  // float32 as the kernel has it: what lies in the middle between two steps matters
                [](double v) { return std::nearbyint(std::clamp(v / 0.25, -0.5, 254.5)) * 0.25; }},
           Case{"elu", [](double v) { return v < 0 ? 0.25 * std::expm1(v) : v; }},
       }) {
    reference::Tensor out(x.n, x.c, x.h, x.w);
    reference::function(x, function, out);
    check(table, family, step, x, nullptr, out, 3e-6, random, report);
  }
}

// What the GELUs are computed from: a dense sweep, both sides of every border between two polynomials (see
// kernels/gelu.hpp), and numbers that are almost 0.
std::vector<float> gelu_numbers() {
  std::vector<float> numbers;
  for (int i = -20 * 4096; i <= 20 * 4096; ++i) numbers.push_back(static_cast<float>(i) / 4096);
  for (int i = 1; i <= 40; ++i) {
    float above = static_cast<float>(i) * 0.15625f, below = above;
    for (int step = 0; step < 8; ++step) {
      for (const float x : {above, below}) numbers.insert(numbers.end(), {x, -x});
      above = std::nextafter(above, 20.0f);
      below = std::nextafter(below, -20.0f);
    }
  }
  for (float x = 0.1f; x > 1e-37f; x *= 0.97f) numbers.insert(numbers.end(), {x, -x});
  return numbers;
}

// Both GELUs, with errors as parts of the largest allowed: AVX-512 has polynomials for them, other tiers formulas that
// are less precise. Large results are rounded by more than that, and small ones are to be precise for themselves.
void check_gelus(const KernelTable& table, Report& report) {
  const bool pieces = table.vector_width == 16;
  const double absolute = pieces ? 2e-7 : 4e-7, relative = pieces ? 3e-7 : 2e-6;
  const float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> numbers = gelu_numbers();
  const std::size_t regular = numbers.size();
  numbers.insert(numbers.end(), {std::numeric_limits<float>::quiet_NaN(), infinity, -1e30f, -infinity});
  const int lanes = table.vector_width, width = (static_cast<int>(numbers.size()) + lanes - 1) / lanes;
  numbers.resize(static_cast<std::size_t>(width) * static_cast<std::size_t>(lanes));
  Placed in(1, lanes, 1, width, lanes, 0), out(1, lanes, 1, width, lanes, 0);
  std::copy(numbers.begin(), numbers.end(), in.view.data);
  Step step = open_step();
  step.x = in.view;
  step.out = out.view;
  using Case = std::pair<const char*, double (*)(double)>;
  for (const auto& [family, function] : {Case{"gelu", gelu}, Case{"gelu_tanh", gelu_tanh}}) {
    run_kernel(table, family, step, 3);
    const std::string name = find_kernel(table, family).name;
    double largest = 0, at = 0;
    for (std::size_t i = 0; i < regular; ++i) {
      const double x = static_cast<double>(numbers[i]), expected = function(x);
      const double allowed = std::abs(x) < 0.1 ? relative * std::abs(expected) : std::max(absolute, 1.5e-7 * expected);
      const double error = std::abs(static_cast<double>(out.view.data[i]) - expected);
      const double part = std::isnan(error) ? infinity : error == 0 ? 0 : error / allowed;
      if (part <= largest) continue;
      largest = part;
      at = x;
    }
    report.check(name + " on a sweep, largest part of what is allowed, at " + std::to_string(at), largest, 1);
    const float* special = out.view.data + regular;
    report.check(name + " of not-a-number", std::isnan(special[0]) ? 0 : 1, 0);
    report.check(name + " of infinity", special[1] == infinity ? 0 : 1, 0);
    report.check(name + " of -1e30", static_cast<double>(std::abs(special[2])), absolute);
    if (pieces) report.check(name + " of minus infinity", std::isnan(special[3]) ? 0 : 1, 0);
  }
}

// So that products of two, and their sums with a random number, are exact in float32: whether a compiler fuses the two
// does not matter then, nor how small what a clamp leaves of them is.
void round_to_11_bits(std::vector<double>& values) {
  for (double& value : values) value = std::nearbyint(value * 2048) / 2048;
}

void check_elementwise(const KernelTable& table, Random& random, Report& report) {
  const auto x = random_tensor(random.whole(1, 3), random.whole(1, 3 * table.vector_width), random.whole(1, 7),
                               random.whole(1, 7), random);
  const auto y = random_tensor(x.n, x.c, x.h, x.w, random);
  constexpr double exact_slopes[] = {1, 0.5, 0.25, 0.125, 0, -1};  // products of these are not rounded
  const double low = random.next(), high = low + 1;
  const reference::Clamp clamp{static_cast<double>(static_cast<float>(low)),
                               static_cast<double>(static_cast<float>(high)), exact_slopes[random.whole(0, 5)]};
  Step step = open_step();
  step.low = static_cast<float>(clamp.low);
  step.high = static_cast<float>(clamp.high);
  step.slope = static_cast<float>(clamp.slope);
  reference::Tensor out(x.n, x.c, x.h, x.w);
  reference::multiply(x, y, clamp, out);
  check(table, "multiply", step, x, &y, out, 1e-6, random, report);
  const auto factors = random_tensor(x.n, x.c, 1, 1, random);
  reference::multiply(x, factors, clamp, out);
  check(table, "multiply", step, x, &factors, out, 1e-6, random, report);
  reference::add(x, y, clamp, out);
  check(table, "add", step, x, &y, out, 1e-6, random, report);
  reference::add(x, reference::Tensor(x.n, x.c, x.h, x.w), clamp, out);
  check(table, "clamp", step, x, nullptr, out, 0, random, report);
  const std::size_t filled = static_cast<std::size_t>((x.c + table.vector_width - 1) / table.vector_width) *
                             static_cast<std::size_t>(table.vector_width);
  std::vector<double> scale(static_cast<std::size_t>(x.c)), shift(scale.size());
  random.fill(scale);
  random.fill(shift);
  auto coarse = x;
  round_to_11_bits(coarse.values);
  round_to_11_bits(scale);
  Floats scales(filled), shifts(filled);
  for (std::size_t i = 0; i < scale.size(); ++i) {
    scales[i] = static_cast<float>(scale[i]);
    shifts[i] = static_cast<float>(shift[i]);
  }
  step.weights = scales.data();
  step.bias = shifts.data();
  reference::scale_shift(coarse, scale, shift, clamp, out);
  check(table, "scale_shift", step, coarse, nullptr, out, 0, random, report);
}

void check_lrn(const KernelTable& table, Random& random, Report& report) {
  const auto x = random_tensor(random.whole(1, 2), random.whole(1, 4 * table.vector_width), random.whole(1, 4),
                               random.whole(1, 4), random);
  Step step = open_step();
  step.size = random.whole(1, 2 * table.vector_width + 1);  // up to the widest the kernel takes
  step.alpha = static_cast<float>(random.next() + 1);
  step.beta = random.coin() ? 0.75f : static_cast<float>(random.next() + 1);
  step.offset = static_cast<float>(random.next() + 1.5);
  reference::Tensor out(x.n, x.c, x.h, x.w);
  reference::lrn(x, step.size, static_cast<double>(step.alpha), static_cast<double>(step.beta),
                 static_cast<double>(step.offset), out);
  check(table, "lrn", step, x, nullptr, out, 3e-6, random, report);
}

// From rows to blocks of any size with a halo, as a copy, and back: every bit arrives, and filling channels are zero.
void check_round_trip(const KernelTable& table, Random& random, Report& report) {
  const int n = random.whole(1, 3), c = random.whole(1, 40), h = random.whole(1, 6), w = random.whole(1, 40);
  const int lanes = random.coin() ? table.vector_width : c, threads = random.whole(1, 9);
  const auto x = random_tensor(n, c, h, w, random);
  Placed rows(n, c, h, w, 1, 0), back(n, c, h, w, 1, 0);
  Placed blocks(n, c, h, w, lanes, random.whole(0, 2)), copied(n, c, h, w, lanes, random.whole(0, 3));
  rows.put(x);
  const auto move = [&](const char* family, Placed& from, Placed& to) {
    Step step = open_step();
    step.x = from.view;
    step.out = to.view;
    run_kernel(table, family, step, threads);
    const std::string name = find_kernel(table, family).name;
    report.check(name + " of random shapes", different_bits(from, to), 0);
    report.check(name + ", written outside", written_outside(to), 0);
  };
  move("reorder_to_blocks", rows, blocks);
  move("copy", blocks, copied);
  move("reorder_to_planes", copied, back);
  report.check(std::string(table.tier) + " there and back", different_bits(rows, back), 0);
  int filled = 0;
  for (int channel = c; channel < copied.view.blocks * lanes; ++channel)
    filled += copied.at(n - 1, channel, h - 1, w - 1) != 0;
  report.check(std::string(table.tier) + " channels that fill up are zero", filled, 0);
}

}  // namespace

void check_random_layers(const KernelTable& table, Report& report) {
  check_gelus(table, report);
  Random random(77);
  for (int round = 0; round < kRounds; ++round) {
    check_pools(table, random, report);
    check_resize(table, random, report);
    check_functions(table, random, report);
    check_elementwise(table, random, report);
    check_lrn(table, random, report);
    check_round_trip(table, random, report);
  }
}

}  // namespace powerlab::engine::test
