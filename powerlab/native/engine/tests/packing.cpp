#include "tests/packing.hpp"

namespace powerlab::engine::test {

// [unit][input block][kernel_h][kernel_w][lane][block of the unit][v], as kernels/conv_direct.hpp says.
Floats pack_direct(const KernelTable& table, const reference::Tensor& weights, int groups, int lanes) {
  const int v = table.vector_width, outputs = weights.n / groups, blocks = (outputs + v - 1) / v;
  const int units = (blocks + table.tile_blocks - 1) / table.tile_blocks;
  std::vector<float> packed;
  for (int group = 0; group < groups; ++group) {
    for (int unit = 0; unit < units; ++unit) {
      for (int first = 0; first < weights.c; first += lanes) {
        for (int tap = 0; tap < weights.h * weights.w; ++tap) {
          for (int i = first; i < first + lanes && i < weights.c; ++i) {
            for (int o = unit * blocks / units * v; o < (unit + 1) * blocks / units * v; ++o) {
              packed.push_back(o < outputs ? static_cast<float>(weights.at(group * outputs + o, i, tap / weights.w,
                                                                           tap % weights.w, 0.0))
                                           : 0.0f);
            }
          }
        }
      }
    }
  }
  Floats floats(packed.size());
  for (std::size_t i = 0; i < packed.size(); ++i) floats[i] = packed[i];
  return floats;
}

Floats pack_depthwise(const KernelTable& table, const reference::Tensor& weights) {
  const int v = table.vector_width, blocks = (weights.n + v - 1) / v, taps = weights.h * weights.w;
  Floats packed(static_cast<std::size_t>(blocks) * taps * v);
  for (int c = 0; c < weights.n; ++c) {
    for (int tap = 0; tap < taps; ++tap) {
      packed[static_cast<std::size_t>((c / v * taps + tap) * v + c % v)] =
          static_cast<float>(weights.at(c, 0, tap / weights.w, tap % weights.w, 0.0));
    }
  }
  return packed;
}

std::vector<std::vector<double>> winograd_g(int m) {
  if (m == 2) return {{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}};
  return {{1 / 4.0, 0, 0},
          {-1 / 6.0, -1 / 6.0, -1 / 6.0},
          {-1 / 6.0, 1 / 6.0, -1 / 6.0},
          {1 / 24.0, 1 / 12.0, 1 / 6.0},
          {1 / 24.0, -1 / 12.0, 1 / 6.0},
          {0, 0, 1}};
}

// [unit][position][channel][block of the unit][v] of G w G^T, as kernels/conv_winograd.hpp says.
Floats pack_winograd(const KernelTable& table, const reference::Tensor& weights, int m) {
  const auto g = winograd_g(m);
  const int size = m + 2, v = table.vector_width, blocks = (weights.n + v - 1) / v;
  const int units = (blocks + table.tile_blocks - 1) / table.tile_blocks;
  std::vector<float> packed;
  for (int unit = 0; unit < units; ++unit) {
    for (int position = 0; position < size * size; ++position) {
      for (int i = 0; i < weights.c; ++i) {
        for (int o = unit * blocks / units * v; o < (unit + 1) * blocks / units * v; ++o) {
          double sum = 0;
          for (int tap = 0; tap < 9 && o < weights.n; ++tap) {
            sum += g[static_cast<std::size_t>(position / size)][static_cast<std::size_t>(tap / 3)] *
                   weights.at(o, i, tap / 3, tap % 3, 0.0) *
                   g[static_cast<std::size_t>(position % size)][static_cast<std::size_t>(tap % 3)];
          }
          packed.push_back(static_cast<float>(sum));
        }
      }
    }
  }
  Floats floats(packed.size());
  for (std::size_t i = 0; i < packed.size(); ++i) floats[i] = packed[i];
  return floats;
}

}  // namespace powerlab::engine::test
