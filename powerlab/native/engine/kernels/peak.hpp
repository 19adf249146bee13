// As many multiply-adds a second as this instruction set can do: the roof of a roofline (Williams et al., 2009).
#pragma once

#include "kernels/vec.hpp"

namespace powerlab::engine::POWERLAB_TIER {

// More sums than two units times their latency; with the factor and a temporary they fit sixteen registers.
constexpr int kPeakSums = 12;

// Sums that start as x[thread] and add alpha times their neighbour, `size` rounds long; out[thread] is what they come
// to together. Each round is 12 multiply-adds of whole vectors: every product changes with its neighbour, so none can
// be moved out of the loop, and no sum waits for the one before it.
static void peak(const Step& s, int thread, int) {
  const Vec factor = broadcast(s.alpha);
  const Vec start = load_unaligned(s.x.data + thread * s.x.image);
  Vec sums[kPeakSums];
  POWERLAB_UNROLL for (int i = 0; i < kPeakSums; ++i) sums[i] = start;
  for (std::int32_t round = 0; round < s.size; ++round) {
    POWERLAB_UNROLL for (int i = 0; i < kPeakSums; ++i) sums[i] += sums[(i + 1) % kPeakSums] * factor;
  }
  Vec all = sums[0];
  POWERLAB_UNROLL for (int i = 1; i < kPeakSums; ++i) all += sums[i];
  store(s.out.data + thread * s.out.image, all);
}

}  // namespace powerlab::engine::POWERLAB_TIER
