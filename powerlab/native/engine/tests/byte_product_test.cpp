// Products of two matrices that are rounded to bytes on the way, against plain integers: every bit of the result.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "tests/test.hpp"

namespace powerlab::engine::test {
namespace {

// Quarters of steps, ties among them, and more than bytes hold.
float some(Random& random, float step) { return step * static_cast<float>(random.whole(-700, 700)) / 4; }

int rounded(float x, float step, int low, int high) {
  return static_cast<int>(std::clamp(std::nearbyint(x / step), static_cast<float>(low), static_cast<float>(high)));
}

void check_one(const ByteTable& bytes, int v, Random& random, Report& report) {
  const int batch = random.whole(1, 3), rows = random.whole(1, 60), inner = random.whole(1, 140);
  const int columns = random.whole(1, 150), zero = random.coin() ? 0 : random.whole(0, 255);
  const bool left_turned = random.coin(), right_turned = random.coin();
  const float left_step = static_cast<float>(random.whole(1, 99)) / 512, right_step = left_step * 3;
  Floats a(static_cast<std::size_t>(batch) * rows * inner), b(static_cast<std::size_t>(batch) * inner * columns);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = some(random, left_step);
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = some(random, right_step);
  const int words = (inner + 3) / 4, row_floats = (inner + v - 1) / v * v / 4, vectors = (columns + v - 1) / v;
  const int packed_floats = vectors * v * (words * (std::string_view(bytes.form) == "pairs" ? 2 : 1) + 1);
  Floats a_bytes(static_cast<std::size_t>(batch) * rows * row_floats);
  Floats packed(static_cast<std::size_t>(batch) * packed_floats);
  const Strided left =
      strided(a.data(), {batch, rows, inner}, {rows * inner, left_turned ? 1 : inner, left_turned ? rows : 1});
  const Strided right = strided(b.data(), {batch, inner, columns},
                                {inner * columns, right_turned ? 1 : columns, right_turned ? inner : 1});
  const Strided middle = strided(a_bytes.data(), {batch, rows, row_floats}, {rows * row_floats, row_floats, 1});
  const Strided panels = strided(packed.data(), {batch, 1, packed_floats}, {packed_floats, 0, 1});
  const Strided rounding[] = {middle, left}, packing[] = {panels, right};
  for (const int threads : {1, 3}) {
    const int apart = columns + 3;
    Floats out(static_cast<std::size_t>(batch) * rows * apart, 77.0f);
    const Strided product[] = {strided(out.data(), {batch, rows, columns}, {rows * apart, apart, 1}), middle, panels};
    Step step{};
    step.numbers[0] = zero;
    step.alpha = left_step;
    step.operands = rounding;
    run_kernel(bytes, "quantize_matrix", step, threads);
    step.alpha = right_step;
    step.operands = packing;
    run_kernel(bytes, "pack_matrix_s8", step, threads);
    step.numbers[0] = inner;
    step.alpha = 0.375f;
    step.operands = product;
    run_kernel(bytes, "matmul_u8", step, threads);
    int wrong = 0;
    for (int n = 0; n < batch; ++n) {
      for (int i = 0; i < rows; ++i) {
        for (int j = 0; j < apart; ++j) {
          int sum = 0;
          for (int k = 0; j < columns && k < inner; ++k) {
            const int from = left_turned ? k * rows + i : i * inner + k;
            const int to = right_turned ? j * inner + k : k * columns + j;
            sum += rounded(a[static_cast<std::size_t>(n * rows * inner + from)], left_step, -zero, 255 - zero) *
                   rounded(b[static_cast<std::size_t>(n * inner * columns + to)], right_step, -127, 127);
          }
          const float expected = j < columns ? static_cast<float>(sum) * 0.375f : 77.0f;
          wrong += out[static_cast<std::size_t>((n * rows + i) * apart + j)] != expected;
        }
      }
    }
    report.check(std::string(bytes.name) + " product of " + std::to_string(rows) + "x" + std::to_string(inner) + "x" +
                     std::to_string(columns),
                 wrong, 0);
  }
}

}  // namespace

void check_byte_products(const ByteTable& bytes, int v, Report& report) {
  Random random(31);
  for (int i = 0; i < 60; ++i) check_one(bytes, v, random, report);
}

}  // namespace powerlab::engine::test
