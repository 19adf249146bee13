// Weights of Winograd's convolutions, transformed and packed for conv_winograd: kernels/convolution/pack_winograd.hpp
// computes them, in the best tier the processor has.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

namespace powerlab::engine {

struct WinogradWeights {
  std::int64_t outputs, inputs, taps;  // of the convolution; inputs of one group, taps along each axis
  std::int64_t groups;
  std::int64_t positions;    // along each axis: the output tile and what the taps reach beyond it
  std::int64_t width;        // channels of an output block
  std::int64_t tile_blocks;  // output blocks of a unit at most

  std::int64_t blocks() const { return (outputs / groups + width - 1) / width; }
  // Channels are transformed a few at a time, in the second-level cache, so that each position is written in long runs
  // and not a line here and there.
  std::int64_t buffered_inputs() const {
    constexpr std::int64_t kRunFloats = 512;
    return std::max<std::int64_t>(1, kRunFloats / (std::min(tile_blocks, blocks()) * width));
  }
  std::int64_t buffer_floats() const {
    return positions * positions * buffered_inputs() * std::min(tile_blocks, blocks()) * width;
  }
  std::int64_t packed_floats() const { return groups * blocks() * width * inputs * positions * positions; }
};

// Computes G w G^T of every kernel w in double precision, rounds it, and writes it as
// [group][unit][position][channel][block][width], with zeros for the channels that fill up the last block.
//
// `weights` are (outputs, inputs, taps, taps); `g` is (positions, taps). Throws std::invalid_argument where sizes do
// not fit or are none that the engine has a transform for.
void pack_winograd(const WinogradWeights& sizes, std::span<const float> weights, std::span<const double> g,
                   std::span<float> packed);

}  // namespace powerlab::engine
