// What the cells of recurrences that train share: units of one sequence at a time, a vector wide.
//
// Operands: general tensors of two axes, [sequence][number], whose numbers follow on each other. Those of gates have
// several times as many as units, gate after gate in the order of ONNX. What is written comes first.
#pragma once

#include "kernels/functions.hpp"
#include "kernels/training/update.hpp"

namespace powerlab::engine::POWERLAB_TIER {

// Some units of one sequence: where they lie in each operand, the first gate's where there are several.
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

// Some units of a gate of an operand.
static inline Vec units_of(const CellUnits& part, int operand, int gate = 0) {
  return load_some(part.at[operand] + gate * part.units, part.lanes);
}

}  // namespace powerlab::engine::POWERLAB_TIER
