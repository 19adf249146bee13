// LSTM (S. Hochreiter, J. Schmidhuber, "Long short-term memory", 1997; forget gates: F. A. Gers et al., 2000), one step
// of time a round:
//   i, o, f, g = x + weights h;  c = sigmoid(f) c + sigmoid(i) tanh(g);  h = sigmoid(o) tanh(c)
//
// x: what inputs and biases add to the gates, [step][sequence][unit block][gate][v], gates in ONNX's order i, o, f, g.
// y: hidden units, then cells, before the first step, [2][sequence][unit]; absent: zeros. out: [step][sequence][unit],
// where each round reads what the round before wrote. scratch: the cells, [sequence][unit].
// Weights: [unit block][unit of the step before][gate][v], or in fewer bits: the gates of a unit block are the vectors
// of a unit of narrow/formats.hpp, which has them.
//
// All gates of a block of hidden units stay in registers, for several sequences at a time, so that a round needs no
// barrier inside. A thread has the same blocks in every round, so its part of the weights may stay in its own cache;
// every second round goes through them backwards: of a part that is a little too large most is still there.
#pragma once

#include "kernels/convolution/conv_direct.hpp"
#include "kernels/functions.hpp"
#include "kernels/narrow/formats.hpp"
#include "kernels/recurrent/lstm_block.hpp"
#include "kernels/vec.hpp"

namespace powerlab::engine::POWERLAB_TIER {

constexpr int kGates = 4;
constexpr int kLineFloats = 16;  // of a cache line
// As many sequences as the registers of conv_direct's tile hold the gates of.
constexpr int kLstmSequences = kTileBlocks * kTilePixels / kGates;
static_assert(kLstmSequences > 0);

struct LstmTile {
  const float* gates;  // of the first sequence, as are all others
  const float* hidden;
  const float* cells;  // null: zeros
  const float* weights;
  float* out;
  float* new_cells;
  std::int64_t gates_row, hidden_row, cells_row, out_row, new_cells_row;
  int units;  // of the step before; 0 where they are all zero
};

// What the hidden units add to the gates.
template <int P>
static inline __attribute__((always_inline)) void lstm_sums(FloatWeights, Vec (&sums)[kGates][P], const LstmTile& t) {
  // One sequence alone gets two sums for each gate: four would wait for one another.
  constexpr int kSums = P == 1 ? 2 : 1;
  Vec acc[kSums][kGates][P] = {};
  const float* weights = t.weights;
  int unit = 0;
  if constexpr (kWholeBlocks && P > 1) {
    for (; unit + kWidth <= t.units; unit += kWidth, weights += kWidth * kGates * kWidth) {
      lstm_whole(acc[0], t.hidden + unit, t.hidden_row, weights);
    }
  }
  for (; unit + kSums <= t.units; unit += kSums) {
    POWERLAB_UNROLL
    for (int sum = 0; sum < kSums; ++sum) {
      Vec w[kGates];
      POWERLAB_UNROLL
      for (int gate = 0; gate < kGates; ++gate) w[gate] = load(weights + gate * kWidth);
      POWERLAB_UNROLL
      for (int p = 0; p < P; ++p) {
        const float h = t.hidden[p * t.hidden_row + unit + sum];
        POWERLAB_UNROLL
        for (int gate = 0; gate < kGates; ++gate) acc[sum][gate][p] += w[gate] * h;
      }
      weights += kGates * kWidth;
    }
  }
  if (unit < t.units) {
    POWERLAB_UNROLL
    for (int p = 0; p < P; ++p) {
      const float h = t.hidden[p * t.hidden_row + unit];
      POWERLAB_UNROLL
      for (int gate = 0; gate < kGates; ++gate) acc[0][gate][p] += load(weights + gate * kWidth) * h;
    }
  }
  POWERLAB_UNROLL
  for (int p = 0; p < P; ++p) {
    POWERLAB_UNROLL
    for (int gate = 0; gate < kGates; ++gate) {
      sums[gate][p] = kSums == 2 ? acc[0][gate][p] + acc[kSums - 1][gate][p] : acc[0][gate][p];
    }
  }
}

template <int P, class W>
static inline __attribute__((always_inline)) void lstm_sums(W, Vec (&sums)[kGates][P], const LstmTile& t) {
  narrow_sums<W, kGates, P>(sums, {t.hidden, t.hidden_row, t.units}, t.weights);
}

template <class W, int P>
static __attribute__((noinline)) void lstm_tile(const LstmTile& t) {
  // Added at the end: perhaps another core wrote them, and nobody has to wait meanwhile.
  for (int p = 0; p < P; ++p) {
    for (int at = 0; at < kGates * kWidth; at += kLineFloats) __builtin_prefetch(t.gates + p * t.gates_row + at);
  }
  Vec acc[kGates][P];
  lstm_sums<P>(W{}, acc, t);
  POWERLAB_UNROLL
  for (int p = 0; p < P; ++p) {
    POWERLAB_UNROLL
    for (int gate = 0; gate < kGates; ++gate) {
      acc[gate][p] += load(t.gates + p * t.gates_row + gate * kWidth);
    }
    const Quotient candidate = tanh_quotient(acc[3][p]);
    Vec cell = candidate.above / (one_over_sigmoid(acc[0][p]) * candidate.below);
    if (t.cells) cell += load(t.cells + p * t.cells_row) / one_over_sigmoid(acc[2][p]);
    store(t.new_cells + p * t.new_cells_row, cell);
    const Quotient shown = tanh_quotient(cell);
    store(t.out + p * t.out_row, shown.above / (one_over_sigmoid(acc[1][p]) * shown.below));
  }
}

using LstmTileFunction = void (*)(const LstmTile&);
struct LstmTileTable {
  LstmTileFunction at[kLstmSequences];
};
template <class W, int... I>
constexpr LstmTileTable make_lstm_tiles(Indices<I...>) {
  return {{&lstm_tile<W, I + 1>...}};
}
// W: a format of narrow/formats.hpp, or FloatWeights.
template <class W>
static void lstm(const Step& s, int thread, int threads) {
  static constexpr LstmTileTable kTiles = make_lstm_tiles<W>(typename MakeIndices<kLstmSequences>::type{});
  const std::int64_t time = s.backwards ? s.out.n - 1 - s.round : s.round;
  const std::int64_t before = s.backwards ? time + 1 : time - 1;
  LstmTile t;
  t.gates_row = s.x.row;
  t.out_row = s.out.row;
  t.new_cells_row = s.scratch.row;
  t.units = s.out.c;
  const float *hidden, *cells;
  if (s.round > 0) {
    hidden = s.out.data + before * s.out.image;
    cells = s.scratch.data;
    t.hidden_row = s.out.row;
    t.cells_row = s.scratch.row;
  } else {
    hidden = s.y.data;
    cells = s.y.data ? s.y.data + s.y.image : nullptr;
    t.hidden_row = t.cells_row = s.y.row;
    if (!s.y.data) t.units = 0;
  }
  // All at once: other cores wrote most of it a moment ago.
  for (int row = 0; row < s.out.h && t.units > 0; ++row) {
    for (int at = 0; at < t.units; at += kLineFloats) __builtin_prefetch(hidden + row * t.hidden_row + at);
  }
  const std::int64_t tiles = (s.out.h + kLstmSequences - 1) / kLstmSequences;
  const Range work = share(s.out.blocks * tiles, thread, threads);
  for (std::int64_t i = work.begin; i < work.end; ++i) {
    const std::int64_t unit = s.round % 2 ? work.begin + work.end - 1 - i : i;
    const std::int64_t at = unit / tiles * kWidth, tile = unit % tiles;
    const std::int64_t begin = tile * s.out.h / tiles, end = (tile + 1) * s.out.h / tiles;
    t.gates = s.x.data + time * s.x.image + begin * s.x.row + at * kGates;
    t.hidden = hidden ? hidden + begin * t.hidden_row : nullptr;
    t.cells = cells ? cells + begin * t.cells_row + at : nullptr;
    t.weights = s.weights + at * kGates * row_words<W>(s.out.c);
    t.out = s.out.data + time * s.out.image + begin * s.out.row + at;
    t.new_cells = s.scratch.data + begin * s.scratch.row + at;
    kTiles.at[end - begin - 1](t);
  }
}

}  // namespace powerlab::engine::POWERLAB_TIER
