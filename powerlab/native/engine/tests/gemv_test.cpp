// Fully connected layers for few images: every number of images and blocks the kernel has a register tile for.
#include <limits>
#include <string>

#include "tests/test.hpp"

namespace powerlab::engine::test {
namespace {

// [unit][feature][block of the unit][v], as kernels/products/gemv.hpp says.
Floats pack(const reference::Tensor& weights, int v, int unit_blocks) {
  const int blocks = (weights.n + v - 1) / v, units = (blocks + unit_blocks - 1) / unit_blocks;
  Floats packed(static_cast<std::size_t>(blocks) * v * weights.c);
  std::size_t at = 0;
  for (int unit = 0; unit < units; ++unit) {
    for (int feature = 0; feature < weights.c; ++feature) {
      for (int o = unit * blocks / units * v; o < (unit + 1) * blocks / units * v; ++o) {
        packed[at++] = o < weights.n ? static_cast<float>(weights.at(o, feature, 0, 0, 0.0)) : 0.0f;
      }
    }
  }
  return packed;
}

// The view the kernel wants of a tensor of one pixel: images as the pixels of one row.
View images_as_pixels(const View& v) {
  View row = v;
  row.n = 1;
  row.w = v.n;
  row.pixel = v.image;
  row.row = row.image = v.n * v.image;
  return row;
}

void check_layer(const KernelTable& table, int images, int features, int outputs, int unit_blocks, Report& report) {
  const int v = table.vector_width;
  Random random(static_cast<std::uint64_t>(images * 1000 + features + outputs));
  reference::Tensor x(images, features, 1, 1), weights(outputs, features, 1, 1), expected(images, outputs, 1, 1);
  random.fill(x.values);
  random.fill(weights.values);
  std::vector<double> bias(static_cast<std::size_t>(outputs));
  random.fill(bias);
  const reference::Clamp clamp{-0.5, std::numeric_limits<double>::infinity(), 0.25};
  reference::conv(x, weights, bias, nullptr, {1, 1, 1, 1, 1, 1, 0, 0}, 1, clamp, expected);

  Placed in(images, features, 1, 1, 1, 0);
  in.put(x);
  Floats packed = pack(weights, v, unit_blocks), biases(static_cast<std::size_t>((outputs + v - 1) / v * v));
  for (std::size_t i = 0; i < bias.size(); ++i) biases[i] = static_cast<float>(bias[i]);
  Step step{};
  step.x = images_as_pixels(in.view);
  step.weights = packed.data();
  step.bias = biases.data();
  step.unit_blocks = unit_blocks;
  step.low = static_cast<float>(clamp.low);
  step.high = static_cast<float>(clamp.high);
  step.slope = static_cast<float>(clamp.slope);

  const std::string what = std::string(find_kernel(table, "gemv").name) + " " + std::to_string(images) + " images " +
                           std::to_string(features) + " to " + std::to_string(outputs) + " by " +
                           std::to_string(unit_blocks);
  Placed alone(images, outputs, 1, 1, v, 0);
  for (const int threads : {1, 2, 3, 8}) {
    Placed out(images, outputs, 1, 1, v, 0);
    step.out = images_as_pixels(out.view);
    run_kernel(table, "gemv", step, threads);
    report.check(what + " threads " + std::to_string(threads), error(out, expected), 1e-5);
    if (threads == 1) {
      alone.put(expected);
      step.out = images_as_pixels(alone.view);
      run_kernel(table, "gemv", step, 1);
    }
    report.check(what + " is the same on threads " + std::to_string(threads), different_bits(alone, out), 0);
  }
}

}  // namespace

void check_gemv(const KernelTable& table, Report& report) {
  const int v = table.vector_width;
  for (int images = 1; images <= 8; ++images) {
    for (int unit_blocks = 1; unit_blocks <= 4; ++unit_blocks) {
      check_layer(table, images, 37, 7 * v - 1, unit_blocks, report);
    }
  }
  check_layer(table, 1, 1, 1, 4, report);
  check_layer(table, 3, 5, 2 * v + 1, 4, report);
  check_layer(table, 1, 2000, 9 * v, 4, report);
}

}  // namespace powerlab::engine::test
