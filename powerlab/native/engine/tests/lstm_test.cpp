// The kernel `lstm` against its reference: any sizes, with and without initial states, forwards and backwards, the same
// bits on any number of threads, nothing read that nobody wrote.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "plan.hpp"
#include "tests/test.hpp"

namespace powerlab::engine::test {
namespace {

constexpr int kGates = 4;

struct Sizes {
  int steps, sequences, units;
};

// Where the kernel wants gate `row` of the reference, with `v` units in a vector.
int gate_at(int row, int units, int v) {
  const int gate = row / units, unit = row % units;
  return (unit / v * kGates + gate) * v + unit % v;
}

// [step][sequence][channel]: what a View of one pixel a row means. The rest up to whole vectors holds not-a-number.
struct Rows {
  Floats memory;
  View view;

  Rows(int n, int channels, int sequences, int v)
      : memory(static_cast<std::size_t>(n) * sequences * filled(channels, v), std::numeric_limits<float>::quiet_NaN()),
        view{} {
    view.data = memory.data();
    view.n = n;
    view.c = channels;
    view.h = sequences;
    view.w = 1;
    view.blocks = filled(channels, v) / v;
    view.pixel = view.plane = v;
    view.row = filled(channels, v);
    view.image = sequences * view.row;
  }
  static int filled(int channels, int v) { return (channels + v - 1) / v * v; }
  float& at(int n, int sequence, int channel) {
    return memory[static_cast<std::size_t>(n * view.image + sequence * view.row + channel)];
  }
};

Floats pack(const reference::Tensor& weights, int units, int v) {
  const int filled = Rows::filled(units, v);
  Floats packed(static_cast<std::size_t>(filled) * kGates * units);
  for (int row = 0; row < kGates * units; ++row) {
    const int at = gate_at(row, units, v), block = at / (kGates * v), inside = at % (kGates * v);
    for (int i = 0; i < units; ++i) {
      packed[static_cast<std::size_t>((block * units + i) * kGates * v + inside)] =
          static_cast<float>(weights.at(row, i, 0, 0, 0.0));
    }
  }
  return packed;
}

void run(const KernelTable& table, Step step, int threads) {
  for (step.round = 0; step.round < step.rounds; ++step.round) run_kernel(table, "lstm", step, threads);
}

double difference(Rows& found, const reference::Tensor& expected) {
  double worst = 0;
  for (int n = 0; n < expected.n; ++n) {
    for (int sequence = 0; sequence < expected.h; ++sequence) {
      for (int unit = 0; unit < expected.c; ++unit) {
        const double d = std::abs(static_cast<double>(found.at(n, sequence, unit)) - expected.at(n, unit, sequence, 0));
        worst = d <= worst ? worst : d;
      }
    }
  }
  return worst;
}

void check(const KernelTable& table, Sizes sizes, bool has_state, bool backwards, Random& random, Report& report) {
  const int v = table.vector_width, gates = kGates * sizes.units;
  reference::Tensor x(sizes.steps, gates, sizes.sequences, 1), weights(gates, sizes.units, 1, 1);
  reference::Tensor hidden(1, sizes.units, sizes.sequences, 1), cells = hidden;
  reference::Tensor expected(sizes.steps, sizes.units, sizes.sequences, 1);
  random.fill(x.values);
  random.fill(weights.values);
  if (has_state) {
    random.fill(hidden.values);
    random.fill(cells.values);
  }
  Rows from_inputs(sizes.steps, kGates * Rows::filled(sizes.units, v), sizes.sequences, v);
  Rows state(2, sizes.units, sizes.sequences, v);
  std::fill_n(from_inputs.memory.data(), from_inputs.memory.size(), 0.0f);
  for (int sequence = 0; sequence < sizes.sequences; ++sequence) {
    for (int n = 0; n < sizes.steps; ++n) {
      for (int row = 0; row < gates; ++row) {
        from_inputs.at(n, sequence, gate_at(row, sizes.units, v)) = static_cast<float>(x.at(n, row, sequence, 0, 0.0));
      }
    }
    for (int unit = 0; unit < sizes.units; ++unit) {
      state.at(0, sequence, unit) = static_cast<float>(hidden.at(0, unit, sequence, 0, 0.0));
      state.at(1, sequence, unit) = static_cast<float>(cells.at(0, unit, sequence, 0, 0.0));
    }
  }
  reference::lstm(x, weights, hidden, backwards, cells, expected);

  Floats packed = pack(weights, sizes.units, v);
  Rows out(sizes.steps, sizes.units, sizes.sequences, v), last(1, sizes.units, sizes.sequences, v);
  Rows out_again(sizes.steps, sizes.units, sizes.sequences, v), last_again(1, sizes.units, sizes.sequences, v);
  Step step{};
  step.x = from_inputs.view;
  if (has_state) step.y = state.view;
  step.weights = packed.data();
  step.rounds = sizes.steps;
  step.backwards = backwards;
  step.out = out.view;
  step.scratch = last.view;
  run(table, step, 1);
  step.out = out_again.view;
  step.scratch = last_again.view;
  const int threads = random.whole(2, 9);
  run(table, step, threads);

  const std::string name = "lstm " + std::string(table.tier) + " " + std::to_string(sizes.steps) + " " +
                           std::to_string(sizes.sequences) + " " + std::to_string(sizes.units) +
                           (backwards ? " backwards" : "") + (has_state ? " from a state" : "");
  report.check(name, difference(out, expected), 3e-6);
  report.check(name + ", cells", difference(last, cells), 1e-5);
  int different = 0;
  for (int n = 0; n < sizes.steps; ++n) {
    for (int sequence = 0; sequence < sizes.sequences; ++sequence) {
      for (int unit = 0; unit < sizes.units; ++unit)
        different += out.at(n, sequence, unit) != out_again.at(n, sequence, unit);
    }
  }
  report.check(name + ", bits with " + std::to_string(threads) + " threads", different, 0);
}

}  // namespace

void check_lstm(const KernelTable& table, Report& report) {
  Random random;
  for (const bool has_state : {false, true}) {
    for (const bool backwards : {false, true}) {
      // As many sequences as registers hold, one more, and far more; units below, at and above whole vectors.
      for (const int sequences : {1, 2, 3, 4, 6, 7, 13}) {
        const Sizes sizes{random.whole(1, 4), sequences, random.whole(1, 3 * table.vector_width)};
        check(table, sizes, has_state, backwards, random, report);
      }
      check(table, {3, 1, 2 * table.vector_width}, has_state, backwards, random, report);
      check(table, {1, 2, 1}, has_state, backwards, random, report);
    }
  }
}

// The plan runs a kernel's rounds with a barrier between: each must see what all threads wrote in the one before.
void check_rounds(const KernelTable& table, Report& report) {
  constexpr int kSteps = 40, kSequences = 3;
  const int v = table.vector_width, units = 4 * v;
  Random random;
  Rows gates(kSteps, kGates * units, kSequences, v), out(kSteps, units, kSequences, v), cells(1, units, kSequences, v);
  for (std::size_t i = 0; i < gates.memory.size(); ++i) gates.memory[i] = static_cast<float>(random.next());
  std::vector<float> weights(static_cast<std::size_t>(kGates) * units * units);
  for (float& weight : weights) weight = static_cast<float>(random.next());
  Floats packed(weights.size());
  std::copy(weights.begin(), weights.end(), packed.data());
  Step step{};
  step.x = gates.view;
  step.out = out.view;
  step.scratch = cells.view;
  step.weights = packed.data();
  step.rounds = kSteps;
  run(table, step, 1);
  for (const int threads : {1, 2, 3}) {
    Plan plan(table.tier, threads, static_cast<std::int64_t>(cells.memory.size()), 1000);
    const Place input{Place::Space::kInput, 0, 0}, output{Place::Space::kOutput, 0, 0};
    plan.add("lstm", "rounds", step, input, {}, output, {Place::Space::kArena, 0, 0}, plan.add_constant(weights), -1);
    Floats found(out.memory.size());
    const std::array<const float*, 1> inputs{gates.memory.data()};
    const std::array<float*, 1> outputs{found.data()};
    for (int time = 0; time < 3; ++time) {
      plan.run(inputs, outputs);
      int different = 0;
      for (std::size_t i = 0; i < found.size(); ++i) different += found[i] != out.memory[i];
      report.check("rounds of a plan with " + std::to_string(threads) + " threads", different, 0);
    }
  }
}

}  // namespace powerlab::engine::test
