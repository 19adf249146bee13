// Attention in one kernel: sizes beside whole tiles, chunks and vectors, what is added, rows that may see nothing.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "tests/test.hpp"

namespace powerlab::engine::test {
namespace {

struct Sizes {
  int batch, rows, keys, inner, width;
  int chunk, together;
  int added;  // 0: nothing; 1: a row's numbers, for all batches; 2: a batch's column as well, and row 1 sees nothing
};

std::size_t count(int a, int b, int c) { return static_cast<std::size_t>(a) * b * c; }

// What scores get, of a batch, a row and a key.
double added_to(const Sizes& z, Floats& rows, Floats& columns, int n, int i, int j) {
  double sum = 0;
  if (z.added > 0) sum += static_cast<double>(rows[count(i, z.keys, 1) + j]);
  if (z.added > 1) sum += static_cast<double>(columns[count(n, z.rows, 1) + i]);
  return sum;
}

// Packs a side, `turned`: its columns lie side by side.
Floats packed(const KernelTable& table, Floats& side, int batch, int inner, int columns, bool turned) {
  const int v = table.vector_width;
  const std::int64_t floats = static_cast<std::int64_t>(inner) * ((columns + v - 1) / v) * v;
  Floats made(count(batch, 1, static_cast<int>(floats)));
  const std::int64_t matrix = static_cast<std::int64_t>(inner) * columns;
  const Strided operands[] = {
      strided(made.data(), {batch, 1, floats}, {floats, 0, 1}),
      strided(side.data(), {batch, inner, columns}, {matrix, turned ? 1 : columns, turned ? inner : 1}),
  };
  Step pack{};
  pack.operands = operands;
  pack.operand_count = 2;
  pack.alpha = 1.0f;
  run_kernel(table, "pack_matrix_f32", pack, 1);
  return made;
}

void check_attention(const KernelTable& table, const Sizes& z, Report& report) {
  const int v = table.vector_width, row_floats = (z.keys + v - 1) / v * v;
  Random random(static_cast<std::uint64_t>(z.rows * 1000 + z.keys * 10 + z.added));
  const auto filled = [&](std::size_t size) {
    std::vector<double> values(size);
    random.fill(values);
    Floats made(size);
    for (std::size_t i = 0; i < size; ++i) made[i] = static_cast<float>(values[i]);
    return made;
  };
  Floats q = filled(count(z.batch, z.rows, z.inner)), k = filled(count(z.batch, z.keys, z.inner));
  Floats values = filled(count(z.batch, z.keys, z.width));
  Floats of_rows = filled(count(z.rows, z.keys, 1)), of_columns = filled(count(z.batch, z.rows, 1));
  if (z.added > 1) std::fill_n(of_rows.data() + z.keys, z.keys, -INFINITY);
  Floats keys = packed(table, k, z.batch, z.inner, z.keys, true);
  Floats shown = packed(table, values, z.batch, z.keys, z.width, false);
  const std::int64_t own = z.inner, out_row = z.width + 2;
  std::vector<float> alone;
  for (const int threads : {1, 2, 5}) {
    Floats out(count(z.batch, z.rows, static_cast<int>(out_row)), 77.0f);
    const auto of_batch = [](const Floats& all, int batch) { return static_cast<std::int64_t>(all.size()) / batch; };
    const std::int64_t key_floats = of_batch(keys, z.batch), value_floats = of_batch(shown, z.batch);
    const Strided operands[] = {
        strided(out.data(), {z.batch, z.rows, z.width}, {z.rows * out_row, out_row, 1}),
        strided(q.data(), {z.batch, z.rows, z.inner}, {z.rows * own, own, 1}),
        strided(keys.data(), {z.batch, 1, key_floats}, {key_floats, 0, 1}),
        strided(shown.data(), {z.batch, 1, value_floats}, {value_floats, 0, 1}),
        strided(of_rows.data(), {z.batch, z.rows, z.keys}, {0, z.keys, 1}),
        strided(of_columns.data(), {z.batch, z.rows, z.keys}, {z.rows, 1, 0}),
    };
    Floats scratch(count(threads, z.together * table.tile_pixels, row_floats));
    Step step{};
    step.operands = operands;
    step.operand_count = 4 + z.added;
    step.numbers[0] = z.chunk;
    step.numbers[1] = z.together;
    step.numbers[2] = z.keys;
    step.numbers[3] = z.added > 1;
    step.scratch.data = scratch.data();
    step.scratch.image = static_cast<std::int64_t>(z.together) * table.tile_pixels * row_floats;
    run_kernel(table, "attention_f32", step, threads);
    double worst = 0, outside = 0;
    for (int n = 0; n < z.batch; ++n) {
      for (int i = 0; i < z.rows; ++i) {
        std::vector<double> scores(static_cast<std::size_t>(z.keys));
        double most = -INFINITY, sum = 0;
        for (int j = 0; j < z.keys; ++j) {
          double score = added_to(z, of_rows, of_columns, n, i, j);
          for (int d = 0; d < z.inner; ++d) {
            score += static_cast<double>(q[count(n * z.rows + i, z.inner, 1) + d]) *
                     static_cast<double>(k[count(n * z.keys + j, z.inner, 1) + d]);
          }
          scores[static_cast<std::size_t>(j)] = score;
          most = std::max(most, score);
        }
        for (double& score : scores) {
          score = std::isinf(most) ? 0 : std::exp(score - most);
          sum += score;
        }
        const float* found = out.data() + (static_cast<std::int64_t>(n) * z.rows + i) * out_row;
        for (int w = 0; w < z.width; ++w) {
          double expected = 0;
          for (int j = 0; j < z.keys; ++j) {
            expected += scores[static_cast<std::size_t>(j)] *
                        static_cast<double>(values[count(n * z.keys + j, z.width, 1) + w]);
          }
          expected = sum > 0 ? expected / sum : 0;
          worst = std::max(worst, std::fabs(static_cast<double>(found[w]) - expected));
        }
        for (int w = z.width; w < out_row; ++w) outside += found[w] != 77.0f;
      }
    }
    const std::string what = "attention " + std::to_string(z.rows) + "x" + std::to_string(z.keys) + "x" +
                             std::to_string(z.inner) + "x" + std::to_string(z.width) + " added " +
                             std::to_string(z.added) + " threads " + std::to_string(threads);
    report.check(what, worst, 2e-6);
    report.check(what + " keeps to its columns", outside, 0);
    const std::vector<float> made(out.data(), out.data() + out.size());
    if (threads == 1) alone = made;
    report.check(what + " makes the same bits", made == alone ? 0 : 1, 0);
  }
}

}  // namespace

void check_attentions(const KernelTable& table, Report& report) {
  const int v = table.vector_width, tile = table.tile_pixels;
  check_attention(table, {2, 1, 1, 1, 1, 512, 1, 0}, report);
  check_attention(table, {1, tile, v, 4, v, 512, 1, 1}, report);
  check_attention(table, {3, 2 * tile + 1, 2 * v + 3, 5, v + 1, 512, 2, 2}, report);
  check_attention(table, {2, 4 * tile + 3, 9 * v + 1, 16, 3 * v, 512, 3, 1}, report);
  check_attention(table, {1, tile + 2, 5 * v, 2 * v + 1, 2 * v, v, 2, 2}, report);
}

}  // namespace powerlab::engine::test
