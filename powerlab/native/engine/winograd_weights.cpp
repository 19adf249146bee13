#include "winograd_weights.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>

namespace powerlab::engine {
namespace {

constexpr std::int64_t kMostTaps = 5;
constexpr std::int64_t kMostPositions = 8;
constexpr std::int64_t kMostWidth = 16;

// What a block of output channels has of one input channel; lanes are output channels.
template <std::int64_t count>
using Lanes = std::array<std::array<double, kMostWidth>, count>;

void check(const WinogradWeights& sizes, std::span<const float> weights, std::span<const double> g,
           std::span<float> packed) {
  const bool sound = sizes.groups > 0 && sizes.outputs > 0 && sizes.inputs > 0 && sizes.outputs % sizes.groups == 0 &&
                     sizes.taps > 0 && sizes.taps <= kMostTaps && sizes.positions >= sizes.taps &&
                     sizes.positions <= kMostPositions && sizes.width > 0 && sizes.width <= kMostWidth &&
                     sizes.tile_blocks > 0;
  if (!sound || std::ssize(weights) != sizes.outputs * sizes.inputs * sizes.taps * sizes.taps ||
      std::ssize(g) != sizes.positions * sizes.taps || std::ssize(packed) != sizes.packed_floats()) {
    throw std::invalid_argument("the sizes of Winograd weights do not fit; please report this as a bug.");
  }
}

// Reads the kernels of one input channel, `lanes` of them, each `stride` floats behind the one before.
void read(const float* kernels, std::int64_t stride, std::int64_t lanes, std::int64_t count,
          Lanes<kMostTaps * kMostTaps>& taps) {
  for (std::int64_t tap = 0; tap < count; ++tap) {
    for (std::int64_t lane = 0; lane < lanes; ++lane) taps[tap][lane] = kernels[lane * stride + tap];
    for (std::int64_t lane = lanes; lane < kMostWidth; ++lane) taps[tap][lane] = 0.0;
  }
}

// sums[i] = the sum over r of g[i][r] * parts[r * stride], for each lane.
template <typename Sums>
void combine(const WinogradWeights& sizes, std::span<const double> g, const std::array<double, kMostWidth>* parts,
             std::int64_t stride, const Sums& sum_of) {
  for (std::int64_t i = 0; i < sizes.positions; ++i) {
    std::array<double, kMostWidth> sum{};
    for (std::int64_t r = 0; r < sizes.taps; ++r) {
      const double factor = g[i * sizes.taps + r];
      const auto& part = parts[r * stride];
      for (std::int64_t lane = 0; lane < kMostWidth; ++lane) sum[lane] += factor * part[lane];
    }
    sum_of(i, sum);
  }
}

}  // namespace

void pack_winograd(const WinogradWeights& sizes, std::span<const float> weights, std::span<const double> g,
                   std::span<float> packed) {
  check(sizes, weights, g, packed);
  const std::int64_t taps = sizes.taps, positions = sizes.positions, width = sizes.width;
  const std::int64_t per_group = sizes.outputs / sizes.groups, kernel = taps * taps, row = sizes.inputs * kernel;
  const std::int64_t blocks = sizes.blocks(), units = (blocks + sizes.tile_blocks - 1) / sizes.tile_blocks;
  Lanes<kMostTaps * kMostTaps> read_taps;
  Lanes<kMostPositions * kMostTaps> columns;  // G w, [position][tap]
  float* unit = packed.data();
  for (std::int64_t group = 0; group < sizes.groups; ++group) {
    for (std::int64_t number = 0; number < units; ++number) {
      const std::int64_t begin = number * blocks / units, end = (number + 1) * blocks / units;
      const std::int64_t stride = sizes.inputs * (end - begin) * width;  // from one position to the next
      for (std::int64_t channel = 0; channel < sizes.inputs; ++channel) {
        for (std::int64_t block = begin; block < end; ++block) {
          const std::int64_t lanes = std::min(width, per_group - block * width);
          const float* kernels = weights.data() + (group * per_group + block * width) * row + channel * kernel;
          read(kernels, row, lanes, kernel, read_taps);
          for (std::int64_t tap = 0; tap < taps; ++tap) {
            combine(sizes, g, &read_taps[tap], taps, [&](std::int64_t i, const auto& sum) { columns[i * taps + tap] = sum; });
          }
          float* to = unit + (channel * (end - begin) + block - begin) * width;
          for (std::int64_t i = 0; i < positions; ++i) {
            combine(sizes, g, &columns[i * taps], 1, [&](std::int64_t j, const auto& sum) {
              float* at = to + (i * positions + j) * stride;
              for (std::int64_t lane = 0; lane < width; ++lane) at[lane] = static_cast<float>(sum[lane]);
            });
          }
        }
      }
      unit += positions * positions * stride;
    }
  }
}

}  // namespace powerlab::engine
