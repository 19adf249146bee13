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

// What is no whole vector is copied with some of what is before it: parts of vectors take longer where there are no
// masks.
static inline void copy_run(float* to, const float* from, std::int64_t count) {
  if (count < kWidth) {
    store_lanes(to, load_lanes(from, static_cast<int>(count)), static_cast<int>(count));
    return;
  }
  std::int64_t i = 0;
  for (; i + kWidth <= count; i += kWidth) store_unaligned(to + i, load_unaligned(from + i));
  if (i < count) store_unaligned(to + count - kWidth, load_unaligned(from + count - kWidth));
}

// Whether lines are shorter than it takes long to begin one, of floats, and written one after the other.
constexpr std::int64_t kShortLine = 64;
static inline bool has_short_lines(const Step& s) {
  const Strided& out = s.operands[0];
  if (out.rank < 2 || out.size[out.rank - 1] >= kShortLine) return false;
  std::int64_t step = 1;
  for (int axis = out.rank - 1; axis >= 0; --axis) {
    if (out.stride[axis] != step) return false;
    step *= out.size[axis];
  }
  for (int k = 0; k < s.operand_count; ++k) {
    if (s.operands[k].element != Element::kFloat) return false;
  }
  return true;
}

// Writes `count` lines of a tensor one after the other, and up to a vector more.
static inline void gather_lines(const Strided& v, std::int64_t first, std::int64_t count, float* to) {
  const int last = v.rank - 1;
  const std::int64_t length = v.size[last], step = v.stride[last];
  std::int64_t index[kMostAxes], rest = first;
  const float* from = static_cast<const float*>(v.data);
  for (int axis = last - 1; axis >= 0; --axis) {
    index[axis] = rest % v.size[axis];
    rest /= v.size[axis];
    from += index[axis] * v.stride[axis];
  }
  for (std::int64_t i = 0; i < count; ++i, to += length) {
    if (step == 0) {
      const Vec same = broadcast(*from);
      for (std::int64_t j = 0; j < length; j += kWidth) store_unaligned(to + j, same);
    } else if (step == 1) {
      copy_run(to, from, length);
    } else {
      for (std::int64_t j = 0; j < length; ++j) to[j] = from[j * step];
    }
    for (int axis = last - 1; axis >= 0; --axis) {
      from += v.stride[axis];
      if (++index[axis] < v.size[axis]) break;
      from -= v.size[axis] * v.stride[axis];
      index[axis] = 0;
    }
  }
}

// Calls `line` for as many short lines at a time as fit into a piece; operands that are broadcast, or lie otherwise
// than the first, are gathered before.
static void for_short_lines(const Step& s, int thread, int threads, void (*line)(const Numbers&, const Line&)) {
  const Strided& out = s.operands[0];
  const std::int64_t length = out.size[out.rank - 1], lines = elements(out, 0, out.rank - 1);
  const std::int64_t together = kPiece / length;
  const Range range = share((lines + together - 1) / together, thread, threads);
  const Numbers numbers{{s.numbers[0], s.numbers[1], s.numbers[2], s.numbers[3]}, s.fault};
  alignas(64) float gathered[kMostOperands][kPiece + kWidth];
  bool alike[kMostOperands];
  for (int k = 0; k < s.operand_count; ++k) {
    alike[k] = true;
    for (int axis = 0; axis < out.rank; ++axis) alike[k] &= s.operands[k].stride[axis] == out.stride[axis];
  }
  for (std::int64_t unit = range.begin; unit < range.end; ++unit) {
    const std::int64_t first = unit * together, count = lines - first < together ? lines - first : together;
    Line at;
    at.count = count * length;
    for (int k = 0; k < s.operand_count; ++k) {
      at.stride[k] = 1;
      at.data[k] = alike[k] ? static_cast<float*>(s.operands[k].data) + first * length : gathered[k];
      if (!alike[k]) gather_lines(s.operands[k], first, count, gathered[k]);
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
  (has_short_lines(s) ? for_short_lines : for_lines)(s, thread, threads, &Each<F>::line);
}

}  // namespace powerlab::engine::POWERLAB_TIER
