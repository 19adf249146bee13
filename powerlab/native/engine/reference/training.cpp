#include "reference/training.hpp"

#include <algorithm>
#include <cmath>

namespace powerlab::engine::reference {
namespace {

// Calls pixel(n, c, y, x) for each pixel of a tensor.
template <typename OfPixel>
void for_pixels(const Tensor& t, OfPixel pixel) {
  for (int n = 0; n < t.n; ++n) {
    for (int c = 0; c < t.c; ++c) {
      for (int y = 0; y < t.h; ++y) {
        for (int x = 0; x < t.w; ++x) pixel(n, c, y, x);
      }
    }
  }
}

void statistics(const Tensor& x, Channels& mean, Channels& variance) {
  const double pixels = static_cast<double>(x.n) * x.h * x.w;
  mean.assign(static_cast<std::size_t>(x.c), 0);
  variance.assign(static_cast<std::size_t>(x.c), 0);
  for_pixels(
      x, [&](int n, int c, int y, int at) { mean[static_cast<std::size_t>(c)] += x.at(n, c, y, at, 0.0) / pixels; });
  for_pixels(x, [&](int n, int c, int y, int at) {
    const double apart = x.at(n, c, y, at, 0.0) - mean[static_cast<std::size_t>(c)];
    variance[static_cast<std::size_t>(c)] += apart * apart / pixels;
  });
}

// Calls tap(y, x) for each pixel of the image that the window of the result's pixel (row, column) covers.
template <typename OfTap>
void for_window(const Window& window, const Tensor& image, int row, int column, OfTap tap) {
  for (int ky = 0; ky < window.kernel_h; ++ky) {
    for (int kx = 0; kx < window.kernel_w; ++kx) {
      const int y = row * window.stride_h + ky - window.top, x = column * window.stride_w + kx - window.left;
      if (y >= 0 && y < image.h && x >= 0 && x < image.w) tap(y, x);
    }
  }
}

}  // namespace

void conv_weight_gradient(const Tensor& x, const Tensor& dy, const Window& window, int groups, Tensor& dw) {
  const int outputs = dy.c / groups;
  for_pixels(dw, [&](int o, int i, int ky, int kx) {
    double sum = 0;
    for (int n = 0; n < dy.n; ++n) {
      for (int row = 0; row < dy.h; ++row) {
        for (int column = 0; column < dy.w; ++column) {
          const int y = row * window.stride_h + ky * window.dilation_h - window.top;
          const int at = column * window.stride_w + kx * window.dilation_w - window.left;
          sum += dy.at(n, o, row, column, 0.0) * x.at(n, o / outputs * dw.c + i, y, at, 0.0);
        }
      }
    }
    dw.at(o, i, ky, kx) = sum;
  });
}

void batch_norm(const Tensor& x, const Channels& scale, const Channels& shift, double epsilon, Channels& mean,
                Channels& variance, Tensor& out) {
  statistics(x, mean, variance);
  for_pixels(x, [&](int n, int c, int y, int at) {
    const auto channel = static_cast<std::size_t>(c);
    out.at(n, c, y, at) =
        (x.at(n, c, y, at, 0.0) - mean[channel]) / std::sqrt(variance[channel] + epsilon) * scale[channel] +
        shift[channel];
  });
}

void batch_norm_gradient(const Tensor& x, const Tensor& dy, const Channels& scale, double epsilon, Channels& of_scale,
                         Channels& of_shift, Tensor& dx) {
  Channels mean, variance;
  statistics(x, mean, variance);
  const double pixels = static_cast<double>(x.n) * x.h * x.w;
  of_scale.assign(scale.size(), 0);
  of_shift.assign(scale.size(), 0);
  const auto normalised = [&](int n, int c, int y, int at) {
    const auto channel = static_cast<std::size_t>(c);
    return (x.at(n, c, y, at, 0.0) - mean[channel]) / std::sqrt(variance[channel] + epsilon);
  };
  for_pixels(x, [&](int n, int c, int y, int at) {
    of_scale[static_cast<std::size_t>(c)] += dy.at(n, c, y, at, 0.0) * normalised(n, c, y, at);
    of_shift[static_cast<std::size_t>(c)] += dy.at(n, c, y, at, 0.0);
  });
  for_pixels(x, [&](int n, int c, int y, int at) {
    const auto channel = static_cast<std::size_t>(c);
    const double apart =
        dy.at(n, c, y, at, 0.0) - of_shift[channel] / pixels - normalised(n, c, y, at) * of_scale[channel] / pixels;
    dx.at(n, c, y, at) = apart * scale[channel] / std::sqrt(variance[channel] + epsilon);
  });
}

void lrn_gradient(const Tensor& x, const Tensor& dy, int size, double alpha, double beta, double offset, Tensor& dx) {
  const int before = (size - 1) / 2, behind = size / 2;
  const auto base = [&](int n, int c, int y, int at) {
    double sum = 0;
    for (int i = std::max(0, c - before); i <= std::min(x.c - 1, c + behind); ++i) {
      sum += x.at(n, i, y, at, 0.0) * x.at(n, i, y, at, 0.0);
    }
    return offset + alpha / size * sum;
  };
  for_pixels(dx, [&](int n, int c, int y, int at) {
    double slope = dy.at(n, c, y, at, 0.0) * std::pow(base(n, c, y, at), -beta);
    for (int i = std::max(0, c - behind); i <= std::min(x.c - 1, c + before); ++i) {
      slope -= dy.at(n, i, y, at, 0.0) * x.at(n, i, y, at, 0.0) * beta * std::pow(base(n, i, y, at), -beta - 1) * 2 *
               alpha / size * x.at(n, c, y, at, 0.0);
    }
    dx.at(n, c, y, at) = slope;
  });
}

void pool_max_gradient(const Tensor& x, const Tensor& dy, const Window& window, Tensor& dx) {
  for_pixels(dy, [&](int n, int c, int row, int column) {
    int best_y = -1, best_x = -1;
    for_window(window, x, row, column, [&](int y, int at) {
      if (best_y < 0 || x.at(n, c, y, at, 0.0) > x.at(n, c, best_y, best_x, 0.0)) {
        best_y = y;
        best_x = at;
      }
    });
    if (best_y >= 0) dx.at(n, c, best_y, best_x) += dy.at(n, c, row, column, 0.0);
  });
}

void pool_average_gradient(const Tensor& dy, const Window& window, bool count_padding, Tensor& dx) {
  for_pixels(dy, [&](int n, int c, int row, int column) {
    int count = 0;
    for_window(window, dx, row, column, [&](int, int) { ++count; });
    const double part = dy.at(n, c, row, column, 0.0) / (count_padding ? window.kernel_h * window.kernel_w : count);
    for_window(window, dx, row, column, [&](int y, int x) { dx.at(n, c, y, x) += part; });
  });
}

}  // namespace powerlab::engine::reference
