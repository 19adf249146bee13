// One step of time of a GRU that trains and resets behind its product, which stands before this: all that is done
// element by element, forwards and backwards, in one pass each. The gates are z, r, h; see cell_units.hpp.
#pragma once

#include "kernels/training/cell_units.hpp"

namespace powerlab::engine::POWERLAB_TIER {

// Written: the gates, activated; the hidden units. Read: the gates' sums of the input and of the state, and the hidden
// units before.
static void gru_cell(const Step& s, int thread, int threads) {
  for_cell_units<5>(s, thread, threads, [](const CellUnits& part) {
    const Vec update = sigmoid(units_of(part, 2, 0) + units_of(part, 3, 0));
    const Vec reset = sigmoid(units_of(part, 2, 1) + units_of(part, 3, 1));
    const Vec candidate = hyperbolic_tangent(units_of(part, 2, 2) + reset * units_of(part, 3, 2));
    const Vec gates[] = {update, reset, candidate};
    for (int gate = 0; gate < 3; ++gate) store_some(part.at[0] + gate * part.units, gates[gate], part.lanes);
    store_some(part.at[1], candidate + update * (units_of(part, 4) - candidate), part.lanes);
  });
}

// Written: the gradients of the gates' sums of the input, of the hidden units before, and of the gates' sums of the
// state. Read: the activated gates, the gates' sums of the state, the hidden units before, and the gradient of those
// behind.
static void gru_cell_gradient(const Step& s, int thread, int threads) {
  for_cell_units<7>(s, thread, threads, [](const CellUnits& part) {
    const Vec update = units_of(part, 3, 0), reset = units_of(part, 3, 1), candidate = units_of(part, 3, 2);
    const Vec of_hidden = units_of(part, 6), one = broadcast(1);
    const Vec of_update = of_hidden * (units_of(part, 5) - candidate) * (update - update * update);
    const Vec of_candidate = of_hidden * (one - update) * (one - candidate * candidate);
    const Vec of_reset = of_candidate * units_of(part, 4, 2) * (reset - reset * reset);
    const Vec of_input[] = {of_update, of_reset, of_candidate};
    const Vec of_state[] = {of_update, of_reset, of_candidate * reset};
    for (int gate = 0; gate < 3; ++gate) {
      store_some(part.at[0] + gate * part.units, of_input[gate], part.lanes);
      store_some(part.at[2] + gate * part.units, of_state[gate], part.lanes);
    }
    store_some(part.at[1], of_hidden * update, part.lanes);
  });
}

}  // namespace powerlab::engine::POWERLAB_TIER
