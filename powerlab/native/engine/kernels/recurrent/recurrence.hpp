// Recurrent cells in every form of ONNX, a step of time after the other: RNN, GRU (K. Cho et al.,
// https://arxiv.org/abs/1406.1078; with the reset behind the product as in cuDNN) and LSTM with peepholes (F. A. Gers
// et al., 2002), with any of ONNX's activations, clipped, for sequences of different lengths. The usual LSTM has
// lstm.hpp.
//
// x: what inputs and biases add to the gates, [step][sequence][unit block][gate][v], gates in ONNX's order. y: hidden
// units, then cells, before the first step, [2][sequence][unit]; absent: zeros. out: [step][sequence][unit], zeros
// behind the end of a sequence. scratch: [4][sequence][unit]: hidden units after even and after odd steps (steps are
// counted from 1), cells or the GRU's update gates, and its hidden units times their reset gates.
// Weights: [unit block][unit of the step before][gate][v].
// Bias: kCellNumbers numbers of the cell, then the length of each sequence filled up to whole vectors, then numbers for
// each unit: a GRU's bias of the recurrent part of its candidate; an LSTM's peepholes of input, output and forget gate.
//
// A step of time is one round, but two for a GRU that resets before the product: its candidate needs the reset gates
// of all units. All gates of a block of units stay in registers, for several sequences at a time.
#pragma once

#include <math.h>

#include "kernels/convolution/conv_direct.hpp"
#include "kernels/functions.hpp"
#include "kernels/vec.hpp"

namespace powerlab::engine::POWERLAB_TIER {

constexpr int kCellNumbers = 16;
// Which number of the cell is what; a function is its code, alpha and beta.
constexpr int kCellClip = 0, kCellCouples = 1, kCellFunctions = 2, kFunctionNumbers = 3;
constexpr int kCellSequences = kTileBlocks * kTilePixels / 4;

// The codes of functions, in the order of powerlab/engine/operators/cells.py.
static inline Vec cell_function(const float* cell, int index, Vec x) {
  const float* f = cell + kCellFunctions + index * kFunctionNumbers;
  const Vec alpha = broadcast(f[1]), beta = broadcast(f[2]), zero = broadcast(0), one = broadcast(1);
  switch (static_cast<int>(f[0])) {
    case 0:
      return sigmoid(x);
    case 1:
      return hyperbolic_tangent(x);
    case 2:
      return x < zero ? zero : x;
    case 3:
      return x * alpha + beta;
    case 4:
      return x < zero ? x * alpha : x;
    case 5:
      return x < alpha ? zero : x;
    case 6:
      return hyperbolic_tangent(x * beta) * alpha;
    case 7:
      return clamp(x * alpha + beta, 0.0f, 1.0f);
    case 8:
      return x < zero ? (exponential(x) - one) * alpha : x;
    case 9:
      return x / (one + absolute(x));
    default: {
      float lanes[kWidth] __attribute__((aligned(4 * kWidth)));
      store(lanes, exponential(-absolute(x)));
      for (float& lane : lanes) lane = log1pf(lane);
      return load(lanes) + (x < zero ? zero : x);
    }
  }
}
static inline Vec clipped(const float* cell, Vec x) { return clamp(x, -cell[kCellClip], cell[kCellClip]); }

// Some sequences' part of a block of units; rows of one sequence after the other.
struct CellTile {
  const float *gates, *hidden, *own, *cells;  // hidden: all units; own and cells: this block's, null: zeros
  std::int64_t gates_row, hidden_row, own_row, cells_row;
  float *next, *kept, *reset;  // in scratch
  std::int64_t scratch_row;
  float* out;
  std::int64_t out_row;
  const float *weights, *cell, *lengths, *of_units;
  std::int64_t filled;  // units with those that fill up the last vector
  int units;            // of the step before; 0 where they are all zero
  float time;
};

// What the hidden units add to kCount of kOf gates, from gate kFrom on.
template <int kFrom, int kCount, int kOf, int P>
static inline __attribute__((always_inline)) void cell_sums(Vec (&acc)[kCount][P], const CellTile& t) {
  POWERLAB_UNROLL
  for (int gate = 0; gate < kCount; ++gate) {
    POWERLAB_UNROLL
    for (int p = 0; p < P; ++p) acc[gate][p] = Vec{};
  }
  const float* weights = t.weights + kFrom * kWidth;
  for (int unit = 0; unit < t.units; ++unit, weights += kOf * kWidth) {
    Vec w[kCount];
    POWERLAB_UNROLL
    for (int gate = 0; gate < kCount; ++gate) w[gate] = load(weights + gate * kWidth);
    POWERLAB_UNROLL
    for (int p = 0; p < P; ++p) {
      const float h = t.hidden[p * t.hidden_row + unit];
      POWERLAB_UNROLL
      for (int gate = 0; gate < kCount; ++gate) acc[gate][p] += w[gate] * h;
    }
  }
}

static inline Vec of_gate(const CellTile& t, int p, int gate) {
  return load(t.gates + p * t.gates_row + gate * kWidth);
}
static inline Vec own_units(const CellTile& t, int p) { return t.own ? load(t.own + p * t.own_row) : Vec{}; }
static inline bool runs(const CellTile& t, int p) { return t.time < t.lengths[p]; }

// Behind its end a sequence puts out zeros and keeps its state.
static inline void put_units(const CellTile& t, int p, Vec hidden) {
  store(t.out + p * t.out_row, runs(t, p) ? hidden : Vec{});
  store(t.next + p * t.scratch_row, runs(t, p) ? hidden : own_units(t, p));
}

// Always inlined: a member function of a template would be shared between tiers.
struct RnnCell {
  static constexpr int kGates = 1, kRounds = 1;
  template <int P>
  static inline __attribute__((always_inline)) void run(const CellTile& t, int) {
    Vec acc[1][P];
    cell_sums<0, 1, kGates>(acc, t);
    for (int p = 0; p < P; ++p)
      put_units(t, p, cell_function(t.cell, 0, clipped(t.cell, of_gate(t, p, 0) + acc[0][p])));
  }
};

static inline Vec updated(const CellTile& t, int p, Vec update, Vec candidate) {
  return candidate + update * (own_units(t, p) - candidate);
}

// Resets behind the product.
struct GruCell {
  static constexpr int kGates = 3, kRounds = 1;
  template <int P>
  static inline __attribute__((always_inline)) void run(const CellTile& t, int) {
    Vec acc[3][P];
    cell_sums<0, 3, kGates>(acc, t);
    for (int p = 0; p < P; ++p) {
      const Vec update = cell_function(t.cell, 0, clipped(t.cell, of_gate(t, p, 0) + acc[0][p]));
      const Vec reset = cell_function(t.cell, 0, clipped(t.cell, of_gate(t, p, 1) + acc[1][p]));
      const Vec sum = of_gate(t, p, 2) + reset * (acc[2][p] + load(t.of_units));
      put_units(t, p, updated(t, p, update, cell_function(t.cell, 1, clipped(t.cell, sum))));
    }
  }
};

// Resets before the product: the first round of a step makes the gates, the second the candidate.
struct GruResetCell {
  static constexpr int kGates = 3, kRounds = 2;
  template <int P>
  static inline __attribute__((always_inline)) void run(const CellTile& t, int round) {
    if (round == 0) {
      Vec acc[2][P];
      cell_sums<0, 2, kGates>(acc, t);
      for (int p = 0; p < P; ++p) {
        const Vec reset = cell_function(t.cell, 0, clipped(t.cell, of_gate(t, p, 1) + acc[1][p]));
        store(t.kept + p * t.scratch_row, cell_function(t.cell, 0, clipped(t.cell, of_gate(t, p, 0) + acc[0][p])));
        store(t.reset + p * t.scratch_row, reset * own_units(t, p));
      }
      return;
    }
    Vec acc[1][P];
    cell_sums<2, 1, kGates>(acc, t);
    for (int p = 0; p < P; ++p) {
      const Vec candidate = cell_function(t.cell, 1, clipped(t.cell, of_gate(t, p, 2) + acc[0][p]));
      put_units(t, p, updated(t, p, load(t.kept + p * t.scratch_row), candidate));
    }
  }
};

struct LstmCell {
  static constexpr int kGates = 4, kRounds = 1;
  template <int P>
  static inline __attribute__((always_inline)) void run(const CellTile& t, int) {
    Vec acc[4][P];
    cell_sums<0, 4, kGates>(acc, t);
    for (int p = 0; p < P; ++p) {
      const Vec before = t.cells ? load(t.cells + p * t.cells_row) : Vec{};
      const Vec input_sum = of_gate(t, p, 0) + acc[0][p] + load(t.of_units) * before;
      const Vec forget_sum = of_gate(t, p, 2) + acc[2][p] + load(t.of_units + 2 * t.filled) * before;
      const Vec input = cell_function(t.cell, 0, clipped(t.cell, input_sum));
      const Vec forget =
          t.cell[kCellCouples] != 0 ? broadcast(1) - input : cell_function(t.cell, 0, clipped(t.cell, forget_sum));
      const Vec candidate = cell_function(t.cell, 1, clipped(t.cell, of_gate(t, p, 3) + acc[3][p]));
      const Vec cells = forget * before + input * candidate;
      const Vec shown_sum = of_gate(t, p, 1) + acc[1][p] + load(t.of_units + t.filled) * cells;
      const Vec shown = cell_function(t.cell, 0, clipped(t.cell, shown_sum));
      store(t.kept + p * t.scratch_row, runs(t, p) ? cells : before);
      put_units(t, p, shown * cell_function(t.cell, 2, cells));
    }
  }
};

template <class Cell, int P>
static __attribute__((noinline)) void cell_tile(const CellTile& t, int round) {
  Cell::template run<P>(t, round);
}

using CellTileFunction = void (*)(const CellTile&, int);
struct CellTileTable {
  CellTileFunction at[kCellSequences];
};
template <class Cell, int... I>
constexpr CellTileTable make_cell_tiles(Indices<I...>) {
  return {{&cell_tile<Cell, I + 1>...}};
}

template <class Cell>
static void recurrence(const Step& s, int thread, int threads) {
  static constexpr CellTileTable kTiles = make_cell_tiles<Cell>(typename MakeIndices<kCellSequences>::type{});
  const int step = s.round / Cell::kRounds, round = s.round % Cell::kRounds;
  const std::int64_t time = s.backwards ? s.out.n - 1 - step : step;
  const std::int64_t filled = s.out.blocks * static_cast<std::int64_t>(kWidth);
  const std::int64_t sequences = s.out.h, vectors = (sequences + kWidth - 1) / kWidth * kWidth;
  const auto state = [&](int i) { return s.scratch.data + i * s.scratch.image; };
  const float* const before = step > 0 ? state((step + 1) % 2) : s.y.data;
  const float* const cells = step > 0 ? state(2) : s.y.data ? s.y.data + s.y.image : nullptr;
  const std::int64_t before_row = step > 0 ? s.scratch.row : s.y.row;
  CellTile t;
  t.gates_row = s.x.row;
  t.out_row = s.out.row;
  t.own_row = t.hidden_row = t.cells_row = before_row;
  t.scratch_row = s.scratch.row;
  t.filled = filled;
  t.cell = s.bias;
  t.units = before ? s.out.c : 0;
  t.time = static_cast<float>(time);
  const float* hidden = before;
  if (round == 1) {
    hidden = state(3);
    t.hidden_row = s.scratch.row;
  }
  const std::int64_t tiles = (sequences + kCellSequences - 1) / kCellSequences;
  const Range work = share(s.out.blocks * tiles, thread, threads);
  for (std::int64_t i = work.begin; i < work.end; ++i) {
    const std::int64_t at = i / tiles * kWidth, tile = i % tiles;
    const std::int64_t begin = tile * sequences / tiles, end = (tile + 1) * sequences / tiles;
    t.gates = s.x.data + time * s.x.image + begin * s.x.row + at * Cell::kGates;
    t.hidden = hidden ? hidden + begin * t.hidden_row : nullptr;
    t.own = before ? before + begin * before_row + at : nullptr;
    t.cells = cells ? cells + begin * before_row + at : nullptr;
    t.next = state(step % 2) + begin * s.scratch.row + at;
    t.kept = state(2) + begin * s.scratch.row + at;
    t.reset = state(3) + begin * s.scratch.row + at;
    t.out = s.out.data + time * s.out.image + begin * s.out.row + at;
    t.weights = s.weights + at * Cell::kGates * s.out.c;
    t.lengths = s.bias + kCellNumbers + begin;
    t.of_units = s.bias + kCellNumbers + vectors + at;
    kTiles.at[end - begin - 1](t, round);
  }
}

}  // namespace powerlab::engine::POWERLAB_TIER
