// The cell of a GRU that trains: forwards by its formulas in double precision, backwards by central differences of
// these; rows lie apart, and the same bits are made by any number of threads.
#include <array>
#include <cmath>
#include <string>

#include "tests/apart.hpp"

namespace powerlab::engine::test {
namespace {

constexpr int kGates = 3;
constexpr double kStep = 1e-5, kTolerance = 1e-6;

using Sums = std::array<double, kGates>;

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

double hidden_unit(const Sums& input, const Sums& state, double before) {
  const double update = sigmoid(input[0] + state[0]), reset = sigmoid(input[1] + state[1]);
  return (1 - update) * std::tanh(input[2] + reset * state[2]) + update * before;
}

Sums sums_at(Apart& rows, int i, int unit, int units) {
  Sums found{};
  for (int gate = 0; gate < kGates; ++gate) {
    found[static_cast<std::size_t>(gate)] = static_cast<double>(rows.at(i, gate * units + unit));
  }
  return found;
}

void check_cell(const KernelTable& table, int sequences, int units, Random& random, Report& report) {
  const int wide = kGates * units;
  Apart given(sequences, wide), product(sequences, wide), before(sequences, units), of_hidden(sequences, units);
  for (Apart* one : {&given, &product, &before, &of_hidden}) one->fill(random);
  std::vector<float> alone;
  for (const int threads : {1, 2, 7}) {
    Apart gates(sequences, wide), hidden(sequences, units);
    Apart of_given(sequences, wide), of_before(sequences, units), of_product(sequences, wide);
    const Strided forwards[] = {gates.tensor, hidden.tensor, given.tensor, product.tensor, before.tensor};
    const Strided backwards[] = {of_given.tensor, of_before.tensor, of_product.tensor, gates.tensor,
                                 product.tensor,  before.tensor,    of_hidden.tensor};
    Step step{};
    step.operands = forwards;
    step.operand_count = 5;
    run_kernel(table, "gru_cell_f32", step, threads);
    step.operands = backwards;
    step.operand_count = 7;
    run_kernel(table, "gru_cell_gradient_f32", step, threads);
    double worst = 0, steep = 0;
    for (int i = 0; i < sequences; ++i) {
      for (int unit = 0; unit < units; ++unit) {
        const Sums input = sums_at(given, i, unit, units), state = sums_at(product, i, unit, units);
        const double old = static_cast<double>(before.at(i, unit));
        worst = std::max(worst, std::fabs(static_cast<double>(hidden.at(i, unit)) - hidden_unit(input, state, old)));
        const auto differs = [&](Apart& found, int at, double above, double below) {
          const double expected = static_cast<double>(of_hidden.at(i, unit)) * (above - below) / (2 * kStep);
          steep = std::max(steep, std::fabs(static_cast<double>(found.at(i, at)) - expected));
        };
        for (int gate = 0; gate < kGates; ++gate) {
          Sums above{}, below{};
          above[static_cast<std::size_t>(gate)] = kStep;
          below[static_cast<std::size_t>(gate)] = -kStep;
          const auto moved = [](Sums sums, const Sums& by) {
            for (std::size_t k = 0; k < kGates; ++k) sums[k] += by[k];
            return sums;
          };
          const int at = gate * units + unit;
          differs(of_given, at, hidden_unit(moved(input, above), state, old),
                  hidden_unit(moved(input, below), state, old));
          differs(of_product, at, hidden_unit(input, moved(state, above), old),
                  hidden_unit(input, moved(state, below), old));
        }
        differs(of_before, unit, hidden_unit(input, state, old + kStep), hidden_unit(input, state, old - kStep));
      }
    }
    const std::string name = "gru_cell " + std::string(table.tier) + " " + std::to_string(sequences) + "x" +
                             std::to_string(units) + " threads " + std::to_string(threads);
    report.check(name, worst, kTolerance);
    report.check(name + ", gradient", steep, kTolerance);
    int between = 0;
    std::vector<float> bits;
    for (Apart* one : {&gates, &hidden, &of_given, &of_before, &of_product}) {
      between += one->written_between();
      bits.insert(bits.end(), one->memory.data(), one->memory.data() + one->memory.size());
    }
    report.check(name + " keeps to its rows", between, 0);
    if (threads == 1) alone = bits;
    report.check(name + " makes the same bits", bits == alone ? 0 : 1, 0);
  }
}

}  // namespace

void check_gru_cells(const KernelTable& table, Report& report) {
  Random random(6);
  for (const int sequences : {1, 3}) {
    for (const int units : {1, table.vector_width, 2 * table.vector_width + 3}) {
      check_cell(table, sequences, units, random, report);
    }
  }
}

}  // namespace powerlab::engine::test
