// Weights of a direct convolution or a product of matrices, packed for conv_direct.
#pragma once

#include <cstdint>
#include <span>

#include "weight_layout.hpp"

namespace powerlab::engine {

struct DirectWeights {
  WeightLayout from;
  std::int64_t groups;
  std::int64_t width;        // channels of an output block
  std::int64_t tile_blocks;  // output blocks of a unit at most
  std::int64_t lanes;        // channels of an input block

  std::int64_t blocks() const { return (from.outputs / groups + width - 1) / width; }
  std::int64_t packed_floats() const { return groups * blocks() * width * from.inputs * from.taps; }
};

// Writes weights as [group][unit][input block][tap][lane][block of the unit][width], with zeros for the channels that
// fill up the last output block; the last input block has the lanes that are left.
//
// Units are of nearly equal size. Throws std::invalid_argument where sizes do not fit.
void pack_direct(const DirectWeights& sizes, const float* weights, std::span<float> packed);

}  // namespace powerlab::engine
