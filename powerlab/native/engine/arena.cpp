#include "arena.hpp"

#include <algorithm>

namespace powerlab::engine {

std::vector<std::int64_t> place(std::span<const Lifetime> lifetimes) {
  struct Placed {
    std::int64_t begin, end, first, last;
  };
  std::vector<Placed> placed;  // in the order of their begins
  std::vector<std::int64_t> offsets;
  placed.reserve(lifetimes.size());
  offsets.reserve(lifetimes.size());
  for (const Lifetime& life : lifetimes) {
    std::int64_t begin = 0;  // behind all that is alive at the same time and was looked at
    for (const Placed& other : placed) {
      if (other.first > life.last || other.last < life.first) continue;
      if (other.begin - begin >= life.size) break;
      begin = std::max(begin, other.end);
    }
    const auto at = std::ranges::lower_bound(placed, begin, {}, &Placed::begin);
    placed.insert(at, {begin, begin + life.size, life.first, life.last});
    offsets.push_back(begin);
  }
  return offsets;
}

}  // namespace powerlab::engine
