// Kernels for windows, resizes and cells of any form against their references, on random shapes: right, and the same
// bits on any number of threads.
#include <algorithm>
#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "tests/test.hpp"

namespace powerlab::engine::test {
namespace {

reference::Tensor random_tensor(int n, int c, int h, int w, Random& random) {
  reference::Tensor t(n, c, h, w);
  random.fill(t.values);
  return t;
}

void check(const KernelTable& table, const char* family, Step step, const reference::Tensor& x,
           const reference::Tensor& expected, double tolerance, Random& random, Report& report) {
  const int v = table.vector_width;
  Placed in(x.n, x.c, x.h, x.w, v, random.whole(0, 2));
  in.put(x);
  Placed first(expected.n, expected.c, expected.h, expected.w, v, 1);
  Placed second(expected.n, expected.c, expected.h, expected.w, v, 1);
  step.x = in.view;
  step.out = first.view;
  run_kernel(table, family, step, 1);
  step.out = second.view;
  const int threads = random.whole(2, 9);
  run_kernel(table, family, step, threads);
  const std::string name = std::string(find_kernel(table, family).name) + " " + std::to_string(x.c) + " " +
                           std::to_string(x.h) + " " + std::to_string(x.w);
  report.check(name, error(first, expected), tolerance);
  report.check(name + ", bits with " + std::to_string(threads) + " threads", different_bits(first, second), 0);
  report.check(name + ", written outside", written_outside(first) + written_outside(second), 0);
}

Floats floats_of(const std::vector<double>& values) {
  Floats floats(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) floats[i] = static_cast<float>(values[i]);
  return floats;
}

void check_dilated_pools(const KernelTable& table, Random& random, Report& report) {
  const reference::Window window{random.whole(1, 3), random.whole(1, 3), random.whole(1, 3), random.whole(1, 3),
                                 random.whole(1, 3), random.whole(1, 3), random.whole(0, 1), random.whole(0, 1)};
  const auto x =
      random_tensor(2, random.whole(1, 2 * table.vector_width), random.whole(3, 9), random.whole(3, 9), random);
  // Every window reaches the image: its first or its second tap lies there.
  const int h = random.whole(1, (x.h - 1) / window.stride_h + 1), w = random.whole(1, (x.w - 1) / window.stride_w + 1);
  reference::Window taps = window;
  taps.kernel_h = std::max(2, window.kernel_h);
  taps.kernel_w = std::max(2, window.kernel_w);
  Step step{};
  set_window(step, taps);
  reference::Tensor out(x.n, x.c, h, w);
  reference::pool_max(x, taps, out);
  check(table, "pool_any_max", step, x, out, 0, random, report);
  std::vector<double> rows(static_cast<std::size_t>(h)), columns(static_cast<std::size_t>(w));
  random.fill(rows);
  random.fill(columns);
  reference::pool_shares(x, taps, rows, columns, out);
  rows.insert(rows.end(), columns.begin(), columns.end());
  Floats shares = floats_of(rows);
  step.weights = shares.data();
  check(table, "pool_any_average", step, x, out, 1e-5, random, report);
  step.weights = nullptr;
  for (const int p : {1, 2, 3}) {
    step.alpha = static_cast<float>(p);
    reference::pool_lp(x, taps, p, out);
    check(table, "pool_any_lp", step, x, out, 1e-5, random, report);
  }
}

// The taps of an axis, for the reference and for the kernel; one place in eight lies outside.
std::vector<std::vector<reference::Tap>> random_taps(int count, int taps, int size, Random& random,
                                                     std::vector<double>& packed) {
  std::vector<std::vector<reference::Tap>> found(static_cast<std::size_t>(count));
  for (auto& pixel : found) {
    const bool outside = random.whole(0, 7) == 0;
    for (int i = 0; i < taps; ++i) {
      pixel.push_back({outside ? -1 : random.whole(0, size - 1), random.next()});
      packed.push_back(pixel.back().place);
      packed.push_back(pixel.back().weight);
    }
  }
  return found;
}

void check_interpolation(const KernelTable& table, Random& random, Report& report) {
  const auto x =
      random_tensor(2, random.whole(1, 2 * table.vector_width), random.whole(1, 6), random.whole(1, 6), random);
  reference::Tensor out(x.n, x.c, random.whole(1, 9), random.whole(1, 9));
  Step step{};
  step.kernel_h = random.whole(1, 4);
  step.kernel_w = random.whole(1, 4);
  step.offset = 0.25f;
  std::vector<double> rows, columns;
  const auto row_taps = random_taps(out.h, step.kernel_h, x.h, random, rows);
  const auto column_taps = random_taps(out.w, step.kernel_w, x.w, random, columns);
  reference::interpolate(x, row_taps, column_taps, 0.25, out);
  Floats down = floats_of(rows), across = floats_of(columns);
  step.weights = down.data();
  step.bias = across.data();
  check(table, "interpolate", step, x, out, 1e-5, random, report);
}

// Every second pixel of every third row of a larger tensor, which keeps what else is in it.
void check_spread(const KernelTable& table, Random& random, Report& report) {
  const int v = table.vector_width, h = random.whole(1, 4), w = random.whole(1, 4);
  const auto x = random_tensor(2, v + 1, h, w, random);
  Placed in(2, v + 1, h, w, v, 0), out(2, v + 1, 3 * h, 2 * w, v, 0);
  in.put(x);
  Step step{};
  step.x = in.view;
  step.out = out.view;
  step.out.h = h;
  step.out.w = w;
  step.out.row *= 3;
  step.out.pixel *= 2;
  step.out.data += out.view.row + out.view.pixel;
  run_kernel(table, "spread", step, random.whole(1, 5));
  int wrong = 0;
  for (int n = 0; n < 2; ++n) {
    for (int c = 0; c <= v; ++c) {
      for (int y = 0; y < 3 * h; ++y) {
        for (int column = 0; column < 2 * w; ++column) {
          const float found = out.at(n, c, y, column);
          const bool own = y % 3 == 1 && column % 2 == 1;
          const bool right = own ? found == static_cast<float>(x.at(n, c, y / 3, column / 2, 0.0)) : found != found;
          wrong += !right;
        }
      }
    }
  }
  report.check(std::string(table.tier) + " spread", wrong, 0);
}

// [row][unit], the units filled up to whole vectors, as the kernels of recurrent cells want their operands.
View units_view(Floats& memory, int n, int sequences, int units, int v) {
  View view{};
  view.data = memory.data();
  view.n = n;
  view.c = units;
  view.h = sequences;
  view.w = 1;
  view.blocks = (units + v - 1) / v;
  view.pixel = view.plane = v;
  view.row = static_cast<std::int64_t>(view.blocks) * v;
  view.image = sequences * view.row;
  return view;
}

void check_gru(const KernelTable& table, bool resets_before, Random& random, Report& report) {
  constexpr int kGates = 3, kNumbers = 16;
  const int v = table.vector_width, steps = random.whole(1, 4), sequences = random.whole(1, 9);
  const int units = random.whole(1, 2 * v + 1), filled = (units + v - 1) / v * v;
  const auto x = random_tensor(steps, kGates * units, sequences, 1, random);
  const auto weights = random_tensor(kGates * units, units, 1, 1, random);
  const auto hidden = random_tensor(1, units, sequences, 1, random);
  std::vector<double> inside(static_cast<std::size_t>(units));
  random.fill(inside);
  reference::Tensor expected(steps, units, sequences, 1);
  reference::gru(x, weights, inside, hidden, resets_before, expected);
  const auto gate_at = [&](int row) { return (row % units / v * kGates + row / units) * v + row % units % v; };
  Floats gates(static_cast<std::size_t>(steps) * sequences * kGates * filled),
      state(static_cast<std::size_t>(sequences) * filled);
  Floats packed(static_cast<std::size_t>(kGates) * filled * units);
  Floats numbers(static_cast<std::size_t>(kNumbers + (sequences + v - 1) / v * v + filled));
  for (int row = 0; row < kGates * units; ++row) {
    const int at = gate_at(row), block = at / (kGates * v), lane = at % (kGates * v);
    for (int i = 0; i < units; ++i) {
      packed[static_cast<std::size_t>((block * units + i) * kGates * v + lane)] =
          static_cast<float>(weights.at(row, i, 0, 0, 0.0));
    }
    for (int n = 0; n < steps * sequences; ++n) {
      gates[static_cast<std::size_t>(n * kGates * filled + at)] =
          static_cast<float>(x.at(n / sequences, row, n % sequences, 0, 0.0));
    }
  }
  for (int n = 0; n < sequences; ++n) {
    for (int i = 0; i < units; ++i)
      state[static_cast<std::size_t>(n * filled + i)] = static_cast<float>(hidden.at(0, i, n, 0, 0.0));
    numbers[static_cast<std::size_t>(kNumbers + n)] = static_cast<float>(steps);
  }
  numbers[0] = std::numeric_limits<float>::infinity();
  numbers[2] = 0;  // sigmoid
  numbers[5] = 1;  // tanh
  for (int i = 0; i < units; ++i) {
    numbers[static_cast<std::size_t>(kNumbers + (sequences + v - 1) / v * v + i)] =
        static_cast<float>(inside[static_cast<std::size_t>(i)]);
  }
  Step step{};
  step.x = units_view(gates, steps, sequences, kGates * units, v);
  step.x.row = static_cast<std::int64_t>(kGates) * filled;
  step.x.image = sequences * step.x.row;
  step.y = units_view(state, 1, sequences, units, v);
  step.weights = packed.data();
  step.bias = numbers.data();
  step.rounds = steps * (resets_before ? 2 : 1);
  const char* family = resets_before ? "recurrence_gru_reset" : "recurrence_gru";
  const std::size_t result = static_cast<std::size_t>(steps) * sequences * filled;
  std::array<Floats, 2> results{Floats(result), Floats(result)};
  const std::array<int, 2> threads{1, random.whole(2, 6)};
  for (std::size_t i = 0; i < 2; ++i) {
    Floats scratch(static_cast<std::size_t>(4) * sequences * filled, std::numeric_limits<float>::quiet_NaN());
    step.out = units_view(results[i], steps, sequences, units, v);
    step.scratch = units_view(scratch, 4, sequences, units, v);
    for (step.round = 0; step.round < step.rounds; ++step.round) run_kernel(table, family, step, threads[i]);
  }
  double worst = 0;
  for (int n = 0; n < steps; ++n) {
    for (int sequence = 0; sequence < sequences; ++sequence) {
      for (int i = 0; i < units; ++i) {
        const double found = results[0][static_cast<std::size_t>((n * sequences + sequence) * filled + i)];
        const double apart = std::abs(found - expected.at(n, i, sequence, 0, 0.0));
        worst = apart <= worst ? worst : apart;
      }
    }
  }
  const std::string name = std::string(table.tier) + " " + family + " " + std::to_string(steps) + " " +
                           std::to_string(sequences) + " " + std::to_string(units);
  report.check(name, worst, 1e-5);
  report.check(name + ", bits with " + std::to_string(threads[1]) + " threads",
               std::memcmp(results[0].data(), results[1].data(), result * sizeof(float)) == 0 ? 0 : 1, 0);
}

}  // namespace

void check_any_layers(const KernelTable& table, Report& report) {
  Random random;
  for (int round = 0; round < 20; ++round) {
    check_dilated_pools(table, random, report);
    check_interpolation(table, random, report);
    check_spread(table, random, report);
    for (const bool resets_before : {false, true}) check_gru(table, resets_before, random, report);
  }
}

}  // namespace powerlab::engine::test
