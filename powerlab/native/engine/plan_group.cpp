#include "plan_group.hpp"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace powerlab::engine {

PlanGroup::PlanGroup(int slices, std::int64_t spin_ns) : pool_(slices, spin_ns) {
  thrown_.resize(static_cast<std::size_t>(slices));
}

template <typename Call>
void PlanGroup::each(std::span<const Slice> slices, const Call& call) {
  if (slices.size() != thrown_.size()) {
    throw std::invalid_argument("a group runs as many plans as it was made for; please report this as a bug.");
  }
  const std::lock_guard lock(mutex_);
  struct Work {
    std::span<const Slice> slices;
    const Call& call;
    std::vector<std::exception_ptr>& thrown;
  } work{slices, call, thrown_};
  pool_.run(
      [](void* context, std::int64_t, int slice) {
        const Work& all = *static_cast<Work*>(context);
        const auto own = static_cast<std::size_t>(slice);
        try {
          all.call(all.slices[own], own);
        } catch (...) {
          all.thrown[own] = std::current_exception();
        }
      },
      &work, 1);
  const auto first = std::find_if(thrown_.begin(), thrown_.end(), [](const auto& one) { return one != nullptr; });
  if (first == thrown_.end()) return;
  const std::exception_ptr cause = *first;
  std::fill(thrown_.begin(), thrown_.end(), nullptr);
  std::rethrow_exception(cause);
}

void PlanGroup::run(std::span<const Slice> slices) {
  each(slices, [](const Slice& slice, std::size_t) { slice.plan->run(slice.inputs, slice.outputs); });
}

std::vector<std::int64_t> PlanGroup::run_timed(std::span<const Slice> slices) {
  std::vector<std::int64_t> durations_ns;
  each(slices, [&](const Slice& slice, std::size_t number) {
    std::vector<std::int64_t> own = slice.plan->run_timed(slice.inputs, slice.outputs);
    if (number == 0) durations_ns = std::move(own);
  });
  return durations_ns;
}

std::int64_t PlanGroup::repeat(std::span<const Slice> slices, std::int64_t first, std::int64_t last,
                               std::int64_t times) {
  std::vector<std::int64_t> took_ns(slices.size());
  each(slices, [&](const Slice& slice, std::size_t number) {
    took_ns[number] = slice.plan->repeat(slice.inputs, slice.outputs, first, last, times);
  });
  return *std::max_element(took_ns.begin(), took_ns.end());
}

}  // namespace powerlab::engine
