// Weights of Winograd's convolutions, transformed and packed for conv_winograd, when a model is loaded. They are
// several times as many numbers as the model holds, so that how fast this is decides how long a network of 3 x 3
// convolutions takes to load: each is computed in registers and written once.
#pragma once

#include <algorithm>
#include <cstdint>

#include "winograd_weights.hpp"

namespace powerlab::engine::POWERLAB_TIER {

// As many numbers as a block has channels, whatever the registers hold.
template <int width>
struct LanesOf {
  typedef double Doubles __attribute__((vector_size(width * sizeof(double))));
  typedef float Floats __attribute__((vector_size(width * sizeof(float))));
};

// Transforms the kernels of `lanes` output channels and one input channel, each `stride` floats behind the one before;
// position (i, j) goes to packed[(i * positions + j) * apart].
template <int width, int taps>
static void winograd_kernels(const float* kernels, std::int64_t stride, int lanes, int positions, const double* g,
                             float* packed, std::int64_t apart) {
  using Doubles = typename LanesOf<width>::Doubles;
  using Floats = typename LanesOf<width>::Floats;
  Doubles read[taps][taps] = {};
  for (int lane = 0; lane < lanes; ++lane) {
    for (int y = 0; y < taps; ++y) {
      for (int x = 0; x < taps; ++x) read[y][x][lane] = kernels[lane * stride + y * taps + x];
    }
  }
  for (int i = 0; i < positions; ++i) {
    Doubles row[taps] = {};  // of G w
    for (int y = 0; y < taps; ++y) {
      for (int x = 0; x < taps; ++x) row[x] += g[i * taps + y] * read[y][x];
    }
    for (int j = 0; j < positions; ++j) {
      Doubles sum = {};
      for (int x = 0; x < taps; ++x) sum += g[j * taps + x] * row[x];
      const Floats rounded = __builtin_convertvector(sum, Floats);
      __builtin_memcpy(packed + (i * positions + j) * apart, &rounded, sizeof(rounded));
    }
  }
}

template <int width, int taps>
static void pack_winograd_of(const WinogradWeights& sizes, const float* weights, const double* g, float* buffer,
                             float* packed) {
  const std::int64_t per_group = sizes.outputs / sizes.groups, kernel = taps * taps, row = sizes.inputs * kernel;
  const std::int64_t blocks = sizes.blocks(), units = (blocks + sizes.tile_blocks - 1) / sizes.tile_blocks;
  const int positions = static_cast<int>(sizes.positions);
  const std::int64_t some = sizes.buffered_inputs();
  for (std::int64_t group = 0; group < sizes.groups; ++group) {
    for (std::int64_t unit = 0; unit < units; ++unit) {
      const std::int64_t begin = unit * blocks / units, count = (unit + 1) * blocks / units - begin;
      const std::int64_t span = count * width;  // floats of a channel and position
      for (std::int64_t from = 0; from < sizes.inputs; from += some) {
        const std::int64_t channels = std::min(some, sizes.inputs - from), run = channels * span;
        for (std::int64_t block = 0; block < count; ++block) {
          const std::int64_t first = (begin + block) * width;
          const int lanes = static_cast<int>(std::min<std::int64_t>(width, per_group - first));
          const float* kernels = weights + (group * per_group + first) * row + from * kernel;
          for (std::int64_t channel = 0; channel < channels; ++channel) {
            winograd_kernels<width, taps>(kernels + channel * kernel, row, lanes, positions, g,
                                          buffer + channel * span + block * width, run);
          }
        }
        for (std::int64_t position = 0; position < positions * positions; ++position) {
          std::copy_n(buffer + position * run, run, packed + position * sizes.inputs * span + from * span);
        }
      }
      packed += positions * positions * sizes.inputs * span;
    }
  }
}

template <int taps>
static void pack_winograd_taps(const WinogradWeights& sizes, const float* weights, const double* g, float* buffer,
                               float* packed) {
  if (sizes.width == 4) return pack_winograd_of<4, taps>(sizes, weights, g, buffer, packed);
  if (sizes.width == 8) return pack_winograd_of<8, taps>(sizes, weights, g, buffer, packed);
  pack_winograd_of<16, taps>(sizes, weights, g, buffer, packed);
}

static void pack_winograd(const WinogradWeights& sizes, const float* weights, const double* g, float* buffer,
                          float* packed) {
  if (sizes.taps == 3) return pack_winograd_taps<3>(sizes, weights, g, buffer, packed);
  pack_winograd_taps<5>(sizes, weights, g, buffer, packed);
}

}  // namespace powerlab::engine::POWERLAB_TIER
