// Elements picked from and put to places that integers name: Gather, GatherElements, GatherND, ScatterElements,
// ScatterND. Operands 0 .. 2 have the sizes over which the kernel walks; operand 3 is the tensor that is indexed, with
// its indexed axes alone, of which operand 0 (put) or 1 (take) has strides of 0. number[0] is how far apart the indices
// of one place lie, one for each indexed axis. An index below 0 counts from the end; one outside is a fault, and what
// it picks or puts is nobody's to rely on.
#pragma once

#include "kernels/strided/strided_functions.hpp"

namespace powerlab::engine::POWERLAB_TIER {

// Where the indexed tensor's element lies, in elements, by the indices from `index` on.
static inline Int place_of(const Strided& indexed, const Int* index, Int apart, std::int32_t* fault) {
  Int place = 0;
  for (std::int32_t axis = 0; axis < indexed.rank; ++axis) {
    Int at = index[axis * apart];
    if (at < 0) at += indexed.size[axis];
    if (at < 0 || at >= indexed.size[axis]) {
      set_fault(fault, kIndexOutside);
      at = 0;
    }
    place += at * indexed.stride[axis];
  }
  return place;
}

// The offsets of the operands 0 .. 2 at `unit` of the axes before `axes`.
static inline void offsets_of(const Step& s, std::int64_t unit, std::int32_t axes, std::int64_t* offset) {
  offset[0] = offset[1] = offset[2] = 0;
  for (std::int32_t axis = axes - 1; axis >= 0; --axis) {
    const std::int64_t at = unit % s.operands[0].size[axis];
    unit /= s.operands[0].size[axis];
    for (int k = 0; k < 3; ++k) offset[k] += at * s.operands[k].stride[axis];
  }
}

// out = x[index]; a line whose elements have one index is copied.
template <typename T>
static void take(const Step& s, int thread, int threads) {
  const Strided &out = s.operands[0], &x = s.operands[1], &index = s.operands[2], &indexed = s.operands[3];
  const std::int32_t last = out.rank - 1;
  const Range lines = share(elements(out, 0, last), thread, threads);
  const Int apart = s.numbers[0];
  for (std::int64_t line = lines.begin; line < lines.end; ++line) {
    std::int64_t offset[3];
    offsets_of(s, line, last, offset);
    T* __restrict to = static_cast<T*>(out.data) + offset[0];
    const T* __restrict from = static_cast<const T*>(x.data) + offset[1];
    const Int* at = static_cast<const Int*>(index.data) + offset[2];
    const std::int64_t count = out.size[last], to_step = out.stride[last], from_step = x.stride[last];
    if (index.stride[last] == 0) {
      from += place_of(indexed, at, apart, s.fault);
      if (to_step == 1 && from_step == 1) {
        for (std::int64_t i = 0; i < count; ++i) to[i] = from[i];
      } else {
        for (std::int64_t i = 0; i < count; ++i) to[i * to_step] = from[i * from_step];
      }
    } else {
      for (std::int64_t i = 0; i < count; ++i) {
        to[i * to_step] = from[i * from_step + place_of(indexed, at + i * index.stride[last], apart, s.fault)];
      }
    }
  }
}

enum Update : std::int64_t { kReplace, kAdd, kMultiply, kLeast, kMost };

static inline float updated(Int how, float old, float given, const Numbers&) {
  return how == kAdd        ? old + given
         : how == kMultiply ? old * given
         : how == kLeast    ? (old < given ? old : given)
         : how == kMost     ? (old > given ? old : given)
                            : given;
}
static inline Int updated(Int how, Int old, Int given, const Numbers& k) {
  return how == kAdd        ? wrapped(k, bits_of(old) + bits_of(given))
         : how == kMultiply ? wrapped(k, bits_of(old) * bits_of(given))
         : how == kLeast    ? (old < given ? old : given)
         : how == kMost     ? (old > given ? old : given)
                            : given;
}

// The elements of an update that one thread makes: `count` of the axes that threads share, from `first` on.
template <typename T>
static inline void put_line(const Step& s, Int how, const Numbers& numbers, T* to, const T* from, std::int64_t count) {
  const std::int32_t axis = static_cast<std::int32_t>(s.numbers[1]) - 1;
  const std::int64_t to_step = s.operands[0].stride[axis], from_step = s.operands[1].stride[axis];
  if (how == kReplace && to_step == 1 && from_step == 1) {
    for (std::int64_t i = 0; i < count; ++i) to[i] = from[i];
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    to[i * to_step] = updated(how, to[i * to_step], from[i * from_step], numbers);
  }
}

// out[index] = how(out[index], x). Threads share the first number[1] axes, along which nothing is indexed; within
// these, updates of one place are made in order. number[2] is how wide the elements are not, number[3] + 16 * how their
// sign. Where threads share one axis, and all along it have one index, that is looked at once.
template <typename T>
static void put(const Step& s, int thread, int threads) {
  const Strided &out = s.operands[0], &x = s.operands[1], &index = s.operands[2], &indexed = s.operands[3];
  const std::int32_t shared = static_cast<std::int32_t>(s.numbers[1]), last = out.rank;
  const Range lines = share(elements(out, 0, shared), thread, threads);
  const std::int64_t updates = elements(out, shared, last);
  const Numbers numbers{{s.numbers[2], s.numbers[3] % 16, 0, 0}, s.fault};
  const Int how = s.numbers[3] / 16;
  if (shared == 1 && index.stride[0] == 0) {
    for (std::int64_t update = 0; update < updates; ++update) {
      std::int64_t offset[3];
      offsets_of(s, lines.begin * updates + update, last, offset);
      const Int* at = static_cast<const Int*>(index.data) + offset[2];
      T* to = static_cast<T*>(out.data) + offset[0] + place_of(indexed, at, s.numbers[0], s.fault);
      put_line(s, how, numbers, to, static_cast<const T*>(x.data) + offset[1], lines.end - lines.begin);
    }
    return;
  }
  for (std::int64_t unit = lines.begin * updates; unit < lines.end * updates; ++unit) {
    std::int64_t offset[3];
    offsets_of(s, unit, last, offset);
    const Int* at = static_cast<const Int*>(index.data) + offset[2];
    T* to = static_cast<T*>(out.data) + offset[0] + place_of(indexed, at, s.numbers[0], s.fault);
    *to = updated(how, *to, static_cast<const T*>(x.data)[offset[1]], numbers);
  }
}

}  // namespace powerlab::engine::POWERLAB_TIER
