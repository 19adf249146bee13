// Matrices whose rows lie apart, to see that a kernel keeps to them.
#pragma once

#include "tests/test.hpp"

namespace powerlab::engine::test {

// Rows of numbers, and what lies between them.
struct Apart {
  static constexpr int kGap = 3;
  std::int64_t row;
  Floats memory;
  Strided tensor;
  Apart(int rows, int columns)
      : row(columns + kGap),
        memory(static_cast<std::size_t>(rows) * static_cast<std::size_t>(row), 77.0f),
        tensor(strided(memory.data(), {rows, columns}, {row, 1})) {}
  float& at(int i, int j) { return memory.data()[i * row + j]; }
  void fill(Random& random) {
    for (std::int64_t i = 0; i < tensor.size[0]; ++i) {
      for (std::int64_t j = 0; j < tensor.size[1]; ++j)
        at(static_cast<int>(i), static_cast<int>(j)) = static_cast<float>(random.next());
    }
  }
  int written_between() {
    int count = 0;
    for (std::int64_t i = 0; i < tensor.size[0]; ++i) {
      for (std::int64_t j = tensor.size[1]; j < row; ++j)
        count += at(static_cast<int>(i), static_cast<int>(j)) != 77.0f;
    }
    return count;
  }
};

}  // namespace powerlab::engine::test
