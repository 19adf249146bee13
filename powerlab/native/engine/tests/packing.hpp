// Weights in the order the kernels read them, packed element by element as their headers say, without regard to speed.
#pragma once

#include <vector>

#include "tests/tensors.hpp"

namespace powerlab::engine::test {

Floats pack_direct(const KernelTable& table, const reference::Tensor& weights, int groups, int lanes, int unit_blocks);
Floats pack_depthwise(const KernelTable& table, const reference::Tensor& weights);
Floats pack_grouped(const KernelTable& table, const reference::Tensor& weights);
Floats pack_winograd(const KernelTable& table, const reference::Tensor& weights, int m, int groups, int unit_blocks);

// G of F(m, taps), as the paper gives it.
std::vector<std::vector<double>> winograd_g(int m, int taps = 3);

}  // namespace powerlab::engine::test
