// Products of matrices and what takes whole rows: every height and width of a register tile, any strides, against
// double precision.
#include <cmath>
#include <string>

#include "tests/test.hpp"

namespace powerlab::engine::test {
namespace {

struct Product {
  int batch, rows, inner, columns;
  bool left_transposed, right_transposed;
  int chunk, together, tiles;
  bool packs;  // rows
};

void check_product(const KernelTable& table, const Product& p, Report& report) {
  const int v = table.vector_width, vectors = (p.columns + v - 1) / v;
  const std::int64_t packed_floats = static_cast<std::int64_t>(p.inner) * vectors * v;
  const auto count = [](int a, int b, int c) { return static_cast<std::size_t>(a) * b * c; };
  Random random(static_cast<std::uint64_t>(p.rows * 1000 + p.inner * 100 + p.columns));
  std::vector<double> left(count(p.batch, p.rows, p.inner)), right(count(p.batch, p.inner, p.columns));
  random.fill(left);
  random.fill(right);
  Floats a(left.size()), b(right.size()), packed(count(p.batch, 1, static_cast<int>(packed_floats)));
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(left[i]);
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(right[i]);
  const std::int64_t a_matrix = p.rows * p.inner, b_matrix = p.inner * p.columns;
  const Strided right_side = strided(b.data(), {p.batch, p.inner, p.columns},
                                     {b_matrix, p.right_transposed ? 1 : p.columns, p.right_transposed ? p.inner : 1});
  const Strided left_side = strided(a.data(), {p.batch, p.rows, p.inner},
                                    {a_matrix, p.left_transposed ? 1 : p.inner, p.left_transposed ? p.rows : 1});
  const Strided middle = strided(packed.data(), {p.batch, 1, packed_floats}, {packed_floats, 0, 1});
  const Strided packing[] = {middle, right_side};
  std::vector<float> alone;
  for (const int threads : {1, 2, 3, 7}) {
    Step pack{};
    pack.operands = packing;
    pack.operand_count = 2;
    pack.alpha = 0.5f;
    run_kernel(table, "pack_matrix_f32", pack, threads);
    const std::int64_t row = p.columns + 3;  // rows of the result lie apart, and what is between stays as it is
    Floats out(count(p.batch, p.rows, static_cast<int>(row)), 77.0f);
    const Strided operands[] = {strided(out.data(), {p.batch, p.rows, p.columns}, {p.rows * row, row, 1}), left_side,
                                middle};
    Step multiply{};
    multiply.operands = operands;
    multiply.operand_count = 3;
    multiply.numbers[0] = p.chunk;
    multiply.numbers[1] = p.together;
    multiply.numbers[2] = p.tiles;
    Floats scratch(p.packs ? count(threads, p.tiles * table.tile_pixels, p.chunk) : 0);
    multiply.scratch.data = p.packs ? scratch.data() : nullptr;
    multiply.scratch.image = static_cast<std::int64_t>(p.tiles) * table.tile_pixels * p.chunk;
    run_kernel(table, "matmul_f32", multiply, threads);
    double worst = 0, outside = 0;
    for (int n = 0; n < p.batch; ++n) {
      for (int i = 0; i < p.rows; ++i) {
        const float* found = out.data() + (static_cast<std::int64_t>(n) * p.rows + i) * row;
        for (int j = 0; j < p.columns; ++j) {
          double sum = 0;
          for (int k = 0; k < p.inner; ++k) {
            const std::int64_t at = p.left_transposed ? k * p.rows + i : i * p.inner + k;
            const std::int64_t to = p.right_transposed ? j * p.inner + k : k * p.columns + j;
            sum += static_cast<double>(a[static_cast<std::size_t>(n * a_matrix + at)]) *
                   static_cast<double>(b[static_cast<std::size_t>(n * b_matrix + to)]);
          }
          worst = std::max(worst, std::fabs(static_cast<double>(found[j]) - sum / 2));
        }
        for (int j = p.columns; j < row; ++j) outside += found[j] != 77.0f;
      }
    }
    const std::string what = "matmul " + std::to_string(p.batch) + "x" + std::to_string(p.rows) + "x" +
                             std::to_string(p.inner) + "x" + std::to_string(p.columns) + (p.packs ? " packed" : "") +
                             " threads " + std::to_string(threads);
    report.check(what, worst / p.inner, 1e-6);
    report.check(what + " keeps to its columns", outside, 0);
    const std::vector<float> made(out.data(), out.data() + out.size());
    if (threads == 1) alone = made;
    report.check(what + " makes the same bits", made == alone ? 0 : 1, 0);
  }
}

// Few rows, or few of the inner axis, against double precision; rows of the result lie apart.
void check_few(const KernelTable& table, int rows, int inner, int columns, bool by_rows, Report& report) {
  Random random(static_cast<std::uint64_t>(rows * 1000 + inner * 100 + columns));
  std::vector<double> left(static_cast<std::size_t>(rows) * inner), right(static_cast<std::size_t>(inner) * columns);
  random.fill(left);
  random.fill(right);
  Floats a(left.size()), b(right.size());
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(left[i]);
  for (std::size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(right[i]);
  std::vector<float> alone;
  for (const int threads : {1, 2, 7}) {
    const std::int64_t row = columns + 3;
    Floats out(static_cast<std::size_t>(rows * row), 77.0f);
    const Strided operands[] = {strided(out.data(), {rows, columns}, {row, 1}),
                                strided(a.data(), {rows, inner}, {1, rows}),
                                strided(b.data(), {inner, columns}, {columns, 1})};
    Step step{};
    step.operands = operands;
    step.operand_count = 3;
    step.alpha = 0.5f;
    step.numbers[0] = by_rows;
    run_kernel(table, "matmul_few_f32", step, threads);
    double worst = 0, outside = 0;
    for (int i = 0; i < rows; ++i) {
      for (int j = 0; j < row; ++j) {
        const float found = out[static_cast<std::size_t>(i * row + j)];
        if (j >= columns) {
          outside += found != 77.0f;
          continue;
        }
        double sum = 0;
        for (int k = 0; k < inner; ++k) {
          sum += static_cast<double>(a[static_cast<std::size_t>(k * rows + i)]) *
                 static_cast<double>(b[static_cast<std::size_t>(k * columns + j)]);
        }
        worst = std::max(worst, std::fabs(static_cast<double>(found) - sum / 2));
      }
    }
    const std::string what = "matmul_few " + std::to_string(rows) + "x" + std::to_string(inner) + "x" +
                             std::to_string(columns) + " threads " + std::to_string(threads);
    report.check(what, worst / inner, 1e-6);
    report.check(what + " keeps to its columns", outside, 0);
    const std::vector<float> made(out.data(), out.data() + out.size());
    if (threads == 1) alone = made;
    report.check(what + " makes the same bits", made == alone ? 0 : 1, 0);
  }
}

// The reference of the kernels for rows, in place.
void normalise(std::vector<double>& row, const std::string& family, double epsilon) {
  const double count = static_cast<double>(row.size());
  double mean = 0, square = 0, most = row[0], sum = 0;
  if (family == "layer_norm_f32") {
    for (const double x : row) mean += x / count;
  }
  for (const double x : row) square += (x - mean) * (x - mean) / count;
  for (const double x : row) most = std::max(most, x);
  for (const double x : row) sum += std::exp(x - most);
  bool found = false;
  for (double& x : row) {
    if (family == "softmax_rows_f32") {
      x = std::exp(x - most) / sum;
    } else if (family == "log_softmax_rows_f32") {
      x = x - most - std::log(sum);
    } else if (family == "hardmax_rows_f32") {
      const bool first = x == most && !found;
      found = found || first;
      x = first ? 1 : 0;
    } else {
      x = family == "l2_norm_f32" ? x / std::max(std::sqrt(square * count), epsilon)
                                  : (x - mean) / std::sqrt(square + epsilon);
    }
  }
}

void check_rows(const KernelTable& table, const char* family, int rows, int length, Report& report) {
  Random random(static_cast<std::uint64_t>(rows * 100 + length));
  std::vector<double> values(static_cast<std::size_t>(rows) * length);
  random.fill(values);
  Floats x(values.size()), scale(static_cast<std::size_t>(length)), shift(scale.size());
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(4 * values[i]);
  for (std::size_t i = 0; i < scale.size(); ++i) {
    scale[i] = static_cast<float>(values[i] + 2);
    shift[i] = static_cast<float>(values[scale.size() - 1 - i]);
  }
  const bool normalises = std::string(family).find("norm") != std::string::npos;
  for (int vectors = 0; vectors <= (normalises ? 2 : 0); ++vectors) {
    for (const int threads : {1, 3}) {
      Floats out(x.size());
      const Strided operands[] = {strided(out.data(), {rows, length}, {length, 1}),
                                  strided(x.data(), {rows, length}, {length, 1}), strided(scale.data(), {length}, {1}),
                                  strided(shift.data(), {length}, {1})};
      Step step{};
      step.operands = operands;
      step.operand_count = 2 + vectors;
      step.alpha = 0.01f;
      run_kernel(table, family, step, threads);
      double worst = 0;
      for (int i = 0; i < rows; ++i) {
        const auto first = static_cast<std::size_t>(i) * length;
        std::vector<double> row(x.data() + first, x.data() + first + length);
        normalise(row, family, static_cast<double>(0.01f));
        for (std::size_t j = 0; j < row.size(); ++j) {
          double expected = row[j];
          if (vectors > 0) expected *= static_cast<double>(scale[j]);
          if (vectors > 1) expected += static_cast<double>(shift[j]);
          worst = std::max(worst, std::fabs(static_cast<double>(out[first + j]) - expected));
        }
      }
      report.check(std::string(family) + " " + std::to_string(rows) + "x" + std::to_string(length) + " vectors " +
                       std::to_string(vectors) + " threads " + std::to_string(threads),
                   worst, 2e-5);
    }
  }
}

}  // namespace

void check_products(const KernelTable& table, Report& report) {
  const int v = table.vector_width;
  for (int rows = 1; rows <= 2 * table.tile_pixels + 1; ++rows) {
    for (int vectors = 1; vectors <= 2 * table.tile_blocks + 1; ++vectors) {
      check_product(table, {1, rows, 9, vectors * v - rows % v, false, false, 9, 1, 3, false}, report);
    }
  }
  for (const bool left : {false, true}) {
    for (const bool right : {false, true}) {
      for (const bool packs : {false, true}) {
        check_product(table, {3, 13, 37, 5 * v + 1, left, right, 10, 2, 2, packs}, report);
        check_product(table, {2, 4 * table.tile_pixels, 37, 5 * v + 1, left, right, 10, 2, 3, packs}, report);
        check_product(table, {2, 1, 1, 1, left, right, 1, 1, 1, packs}, report);
      }
    }
  }
  for (const bool by_rows : {false, true}) {
    for (int rows = 1; rows <= 17; ++rows) check_few(table, rows, rows + 3, 5 * v + rows % v, by_rows, report);
    check_few(table, 3, 33, 1030, by_rows, report);
    check_few(table, 70, 1, v - 1, by_rows, report);
  }
  for (const char* family : {"layer_norm_f32", "rms_norm_f32", "l2_norm_f32", "softmax_rows_f32",
                             "log_softmax_rows_f32", "hardmax_rows_f32"}) {
    for (const int length : {1, v - 1, v, 3 * v + 1, 100}) check_rows(table, family, 5, length, report);
  }
}

}  // namespace powerlab::engine::test
