#include "direct_weights.hpp"

#include <algorithm>
#include <stdexcept>

namespace powerlab::engine {
namespace {

// Writes [tap][lane][row] of so many input channels; `room` rows, of which the last ones may be zeros.
float* pack_block(const DirectWeights& sizes, const float* rows, std::int64_t count, std::int64_t room,
                  std::int64_t lanes, float* out) {
  for (std::int64_t tap = 0; tap < sizes.from.taps; ++tap) {
    for (std::int64_t lane = 0; lane < lanes; ++lane, out += room) {
      const float* from = rows + lane * sizes.from.input_stride + tap * sizes.from.tap_stride;
      if (sizes.from.output_stride == 1) {
        std::copy_n(from, count, out);
      } else {
        for (std::int64_t row = 0; row < count; ++row) out[row] = from[row * sizes.from.output_stride];
      }
      std::fill_n(out + count, room - count, 0.0f);
    }
  }
  return out;
}

}  // namespace

void pack_direct(const DirectWeights& sizes, const float* weights, std::span<float> packed) {
  const bool sound = sizes.groups > 0 && sizes.from.outputs > 0 && sizes.from.inputs > 0 && sizes.from.taps > 0 &&
                     sizes.width > 0 && sizes.tile_blocks > 0 && sizes.lanes > 0 &&
                     sizes.from.outputs % sizes.groups == 0;
  if (!sound || std::ssize(packed) != sizes.packed_floats()) {
    throw std::invalid_argument("the sizes of a convolution's weights do not fit; please report this as a bug.");
  }
  const std::int64_t of_group = sizes.from.outputs / sizes.groups, blocks = sizes.blocks();
  const std::int64_t units = (blocks + sizes.tile_blocks - 1) / sizes.tile_blocks;
  float* out = packed.data();
  for (std::int64_t group = 0; group < sizes.groups; ++group) {
    for (std::int64_t unit = 0; unit < units; ++unit) {
      const std::int64_t begin = unit * blocks / units * sizes.width, end = (unit + 1) * blocks / units * sizes.width;
      const std::int64_t count = std::min(end, of_group) - begin;
      const float* rows = weights + (group * of_group + begin) * sizes.from.output_stride;
      for (std::int64_t input = 0; input < sizes.from.inputs; input += sizes.lanes) {
        const std::int64_t lanes = std::min(sizes.lanes, sizes.from.inputs - input);
        out = pack_block(sizes, rows + input * sizes.from.input_stride, count, end - begin, lanes, out);
      }
    }
  }
}

}  // namespace powerlab::engine
