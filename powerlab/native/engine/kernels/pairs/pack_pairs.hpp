// Weights that change from run to run, for conv_direct_bf16: as training/pack_kernels.hpp has them for float32.
#pragma once

#include "kernels/pairs/words.hpp"

namespace powerlab::engine::POWERLAB_TIER {

// A vector of outputs of 16 input channels at one tap; outside of what a merged group has, zeros.
struct PairLines {
  alignas(4 * kWidth) float at[kBlockChannels][kWidth];
};

static inline void read_lines(const Strided& w, std::int64_t merged, std::int64_t group, std::int64_t output,
                              std::int64_t input, std::int64_t tap, PairLines& lines) {
  const std::int64_t inputs = w.size[2] * merged, outputs = w.size[1], all = outputs * merged;
  const float* from = static_cast<const float*>(w.data) + tap / w.size[4] * w.stride[3] + tap % w.size[4] * w.stride[4];
  for (std::int64_t o = 0; o < kWidth; ++o) {
    for (std::int64_t i = 0; i < kBlockChannels; ++i) {
      const std::int64_t part = (input + i) / w.size[2];
      const bool there = input + i < inputs && output + o < all && (output + o) / outputs == part;
      lines.at[i][o] = there ? from[(group * merged + part) * w.stride[0] + (output + o) % outputs * w.stride[1] +
                                    (input + i) % w.size[2] * w.stride[2]]
                             : 0.0f;
    }
  }
}

// The same of a group by itself, all of whose channels are there.
static inline void read_whole_lines(const Strided& w, const float* from, PairLines& lines) {
  const std::int64_t by_output = w.stride[1], by_input = w.stride[2];
  for (std::int64_t o = 0; o < kWidth; ++o) {
    for (std::int64_t i = 0; i < kBlockChannels; ++i) lines.at[i][o] = from[o * by_output + i * by_input];
  }
}

// [group][unit][input block][kh][kw][word][vector of the unit][v].
//
// operands: the packed words; the weights (groups, outputs, inputs, kh, kw) of each group, of any strides.
// numbers: output vectors of a unit at most; groups that become one, with zeros between.
static void pack_pair_kernels(const Step& s, int thread, int threads) {
  const Strided& w = s.operands[1];
  const std::int64_t most = s.numbers[0], merged = s.numbers[1], taps = w.size[3] * w.size[4];
  const std::int64_t outputs = w.size[1] * merged, inputs = w.size[2] * merged;
  const std::int64_t vectors = (outputs + kWidth - 1) / kWidth, units = (vectors + most - 1) / most;
  const std::int64_t in_blocks = (inputs + kBlockChannels - 1) / kBlockChannels;
  const Range own = share(w.size[0] / merged * units * in_blocks, thread, threads);
  for (std::int64_t i = own.begin; i < own.end; ++i) {
    const std::int64_t group = i / in_blocks / units, unit = i / in_blocks % units,
                       input = i % in_blocks * kBlockChannels;
    const std::int64_t begin = unit * vectors / units, count = (unit + 1) * vectors / units - begin;
    float* to = static_cast<float*>(s.operands[0].data) +
                ((group * vectors + begin) * in_blocks + i % in_blocks * count) * kBlockWords * taps * kWidth;
    for (std::int64_t vector = 0; vector < count; ++vector) {
      const std::int64_t output = (begin + vector) * kWidth;
      const bool whole = merged == 1 && output + kWidth <= outputs && input + kBlockChannels <= inputs;
      for (std::int64_t tap = 0; tap < taps; ++tap) {
        PairLines lines;
        if (whole) {
          read_whole_lines(w,
                           static_cast<const float*>(w.data) + group * w.stride[0] + output * w.stride[1] +
                               input * w.stride[2] + tap / w.size[4] * w.stride[3] + tap % w.size[4] * w.stride[4],
                           lines);
        } else {
          read_lines(w, merged, group, output, input, tap, lines);
        }
        for (std::int64_t word = 0; word < kBlockWords; ++word) {
          store(to + ((tap * kBlockWords + word) * count + vector) * kWidth,
                pair_up(load(lines.at[2 * word]), load(lines.at[2 * word + 1])));
        }
      }
    }
  }
}

}  // namespace powerlab::engine::POWERLAB_TIER
