// Reductions of general tensors: the last number[0] axes of x (operand 1) are reduced, out (operand 0) has the axes
// before them. Sums of floats are made in double precision, in an order that only the sizes decide.
#pragma once

#include "kernels/strided/strided_functions.hpp"

namespace powerlab::engine::POWERLAB_TIER {

constexpr int kSums = 16;           // partial results along a line
constexpr std::int64_t kKept = 64;  // results made side by side where lines go along what is kept

// One reduction: what it begins with, how an element joins, how two partial results do, and what comes out.
namespace {
struct SumF {
  using In = float;
  using Part = double;
  static Part first() { return 0; }
  static Part with(Part part, In x) { return part + x; }
  static Part both(Part a, Part b) { return a + b; }
  static In result(const Numbers&, Part part, double) { return static_cast<In>(part); }
};
struct MeanF : SumF {
  static In result(const Numbers&, Part part, double count) { return static_cast<In>(part / count); }
};
struct LogSumF : SumF {
  static In result(const Numbers&, Part part, double) { return static_cast<In>(__builtin_log(part)); }
};
struct L1F : SumF {
  static Part with(Part part, In x) { return part + __builtin_fabs(static_cast<double>(x)); }
};
struct SquaresF : SumF {
  static Part with(Part part, In x) { return part + static_cast<double>(x) * x; }
};
struct L2F : SquaresF {
  static In result(const Numbers&, Part part, double) { return static_cast<In>(__builtin_sqrt(part)); }
};
struct ProductF : SumF {
  static Part first() { return 1; }
  static Part with(Part part, In x) { return part * x; }
  static Part both(Part a, Part b) { return a * b; }
};
struct MaxF : SumF {
  using Part = float;
  static Part first() { return -__builtin_inff(); }
  static Part with(Part part, In x) { return x > part || x != x ? x : part; }
  static Part both(Part a, Part b) { return with(a, b); }
  static In result(const Numbers&, Part part, double) { return part; }
};
struct MinF : MaxF {
  static Part first() { return __builtin_inff(); }
  static Part with(Part part, In x) { return x < part || x != x ? x : part; }
  static Part both(Part a, Part b) { return with(a, b); }
};

struct SumI {
  using In = Int;
  using Part = Bits;
  static Part first() { return 0; }
  static Part with(Part part, In x) { return part + bits_of(x); }
  static Part both(Part a, Part b) { return a + b; }
  static In result(const Numbers& k, Part part, double) { return wrapped(k, part); }
};
struct MeanI : SumI {
  static In result(const Numbers& k, Part part, double count) {
    return wrapped(k, bits_of(static_cast<Int>(part) / static_cast<Int>(count)));
  }
};
struct L1I : SumI {
  static Part with(Part part, In x) { return part + (x < 0 ? 0 - bits_of(x) : bits_of(x)); }
};
struct SquaresI : SumI {
  static Part with(Part part, In x) { return part + bits_of(x) * bits_of(x); }
};
struct ProductI : SumI {
  static Part first() { return 1; }
  static Part with(Part part, In x) { return part * bits_of(x); }
  static Part both(Part a, Part b) { return a * b; }
};
struct MaxI {
  using In = Int;
  using Part = Int;
  static Part first() { return INT64_MIN; }
  static Part with(Part part, In x) { return x > part ? x : part; }
  static Part both(Part a, Part b) { return with(a, b); }
  static In result(const Numbers&, Part part, double) { return part; }
};
struct MinI : MaxI {
  static Part first() { return INT64_MAX; }
  static Part with(Part part, In x) { return x < part ? x : part; }
  static Part both(Part a, Part b) { return with(a, b); }
};

}  // namespace

// How far apart, in elements, `unit` of the axes from .. to - 1 lies from the first.
static inline std::int64_t offset_of(const Strided& v, std::int64_t unit, std::int32_t from, std::int32_t to) {
  std::int64_t offset = 0;
  for (std::int32_t axis = to - 1; axis >= from; --axis) {
    offset += unit % v.size[axis] * v.stride[axis];
    unit /= v.size[axis];
  }
  return offset;
}

// Lines along what is reduced: one result after the other.
template <typename R>
static void reduce_rows(const Step& s, int thread, int threads) {
  using In = typename R::In;
  using Part = typename R::Part;
  const Strided &out = s.operands[0], &x = s.operands[1];
  const std::int32_t kept = x.rank - static_cast<std::int32_t>(s.numbers[0]), last = x.rank - 1;
  const std::int64_t count = x.size[last], step = x.stride[last], lines = elements(x, kept, last);
  const Numbers numbers{{s.numbers[2], s.numbers[3], 0, 0}, s.fault};
  const Range range = share(elements(x, 0, kept), thread, threads);
  for (std::int64_t unit = range.begin; unit < range.end; ++unit) {
    const In* first = static_cast<const In*>(x.data) + offset_of(x, unit, 0, kept);
    Part parts[kSums];
    for (int k = 0; k < kSums; ++k) parts[k] = R::first();
    for (std::int64_t line = 0; line < lines; ++line) {
      const In* row = first + offset_of(x, line, kept, last);
      std::int64_t i = 0;
      if (step == 1) {
        for (; i + kSums <= count; i += kSums) {
          for (int k = 0; k < kSums; ++k) parts[k] = R::with(parts[k], row[i + k]);
        }
      }
      for (; i < count; ++i) parts[i % kSums] = R::with(parts[i % kSums], row[i * step]);
    }
    for (int half = kSums / 2; half > 0; half /= 2) {
      for (int k = 0; k < half; ++k) parts[k] = R::both(parts[k], parts[k + half]);
    }
    static_cast<In*>(out.data)[offset_of(out, unit, 0, kept)] =
        R::result(numbers, parts[0], static_cast<double>(lines * count));
  }
}

// Lines along the last axis that is kept, of which number[1] says that its elements follow on each other: kKept results
// side by side.
template <typename R>
static void reduce_columns(const Step& s, int thread, int threads) {
  using In = typename R::In;
  using Part = typename R::Part;
  const Strided &out = s.operands[0], &x = s.operands[1];
  const std::int32_t kept = x.rank - static_cast<std::int32_t>(s.numbers[0]), last = kept - 1;
  const std::int64_t length = x.size[last], pieces = (length + kKept - 1) / kKept, reduced = elements(x, kept, x.rank);
  const Numbers numbers{{s.numbers[2], s.numbers[3], 0, 0}, s.fault};
  const Range range = share(elements(x, 0, last) * pieces, thread, threads);
  for (std::int64_t unit = range.begin; unit < range.end; ++unit) {
    const std::int64_t begin = unit % pieces * kKept, line = unit / pieces;
    const std::int64_t count = length - begin < kKept ? length - begin : kKept;
    const In* first = static_cast<const In*>(x.data) + offset_of(x, line, 0, last) + begin * x.stride[last];
    In* to = static_cast<In*>(out.data) + offset_of(out, line, 0, last) + begin * out.stride[last];
    Part parts[kKept];
    for (std::int64_t i = 0; i < count; ++i) parts[i] = R::first();
    for (std::int64_t r = 0; r < reduced; ++r) {
      const In* row = first + offset_of(x, r, kept, x.rank);
      if (x.stride[last] == 1) {
        for (std::int64_t i = 0; i < count; ++i) parts[i] = R::with(parts[i], row[i]);
      } else {
        for (std::int64_t i = 0; i < count; ++i) parts[i] = R::with(parts[i], row[i * x.stride[last]]);
      }
    }
    for (std::int64_t i = 0; i < count; ++i) {
      to[i * out.stride[last]] = R::result(numbers, parts[i], static_cast<double>(reduced));
    }
  }
}

// number[1] is 1 where lines go along what is kept.
template <typename R>
static void reduce(const Step& s, int thread, int threads) {
  if (s.numbers[1] != 0) {
    reduce_columns<R>(s, thread, threads);
  } else {
    reduce_rows<R>(s, thread, threads);
  }
}

// log(sum(exp(x))), the largest element taken out first so that nothing overflows.
static void reduce_log_sum_exp(const Step& s, int thread, int threads) {
  const Strided &out = s.operands[0], &x = s.operands[1];
  const std::int32_t kept = x.rank - static_cast<std::int32_t>(s.numbers[0]);
  const std::int64_t reduced = elements(x, kept, x.rank);
  const Range range = share(elements(x, 0, kept), thread, threads);
  for (std::int64_t unit = range.begin; unit < range.end; ++unit) {
    const float* first = static_cast<const float*>(x.data) + offset_of(x, unit, 0, kept);
    float most = -__builtin_inff();
    for (std::int64_t r = 0; r < reduced; ++r) most = MaxF::with(most, first[offset_of(x, r, kept, x.rank)]);
    double sum = 0;
    const bool finite = most - most == 0;
    for (std::int64_t r = 0; finite && r < reduced; ++r) {
      sum += __builtin_exp(static_cast<double>(first[offset_of(x, r, kept, x.rank)]) - most);
    }
    static_cast<float*>(out.data)[offset_of(out, unit, 0, kept)] =
        finite ? static_cast<float>(most + __builtin_log(sum)) : most;
  }
}

// Along the last axis: where its largest or smallest element is, number[2] telling which: 1 the largest; number[1] is 1
// where the last of several counts. Not-a-number is the largest and the smallest.
template <typename T>
static void arg_most(const Step& s, int thread, int threads) {
  const Strided &out = s.operands[0], &x = s.operands[1];
  const std::int32_t last = x.rank - 1;
  const bool largest = s.numbers[2] != 0, late = s.numbers[1] != 0;
  const Range range = share(elements(x, 0, last), thread, threads);
  for (std::int64_t unit = range.begin; unit < range.end; ++unit) {
    const T* row = static_cast<const T*>(x.data) + offset_of(x, unit, 0, last);
    std::int64_t best = 0;
    for (std::int64_t i = 1; i < x.size[last]; ++i) {
      const T value = row[i * x.stride[last]], known = row[best * x.stride[last]];
      const bool better = largest ? value > known : value < known;
      const bool no_number = value != value, known_is_none = known != known;
      const bool alike = value == known || (no_number && known_is_none);
      if (better || (late && alike) || (no_number && !known_is_none)) best = i;
    }
    static_cast<Int*>(out.data)[offset_of(out, unit, 0, last)] = best;
  }
}

// Sums of all elements up to each along the last axis; number[1] is 1 where its own is left out.
template <typename T, typename Part>
static void running_sum(const Step& s, int thread, int threads) {
  const Strided &out = s.operands[0], &x = s.operands[1];
  const std::int32_t last = x.rank - 1;
  const bool exclusive = s.numbers[1] != 0;
  const Numbers numbers{{s.numbers[2], s.numbers[3], 0, 0}, s.fault};
  const Range range = share(elements(x, 0, last), thread, threads);
  for (std::int64_t unit = range.begin; unit < range.end; ++unit) {
    const T* from = static_cast<const T*>(x.data) + offset_of(x, unit, 0, last);
    T* to = static_cast<T*>(out.data) + offset_of(out, unit, 0, last);
    Part sum = 0;
    for (std::int64_t i = 0; i < x.size[last]; ++i) {
      const Part before = sum;
      sum += static_cast<Part>(from[i * x.stride[last]]);
      const Part shown = exclusive ? before : sum;
      if constexpr (sizeof(T) == sizeof(float)) {
        to[i * out.stride[last]] = static_cast<T>(shown);
      } else {
        to[i * out.stride[last]] = wrapped(numbers, shown);
      }
    }
  }
}

// The first elements in order of size along the last axis, into operand 0, and where they were, into operand 1: both
// are the list that is kept in order while x (operand 2) is read. number[1] is 1 for the largest; of equal ones the
// first comes first, and what is not a number counts as the largest.
template <typename T>
static void top(const Step& s, int thread, int threads) {
  const Strided &values = s.operands[0], &places = s.operands[1], &x = s.operands[2];
  const std::int32_t last = x.rank - 1;
  const bool largest = s.numbers[1] != 0;
  const std::int64_t wanted = values.size[last];
  const Range range = share(elements(x, 0, last), thread, threads);
  for (std::int64_t unit = range.begin; unit < range.end; ++unit) {
    const T* row = static_cast<const T*>(x.data) + offset_of(x, unit, 0, last);
    T* list = static_cast<T*>(values.data) + offset_of(values, unit, 0, last);
    Int* at = static_cast<Int*>(places.data) + offset_of(places, unit, 0, last);
    const std::int64_t value_step = values.stride[last], place_step = places.stride[last];
    std::int64_t held = 0;
    for (std::int64_t i = 0; i < x.size[last]; ++i) {
      const T value = row[i * x.stride[last]];
      const auto before = [&](T other) {
        const bool no_number = value != value, other_is_none = other != other;
        if (no_number != other_is_none) return largest == no_number;
        return largest ? value > other : value < other;
      };
      std::int64_t to = held;
      if (held == wanted && !before(list[(held - 1) * value_step])) continue;
      if (held < wanted)
        ++held;
      else
        --to;
      for (; to > 0 && before(list[(to - 1) * value_step]); --to) {
        list[to * value_step] = list[(to - 1) * value_step];
        at[to * place_step] = at[(to - 1) * place_step];
      }
      list[to * value_step] = value;
      at[to * place_step] = i;
    }
  }
}

}  // namespace powerlab::engine::POWERLAB_TIER
