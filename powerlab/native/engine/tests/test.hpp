// A check each kernel goes through, and what it reports to.
#pragma once

#include <string>

#include "kernels/step.hpp"
#include "tests/tensors.hpp"
#include "tiers/registry.hpp"

namespace powerlab::engine::test {

class Report {
 public:
  // One comparison: prints a line where `error` is above `tolerance`, and counts either way.
  void check(const std::string& what, double error, double tolerance);
  int checked() const { return checked_; }
  int failed() const { return failed_; }

 private:
  int checked_ = 0;
  int failed_ = 0;
};

// Runs a kernel as the plan would, all shares one after the other.
inline void run_kernel(const KernelTable& table, const char* family, const Step& step, int threads) {
  const Kernel& kernel = find_kernel(table, family);
  for (int thread = 0; thread < threads; ++thread) kernel.run(step, thread, threads);
}

void check_convolutions(const KernelTable& table, Report& report);
void check_winograd(const KernelTable& table, Report& report);
void check_depthwise(const KernelTable& table, Report& report);
void check_pools(const KernelTable& table, Report& report);
void check_elementwise(const KernelTable& table, Report& report);
void check_normalisations(const KernelTable& table, Report& report);
void check_reorders(const KernelTable& table, Report& report);
void check_threads(const KernelTable& table, Report& report);
void check_plan(const KernelTable& table, Report& report);
void check_plan_bounds(const KernelTable& table, Report& report);
void check_random_convolutions(const KernelTable& table, Report& report);
void check_random_layers(const KernelTable& table, Report& report);
void check_extremes(const KernelTable& table, Report& report);

// What has no tier.
void check_thread_pool(Report& report);
void check_winograd_identities(Report& report);

// Kernels of a tile unlike those of every real tier; known to the tests alone.
const KernelTable& odd_tier();

}  // namespace powerlab::engine::test
