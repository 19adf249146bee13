// Fully connected layers with weights in fewer bits, against double precision: weights are what their words say
// exactly.
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "tests/test.hpp"

namespace powerlab::engine::test {
namespace {

constexpr int kScaled = 32;  // features that share a scale in int4w

struct Format {
  const char* name;
  int bits;  // of a weight
};
constexpr Format kFormats[] = {{"bf16w", 16}, {"fp16w", 16}, {"int8w", 8}, {"int4w", 4}};

// A weight, and the bits that stand for it; a scale where the format has one.
struct Weight {
  std::uint32_t bits;
  double value;
};

double scale_of(const Format& format, int output, int feature) {
  return std::ldexp(1.0 + output % 3 / 4.0, format.bits == 8 ? -3 - output % 5 : -2 - (output + feature / kScaled) % 4);
}

Weight random_weight(const Format& format, int output, int feature, Random& random) {
  if (format.bits < 16) {
    const int most = (1 << (format.bits - 1)) - 1, whole = random.whole(-most, most);
    return {static_cast<std::uint32_t>(whole) & ((1u << format.bits) - 1), whole * scale_of(format, output, feature)};
  }
  if (format.name[0] == 'b') {
    const auto bits = std::bit_cast<std::uint32_t>(static_cast<float>(random.next())) >> 16;
    return {bits, std::bit_cast<float>(bits << 16)};
  }
  // Float16 of either sign, some of them below 2^-14, where the exponent is 0.
  const auto bits = static_cast<std::uint32_t>(random.whole(0, 0x3fff) | (random.coin() ? 0x8000 : 0));
  const int exponent = static_cast<int>(bits >> 10 & 31), fraction = static_cast<int>(bits & 1023);
  const double magnitude = exponent ? std::ldexp(1024 + fraction, exponent - 25) : std::ldexp(fraction, -24);
  return {bits, bits & 0x8000 ? -magnitude : magnitude};
}

std::uint32_t float_bits(double value) { return std::bit_cast<std::uint32_t>(static_cast<float>(value)); }

// As kernels/narrow/formats.hpp says.
Floats pack(const Format& format, const std::vector<std::vector<Weight>>& weights, int v, int unit_blocks) {
  const int outputs = static_cast<int>(weights.size()), features = static_cast<int>(weights[0].size());
  const int blocks = (outputs + v - 1) / v, units = (blocks + unit_blocks - 1) / unit_blocks, a_word = 32 / format.bits;
  std::vector<std::uint32_t> words;
  const auto bits_of = [&](int o, int feature) {
    const bool there = o < outputs && feature < features;
    return there ? weights[static_cast<std::size_t>(o)][static_cast<std::size_t>(feature)].bits : 0u;
  };
  for (int unit = 0; unit < units; ++unit) {
    const int begin = unit * blocks / units * v, end = (unit + 1) * blocks / units * v;
    if (format.bits == 8) {
      for (int o = begin; o < end; ++o) words.push_back(float_bits(scale_of(format, o, 0)));
    }
    for (int first = 0; first < features; first += a_word) {
      if (format.bits == 4 && first % (2 * kScaled) == 0) {
        for (int o = begin; o < end; ++o) {
          words.push_back(float_bits(scale_of(format, o, first)) >> 16 |
                          (float_bits(scale_of(format, o, first + kScaled)) & 0xffff0000u));
        }
      }
      if (format.name[0] == 'f' || format.bits == 8) {  // outputs of a feature side by side
        for (int block = begin; block < end; block += v) {
          for (int at = 0; at < v * a_word; at += a_word) {
            std::uint32_t word = 0;
            for (int i = 0; i < a_word; ++i) {
              word |= bits_of(block + (at + i) % v, first + (at + i) / v) << (format.bits * i);
            }
            words.push_back(word);
          }
        }
        continue;
      }
      for (int o = begin; o < end; ++o) {
        std::uint32_t word = 0;
        for (int i = 0; i < a_word; ++i) word |= bits_of(o, first + i) << (format.bits * i);
        words.push_back(word);
      }
    }
  }
  Floats packed(words.size());
  std::memcpy(packed.data(), words.data(), words.size() * sizeof(float));
  return packed;
}

void check_layer(const KernelTable& table, const Format& format, int images, int features, int outputs, int unit_blocks,
                 Report& report) {
  const int v = table.vector_width;
  Random random(static_cast<std::uint64_t>(images * 1000 + features + outputs));
  reference::Tensor x(images, features, 1, 1), plain(outputs, features, 1, 1), expected(images, outputs, 1, 1);
  random.fill(x.values);
  std::vector<std::vector<Weight>> weights(static_cast<std::size_t>(outputs));
  for (int o = 0; o < outputs; ++o) {
    for (int i = 0; i < features; ++i) {
      const Weight weight = random_weight(format, o, i, random);
      weights[static_cast<std::size_t>(o)].push_back(weight);
      plain.at(o, i, 0, 0) = weight.value;
    }
  }
  std::vector<double> bias(static_cast<std::size_t>(outputs));
  random.fill(bias);
  const reference::Clamp clamp{-0.5, std::numeric_limits<double>::infinity(), 0.25};
  reference::conv(x, plain, bias, nullptr, {1, 1, 1, 1, 1, 1, 0, 0}, 1, clamp, expected);

  // Images lie apart, with not-a-number behind each.
  const int apart = features + 3;
  Floats in(static_cast<std::size_t>(images * apart - 3), std::numeric_limits<float>::quiet_NaN());
  for (int image = 0; image < images; ++image) {
    for (int i = 0; i < features; ++i) {
      in[static_cast<std::size_t>(image * apart + i)] = static_cast<float>(x.at(image, i, 0, 0));
    }
  }
  Floats packed = pack(format, weights, v, unit_blocks), biases(static_cast<std::size_t>((outputs + v - 1) / v * v));
  for (std::size_t i = 0; i < bias.size(); ++i) biases[i] = static_cast<float>(bias[i]);
  Step step{};
  step.x.data = in.data();
  step.x.c = features;
  step.x.pixel = apart;
  step.weights = packed.data();
  step.bias = biases.data();
  step.unit_blocks = unit_blocks;
  step.low = static_cast<float>(clamp.low);
  step.high = static_cast<float>(clamp.high);
  step.slope = static_cast<float>(clamp.slope);

  const std::string family = std::string("gemv_") + format.name;
  const std::string what = family + " " + std::to_string(images) + " images " + std::to_string(features) + " to " +
                           std::to_string(outputs) + " by " + std::to_string(unit_blocks);
  Placed alone(images, outputs, 1, 1, v, 0);
  for (const int threads : {1, 3}) {
    Placed out(images, outputs, 1, 1, v, 0);
    step.out = out.view;
    step.out.n = 1;
    step.out.w = images;
    step.out.pixel = out.view.image;
    run_kernel(table, family.c_str(), step, threads);
    report.check(what + " threads " + std::to_string(threads), error(out, expected), 1e-5);
    if (threads == 1) {
      alone.put(expected);
      step.out.data = alone.view.data;
      run_kernel(table, family.c_str(), step, 1);
    }
    report.check(what + " is the same on threads " + std::to_string(threads), different_bits(alone, out), 0);
  }
}

}  // namespace

void check_narrow(const KernelTable& table, Report& report) {
  const int v = table.vector_width;
  for (const Format& format : kFormats) {
    for (int images = 1; images <= 8; ++images) {
      for (int unit_blocks = 1; unit_blocks <= 4; ++unit_blocks) {
        check_layer(table, format, images, 83, 7 * v - 1, unit_blocks, report);
      }
    }
    for (const int features : {1, 2, 31, 32, 33, 64, 65, 200}) {
      check_layer(table, format, 3, features, 2 * v + 1, 4, report);
      check_layer(table, format, 1, features, v, 4, report);
    }
    check_layer(table, format, 21, 130, 5 * v, 3, report);
  }
}

}  // namespace powerlab::engine::test
