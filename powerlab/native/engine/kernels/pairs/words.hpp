// Tensors of 16-bit floats, bfloat16 or float16: blocks of 16 channels, two channels a word; in AMX blocks of 32, whose
// pixel is a row of a tile.
//
// [n][c / 16][h][w][16]. A View counts strides in floats as always: a float is a word of two channels, so a pixel of a
// block is eight words. Rows of a linear layer are words that follow on each other. Vectors of sums are
// floats of the tier's width.
//
// The leaves are in bfloat16.hpp and float16.hpp, the only functions with intrinsics: no operator means them. Floats
// become 16-bit floats by rounding to the nearest, even ones where two are as near.
#pragma once

#include "kernels/word_tiles.hpp"

namespace powerlab::engine::POWERLAB_TIER {

#if !defined(POWERLAB_HALVES) && (defined(__AMX_BF16__) || defined(POWERLAB_AMX_MODEL))
constexpr int kBlockChannels = 32;
#else
constexpr int kBlockChannels = 16;
#endif
constexpr int kBlockWords = kBlockChannels / 2;
constexpr int kBlockVectors = kBlockChannels / kWidth;  // vectors of sums that a block is made of

}  // namespace powerlab::engine::POWERLAB_TIER

#if defined(POWERLAB_HALVES)
#include "kernels/pairs/float16.hpp"
#else
#include "kernels/pairs/bfloat16.hpp"
#endif
