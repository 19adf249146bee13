// Weights of bytes of a convolution or a product of matrices, packed for the kernels in kernels/bytes/.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "weight_layout.hpp"

namespace powerlab::engine {

struct ByteWeights {
  WeightLayout from;
  std::int64_t groups;
  std::int64_t width;         // outputs of a vector
  std::int64_t tile_vectors;  // vectors of a unit at most
  std::int64_t words;         // of an input block, four channels each
};

// How many bytes pack_bytes makes of weights in a form, one of those of kernels/bytes/words.hpp. Throws
// std::invalid_argument where there is no such form, or sizes do not fit.
std::int64_t packed_bytes(const ByteWeights& sizes, std::string_view form);

// Writes weights as [group][unit][input block][tap][word][vector][half][width], with zeros for channels that fill up
// words and vectors; the last input block has the words that are left. Units are of nearly equal size. Throws likewise.
void pack_bytes(const ByteWeights& sizes, std::string_view form, const std::int8_t* weights,
                std::span<std::uint8_t> packed);

// Whether weights of one sign that are multiplied into the same 16 bits add up to `most` at most, for every output: two
// of neighbouring inputs under a tap, or those and the ones in the same places of the next `words` - 1 words.
bool sums_stay_below(const WeightLayout& from, const std::int8_t* weights, std::int64_t words, int most);

// A matrix of bytes with any strides.
struct ByteMatrix {
  const std::int8_t* data;
  std::int64_t rows, columns;
  std::int64_t row_stride, column_stride;
};

// For each row, the sum and that of the absolute values.
void sum_rows(const ByteMatrix& matrix, std::span<std::int64_t> sums, std::span<std::int64_t> absolute);

}  // namespace powerlab::engine
