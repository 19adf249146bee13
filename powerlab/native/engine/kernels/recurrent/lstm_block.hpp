// The innermost loop of an LSTM: what units of the step before, whole vectors of them, add to the gates of two or three
// sequences. Without a loop, as in conv_block.hpp, which says why: 19 instructions for 12 products where a loop has 22.
#pragma once

#include "kernels/convolution/conv_block.hpp"

namespace powerlab::engine::POWERLAB_TIER {

#if POWERLAB_WHOLE_BLOCKS
// One unit's weights of a gate. `hidden`: the unit in each sequence.
template <int Vector, int Gates, int P, typename... Hidden>
static inline __attribute__((always_inline)) void lstm_gate(Vec (&acc)[Gates][P], const float* weights,
                                                            Hidden... hidden) {
  register Vec w asm("ymm15");
  asm volatile("vmovaps %c1(%2), %0" : "=x"(w) : "i"(Vector * kWidth * 4), "r"(weights));
  int p = 0;
  (add_product(acc[Vector % Gates][p++], w, hidden), ...);
}

template <int Unit, int Gates, int P, int... Gate>
static inline __attribute__((always_inline)) void lstm_unit(Vec (&acc)[Gates][P], const float* hidden,
                                                            std::int64_t row_bytes, const float* weights,
                                                            Indices<Gate...>) {
  static_assert(P == 2 || P == 3);
  register Vec h0 asm("ymm12");
  register Vec h1 asm("ymm13");
  asm volatile("vbroadcastss %c1(%2), %0" : "=x"(h0) : "i"(Unit * 4), "r"(hidden));
  asm volatile("vbroadcastss %c1(%2,%3), %0" : "=x"(h1) : "i"(Unit * 4), "r"(hidden), "r"(row_bytes));
  if constexpr (P == 2) {
    (lstm_gate<Unit * Gates + Gate>(acc, weights, h0, h1), ...);
  } else {
    register Vec h2 asm("ymm14");
    asm volatile("vbroadcastss %c1(%2,%3,2), %0" : "=x"(h2) : "i"(Unit * 4), "r"(hidden), "r"(row_bytes));
    (lstm_gate<Unit * Gates + Gate>(acc, weights, h0, h1, h2), ...);
  }
}

template <int Gates, int P, int... Unit>
static inline __attribute__((always_inline)) void lstm_units(Vec (&acc)[Gates][P], const float* hidden,
                                                             std::int64_t row_bytes, const float* weights,
                                                             Indices<Unit...>) {
  (lstm_unit<Unit>(acc, hidden, row_bytes, weights, typename MakeIndices<Gates>::type{}), ...);
}

// A vector of units. `row`: from one sequence to the next, in floats.
template <int Gates, int P>
static inline __attribute__((always_inline)) void lstm_whole(Vec (&acc)[Gates][P], const float* hidden,
                                                             std::int64_t row, const float* weights) {
  asm volatile("" ::: "memory");  // what the instructions read is in memory
  lstm_units(acc, hidden, 4 * row, weights, typename MakeIndices<kWidth>::type{});
}
#else
template <int Gates, int P>
static inline void lstm_whole(Vec (&)[Gates][P], const float*, std::int64_t, const float*) {}
#endif

}  // namespace powerlab::engine::POWERLAB_TIER
