// The cell of an LSTM that trains: forwards by its formulas in double precision, backwards by central differences of
// these; rows lie apart, and the same bits are made by any number of threads.
#include <array>
#include <cmath>
#include <string>

#include "tests/apart.hpp"

namespace powerlab::engine::test {
namespace {

constexpr int kGates = 4;
constexpr double kStep = 1e-5, kTolerance = 1e-6;

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

struct Cell {
  double cells, hidden;
};
Cell cell(const std::array<double, kGates>& sums, double before) {
  const double cells = sigmoid(sums[2]) * before + sigmoid(sums[0]) * std::tanh(sums[3]);
  return {cells, sigmoid(sums[1]) * std::tanh(cells)};
}

void check_cell(const KernelTable& table, int sequences, int units, Random& random, Report& report) {
  const int wide = kGates * units;
  Apart given(sequences, wide), product(sequences, wide), before(sequences, units);
  Apart of_cells(sequences, units), of_hidden(sequences, units);
  for (Apart* one : {&given, &product, &before, &of_cells, &of_hidden}) one->fill(random);
  std::vector<float> alone;
  for (const int threads : {1, 2, 7}) {
    Apart gates(sequences, wide), cells(sequences, units), hidden(sequences, units);
    Apart of_gates(sequences, wide), of_before(sequences, units);
    const Strided forwards[] = {gates.tensor, cells.tensor, hidden.tensor, given.tensor, product.tensor, before.tensor};
    const Strided backwards[] = {of_gates.tensor, of_before.tensor, gates.tensor,    before.tensor,
                                 cells.tensor,    of_cells.tensor,  of_hidden.tensor};
    Step step{};
    step.operands = forwards;
    step.operand_count = 6;
    run_kernel(table, "lstm_cell_f32", step, threads);
    step.operands = backwards;
    step.operand_count = 7;
    run_kernel(table, "lstm_cell_gradient_f32", step, threads);
    double worst = 0, steep = 0;
    for (int i = 0; i < sequences; ++i) {
      for (int unit = 0; unit < units; ++unit) {
        std::array<double, kGates> sums;
        for (int gate = 0; gate < kGates; ++gate) {
          const int at = gate * units + unit;
          sums[static_cast<std::size_t>(gate)] =
              static_cast<double>(given.at(i, at)) + static_cast<double>(product.at(i, at));
        }
        const double old = static_cast<double>(before.at(i, unit));
        const Cell made = cell(sums, old);
        worst = std::max(worst, std::fabs(static_cast<double>(cells.at(i, unit)) - made.cells));
        worst = std::max(worst, std::fabs(static_cast<double>(hidden.at(i, unit)) - made.hidden));
        const auto slope = [&](const Cell& above, const Cell& below) {
          return (static_cast<double>(of_cells.at(i, unit)) * (above.cells - below.cells) +
                  static_cast<double>(of_hidden.at(i, unit)) * (above.hidden - below.hidden)) /
                 (2 * kStep);
        };
        for (int gate = 0; gate < kGates; ++gate) {
          auto above = sums, below = sums;
          above[static_cast<std::size_t>(gate)] += kStep;
          below[static_cast<std::size_t>(gate)] -= kStep;
          const double expected = slope(cell(above, old), cell(below, old));
          steep = std::max(steep, std::fabs(static_cast<double>(of_gates.at(i, gate * units + unit)) - expected));
        }
        const double expected = slope(cell(sums, old + kStep), cell(sums, old - kStep));
        steep = std::max(steep, std::fabs(static_cast<double>(of_before.at(i, unit)) - expected));
      }
    }
    const std::string name = "lstm_cell " + std::string(table.tier) + " " + std::to_string(sequences) + "x" +
                             std::to_string(units) + " threads " + std::to_string(threads);
    report.check(name, worst, kTolerance);
    report.check(name + ", gradient", steep, kTolerance);
    int between = 0;
    std::vector<float> bits;
    for (Apart* one : {&gates, &cells, &hidden, &of_gates, &of_before}) {
      between += one->written_between();
      bits.insert(bits.end(), one->memory.data(), one->memory.data() + one->memory.size());
    }
    report.check(name + " keeps to its rows", between, 0);
    if (threads == 1) alone = bits;
    report.check(name + " makes the same bits", bits == alone ? 0 : 1, 0);
  }
}

}  // namespace

void check_lstm_cells(const KernelTable& table, Report& report) {
  Random random(5);
  for (const int sequences : {1, 3}) {
    for (const int units : {1, table.vector_width, 2 * table.vector_width + 3}) {
      check_cell(table, sequences, units, random, report);
    }
  }
}

}  // namespace powerlab::engine::test
