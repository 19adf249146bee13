// Which dispatch must wait for those before it: for what it reads and they write, and for what it writes and they
// touch.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "gpu/plan.hpp"

namespace powerlab::gpu {

class Hazards {
 public:
  // Tells whether a dispatch with these buffers needs a barrier before it, and remembers them. A barrier lets all go.
  bool conflicts(std::span<const Binding> bindings) {
    const bool waits = std::any_of(bindings.begin(), bindings.end(), [this](const Binding& next) {
      return std::any_of(pending_.begin(), pending_.end(),
                         [&next](const Binding& before) { return clash(before, next); });
    });
    if (waits) pending_.clear();
    pending_.insert(pending_.end(), bindings.begin(), bindings.end());
    return waits;
  }

 private:
  static bool clash(const Binding& before, const Binding& next) {
    const bool overlap = before.room == next.room && before.offset < next.offset + next.bytes &&
                         next.offset < before.offset + before.bytes;
    return overlap && (before.written || next.written);
  }

  std::vector<Binding> pending_;
};

}  // namespace powerlab::gpu
