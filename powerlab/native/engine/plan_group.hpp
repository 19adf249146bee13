// Plans that run at the same time, each on a pool of its own: the slices of a batch.
//
// The caller runs the first plan, and a worker of the group each other one, as thread 0 of that plan's pool: a group of
// plans with two threads each has two threads a plan and no more. Nothing is allocated and no thread started in a run.
#pragma once

#include <cstdint>
#include <exception>
#include <mutex>
#include <span>
#include <vector>

#include "plan.hpp"
#include "thread_pool.hpp"

namespace powerlab::engine {

class PlanGroup {
 public:
  // A plan, and what its inputs and outputs are.
  struct Slice {
    Plan* plan;
    std::span<const float* const> inputs;
    std::span<float* const> outputs;
  };

  // Throws std::invalid_argument for slices < 1, std::runtime_error where the system refuses a thread.
  PlanGroup(int slices, std::int64_t spin_ns);

  // Each does in all plans at once what the plan's function of that name does; no plan may stand twice in `slices`, of
  // which there are as many as the group was made for. Calls from several threads take turns. What a plan throws is
  // thrown when all have ended, the first slice's before others.
  void run(std::span<const Slice> slices);

  // Returns what the first slice's steps took, while the others ran beside it.
  std::vector<std::int64_t> run_timed(std::span<const Slice> slices);

  // Returns the nanoseconds of the slice that took longest.
  std::int64_t repeat(std::span<const Slice> slices, std::int64_t first, std::int64_t last, std::int64_t times);

 private:
  template <typename Call>
  void each(std::span<const Slice> slices, const Call& call);

  std::vector<std::exception_ptr> thrown_;
  std::mutex mutex_;
  ThreadPool pool_;
};

}  // namespace powerlab::engine
