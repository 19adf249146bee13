// Convolution of 3 x 3 in groups of 4 or 8 channels, which a vector has several of, as many in as out:
// out = activate(conv(x) + bias + y).
//
// Groups side by side in a vector pass together: for each channel of a group, every lane gets that channel of its own
// group, by one shuffle of a pixel that all taps of a kernel row use. So nothing is multiplied by zeros, as where
// groups are joined until they fill a block.
//
// Weights: [block][kernel_h][channel of the group][kernel_w][v]. Rows, tiles and padding are those of a depthwise one.
#pragma once

#include "kernels/convolution/conv_depthwise.hpp"

namespace powerlab::engine::POWERLAB_TIER {

// In each lane, channel J of its own group of G.
template <int G, int J, int... I>
static inline __attribute__((always_inline)) Vec channel_of_group(Vec x, Indices<I...>) {
  return __builtin_shufflevector(x, x, (I / G * G + J)...);
}

// The same of a pixel in memory. Where a vector is one group, that is a number.
template <int G, int J>
static inline __attribute__((always_inline)) auto grouped_value(const float* pixel) {
  if constexpr (G == kWidth && !kDepthwiseHolds) {
    return pixel[J];
  } else {
    return channel_of_group<G, J>(load(pixel), typename MakeIndices<kWidth>::type{});
  }
}

// One kernel row over one channel of the groups, strides S: each pixel serves all taps that meet it.
template <int G, int J, int S, int P>
static inline __attribute__((always_inline)) void grouped_taps(Vec (&acc)[P], const float* x, const float* weights) {
  // Each channel reads its pixels anew where not all of a tile's fit into registers: GCC would keep them on the stack.
  if constexpr (!kDepthwiseHolds) asm volatile("" : "+r"(x));
  Vec w[3];
  depthwise_load<FloatPixels>(w, weights);
  POWERLAB_UNROLL
  for (int i = 0; i < (P - 1) * S + 3; ++i) {
    const auto value = grouped_value<G, J>(x + i * kWidth);
    POWERLAB_UNROLL
    for (int kx = 0; kx < 3; ++kx) {
      const int p = (i - kx) / S;
      if (i >= kx && (i - kx) % S == 0 && p < P) acc[p] += w[kx] * value;
    }
  }
}

template <int G, int S, int P, int... J>
static inline __attribute__((always_inline)) void grouped_row(Vec (&acc)[P], const float* x, const float* weights,
                                                              Indices<J...>) {
  (grouped_taps<G, J, S, P>(acc, x, weights + 3 * J * kWidth), ...);
}

template <int G, int S, int P>
static __attribute__((noinline)) void grouped_3x3(DepthwiseTile& t) {
  do {
    Vec acc[1][P];
    depthwise_start(t, acc);
    const float* weights = t.weights;
    for (int ky = 0; ky < 3; ++ky, weights += 3 * G * kWidth) {
      grouped_row<G, S, P>(acc[0], ring_row(*t.ring, ky) + t.x_offset, weights, typename MakeIndices<G>::type{});
    }
    depthwise_finish(t, acc);
  } while (depthwise_next(t));
}

template <int G, int S, int... P>
constexpr DepthwiseKind make_grouped(DepthwiseWidths<P...>) {
  return {1, static_cast<int>(sizeof...(P)), {grouped_3x3<G, S, P>...}, {}, G};
}
static constexpr DepthwiseKind kGroupsOf4[] = {make_grouped<4, 1>(AllDepthwiseWidths{}),
                                               make_grouped<4, 2>(AllDepthwiseWidths{})};
#if POWERLAB_VECTOR_WIDTH >= 8
static constexpr DepthwiseKind kGroupsOf8[] = {make_grouped<8, 1>(AllDepthwiseWidths{}),
                                               make_grouped<8, 2>(AllDepthwiseWidths{})};
#endif

// Strides of 1 or 2, the same down and across; dilations of 1.
static void conv_grouped(const Step& s, int thread, int threads) {
#if POWERLAB_VECTOR_WIDTH >= 8
  if (s.x.c == 8 * s.groups) return depthwise_share(s, kGroupsOf8[s.stride_h - 1], thread, threads);
#endif
  depthwise_share(s, kGroupsOf4[s.stride_h - 1], thread, threads);
}

}  // namespace powerlab::engine::POWERLAB_TIER
