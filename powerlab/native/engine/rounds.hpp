// A plan run round after round, as the body of a loop: what a round makes of the states, the next one reads.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "plan.hpp"

namespace powerlab::engine {

struct Rounds {
  // An output of each round that is kept, one behind the other.
  struct Gathered {
    int output;
    float* rows;
  };

  int number;                               // the input that is the number of the round, an integer
  int goes_on;                              // the output that is 0 after the last round; below 0: none is
  std::vector<std::pair<int, int>> states;  // inputs, and the outputs that they are in the next round
  std::vector<Gathered> gathered;
  std::int64_t first, most;  // the number of the first round, and how many there may be
};

// Runs rounds until one says that it is the last, and returns how many. Each output has room for two rounds, `floats`
// of each: what round i makes lies in the half i % 2. Throws what `Plan::run` does.
std::int64_t run_rounds(Plan& plan, const Rounds& rounds, std::vector<const float*> inputs,
                        std::span<float* const> outputs, std::span<const std::int64_t> floats);

}  // namespace powerlab::engine
