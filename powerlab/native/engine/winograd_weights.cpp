#include "winograd_weights.hpp"

#include <stdexcept>
#include <vector>

#include "tiers/registry.hpp"

namespace powerlab::engine {

void pack_winograd(const WinogradWeights& sizes, std::span<const float> weights, std::span<const double> g,
                   std::span<float> packed) {
  const bool known = (sizes.taps == 3 || sizes.taps == 5) && sizes.positions > sizes.taps &&
                     (sizes.width == 4 || sizes.width == 8 || sizes.width == 16);
  const bool sound = known && sizes.groups > 0 && sizes.outputs > 0 && sizes.inputs > 0 &&
                     sizes.outputs % sizes.groups == 0 && sizes.tile_blocks > 0;
  if (!sound || std::ssize(weights) != sizes.outputs * sizes.inputs * sizes.taps * sizes.taps ||
      std::ssize(g) != sizes.positions * sizes.taps || std::ssize(packed) != sizes.packed_floats()) {
    throw std::invalid_argument("the sizes of Winograd weights do not fit; please report this as a bug.");
  }
  std::vector<float> buffer(static_cast<std::size_t>(sizes.buffer_floats()));
  find_tier("").pack_winograd(sizes, weights.data(), g.data(), buffer.data(), packed.data());
}

}  // namespace powerlab::engine
