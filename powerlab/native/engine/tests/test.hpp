// A check each kernel goes through, and what it reports to.
#pragma once

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

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

// Puts a window, or an activation, of the reference into a step.
inline void set_window(Step& step, const reference::Window& window) {
  step.kernel_h = window.kernel_h;
  step.kernel_w = window.kernel_w;
  step.stride_h = window.stride_h;
  step.stride_w = window.stride_w;
  step.dilation_h = window.dilation_h;
  step.dilation_w = window.dilation_w;
  step.pad_top = window.top;
  step.pad_left = window.left;
}
inline void set_clamp(Step& step, const reference::Clamp& clamp) {
  step.low = static_cast<float>(clamp.low);
  step.high = static_cast<float>(clamp.high);
  step.slope = static_cast<float>(clamp.slope);
  step.adds_last = clamp.adds_last;
}

// How many elements of an output like `like` are not written by exactly one of `threads` threads, each running alone.
inline int misowned(const Kernel& kernel, Step step, const View& like, int threads) {
  std::vector<int> owners(static_cast<std::size_t>(like.n) * like.c * like.h * like.w);
  for (int thread = 0; thread < threads; ++thread) {
    Placed out(like.n, like.c, like.h, like.w, static_cast<int>(like.pixel), 1);
    step.out = out.view;
    kernel.run(step, thread, threads);
    for (std::size_t i = 0; i < owners.size(); ++i) {
      const int at = static_cast<int>(i), x = at % like.w, y = at / like.w % like.h, c = at / like.w / like.h % like.c;
      const float value = out.at(at / like.w / like.h / like.c, c, y, x);
      owners[i] += value == value;
    }
  }
  return static_cast<int>(owners.size()) - static_cast<int>(std::count(owners.begin(), owners.end(), 1));
}

inline int misowned(const KernelTable& table, const char* family, const Step& step, const View& like, int threads) {
  return misowned(find_kernel(table, family), step, like, threads);
}

void check_convolutions(const KernelTable& table, Report& report);
void check_winograd(const KernelTable& table, Report& report);
void check_depthwise(const KernelTable& table, Report& report);
void check_grouped(const KernelTable& table, Report& report);
void check_gemv(const KernelTable& table, Report& report);
void check_narrow(const KernelTable& table, Report& report);
void check_space_to_depth(const KernelTable& table, Report& report);
void check_pools(const KernelTable& table, Report& report);
void check_elementwise(const KernelTable& table, Report& report);
void check_peak(const KernelTable& table, Report& report);
void check_gru_cells(const KernelTable& table, Report& report);
void check_lstm(const KernelTable& table, Report& report);
void check_lstm_cells(const KernelTable& table, Report& report);
void check_normalisations(const KernelTable& table, Report& report);
void check_attentions(const KernelTable& table, Report& report);
void check_products(const KernelTable& table, Report& report);
void check_reorders(const KernelTable& table, Report& report);
void check_rounds(const KernelTable& table, Report& report);
void check_plan(const KernelTable& table, Report& report);
void check_plan_bounds(const KernelTable& table, Report& report);
void check_random_convolutions(const KernelTable& table, Report& report);
void check_random_chains(const KernelTable& table, Report& report);
void check_random_layers(const KernelTable& table, Report& report);
void check_preactivated(const KernelTable& table, Report& report);
void check_extremes(const KernelTable& table, Report& report);
void check_any_layers(const KernelTable& table, Report& report);
void check_bytes(const KernelTable& table, Report& report);
void check_byte_products(const ByteTable& bytes, int v, Report& report);
void check_byte_convolutions(const KernelTable& table, const ByteTable& bytes, Report& report);
void check_amx_model(Report& report);
void check_pairs(const KernelTable& table, Report& report);
void check_pair_convolutions(int v, const PairTable& pairs, Report& report);
void check_pair_products(int v, const PairTable& pairs, Report& report);
void check_pair_attentions(int v, const PairTable& pairs, Report& report);
void check_pair_gradients(int v, const PairTable& pairs, Report& report);
void check_pair_models(Report& report);
void check_general(const KernelTable& table, Report& report);
void check_training(const KernelTable& table, Report& report);

// What has no tier.
void check_thread_pool(Report& report);
void check_work_queue(Report& report);
void check_allocations(Report& report);
void check_winograd_identities(Report& report);

// How often memory was asked for in this process so far; -1 where nobody counts: under a sanitizer, or without glibc.
std::int64_t allocations();

// Kernels of a tile unlike those of every real tier; known to the tests alone.
const KernelTable& odd_tier();

// The kernel of a family on bytes, or on 16-bit floats.
template <typename Table>
const Kernel& kernel_of(const Table& table, std::string_view family) {
  for (std::int32_t i = 0; i < table.kernel_count; ++i) {
    if (family == table.kernels[i].family) return table.kernels[i];
  }
  throw std::invalid_argument("no kernel " + std::string(family));
}

// Runs it as so many threads would, one after the other.
template <typename Table>
void run_kernel(const Table& table, std::string_view family, const Step& step, int threads) {
  const Kernel& kernel = kernel_of(table, family);
  for (int thread = 0; thread < threads; ++thread) kernel.run(step, thread, threads);
}

}  // namespace powerlab::engine::test
