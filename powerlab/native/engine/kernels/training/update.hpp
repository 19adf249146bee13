// How gradients move weights: element by element, each read and written once, whatever the optimizer keeps of it. The
// definitions are PyTorch's (https://pytorch.org/docs/stable/optim.html). What is written may lie where what is read
// does.
//
// operands: what is written, then the weight, its gradient and what is kept, all of the same sizes; then the numbers of
// the step, one each. alpha: how much of the gradient counts, as where it is a sum over slices.
#pragma once

#include <math.h>

#include "kernels/strided/strided.hpp"

namespace powerlab::engine::POWERLAB_TIER {

constexpr int kMostTensors = 7;

struct UpdateLine {
  float* data[kMostTensors];
};

// Calls of_vector(line, at, lanes) for each vector that falls to this thread, at being where it begins in the line.
template <typename OfVector>
static inline void for_updates(const Step& s, int tensors, int thread, int threads, OfVector of_vector) {
  const Strided& first = s.operands[0];
  const int last = first.rank - 1;
  const std::int64_t length = first.size[last], pieces = (length + kPiece - 1) / kPiece;
  const Range own = share(elements(first, 0, last) * pieces, thread, threads);
  for (std::int64_t unit = own.begin; unit < own.end; ++unit) {
    const std::int64_t begin = unit % pieces * kPiece, count = length - begin < kPiece ? length - begin : kPiece;
    UpdateLine line;
    for (int k = 0; k < tensors; ++k) {
      std::int64_t rest = unit / pieces, offset = begin;
      for (int axis = last - 1; axis >= 0; --axis) {
        offset += rest % first.size[axis] * s.operands[k].stride[axis];
        rest /= first.size[axis];
      }
      line.data[k] = static_cast<float*>(s.operands[k].data) + offset;
    }
    std::int64_t at = 0;
    for (; at + kWidth <= count; at += kWidth) of_vector(line, at, kWidth);
    if (at < count) of_vector(line, at, static_cast<int>(count - at));
  }
}

static inline Vec load_some(const float* from, int lanes) {
  return lanes == kWidth ? load_unaligned(from) : load_lanes(from, lanes);
}
static inline void store_some(float* to, Vec v, int lanes) {
  if (lanes == kWidth) {
    store_unaligned(to, v);
  } else {
    store_lanes(to, v, lanes);
  }
}

static inline float number_of(const Step& s, int operand) {
  return *static_cast<const float*>(s.operands[operand].data);
}

// Numbers: rate, momentum, decay. With momentum the velocity is the second of what is written, and what is kept.
// numbers[0]: whether the gradient is taken ahead, as Nesterov's method does.
template <bool Momentum>
static void sgd_update(const Step& s, int thread, int threads) {
  constexpr int kWritten = Momentum ? 2 : 1, kTensors = 2 * kWritten + 1;
  const float rate = number_of(s, kTensors), momentum = number_of(s, kTensors + 1), decay = number_of(s, kTensors + 2);
  const float share_of_gradient = s.alpha;
  const bool ahead = s.numbers[0] != 0;
  for_updates(s, kTensors, thread, threads, [&](const UpdateLine& line, std::int64_t at, int lanes) {
    const Vec weight = load_some(line.data[kWritten] + at, lanes);
    Vec way = load_some(line.data[kWritten + 1] + at, lanes) * share_of_gradient;
    if (decay != 0) way += weight * decay;
    if constexpr (Momentum) {
      const Vec velocity = load_some(line.data[kWritten + 2] + at, lanes) * momentum + way;
      store_some(line.data[1] + at, velocity, lanes);
      way = ahead ? way + velocity * momentum : velocity;
    }
    store_some(line.data[0] + at, weight - way * rate, lanes);
  });
}

static inline Vec roots(Vec v) {
  Vec made{};
  for (int lane = 0; lane < kWidth; ++lane) made[lane] = __builtin_sqrtf(v[lane]);
  return made;
}

// Numbers: rate over what makes up for the first moment's beginning at 0, one over the root of the same of the second,
// beta1, 1 - beta1, beta2, 1 - beta2, epsilon, decay. Written and kept: the moments, behind the weight.
// numbers[0]: whether the weight is multiplied by decay itself, and decay not added to the gradient.
static void adam_update(const Step& s, int thread, int threads) {
  constexpr int kTensors = 7;
  float number[8];
  for (int i = 0; i < 8; ++i) number[i] = number_of(s, kTensors + i);
  const float share_of_gradient = s.alpha;
  const bool decoupled = s.numbers[0] != 0;
  for_updates(s, kTensors, thread, threads, [&](const UpdateLine& line, std::int64_t at, int lanes) {
    Vec weight = load_some(line.data[3] + at, lanes);
    Vec gradient = load_some(line.data[4] + at, lanes) * share_of_gradient;
    if (decoupled) {
      weight *= number[7];
    } else if (number[7] != 0) {
      gradient += weight * number[7];
    }
    const Vec first = load_some(line.data[5] + at, lanes) * number[2] + gradient * number[3];
    const Vec second = load_some(line.data[6] + at, lanes) * number[4] + gradient * gradient * number[5];
    const Vec wide = roots(second) * number[1] + number[6];
    store_some(line.data[0] + at, weight - first * number[0] / wide, lanes);
    store_some(line.data[1] + at, first, lanes);
    store_some(line.data[2] + at, second, lanes);
  });
}

}  // namespace powerlab::engine::POWERLAB_TIER
