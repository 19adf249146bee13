#include "tests/packing.hpp"

namespace powerlab::engine::test {

// [unit][input block][kernel_h][kernel_w][lane][block of the unit][v], as kernels/convolution/conv_direct.hpp says.
Floats pack_direct(const KernelTable& table, const reference::Tensor& weights, int groups, int lanes, int unit_blocks) {
  const int v = table.vector_width, outputs = weights.n / groups, blocks = (outputs + v - 1) / v;
  const int units = (blocks + unit_blocks - 1) / unit_blocks;
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

// [block][kernel_h][channel of the group][kernel_w][v], as kernels/convolution/conv_grouped.hpp says.
Floats pack_grouped(const KernelTable& table, const reference::Tensor& weights) {
  const int v = table.vector_width, blocks = (weights.n + v - 1) / v;
  Floats packed(static_cast<std::size_t>(blocks) * weights.h * weights.c * weights.w * v);
  for (int o = 0; o < weights.n; ++o) {
    for (int y = 0; y < weights.h; ++y) {
      for (int i = 0; i < weights.c; ++i) {
        for (int x = 0; x < weights.w; ++x) {
          const int row = (o / v * weights.h + y) * weights.c + i;
          packed[static_cast<std::size_t>((row * weights.w + x) * v + o % v)] =
              static_cast<float>(weights.at(o, i, y, x, 0.0));
        }
      }
    }
  }
  return packed;
}

std::vector<std::vector<double>> winograd_g(int m, int taps) {
  if (m == 2) return {{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}};
  if (m == 4 && taps == 3) {
    return {{1 / 4.0, 0, 0},
            {-1 / 6.0, -1 / 6.0, -1 / 6.0},
            {-1 / 6.0, 1 / 6.0, -1 / 6.0},
            {1 / 24.0, 1 / 12.0, 1 / 6.0},
            {1 / 24.0, -1 / 12.0, 1 / 6.0},
            {0, 0, 1}};
  }
  // Eight points, each row a factor times the powers of its point; the last is infinity.
  const double rows[7][2] = {{1, 0},         {-2 / 9.0, 1},    {-2 / 9.0, -1},   {1 / 90.0, 2},
                             {1 / 90.0, -2}, {32 / 45.0, 0.5}, {32 / 45.0, -0.5}};
  std::vector<std::vector<double>> g(8, std::vector<double>(static_cast<std::size_t>(taps)));
  for (std::size_t i = 0; i < 7; ++i) {
    double value = rows[i][0];
    for (double& power : g[i]) {
      power = value;
      value *= rows[i][1];
    }
  }
  g[7].back() = 1;
  return g;
}

// [unit][position][channel][block of the unit][v] of G w G^T, as kernels/convolution/conv_winograd.hpp says.
Floats pack_winograd(const KernelTable& table, const reference::Tensor& weights, int m, int groups, int unit_blocks) {
  const int taps = weights.h, size = m + taps - 1, v = table.vector_width;
  const auto g = winograd_g(m, taps);
  const int outputs = weights.n / groups, blocks = (outputs + v - 1) / v;
  const int units = (blocks + unit_blocks - 1) / unit_blocks;
  std::vector<float> packed;
  for (int at = 0; at < groups * units * size * size * weights.c; ++at) {
    const int i = at % weights.c, position = at / weights.c % (size * size),
              unit = at / weights.c / (size * size) % units;
    const int first = at / weights.c / (size * size) / units * outputs;
    const auto& rows = g[static_cast<std::size_t>(position / size)];
    const auto& columns = g[static_cast<std::size_t>(position % size)];
    for (int o = unit * blocks / units * v; o < (unit + 1) * blocks / units * v; ++o) {
      double sum = 0;
      for (int tap = 0; tap < taps * taps && o < outputs; ++tap) {
        sum += rows[static_cast<std::size_t>(tap / taps)] * weights.at(first + o, i, tap / taps, tap % taps, 0.0) *
               columns[static_cast<std::size_t>(tap % taps)];
      }
      packed.push_back(static_cast<float>(sum));
    }
  }
  Floats floats(packed.size());
  for (std::size_t i = 0; i < packed.size(); ++i) floats[i] = packed[i];
  return floats;
}

}  // namespace powerlab::engine::test
