// Where the weights of a convolution or a product of matrices lie before they are packed: numbers of any size.
#pragma once

#include <cstdint>

namespace powerlab::engine {

struct WeightLayout {
  std::int64_t outputs, inputs, taps;                    // inputs of one group; taps of all axes of the kernel together
  std::int64_t output_stride, input_stride, tap_stride;  // numbers from one to the next, in any order
};

}  // namespace powerlab::engine
