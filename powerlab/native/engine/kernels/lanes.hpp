// What all lanes of a vector have together, and vectors of which only some lanes count.
#pragma once

#include "kernels/blocked/window.hpp"
#include "kernels/functions.hpp"

namespace powerlab::engine::POWERLAB_TIER {

// Every lane with the one `Half` further on.
template <int Half, int... Lane>
static inline Vec halved(Vec v, Indices<Lane...>) {
  return __builtin_shufflevector(v, v, ((Lane + Half) % kWidth)...);
}

// The sum of all lanes, by halves.
template <int Half = kWidth / 2>
static inline __attribute__((always_inline)) float sum_of(Vec v) {
  v += halved<Half>(v, typename MakeIndices<kWidth>::type{});
  if constexpr (Half > 1) return sum_of<Half / 2>(v);
  return v[0];
}

// The largest lane; not-a-number wins.
template <int Half = kWidth / 2>
static inline __attribute__((always_inline)) float largest_of(Vec v) {
  v = larger(v, halved<Half>(v, typename MakeIndices<kWidth>::type{}));
  if constexpr (Half > 1) return largest_of<Half / 2>(v);
  return v[0];
}

struct LaneNumbers {
  alignas(4 * kWidth) std::int32_t at[kWidth];
};
template <int... Lane>
constexpr LaneNumbers lane_numbers(Indices<Lane...>) {
  return {{Lane...}};
}

// 0, 1, 2, ...
static inline IntVec lane_numbers() {
  static constexpr LaneNumbers kLane = lane_numbers(typename MakeIndices<kWidth>::type{});
  return reinterpret_cast<const IntVec&>(kLane);
}

// The first lanes of a vector, the others being 0.
static inline Vec first_lanes(Vec v, int lanes) { return lane_numbers() < lanes ? v : Vec{}; }

}  // namespace powerlab::engine::POWERLAB_TIER
