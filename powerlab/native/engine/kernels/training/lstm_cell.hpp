// One step of time of an LSTM that trains, behind the products: all that is done element by element, forwards and
// backwards, in one pass each. The gates are i, o, f, g; see cell_units.hpp.
#pragma once

#include "kernels/training/cell_units.hpp"

namespace powerlab::engine::POWERLAB_TIER {

// Written: the gates, activated; the cells; the hidden units. Read: two summands of the gates, and the cells before.
static void lstm_cell(const Step& s, int thread, int threads) {
  for_cell_units<6>(s, thread, threads, [](const CellUnits& part) {
    const auto sum = [&](int gate) { return units_of(part, 3, gate) + units_of(part, 4, gate); };
    const Vec into = sigmoid(sum(0)), out = sigmoid(sum(1)), forget = sigmoid(sum(2));
    const Vec candidate = hyperbolic_tangent(sum(3));
    const Vec cells = forget * units_of(part, 5) + into * candidate;
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
    const Vec into = units_of(part, 2, 0), out = units_of(part, 2, 1);
    const Vec forget = units_of(part, 2, 2), candidate = units_of(part, 2, 3);
    const Vec shown = hyperbolic_tangent(units_of(part, 4)), of_hidden = units_of(part, 6), one = broadcast(1);
    const Vec of_cells = units_of(part, 5) + of_hidden * out * (one - shown * shown);
    const Vec gradients[] = {of_cells * candidate * (into - into * into), of_hidden * shown * (out - out * out),
                             of_cells * units_of(part, 3) * (forget - forget * forget),
                             of_cells * into * (one - candidate * candidate)};
    for (int gate = 0; gate < 4; ++gate) store_some(part.at[0] + gate * part.units, gradients[gate], part.lanes);
    store_some(part.at[1], of_cells * forget, part.lanes);
  });
}

}  // namespace powerlab::engine::POWERLAB_TIER
