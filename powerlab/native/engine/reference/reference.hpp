// What every kernel must compute, written as plainly as possible: planar tensors, double precision, any shape.
//
// Tests hold the fast kernels against these; nothing else uses them.
#pragma once

#include <cstddef>
#include <vector>

namespace powerlab::engine::reference {

// A dense n x c x h x w tensor; reading outside h x w yields `outside`.
struct Tensor {
  int n, c, h, w;
  std::vector<double> values;

  Tensor(int n_, int c_, int h_, int w_)
      : n(n_), c(c_), h(h_), w(w_), values(static_cast<std::size_t>(n_) * c_ * h_ * w_) {}
  std::size_t index(int i, int channel, int y, int x) const {
    return ((static_cast<std::size_t>(i) * c + channel) * h + y) * w + x;
  }
  double& at(int i, int channel, int y, int x) { return values[index(i, channel, y, x)]; }
  double at(int i, int channel, int y, int x, double outside = 0) const {
    return y < 0 || y >= h || x < 0 || x >= w ? outside : values[index(i, channel, y, x)];
  }
};

struct Window {
  int kernel_h = 1, kernel_w = 1, stride_h = 1, stride_w = 1, dilation_h = 1, dilation_w = 1, top = 0, left = 0;
};

// What is below 0 is multiplied by the slope, then all is clamped.
struct Clamp {
  double low, high, slope = 1;
  bool adds_last = false;  // a residual, to what is clamped
};

// out = clamp(convolution + bias + residual), or clamp(convolution + bias) + residual; weights are
// O x I/groups x kh x kw; out's sizes say how far to go.
void conv(const Tensor& x, const Tensor& weights, const std::vector<double>& bias, const Tensor* residual,
          const Window& window, int groups, Clamp clamp, Tensor& out);

// Each pixel becomes scale_h x scale_w pixels.
void resize_nearest(const Tensor& x, int scale_h, int scale_w, Tensor& out);
void pool_max(const Tensor& x, const Window& window, Tensor& out);
void pool_average(const Tensor& x, const Window& window, bool count_padding, Tensor& out);
void pool_global_average(const Tensor& x, Tensor& out);
// (the sum of |x|^p)^(1/p)
void pool_lp(const Tensor& x, const Window& window, double p, Tensor& out);
// The sum of x, times a number of the row and one of the column of out.
void pool_shares(const Tensor& x, const Window& window, const std::vector<double>& rows,
                 const std::vector<double>& columns, Tensor& out);
// A pixel of x and its weight; a place below 0: there is none, and out has the value `outside`.
struct Tap {
  int place;
  double weight;
};
// Each pixel of out is the sum over the taps of its row and of its column.
void interpolate(const Tensor& x, const std::vector<std::vector<Tap>>& rows,
                 const std::vector<std::vector<Tap>>& columns, double outside, Tensor& out);
// y has the size of x, or one pixel a channel.
void multiply(const Tensor& x, const Tensor& y, Clamp clamp, Tensor& out);
void function(const Tensor& x, double (*f)(double), Tensor& out);
void add(const Tensor& x, const Tensor& y, Clamp clamp, Tensor& out);
void scale_shift(const Tensor& x, const std::vector<double>& scale, const std::vector<double>& shift, Clamp clamp,
                 Tensor& out);
void lrn(const Tensor& x, int size, double alpha, double beta, double offset, Tensor& out);
void softmax_over_rows(const Tensor& x, Tensor& out);
// x: what inputs and biases add to the gates, steps x 4 units x sequences x 1, gate after gate: input, output, forget,
// cell. weights: 4 units x units x 1 x 1. hidden, cells: the state before the first step, 1 x units x sequences x 1;
// cells become those after the last. out: hidden units after every step.
void lstm(const Tensor& x, const Tensor& weights, const Tensor& hidden, bool backwards, Tensor& cells, Tensor& out);
// GRU: x and weights as of an LSTM, gate after gate: update, reset, candidate. inside: what is added to the recurrent
// part of the candidate before it is reset; where `resets_before` says so, the hidden units are reset instead.
void gru(const Tensor& x, const Tensor& weights, const std::vector<double>& inside, const Tensor& hidden,
         bool resets_before, Tensor& out);

}  // namespace powerlab::engine::reference
