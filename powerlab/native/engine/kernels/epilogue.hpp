// Functions of one number at the end of a convolution or product: each tile goes through it right after it was stored,
// while the nearest cache holds it. A function by itself would read and write the whole tensor once more.
#pragma once

#include "kernels/more_functions.hpp"

namespace powerlab::engine::POWERLAB_TIER {

template <Vec (*F)(Vec, const Step&)>
static void epilogue(const Step& s, const OutTile& given) {
  const OutTile tile = given;  // as far as the compiler knows, what is stored might change the given one
  for (std::int64_t block = 0; block < tile.blocks; ++block) {
    float* out = tile.data + block * tile.plane;
    POWERLAB_UNROLL_BY_2
    for (std::int64_t i = 0; i < tile.pixels; ++i, out += tile.pixel) store(out, F(load(out), s));
  }
}

// In the order of Function.
static constexpr void (*kEpilogues[kFunctions])(const Step&, const OutTile&) = {
    nullptr,           epilogue<elu_of>,          epilogue<gelu_of>,       epilogue<gelu_tanh_of>,
    epilogue<mish_of>, epilogue<hard_sigmoid_of>, epilogue<hard_swish_of>, epilogue<sigmoid_of>,
    epilogue<silu_of>, epilogue<softplus_of>,     epilogue<swish_of>,      epilogue<tanh_of>,
};

static inline void finish(const Step& s, const OutTile& tile) {
  if (s.function != kNoFunction) kEpilogues[s.function](s, tile);
}

}  // namespace powerlab::engine::POWERLAB_TIER
