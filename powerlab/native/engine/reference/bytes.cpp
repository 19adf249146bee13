#include "reference/bytes.hpp"

#include <algorithm>
#include <cmath>

namespace powerlab::engine::reference {
namespace {

// Products and sums rounded one by one, whatever the compiler would like to contract.
float product(float a, float b) {
  volatile float made = a * b;
  return made;
}
float sum(float a, float b) {
  volatile float made = a + b;
  return made;
}

template <class F>
void for_each_byte(const ByteTensor& out, F&& f) {
  for (int n = 0; n < out.n; ++n) {
    for (int c = 0; c < out.c; ++c) {
      for (int y = 0; y < out.h; ++y) {
        for (int x = 0; x < out.w; ++x) f(n, c, y, x);
      }
    }
  }
}

}  // namespace

std::uint8_t rounded(float steps, const Rounding& rounding) {
  const float inside = std::min(std::max(steps, rounding.low), rounding.high);
  return static_cast<std::uint8_t>(static_cast<int>(std::nearbyint(inside)) + rounding.zero);
}

float with_residual(float steps, int y, const Rounding& rounding) {
  return sum(steps, product(static_cast<float>(y - rounding.y_zero), rounding.y_scale));
}

void conv_bytes(const ByteTensor& x, const std::vector<std::int8_t>& weights, const std::vector<std::int32_t>& begin,
                const std::vector<float>& multipliers, const ByteTensor* residual, const Window& window, int groups,
                int x_zero, const Rounding& rounding, ByteTensor& out, std::vector<float>* floats) {
  const int inputs = x.c / groups, outputs = out.c / groups;
  std::size_t place = 0;
  for_each_byte(out, [&](int n, int c, int oy, int ox) {
    std::int32_t total = begin[static_cast<std::size_t>(c)];
    std::size_t at = static_cast<std::size_t>(c) * inputs * window.kernel_h * window.kernel_w;
    for (int i = 0; i < inputs; ++i) {
      for (int ky = 0; ky < window.kernel_h; ++ky) {
        for (int kx = 0; kx < window.kernel_w; ++kx) {
          const int y = oy * window.stride_h - window.top + ky * window.dilation_h;
          const int column = ox * window.stride_w - window.left + kx * window.dilation_w;
          total += x.at(n, c / outputs * inputs + i, y, column, x_zero) * weights[at++];
        }
      }
    }
    float steps = product(static_cast<float>(total), multipliers[static_cast<std::size_t>(c)]);
    if (steps < 0) steps = product(steps, rounding.slope);
    if (residual) steps = with_residual(steps, residual->at(n, c, oy, ox, 0), rounding);
    if (floats) {
      (*floats)[place++] = std::min(std::max(steps, rounding.low), rounding.high);
    } else {
      out.at(n, c, oy, ox) = rounded(steps, rounding);
    }
  });
}

void pool_max_bytes(const ByteTensor& x, const Window& window, ByteTensor& out) {
  for_each_byte(out, [&](int n, int c, int oy, int ox) {
    int most = 0;
    for (int ky = 0; ky < window.kernel_h; ++ky) {
      for (int kx = 0; kx < window.kernel_w; ++kx) {
        most = std::max(most,
                        x.at(n, c, oy * window.stride_h - window.top + ky, ox * window.stride_w - window.left + kx, 0));
      }
    }
    out.at(n, c, oy, ox) = static_cast<std::uint8_t>(most);
  });
}

void pool_average_bytes(const ByteTensor& x, const Window& window, bool count_padding, int x_zero, float ratio,
                        const Rounding& rounding, ByteTensor& out) {
  for_each_byte(out, [&](int n, int c, int oy, int ox) {
    int total = 0, inside = 0;
    for (int ky = 0; ky < window.kernel_h; ++ky) {
      for (int kx = 0; kx < window.kernel_w; ++kx) {
        const int value =
            x.at(n, c, oy * window.stride_h - window.top + ky, ox * window.stride_w - window.left + kx, -1);
        if (value < 0) continue;
        total += value - x_zero;
        ++inside;
      }
    }
    const int divisor = count_padding ? window.kernel_h * window.kernel_w : inside;
    volatile const float factor = ratio / static_cast<float>(divisor);
    out.at(n, c, oy, ox) = rounded(product(static_cast<float>(total), factor), rounding);
  });
}

void add_bytes(const ByteTensor& x, const ByteTensor* y, int x_zero, float x_ratio, const Rounding& rounding,
               ByteTensor& out) {
  for_each_byte(out, [&](int n, int c, int row, int column) {
    float steps = product(static_cast<float>(x.at(n, c, row, column, 0) - x_zero), x_ratio);
    if (y) steps = with_residual(steps, y->at(n, c, row, column, 0), rounding);
    out.at(n, c, row, column) = rounded(steps, rounding);
  });
}

void scale_shift_bytes(const ByteTensor& x, const std::vector<float>& factors, const std::vector<float>& shifts,
                       const Rounding& rounding, ByteTensor& out) {
  for_each_byte(out, [&](int n, int c, int row, int column) {
    const auto at = static_cast<std::size_t>(c);
    const float scaled = product(static_cast<float>(x.at(n, c, row, column, 0)), factors[at]);
    out.at(n, c, row, column) = rounded(sum(scaled, shifts[at]), rounding);
  });
}

void resize_bytes(const ByteTensor& x, int rows, int columns, ByteTensor& out) {
  for_each_byte(out, [&](int n, int c, int row, int column) {
    out.at(n, c, row, column) = static_cast<std::uint8_t>(x.at(n, c, row / rows, column / columns, 0));
  });
}

}  // namespace powerlab::engine::reference
