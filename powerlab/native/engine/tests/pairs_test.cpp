// Kernels on 16-bit floats against double precision, on random shapes: what they read is rounded to these before, so
// that only sums and results are rounded.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "halves.hpp"
#include "tests/test.hpp"

namespace powerlab::engine::test {
namespace {

constexpr std::uint16_t kUnwritten = 0xEEEE;

// What a table computes with, and by what part of the largest result it may be off: as floats, and rounded once more.
struct Numbers {
  std::uint16_t (*narrow)(double);
  double (*wide)(std::uint16_t);
  double error, rounded_error;
  int lanes;     // of a vector of sums, for each float of one
  int channels;  // of a word of weights
  int block;     // channels

  void round_all(std::vector<double>& values) const {
    for (double& value : values) value = wide(narrow(value));
  }
};

const Numbers kBfloat16 = {bfloat16_bits, of_bfloat16, 1e-5, 1.0 / 256, 1, 2, 16};
const Numbers kFloat16 = {[](double value) { return narrowed(static_cast<float>(value)); },
                          [](std::uint16_t half) -> double { return widened(half); },
                          1e-5,
                          1.0 / 2000,
                          2,
                          1,
                          16};

// Sums as the kernels in float16 make them: rounded after each product, and added up in float32 after 128 of them.
double sum_of_float16(const reference::Tensor& x, const reference::Tensor& weights, const reference::Window& window,
                      int n, int o, int y, int column, int first_channel) {
  float total = 0;
  double sum = 0;
  int products = 0;
  for (int block = 0; block < weights.c; block += kFloat16.block) {
    for (int ky = 0; ky < weights.h; ++ky) {
      for (int kx = 0; kx < weights.w; ++kx) {
        for (int i = block; i < block + kFloat16.block; ++i) {
          const int row = y * window.stride_h + ky * window.dilation_h - window.top;
          const int at = column * window.stride_w + kx * window.dilation_w - window.left;
          if (i < weights.c)
            sum =
                widened(narrowed_once(sum + x.at(n, first_channel + i, row, at, 0.0) * weights.at(o, i, ky, kx, 0.0)));
          if (++products % 128) continue;
          total += static_cast<float>(sum);
          sum = 0;
        }
      }
    }
  }
  return total + static_cast<float>(sum);
}

Numbers numbers_of(const PairTable& pairs) {
  Numbers numbers = std::string_view(pairs.numbers) == "fp16" ? kFloat16 : kBfloat16;
  numbers.block = pairs.block;
  return numbers;
}

// How many channels a pixel of an image may have whose blocks are not whole ones, or a row of the kernel, of pixels
// that follow on each other: float16 takes whole blocks only.
std::vector<int> image_blocks(const PairTable& pairs) {
  if (std::string_view(pairs.numbers) != "bf16") return {};
  if (std::string_view(pairs.name).find("amx") != std::string_view::npos) return {4};
  return {2, 4, 10, 24};
}

// A tensor of 16-bit floats in the kernels' layout, with a halo of zeros; what fills up the last block is finite.
struct PlacedPairs {
  const Numbers& numbers;
  Floats memory;
  View view;

  PlacedPairs(const Numbers& numbers, int n, int c, int h, int w, int halo)
      : numbers(numbers),
        memory(static_cast<std::size_t>(n) * ((c + numbers.block - 1) / numbers.block) * (numbers.block / 2) *
               (h + 2 * halo) * (w + 2 * halo)),
        view(view_in_blocks(memory.data(), n, c, h, w, numbers.block, numbers.block / 2, halo)) {
    std::memset(memory.data(), 0xEE, memory.size() * sizeof(float));
  }
  std::uint16_t& at(int n, int c, int y, int x) {
    float* pixel = view.data + n * view.image + c / numbers.block * view.plane + y * view.row + x * view.pixel;
    return reinterpret_cast<std::uint16_t*>(pixel)[c % numbers.block];
  }
  void put(const reference::Tensor& t) {
    std::memset(memory.data(), 0, memory.size() * sizeof(float));
    for (int n = 0; n < t.n; ++n) {
      for (int c = 0; c < view.blocks * numbers.block; ++c) {
        for (int y = 0; y < t.h; ++y) {
          for (int x = 0; x < t.w; ++x) at(n, c, y, x) = numbers.narrow(c < t.c ? t.at(n, c, y, x, 0.0) : 3);
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
            const double d = std::abs(numbers.wide(at(n, c, y, x)) - t.at(n, c, y, x, 0.0));
            if (!(d < 1e30)) return std::numeric_limits<double>::infinity();
            difference = std::max(difference, d);
            magnitude = std::max(magnitude, std::abs(t.at(n, c, y, x, 0.0)));
          }
        }
      }
    }
    return difference / magnitude;
  }
  // Whether channels that fill up the last block are numbers, which 0 makes 0.
  bool filled() {
    for (int c = view.c; c < view.blocks * numbers.block; ++c) {
      for (int x = 0; x < view.w; ++x) {
        if (at(view.n - 1, c, view.h - 1, x) == kUnwritten) return false;
      }
    }
    return true;
  }
  int written_around() {
    int count = 0;
    const View& v = view;
    for (int n = 0; n < v.n; ++n) {
      for (int c = 0; c < v.blocks * numbers.block; ++c) {
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
Floats packed_weights(const Numbers& numbers, const reference::Tensor& weights, int groups, int floats,
                      int tile_floats) {
  const int v = floats * numbers.lanes, tile_blocks = tile_floats / numbers.lanes, channels = numbers.channels;
  const int outputs = weights.n / groups, vectors = (outputs + v - 1) / v;
  const int units = (vectors + tile_blocks - 1) / tile_blocks, blocks = (weights.c + numbers.block - 1) / numbers.block;
  std::vector<std::uint16_t> packed;
  for (int group = 0; group < groups; ++group) {
    for (int unit = 0; unit < units; ++unit) {
      for (int at = 0; at < blocks * weights.h * weights.w * numbers.block / channels; ++at) {
        const int word = at % (numbers.block / channels),
                  tap = at / (numbers.block / channels) % (weights.h * weights.w);
        const int block = at / (numbers.block / channels) / (weights.h * weights.w);
        for (int o = unit * vectors / units * v; o < (unit + 1) * vectors / units * v; ++o) {
          const int first = block * numbers.block + channels * word;
          for (int i = first; i < first + channels; ++i) {
            const bool there = o < outputs && i < weights.c;
            packed.push_back(
                there ? numbers.narrow(weights.at(group * outputs + o, i, tap / weights.w, tap % weights.w, 0.0))
                      : std::uint16_t{0});
          }
        }
      }
    }
  }
  Floats words(packed.size() / 2);
  std::memcpy(words.data(), packed.data(), packed.size() * 2);
  return words;
}

struct PairCase {
  int n, groups, in, out, h, w;  // channels of a group
  reference::Window window;
  bool floats, residual, narrow_residual, function;
  int image;  // channels of an image's block, 0: blocks are whole ones
};

constexpr int kImageChannels = 4;

PairCase random_case(int block, const std::vector<int>& image_blocks, Random& random) {
  PairCase c{};
  c.n = random.whole(1, 2);
  c.groups = random.coin() ? 1 : random.whole(2, 3);
  c.in = c.groups > 1 ? block * random.whole(1, 2) : random.whole(1, 50);
  c.out = c.groups > 1 ? block * random.whole(1, 5) : random.whole(1, 150);
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
  if (!image_blocks.empty() && c.groups == 1 && random.coin()) {
    c.image = image_blocks[static_cast<std::size_t>(random.whole(0, static_cast<int>(image_blocks.size()) - 1))];
    c.in = random.whole(1, c.image);
  }
  return c;
}

double silu(double x) { return x / (1 + std::exp(-x)); }

void check_conv(int v, const PairTable& pairs, const PairCase& c, Random& random, Report& report) {
  const Numbers numbers = numbers_of(pairs);
  const int in = c.in * c.groups, out = c.out * c.groups;
  const int out_h =
      (c.h + 2 * c.window.top - (c.window.kernel_h - 1) * c.window.dilation_h - 1) / c.window.stride_h + 1;
  const int out_w =
      (c.w + 2 * c.window.left - (c.window.kernel_w - 1) * c.window.dilation_w - 1) / c.window.stride_w + 1;
  reference::Tensor x(c.n, in, c.h, c.w), weights(out, c.in, c.window.kernel_h, c.window.kernel_w);
  reference::Tensor residual(c.n, out, out_h, out_w), summed(c.n, out, out_h, out_w), expected(c.n, out, out_h, out_w);
  std::vector<double> bias(static_cast<std::size_t>(out));
  for (auto* values : {&x.values, &weights.values, &residual.values, &bias}) {
    random.fill(*values);
    numbers.round_all(*values);
  }
  reference::Clamp clamp = random.coin() ? reference::Clamp{-0.5, 2, 0.25} : reference::Clamp{-1e30, 1e30};
  clamp.adds_last = !c.function && random.coin();
  if (numbers.lanes == 1) {
    reference::conv(x, weights, bias, c.residual ? &residual : nullptr, c.window, c.groups, clamp, summed);
  } else {
    for (std::size_t i = 0; i < summed.values.size(); ++i) {
      const int at = static_cast<int>(i), column = at % out_w, y = at / out_w % out_h, o = at / out_w / out_h % out;
      double sum = sum_of_float16(x, weights, c.window, at / out_w / out_h / out, o, y, column, o / c.out * c.in);
      const double added = c.residual ? residual.values[i] : 0;
      sum += bias[static_cast<std::size_t>(o)] + (clamp.adds_last ? 0 : added);
      summed.values[i] = std::clamp(sum < 0 ? sum * clamp.slope : sum, clamp.low, clamp.high);
      if (clamp.adds_last) summed.values[i] += added;
    }
  }
  reference::function(summed, c.function ? silu : [](double value) { return value; }, expected);

  Numbers read = numbers;
  if (c.image) read.block = c.image;
  PlacedPairs placed(read, c.n, in, c.h, c.w, 2), narrow_residual(numbers, c.n, out, out_h, out_w, 1);
  placed.put(x);
  narrow_residual.put(residual);
  Placed wide_residual(c.n, out, out_h, out_w, v, 1);
  wide_residual.put(residual);
  Floats packed = packed_weights(read, weights, c.groups, v, pairs.tile_blocks);
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
  step.lanes = step.last_lanes = read.block / 2;
  const std::string what = std::string(pairs.name) + (c.image ? " image" : "") +
                           (c.floats ? " conv to floats " : " conv ") + std::to_string(c.groups) + " x " +
                           std::to_string(c.in) + " to " + std::to_string(c.out) + " kernel " +
                           std::to_string(c.window.kernel_h) + "x" + std::to_string(c.window.kernel_w);
  const std::string family = std::string("conv_direct_") + pairs.numbers + (c.floats ? "_f32" : "");
  std::vector<float> first;
  for (const int threads : {1, 2, 3, 4}) {
    step.channel_split = threads == 4 ? 2 : threads;
    step.chunk_tiles = random.whole(1, 40);
    if (c.floats) {
      Placed made(c.n, out, out_h, out_w, v, 1);
      step.out = made.view;
      run_kernel(pairs, family, step, threads);
      report.check(what, error(made, expected), numbers.error);
      report.check(what + " writes elsewhere", written_outside(made), 0);
      report.check(what + " owners", misowned(kernel_of(pairs, family), step, made.view, threads), 0);
      continue;
    }
    PlacedPairs made(numbers, c.n, out, out_h, out_w, 1);
    step.out = made.view;
    run_kernel(pairs, family, step, threads);
    report.check(what, made.error(expected), numbers.rounded_error);
    report.check(what + " fills up the last block", !made.filled(), 0);
    report.check(what + " writes elsewhere", made.written_around(), 0);
    const std::vector<float> all(made.memory.data(), made.memory.data() + made.memory.size());
    if (threads == 1) first = all;
    report.check(what + " on threads", std::memcmp(first.data(), all.data(), all.size() * sizeof(float)) != 0, 0);
  }
}

// Pixels of an image behind each other, behind zeros and in front of some.
void check_interleaved(const PairTable& pairs, Random& random, Report& report) {
  const Numbers numbers = numbers_of(pairs);
  for (const int width : {1, 16, 37, 100}) {
    const int channels = random.whole(1, kImageChannels), c = random.whole(1, channels), h = 3;
    const int before = random.whole(0, 9), behind = random.whole(0, 70), all = before + width * channels + behind;
    const int words = (all + 1) / 2;
    reference::Tensor x(2, c, h, width);
    random.fill(x.values);
    Placed planes(2, c, h, width, 1, 0);
    planes.put(x);
    Floats made(static_cast<std::size_t>(2 * h * words + 1), 77.0f);
    Step step{};
    step.x = planes.view;
    step.out = {made.data(), h * words, h * words, words, 1, 2, 1, h, words, 1, 0, 0, 0, 0};
    step.numbers[0] = channels;
    step.numbers[1] = before;
    run_kernel(pairs, "narrow_image_bf16", step, 2);
    int wrong = made.data()[2 * h * words] != 77.0f;
    for (int row = 0; row < 2 * h; ++row) {
      const auto* halves = reinterpret_cast<const std::uint16_t*>(made.data() + row * words);
      for (int i = 0; i < 2 * words; ++i) {
        const int pixel = (i - before) / channels, channel = (i - before) % channels;
        const bool there = i >= before && pixel < width && channel < c;
        wrong += halves[i] != (there ? numbers.narrow(x.at(row / h, channel, row % h, pixel, 0.0)) : 0);
      }
    }
    report.check("pixels behind each other", wrong, 0);
  }
}

// Numbers whose lower halves lie between two 16-bit floats, and the even one of two that are as near.
void check_conversions(int v, const PairTable& pairs, Random& random, Report& report) {
  const Numbers numbers = numbers_of(pairs);
  const auto run = [&](const char* family, const Step& step, int threads) {
    run_kernel(pairs, std::string(family) + pairs.numbers, step, threads);
  };
  Numbers of_image = numbers;
  of_image.block = kImageChannels;
  const bool has_images = std::string_view(pairs.numbers) == "bf16";
  for (const int channels : {1, 3, 4, 15, 16, 40}) {
    const int h = 3, w = 19;
    reference::Tensor x(2, channels, h, w);
    random.fill(x.values);
    x.values[0] = 1.00390625;
    x.values[1] = 1.01171875;
    x.values[2] = 1.00048828125;
    Placed blocks(2, channels, h, w, v, 1), planes(2, channels, h, w, 1, 0);
    blocks.put(x);
    planes.put(x);
    for (const std::string_view family : {"narrow_blocks_", "narrow_planes_", "narrow_image_"}) {
      const bool is_image = family == "narrow_image_";
      if (is_image && !(has_images && channels <= kImageChannels)) continue;
      for (const int threads : {1, 3}) {
        PlacedPairs to(is_image ? of_image : numbers, 2, channels, h, w, 1);
        Step step{};
        step.x = family == "narrow_blocks_" ? blocks.view : planes.view;
        step.out = to.view;
        step.numbers[0] = kImageChannels;
        run(family.data(), step, threads);
        int wrong = 0;
        for (int n = 0; n < 2; ++n) {
          for (int c = 0; c < to.view.blocks * to.numbers.block; ++c) {
            for (int i = 0; i < h * w; ++i)
              wrong += to.at(n, c, i / w, i % w) != (c < channels ? numbers.narrow(x.at(n, c, i / w, i % w, 0.0)) : 0);
          }
        }
        report.check(std::string(family) + "floats to 16 bits", wrong, 0);
        report.check("floats to 16 bits writes elsewhere", to.written_around(), 0);
      }
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
    PlacedPairs to(numbers, 2, channels, 3, 5, 1);
    Step step{};
    step.x = from.view;
    step.out = to.view;
    step.weights = scale.data();
    step.bias = shift.data();
    step.x_low = -9;
    step.x_high = 0.375f;
    step.x_slope = 0.5f;
    run("narrow_changed_", step, 3);
    report.check("changed floats to 16 bits", to.error(expected), 0);
  }
  for (const int features : {1, 16, 37, 64}) {
    const int rows = 5, words = (features + numbers.block - 1) / numbers.block * numbers.block / 2;
    Floats from(static_cast<std::size_t>(rows * features)), to(static_cast<std::size_t>(rows * words));
    for (std::size_t i = 0; i < from.size(); ++i) from[i] = static_cast<float>(random.next());
    Step step{};
    step.x.data = from.data();
    step.x.w = step.x.row = features;
    step.out.data = to.data();
    step.out.h = rows;
    step.out.w = step.out.row = words;
    run("narrow_rows_", step, 2);
    int wrong = 0;
    for (int row = 0; row < rows; ++row) {
      const auto* halves = reinterpret_cast<const std::uint16_t*>(to.data() + row * words);
      for (int i = 0; i < 2 * words; ++i) {
        wrong += halves[i] != (i < features ? numbers.narrow(from[static_cast<std::size_t>(row * features + i)]) : 0);
      }
    }
    report.check("rows of floats to 16 bits", wrong, 0);
  }
}

// Depthwise convolutions of floats, and of 16-bit floats, that are rounded once; what fills up the last block of floats
// is no number.
void check_depthwise(int v, const PairTable& pairs, Random& random, Report& report) {
  const Numbers numbers = numbers_of(pairs);
  const int channels = random.whole(1, 40), n = random.whole(1, 2), h = random.whole(5, 20);
  const int w = random.coin() ? random.whole(5, 20) : random.whole(100, 300);
  reference::Window window;
  window.kernel_h = random.whole(1, 5);
  window.kernel_w = random.coin() ? window.kernel_h : random.whole(1, 5);
  window.stride_h = random.whole(1, 2);
  window.stride_w = random.coin() ? window.stride_h : random.whole(1, 2);
  window.top = random.whole(0, 1);
  window.left = random.whole(0, 1);
  const int out_h = (h + 2 * window.top - window.kernel_h) / window.stride_h + 1;
  const int out_w = (w + 2 * window.left - window.kernel_w) / window.stride_w + 1;
  reference::Tensor x(n, channels, h, w), weights(channels, 1, window.kernel_h, window.kernel_w);
  reference::Tensor summed(n, channels, out_h, out_w), expected = summed;
  std::vector<double> bias(static_cast<std::size_t>(channels));
  for (auto* values : {&x.values, &weights.values, &bias}) random.fill(*values);
  numbers.round_all(x.values);
  const reference::Clamp clamp = random.coin() ? reference::Clamp{-0.5, 2, 0.25} : reference::Clamp{-1e30, 1e30};
  const bool function = random.coin();
  reference::conv(x, weights, bias, nullptr, window, channels, clamp, summed);
  reference::function(summed, function ? silu : [](double value) { return value; }, expected);

  Placed placed(n, channels, h, w, v, 2);
  placed.put(x);
  const int blocks = (channels + v - 1) / v, taps = window.kernel_h * window.kernel_w;
  for (int c = channels; c < blocks * v; ++c) {
    for (int i = 0; i < h * w; ++i) {
      const View& view = placed.view;
      view.data[c / v * view.plane + i / w * view.row + i % w * view.pixel + c % v] = NAN;
    }
  }
  Floats packed(static_cast<std::size_t>(blocks * taps * v)), biases(static_cast<std::size_t>(blocks * v));
  for (int c = 0; c < channels; ++c) {
    biases[static_cast<std::size_t>(c)] = static_cast<float>(bias[static_cast<std::size_t>(c)]);
    for (int tap = 0; tap < taps; ++tap) {
      packed[static_cast<std::size_t>((c / v * taps + tap) * v + c % v)] =
          static_cast<float>(weights.values[static_cast<std::size_t>(c * taps + tap)]);
    }
  }
  PlacedPairs narrow(numbers, n, channels, h, w, 2);
  narrow.put(x);
  Step step{};
  step.weights = packed.data();
  step.bias = biases.data();
  set_window(step, window);
  set_clamp(step, clamp);
  step.function = function ? kSilu : kNoFunction;
  const std::string what = std::string(pairs.name) + " depthwise of " + std::to_string(channels) + " channels, " +
                           std::to_string(h) + "x" + std::to_string(w) + ", kernel " + std::to_string(window.kernel_h) +
                           "x" + std::to_string(window.kernel_w);
  for (const auto& [family, threads] : std::initializer_list<std::pair<const char*, int>>{
           {"conv_depthwise_", 1}, {"conv_depthwise_", 3}, {"conv_depthwise_to_", 1}, {"conv_depthwise_to_", 3}}) {
    PlacedPairs made(numbers, n, channels, out_h, out_w, 1);
    step.x = std::string_view(family) == "conv_depthwise_" ? narrow.view : placed.view;
    step.out = made.view;
    run_kernel(pairs, std::string(family) + pairs.numbers, step, threads);
    report.check(what, made.error(expected), numbers.rounded_error);
    report.check(what + " writes elsewhere", made.written_around(), 0);
    int not_zero = 0;
    for (int c = channels; c < made.view.blocks * numbers.block; ++c) {
      for (int i = 0; i < out_h * out_w; ++i) not_zero += made.at(n - 1, c, i / out_w, i % out_w) != 0;
    }
    report.check(what + " fills up the last block with zeros", not_zero, 0);
  }
}

void check_pool(const PairTable& pairs, Random& random, Report& report) {
  const Numbers numbers = numbers_of(pairs);
  reference::Window window;
  window.kernel_h = random.whole(1, 4);
  window.kernel_w = random.whole(1, 4);
  window.stride_h = random.whole(1, 3);
  window.stride_w = random.whole(1, 3);
  window.top = random.whole(0, window.kernel_h - 1);
  window.left = random.whole(0, window.kernel_w - 1);
  const int channels = random.whole(1, 70), n = random.whole(1, 2), h = random.whole(4, 12), w = random.whole(4, 20);
  reference::Tensor x(n, channels, h, w);
  random.fill(x.values);
  numbers.round_all(x.values);
  reference::Tensor expected(n, channels, (h + 2 * window.top - window.kernel_h) / window.stride_h + 1,
                             (w + 2 * window.left - window.kernel_w) / window.stride_w + 1);
  reference::pool_max(x, window, expected);
  PlacedPairs placed(numbers, n, channels, h, w, 1);
  placed.put(x);
  Step step{};
  step.x = placed.view;
  set_window(step, window);
  for (const int threads : {1, 3}) {
    PlacedPairs made(numbers, n, channels, expected.h, expected.w, 2);
    step.out = made.view;
    run_kernel(pairs, std::string("pool_max_") + pairs.numbers, step, threads);
    const std::string what = std::string(pairs.name) + " maximum of " + std::to_string(window.kernel_h) + "x" +
                             std::to_string(window.kernel_w);
    report.check(what, made.error(expected), 0);
    report.check(what + " fills up the last block", !made.filled(), 0);
    report.check(what + " writes elsewhere", made.written_around(), 0);
  }
}

// A product of computed matrices; both sides are rounded on the way.
void check_product(int v, const PairTable& pairs, Random& random, Report& report) {
  const Numbers numbers = numbers_of(pairs);
  const int batch = random.whole(1, 3), rows = random.whole(1, 60), inner = random.whole(1, 60);
  const int columns = random.whole(1, 150), apart = columns + 3;
  const bool left_turned = random.coin(), right_turned = random.coin();
  std::vector<double> a(static_cast<std::size_t>(batch) * rows * inner),
      b(static_cast<std::size_t>(batch) * inner * columns);
  random.fill(a);
  random.fill(b);
  Floats a_floats(a.size()), b_floats(b.size());
  for (std::size_t i = 0; i < a.size(); ++i) a_floats[i] = static_cast<float>(a[i]);
  for (std::size_t i = 0; i < b.size(); ++i) b_floats[i] = static_cast<float>(b[i]);
  numbers.round_all(a);
  numbers.round_all(b);
  const int words = (inner + numbers.block - 1) / numbers.block * numbers.block / 2, room = (rows + 7) / 6 * 8;
  const int packed_floats = (columns + v - 1) / v * v * words;
  Floats narrowed(static_cast<std::size_t>(batch) * room * words);
  Floats packed(static_cast<std::size_t>(batch) * packed_floats);
  const Strided left =
      strided(a_floats.data(), {batch, rows, inner}, {rows * inner, left_turned ? 1 : inner, left_turned ? rows : 1});
  const Strided right = strided(b_floats.data(), {batch, inner, columns},
                                {inner * columns, right_turned ? 1 : columns, right_turned ? inner : 1});
  const Strided middle = strided(narrowed.data(), {batch, rows, words}, {room * words, words, 1});
  const Strided panels = strided(packed.data(), {batch, 1, packed_floats}, {packed_floats, 0, 1});
  const Strided narrowing[] = {middle, left}, packing[] = {panels, right};
  for (const int threads : {1, 3}) {
    Floats out(static_cast<std::size_t>(batch) * rows * apart, 77.0f);
    const Strided product[] = {strided(out.data(), {batch, rows, columns}, {rows * apart, apart, 1}), middle, panels};
    Step step{};
    step.alpha = 0.375f;
    step.numbers[0] = inner;
    step.operands = narrowing;
    run_kernel(pairs, "narrow_matrix_bf16", step, threads);
    step.operands = packing;
    run_kernel(pairs, "pack_matrix_bf16", step, threads);
    step.operands = product;
    run_kernel(pairs, "matmul_bf16", step, threads);
    double worst = 0;
    for (int at = 0; at < batch * rows * apart; ++at) {
      const int n = at / apart / rows, i = at / apart % rows, j = at % apart;
      double expected = 77;
      if (j < columns) {
        expected = 0;
        for (int k = 0; k < inner; ++k) {
          const int from = left_turned ? k * rows + i : i * inner + k,
                    to = right_turned ? j * inner + k : k * columns + j;
          expected += 0.375 * a[static_cast<std::size_t>(n * rows * inner + from)] *
                      b[static_cast<std::size_t>(n * inner * columns + to)];
        }
      }
      worst = std::max(worst, std::abs(out[static_cast<std::size_t>(at)] - expected));
    }
    report.check(std::string(pairs.name) + " product of " + std::to_string(rows) + "x" + std::to_string(inner) + "x" +
                     std::to_string(columns),
                 worst, 1e-5);
  }
}

// Weights packed in a run as they are when a model is loaded; the groups of a convolution of few channels become one.
void check_packing(int v, const PairTable& pairs, Random& random, Report& report) {
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
  Floats wanted = packed_weights(numbers_of(pairs), whole, groups, v, pairs.tile_blocks), packed(wanted.size());
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
    run_kernel(pairs, "pack_kernels_bf16", step, random.whole(1, 5));
    report.check("weights packed to bf16", std::memcmp(packed.data(), wanted.data(), 4 * packed.size()) != 0, 0);
  }
}

}  // namespace

void check_pair_convolutions(int v, const PairTable& pairs, Report& report) {
  Random random(19);
  for (int round = 0; round < 120; ++round)
    check_conv(v, pairs, random_case(pairs.block, image_blocks(pairs), random), random, report);
  for (int round = 0; round < 12; ++round) {  // over many channels
    PairCase c = random_case(pairs.block, {}, random);
    c.window = reference::Window{1, 1, 1, 1, 1, 1, 0, 0};
    c.groups = 1;
    c.in = 16 * random.whole(50, 80);
    c.out = random.whole(1, 100);
    check_conv(v, pairs, c, random, report);
  }
}

void check_pair_products(int v, const PairTable& pairs, Report& report) {
  Random random(20);
  for (int i = 0; i < 40; ++i) {
    check_product(v, pairs, random, report);
    check_packing(v, pairs, random, report);
  }
}

void check_pairs(const KernelTable& table, Report& report) {
  for (const PairTable* pairs : pair_tables(table)) {
    const int before = report.checked();
    Random random(22);
    check_pair_convolutions(table.vector_width, *pairs, report);
    check_conversions(table.vector_width, *pairs, random, report);
    if (!image_blocks(*pairs).empty()) check_interleaved(*pairs, random, report);
    for (int i = 0; i < 60; ++i) check_depthwise(table.vector_width, *pairs, random, report);
    for (int i = 0; i < 30; ++i) check_pool(*pairs, random, report);
    if (std::string_view(pairs->numbers) == "bf16") {
      check_pair_products(table.vector_width, *pairs, report);
      check_pair_attentions(table.vector_width, *pairs, report);
    }
    std::printf("%s: %s: %d checks\n", table.tier, pairs->name, report.checked() - before);
  }
}

}  // namespace powerlab::engine::test
