// General tensors, element by element: any sizes and strides, float32 and int64, one function of one element of each
// operand. The operands of such a step all have the sizes of the first, which is written; what is broadcast has strides
// of 0. Python has joined the axes that follow on each other, so that lines, runs along the last axis, are long.
#pragma once

#include "kernels/vec.hpp"

namespace powerlab::engine::POWERLAB_TIER {

constexpr int kMostOperands = 4;       // of a step that goes element by element
constexpr std::int64_t kPiece = 4096;  // elements of a line taken at a time; the same for any number of threads

// What a function may know beside its elements.
struct Numbers {
  std::int64_t number[4];
  std::int32_t* fault;
};

static inline void set_fault(std::int32_t* fault, Fault what) { __atomic_store_n(fault, what, __ATOMIC_RELAXED); }

// A piece of a line of each operand: where it begins, how far apart its elements are, in elements, and how many.
struct Line {
  void* data[kMostOperands];
  std::int64_t stride[kMostOperands];
  std::int64_t count;
};

static inline std::int64_t element_bytes(Element element) { return element == Element::kInt ? 8 : 4; }

// How many elements the axes from .. to - 1 have together.
static inline std::int64_t elements(const Strided& v, std::int32_t from, std::int32_t to) {
  std::int64_t product = 1;
  for (std::int32_t axis = from; axis < to; ++axis) product *= v.size[axis];
  return product;
}

// Calls `line` for each piece of a line of the first operand that falls to this thread.
static void for_lines(const Step& s, int thread, int threads, void (*line)(const Numbers&, const Line&)) {
  const Strided& out = s.operands[0];
  const int last = out.rank - 1, operands = s.operand_count;
  const std::int64_t length = out.size[last], pieces = (length + kPiece - 1) / kPiece;
  const Range range = share(elements(out, 0, last) * pieces, thread, threads);
  const Numbers numbers{{s.numbers[0], s.numbers[1], s.numbers[2], s.numbers[3]}, s.fault};
  for (std::int64_t unit = range.begin; unit < range.end; ++unit) {
    const std::int64_t first = unit % pieces * kPiece;
    Line at;
    at.count = length - first < kPiece ? length - first : kPiece;
    std::int64_t offset[kMostOperands];
    for (int k = 0; k < operands; ++k) {
      at.stride[k] = s.operands[k].stride[last];
      offset[k] = first * at.stride[k];
    }
    std::int64_t rest = unit / pieces;
    for (int axis = last - 1; axis >= 0; --axis) {
      const std::int64_t index = rest % out.size[axis];
      rest /= out.size[axis];
      for (int k = 0; k < operands; ++k) offset[k] += index * s.operands[k].stride[axis];
    }
    for (int k = 0; k < operands; ++k) {
      const Strided& operand = s.operands[k];
      at.data[k] = static_cast<char*>(operand.data) + offset[k] * element_bytes(operand.element);
    }
    line(numbers, at);
  }
}

// A whole line by F(numbers, element of the second operand, of the third, ...). Without a name of its own, so that no
// tier shares it with another.
namespace {
template <auto F>
struct Each;

template <typename Out, typename X, Out (*F)(const Numbers&, X)>
struct Each<F> {
  static void line(const Numbers& given, const Line& at) {
    const Numbers numbers = given;
    Out* __restrict out = static_cast<Out*>(at.data[0]);
    const X* __restrict x = static_cast<const X*>(at.data[1]);
    const std::int64_t to = at.stride[0], from = at.stride[1];
    if (to == 1 && from == 1) {
      for (std::int64_t i = 0; i < at.count; ++i) out[i] = F(numbers, x[i]);
    } else {
      for (std::int64_t i = 0; i < at.count; ++i) out[i * to] = F(numbers, x[i * from]);
    }
  }
};

template <typename Out, typename X, typename Y, Out (*F)(const Numbers&, X, Y)>
struct Each<F> {
  static void line(const Numbers& given, const Line& at) {
    const Numbers numbers = given;
    Out* __restrict out = static_cast<Out*>(at.data[0]);
    const X* __restrict x = static_cast<const X*>(at.data[1]);
    const Y* __restrict y = static_cast<const Y*>(at.data[2]);
    const std::int64_t to = at.stride[0], x_step = at.stride[1], y_step = at.stride[2];
    if (to == 1 && x_step == 1 && y_step == 1) {
      for (std::int64_t i = 0; i < at.count; ++i) out[i] = F(numbers, x[i], y[i]);
    } else if (to == 1 && x_step == 1 && y_step == 0) {
      const Y same = y[0];
      for (std::int64_t i = 0; i < at.count; ++i) out[i] = F(numbers, x[i], same);
    } else if (to == 1 && x_step == 0 && y_step == 1) {
      const X same = x[0];
      for (std::int64_t i = 0; i < at.count; ++i) out[i] = F(numbers, same, y[i]);
    } else {
      for (std::int64_t i = 0; i < at.count; ++i) out[i * to] = F(numbers, x[i * x_step], y[i * y_step]);
    }
  }
};

template <typename Out, typename X, typename Y, typename Z, Out (*F)(const Numbers&, X, Y, Z)>
struct Each<F> {
  static void line(const Numbers& given, const Line& at) {
    const Numbers numbers = given;
    Out* __restrict out = static_cast<Out*>(at.data[0]);
    const X* __restrict x = static_cast<const X*>(at.data[1]);
    const Y* __restrict y = static_cast<const Y*>(at.data[2]);
    const Z* __restrict z = static_cast<const Z*>(at.data[3]);
    const std::int64_t to = at.stride[0], x_step = at.stride[1], y_step = at.stride[2], z_step = at.stride[3];
    if (to == 1 && x_step == 1 && y_step == 1 && z_step == 1) {
      for (std::int64_t i = 0; i < at.count; ++i) out[i] = F(numbers, x[i], y[i], z[i]);
    } else if (to == 1 && x_step == 1 && y_step == 0 && z_step == 1) {
      const Y same = y[0];
      for (std::int64_t i = 0; i < at.count; ++i) out[i] = F(numbers, x[i], same, z[i]);
    } else if (to == 1 && x_step == 1 && y_step == 1 && z_step == 0) {
      const Z same = z[0];
      for (std::int64_t i = 0; i < at.count; ++i) out[i] = F(numbers, x[i], y[i], same);
    } else if (to == 1 && x_step == 1 && y_step == 0 && z_step == 0) {
      const Y same_y = y[0];
      const Z same_z = z[0];
      for (std::int64_t i = 0; i < at.count; ++i) out[i] = F(numbers, x[i], same_y, same_z);
    } else {
      for (std::int64_t i = 0; i < at.count; ++i) {
        out[i * to] = F(numbers, x[i * x_step], y[i * y_step], z[i * z_step]);
      }
    }
  }
};

}  // namespace

template <auto F>
static void each(const Step& s, int thread, int threads) {
  for_lines(s, thread, threads, &Each<F>::line);
}

}  // namespace powerlab::engine::POWERLAB_TIER
