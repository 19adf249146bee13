// Where storages lie that are alive during some steps of a plan each.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace powerlab::engine {

// A storage of `size` floats, alive from step `first` to step `last`, both included.
struct Lifetime {
  std::int64_t size, first, last;
};

// Gives each storage, in order, the lowest offset that is free while it is alive.
std::vector<std::int64_t> place(std::span<const Lifetime> lifetimes);

}  // namespace powerlab::engine
