// One step of time of an LSTM that trains, behind the products: all that is done element by element, forwards and
// backwards, in one pass each.
//
// Operands: general tensors of two axes, [sequence][number], whose numbers follow on each other. Those of gates have
// four times as many as units, gate after gate in the order of ONNX: i, o, f, g. What is written comes first.
#pragma once

#include "kernels/functions.hpp"
#include "kernels/training/update.hpp"

namespace powerlab::engine::POWERLAB_TIER {

// Some units of one sequence: where they lie in each operand, the first gate's where there are four.
struct CellUnits {
  float* at[kMostTensors];
  std::int64_t units;  // of a gate
  int lanes;
};

// Calls of_units for the vectors that fall to this thread; the second operand has the sizes of a cell.
template <int Operands, typename OfUnits>
static inline void for_cell_units(const Step& s, int thread, int threads, OfUnits of_units) {
  CellUnits part;
  part.units = s.operands[1].size[1];
  const std::int64_t vectors = (part.units + kWidth - 1) / kWidth;
  const Range own = share(s.operands[1].size[0] * vectors, thread, threads);
  for (std::int64_t i = own.begin; i < own.end; ++i) {
    const std::int64_t row = i / vectors, at = i % vectors * kWidth, left = part.units - at;
    for (int k = 0; k < Operands; ++k) {
      part.at[k] = static_cast<float*>(s.operands[k].data) + row * s.operands[k].stride[0] + at;
    }
    part.lanes = left < kWidth ? static_cast<int>(left) : kWidth;
    of_units(part);
  }
}

// Written: the gates, activated; the cells; the hidden units. Read: two summands of the gates, and the cells before.
static void lstm_cell(const Step& s, int thread, int threads) {
  for_cell_units<6>(s, thread, threads, [](const CellUnits& part) {
    const auto sum = [&](int gate) {
      const std::int64_t at = gate * part.units;
      return load_some(part.at[3] + at, part.lanes) + load_some(part.at[4] + at, part.lanes);
    };
    const Vec into = sigmoid(sum(0)), out = sigmoid(sum(1)), forget = sigmoid(sum(2));
    const Vec candidate = hyperbolic_tangent(sum(3));
    const Vec cells = forget * load_some(part.at[5], part.lanes) + into * candidate;
    const Vec gates[] = {into, out, forget, candidate};
    for (int gate = 0; gate < 4; ++gate) store_some(part.at[0] + gate * part.units, gates[gate], part.lanes);
    store_some(part.at[1], cells, part.lanes);
    store_some(part.at[2], out * hyperbolic_tangent(cells), part.lanes);
  });
}

// Written: the gradients of the gates' sums, and of the cells before. Read: the activated gates, the cells before and
// behind, and the gradients of the cells and of the hidden units.
static void lstm_cell_gradient(const Step& s, int thread, int threads) {
  for_cell_units<7>(s, thread, threads, [](const CellUnits& part) {
    const auto read = [&](int operand, int gate) {
      return load_some(part.at[operand] + gate * part.units, part.lanes);
    };
    const Vec into = read(2, 0), out = read(2, 1), forget = read(2, 2), candidate = read(2, 3);
    const Vec shown = hyperbolic_tangent(read(4, 0)), of_hidden = read(6, 0), one = broadcast(1);
    const Vec of_cells = read(5, 0) + of_hidden * out * (one - shown * shown);
    const Vec gradients[] = {of_cells * candidate * (into - into * into), of_hidden * shown * (out - out * out),
                             of_cells * read(3, 0) * (forget - forget * forget),
                             of_cells * into * (one - candidate * candidate)};
    for (int gate = 0; gate < 4; ++gate) store_some(part.at[0] + gate * part.units, gradients[gate], part.lanes);
    store_some(part.at[1], of_cells * forget, part.lanes);
  });
}

}  // namespace powerlab::engine::POWERLAB_TIER
