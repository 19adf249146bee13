// Plain counterparts of the kernels on bytes: one loop each, in integers, and the one way in which results are rounded.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/reference.hpp"

namespace powerlab::engine::reference {

// [n][c][h][w] bytes of one scale.
struct ByteTensor {
  int n, c, h, w;
  std::vector<std::uint8_t> values;
  ByteTensor(int images, int channels, int rows, int columns)
      : n(images), c(channels), h(rows), w(columns), values(static_cast<std::size_t>(n) * c * h * w) {}
  std::uint8_t& at(int image, int channel, int y, int x) {
    return values[((static_cast<std::size_t>(image) * c + channel) * h + y) * w + x];
  }
  int at(int image, int channel, int y, int x, int outside) const {
    if (y < 0 || y >= h || x < 0 || x >= w) return outside;
    return values[((static_cast<std::size_t>(image) * c + channel) * h + y) * w + x];
  }
};

// How steps of the output become bytes, and what a residual adds; see kernels/bytes/requantize.hpp.
struct Rounding {
  float low, high;
  int zero;
  float y_scale;
  int y_zero;
  float slope = 1;
};
std::uint8_t rounded(float steps, const Rounding& rounding);
float with_residual(float steps, int y, const Rounding& rounding);

// sums: what each output begins with, then x * weights over all taps; pixels outside count as x_zero. weights:
// [out][in / groups][kernel_h][kernel_w]. With floats, out's values are left alone and `floats` gets the products.
void conv_bytes(const ByteTensor& x, const std::vector<std::int8_t>& weights, const std::vector<std::int32_t>& begin,
                const std::vector<float>& multipliers, const ByteTensor* residual, const Window& window, int groups,
                int x_zero, const Rounding& rounding, ByteTensor& out, std::vector<float>* floats);
void pool_max_bytes(const ByteTensor& x, const Window& window, ByteTensor& out);
void pool_average_bytes(const ByteTensor& x, const Window& window, bool count_padding, int x_zero, float ratio,
                        const Rounding& rounding, ByteTensor& out);
void add_bytes(const ByteTensor& x, const ByteTensor* y, int x_zero, float x_ratio, const Rounding& rounding,
               ByteTensor& out);

// x times a factor a channel and a shift more.
void scale_shift_bytes(const ByteTensor& x, const std::vector<float>& factors, const std::vector<float>& shifts,
                       const Rounding& rounding, ByteTensor& out);

// Every pixel of x repeated in so many rows and columns.
void resize_bytes(const ByteTensor& x, int rows, int columns, ByteTensor& out);

}  // namespace powerlab::engine::reference
