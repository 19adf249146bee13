// What the kernels of training must compute, as plainly as possible: see reference.hpp.
#pragma once

#include <vector>

#include "reference/reference.hpp"

namespace powerlab::engine::reference {

// dw is O x I/groups x kh x kw: the gradient of the weights of a convolution of x, dy that of its result.
void conv_weight_gradient(const Tensor& x, const Tensor& dy, const Window& window, int groups, Tensor& dw);

// One number a channel.
using Channels = std::vector<double>;

// out = (x - mean) / deviation * scale + shift, by the statistics of x.
void batch_norm(const Tensor& x, const Channels& scale, const Channels& shift, double epsilon, Channels& mean,
                Channels& variance, Tensor& out);
void batch_norm_gradient(const Tensor& x, const Tensor& dy, const Channels& scale, double epsilon, Channels& of_scale,
                         Channels& of_shift, Tensor& dx);

// dx of out = x * (offset + alpha / size * sum of the squares of the size channels around)^-beta.
void lrn_gradient(const Tensor& x, const Tensor& dy, int size, double alpha, double beta, double offset, Tensor& dx);

// The gradient of a window's maximum goes to the first pixel that has it, that of an average to all of its pixels.
void pool_max_gradient(const Tensor& x, const Tensor& dy, const Window& window, Tensor& dx);
void pool_average_gradient(const Tensor& dy, const Window& window, bool count_padding, Tensor& dx);

}  // namespace powerlab::engine::reference
