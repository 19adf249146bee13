// Attention in bfloat16: sizes beside whole tiles and blocks, what is added, rows that may see nothing.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "tests/test.hpp"

namespace powerlab::engine::test {
namespace {

struct Sizes {
  int batch, rows, keys, inner, width;
  bool turned;  // whether the elements of a key, and of a row of q, lie apart
  int added;    // 0: nothing; 1: a row's numbers, for all batches; 2: a batch's column as well, and row 1 sees nothing
};

// So many random numbers that bfloat16 has.
Floats numbers(Random& random, int count) {
  std::vector<double> values(static_cast<std::size_t>(count));
  random.fill(values);
  Floats made(values.size());
  for (std::size_t i = 0; i < made.size(); ++i) made[i] = static_cast<float>(nearest_bfloat16(values[i]));
  return made;
}

Floats packed(const PairTable& pairs, int v, const Strided& side) {
  const std::int64_t batch = side.size[0], inner = side.size[1], columns = side.size[2];
  const std::int64_t words = (inner + pairs.block - 1) / pairs.block * pairs.block / 2;
  const std::int64_t floats = (columns + v - 1) / v * v * words;
  Floats made(static_cast<std::size_t>(batch * floats));
  const Strided operands[] = {strided(made.data(), {batch, 1, floats}, {floats, 0, 1}), side};
  Step step{};
  step.operands = operands;
  run_kernel(pairs, "pack_matrix_bf16", step, 1);
  return made;
}

void check_attention(const PairTable& pairs, int v, const Sizes& z, Random& random, Report& report) {
  constexpr double kAlpha = 0.5, kBeta = 2;
  Floats q = numbers(random, z.batch * z.rows * z.inner), k = numbers(random, z.batch * z.keys * z.inner);
  Floats values = numbers(random, z.batch * z.keys * z.width);
  Floats of_rows = numbers(random, z.rows * z.keys), of_columns = numbers(random, z.batch * z.rows);
  if (z.added > 1) std::fill_n(of_rows.data() + z.keys, z.keys, -std::numeric_limits<float>::infinity());
  const auto at = [&](int rows, int row, int i) { return z.turned ? i * rows + row : row * z.inner + i; };
  const std::int64_t down = z.turned ? 1 : z.inner, q_across = z.turned ? z.rows : 1, k_across = z.turned ? z.keys : 1;
  Floats keys = packed(pairs, v, strided(k.data(), {z.batch, z.inner, z.keys}, {z.keys * z.inner, k_across, down}));
  Floats shown = packed(pairs, v, strided(values.data(), {z.batch, z.keys, z.width}, {z.keys * z.width, z.width, 1}));
  const std::int64_t key_floats = static_cast<std::int64_t>(keys.size()) / z.batch,
                     value_floats = static_cast<std::int64_t>(shown.size()) / z.batch, out_row = z.width + 2;
  const auto filled = [&](int count) { return (count + pairs.block - 1) / pairs.block * pairs.block; };
  const std::int64_t scratch_floats = 32 * (filled(z.keys) + filled(z.inner) / 2);
  std::vector<float> alone;
  for (const int threads : {1, 2, 5}) {
    Floats out(static_cast<std::size_t>(z.batch * z.rows * out_row), 77.0f);
    Floats scratch(static_cast<std::size_t>(threads * scratch_floats), std::numeric_limits<float>::quiet_NaN());
    const Strided operands[] = {
        strided(out.data(), {z.batch, z.rows, z.width}, {z.rows * out_row, out_row, 1}),
        strided(q.data(), {z.batch, z.rows, z.inner}, {z.rows * z.inner, down, q_across}),
        strided(keys.data(), {z.batch, 1, key_floats}, {key_floats, 0, 1}),
        strided(shown.data(), {z.batch, 1, value_floats}, {value_floats, 0, 1}),
        strided(of_rows.data(), {z.batch, z.rows, z.keys}, {0, z.keys, 1}),
        strided(of_columns.data(), {z.batch, z.rows, z.keys}, {z.rows, 1, 0}),
    };
    Step step{};
    step.operands = operands;
    step.operand_count = 4 + z.added;
    step.numbers[0] = z.inner;
    step.numbers[1] = z.keys;
    step.numbers[2] = z.added > 1;
    step.alpha = kAlpha;
    step.beta = kBeta;
    step.scratch.data = scratch.data();
    step.scratch.image = scratch_floats;
    run_kernel(pairs, "attention_bf16", step, threads);
    double worst = 0, outside = 0;
    for (int n = 0; n < z.batch; ++n) {
      for (int i = 0; i < z.rows; ++i) {
        std::vector<double> scores(static_cast<std::size_t>(z.keys));
        double most = -std::numeric_limits<double>::infinity(), sum = 0;
        for (int j = 0; j < z.keys; ++j) {
          double score = 0;
          for (int d = 0; d < z.inner; ++d) {
            score += static_cast<double>(q[static_cast<std::size_t>(n * z.rows * z.inner + at(z.rows, i, d))]) *
                     static_cast<double>(k[static_cast<std::size_t>(n * z.keys * z.inner + at(z.keys, j, d))]);
          }
          score *= kAlpha;
          if (z.added > 0) score += static_cast<double>(of_rows[static_cast<std::size_t>(i * z.keys + j)]);
          if (z.added > 1) score += static_cast<double>(of_columns[static_cast<std::size_t>(n * z.rows + i)]);
          scores[static_cast<std::size_t>(j)] = score;
          most = std::max(most, score);
        }
        for (double& score : scores) {
          score = std::isinf(most) ? 0 : std::exp(score - most);
          sum += score;
          score = nearest_bfloat16(score);
        }
        const float* found = out.data() + (static_cast<std::int64_t>(n) * z.rows + i) * out_row;
        for (int w = 0; w < z.width; ++w) {
          double expected = 0;
          for (int j = 0; j < z.keys; ++j) {
            expected += scores[static_cast<std::size_t>(j)] *
                        static_cast<double>(values[static_cast<std::size_t>((n * z.keys + j) * z.width + w)]);
          }
          expected = sum > 0 ? kBeta * expected / sum : 0;
          const double error = std::fabs(static_cast<double>(found[w]) - expected);
          worst = error <= worst ? worst : error;  // not-a-number counts
        }
        for (int w = z.width; w < out_row; ++w) outside += found[w] != 77.0f;
      }
    }
    const std::string what = std::string(pairs.name) + " attention " + std::to_string(z.rows) + "x" +
                             std::to_string(z.keys) + "x" + std::to_string(z.inner) + "x" + std::to_string(z.width) +
                             " added " + std::to_string(z.added) + " threads " + std::to_string(threads);
    report.check(what, worst, 2e-3);  // one probability may be rounded the other way
    report.check(what + " keeps to its columns", outside, 0);
    const std::vector<float> made(out.data(), out.data() + out.size());
    if (threads == 1) alone = made;
    report.check(what + " makes the same bits", made == alone ? 0 : 1, 0);
  }
}

}  // namespace

void check_pair_attentions(int v, const PairTable& pairs, Report& report) {
  const auto has = [&](std::string_view family) {
    return std::any_of(pairs.kernels, pairs.kernels + pairs.kernel_count,
                       [&](const Kernel& kernel) { return family == kernel.family; });
  };
  if (!has("attention_bf16")) return;
  Random random(23);
  check_attention(pairs, v, {2, 1, 1, 1, 1, false, 0}, random, report);
  check_attention(pairs, v, {1, 16, 32, 32, 64, false, 1}, random, report);
  check_attention(pairs, v, {3, 33, 35, 5, 17, true, 2}, random, report);
  check_attention(pairs, v, {2, 67, 145, 16, 80, false, 1}, random, report);
  check_attention(pairs, v, {1, 18, 80, 33, 32, true, 2}, random, report);
  for (int i = 0; i < 20; ++i) {
    const Sizes z = {random.whole(1, 3),  random.whole(1, 80),     random.whole(1, 150), random.whole(1, 70),
                     random.whole(1, 80), random.whole(0, 1) == 1, random.whole(0, 1)};
    check_attention(pairs, v, z, random, report);
  }
}

}  // namespace powerlab::engine::test
