// kernel_test [tier]: every kernel of the tier (of all tiers this processor runs) against its reference, without
// Python, so that it also runs on a board, under emulation and under sanitizers; kernel_test threads: only what runs on
// several threads; kernel_test low-precision: only kernels on bytes and bfloat16. Exits with 1 where a result is wrong.
#include <cstdio>
#include <exception>
#include <string_view>

#include "tests/test.hpp"

namespace powerlab::engine::test {

void Report::check(const std::string& what, double error, double tolerance) {
  ++checked_;
  if (error <= tolerance) return;
  ++failed_;
  std::printf("WRONG %s: error %.3g, allowed %.3g\n", what.c_str(), error, tolerance);
}

namespace {

void check_kernels(const KernelTable& table, Report& report) {
  check_convolutions(table, report);
  check_winograd(table, report);
  check_depthwise(table, report);
  check_grouped(table, report);
  check_gemv(table, report);
  check_narrow(table, report);
  check_space_to_depth(table, report);
  check_pools(table, report);
  check_elementwise(table, report);
  check_gru_cells(table, report);
  check_lstm(table, report);
  check_lstm_cells(table, report);
  check_normalisations(table, report);
  check_peak(table, report);
  check_reorders(table, report);
  check_products(table, report);
  check_attentions(table, report);
  check_random_convolutions(table, report);
  check_random_chains(table, report);
  check_random_layers(table, report);
  check_preactivated(table, report);
  check_extremes(table, report);
  check_any_layers(table, report);
  check_training(table, report);
}

// Says what was found, and returns the exit status.
int ended(const Report& report) {
  std::printf("%d checks, %d wrong\n", report.checked(), report.failed());
  return report.failed() == 0 ? 0 : 1;
}

// What a thread sanitizer is to see: the pool, and plans on it.
int run_threads() {
  Report report;
  for (const KernelTable* table : available_tiers()) check_plan(*table, report);
  check_thread_pool(report);
  check_work_queue(report);
  check_allocations(report);
  return ended(report);
}

// What depends on instruction sets beside a tier's own.
int run_low_precision() {
  Report report;
  for (const KernelTable* table : available_tiers()) {
    check_bytes(*table, report);
    check_pairs(*table, report);
  }
  return ended(report);
}

int run(const char* tier) {
  if (std::string_view(tier) == "threads") return run_threads();
  if (std::string_view(tier) == "low-precision") return run_low_precision();
  Report report;
  const bool all = tier[0] == '\0';
  for (const KernelTable* table : available_tiers()) {
    if (!all && table != &find_tier(tier)) continue;
    const int before = report.checked();
    check_kernels(*table, report);
    check_general(*table, report);
    check_bytes(*table, report);
    check_pairs(*table, report);
    check_plan(*table, report);
    check_rounds(*table, report);
    check_plan_bounds(*table, report);
    std::printf("%s: %d checks\n", table->tier, report.checked() - before);
  }
  if (all) {
#ifdef POWERLAB_ODD_TIER
    check_kernels(odd_tier(), report);
    check_winograd_identities(report);
#endif
    check_amx_model(report);
    check_pair_models(report);
    check_thread_pool(report);
    check_work_queue(report);
    check_allocations(report);
  }
  return ended(report);
}

}  // namespace
}  // namespace powerlab::engine::test

int main(int argc, char** argv) {
  try {
    return powerlab::engine::test::run(argc > 1 ? argv[1] : "");
  } catch (const std::exception& error) {
    std::fprintf(stderr, "kernel_test: %s\n", error.what());
    return 2;
  }
}
