// Weights that change from run to run, brought into the order in which kernels read them: by a step of the plan, in
// front of the one that reads them. What a model keeps as it is was packed when it was loaded (codegen/pack.py).
#pragma once

#include "kernels/transpose_tile.hpp"
#include "kernels/vec.hpp"

namespace powerlab::engine::POWERLAB_TIER {

// A convolution's weights for conv_direct: [group][unit][input block][kh][kw][lane][block of the unit][v].
//
// operands: the packed floats; the weights (groups, outputs, inputs, kh, kw) of each group, of any strides.
// numbers: output blocks of a unit at most; channels of an input block; groups that become one, with zeros between.
static void pack_kernels(const Step& s, int thread, int threads) {
  const Strided& w = s.operands[1];
  const float* from = static_cast<const float*>(w.data);
  const std::int64_t most = s.numbers[0], lanes = s.numbers[1], merged = s.numbers[2];
  const std::int64_t outputs = w.size[1] * merged, inputs = w.size[2] * merged, taps = w.size[3] * w.size[4];
  const std::int64_t blocks = (outputs + kWidth - 1) / kWidth, units = (blocks + most - 1) / most;
  const std::int64_t in_blocks = (inputs + lanes - 1) / lanes;
  const Range own = share(w.size[0] / merged * units * in_blocks, thread, threads);
  const bool by_outputs = w.stride[1] < w.stride[2];  // what lies together in memory is read together
  for (std::int64_t i = own.begin; i < own.end; ++i) {
    const std::int64_t group = i / in_blocks / units, rest = i % (in_blocks * units);
    const std::int64_t unit = by_outputs ? rest % units : rest / in_blocks;
    const std::int64_t block = by_outputs ? rest / units : rest % in_blocks;
    const std::int64_t begin = unit * blocks / units, row = ((unit + 1) * blocks / units - begin) * kWidth;
    const std::int64_t left = inputs - block * lanes, some = left < lanes ? left : lanes;
    float* to = static_cast<float*>(s.operands[0].data) + (group * blocks + begin) * kWidth * inputs * taps +
                block * lanes * taps * row;
    const bool whole = merged == 1 && begin * kWidth + row <= outputs;
    if (whole && taps == 1 && w.stride[2] == 1 && some == kWidth) {
      const float* source = from + group * w.stride[0] + block * lanes + begin * kWidth * w.stride[1];
      for (std::int64_t o = 0; o < row; o += kWidth) {
        Vec tile[kWidth];
        for (int output = 0; output < kWidth; ++output)
          tile[output] = load_unaligned(source + (o + output) * w.stride[1]);
        transpose_tile(tile);
        for (int lane = 0; lane < kWidth; ++lane) store(to + lane * row + o, tile[lane]);
      }
      continue;
    }
    for (std::int64_t lane = 0; lane < some; ++lane) {
      const std::int64_t input = block * lanes + lane, part = input / w.size[2];
      // The outputs of this group that read the input are those of its part of the merged ones.
      const std::int64_t first = part * w.size[1], last = first + w.size[1];
      for (std::int64_t tap = 0; tap < taps; ++tap) {
        const float* source = from + (group * merged + part) * w.stride[0] + input % w.size[2] * w.stride[2] +
                              tap / w.size[4] * w.stride[3] + tap % w.size[4] * w.stride[4];
        float* line = to + (tap * some + lane) * row;
        if (whole && w.stride[1] == 1) {
          for (std::int64_t o = 0; o < row; o += kWidth) store(line + o, load_unaligned(source + begin * kWidth + o));
          continue;
        }
        for (std::int64_t o = 0; o < row; ++o) {
          const std::int64_t output = begin * kWidth + o;
          line[o] = output < first || output >= last ? 0.0f : source[(output - first) * w.stride[1]];
        }
      }
    }
  }
}

// What one row or column of a kernel of three taps becomes: G of F(2, 3) and F(4, 3) (A. Lavin and S. Gray, "Fast
// Algorithms for Convolutional Neural Networks", CVPR 2016, section 4).
template <int M>
static inline void winograd_taps(const Vec (&w)[3], Vec (&made)[M + 2]) {
  const Vec outer = w[0] + w[2];
  if constexpr (M == 2) {
    made[1] = (outer + w[1]) * 0.5f;
    made[2] = (outer - w[1]) * 0.5f;
    made[0] = w[0];
    made[3] = w[2];
  } else {
    static_assert(M == 4);
    const Vec even = w[0] * (1 / 24.0f) + w[2] * (1 / 6.0f), odd = w[1] * (1 / 12.0f);
    made[0] = w[0] * 0.25f;
    made[1] = (outer + w[1]) * (-1 / 6.0f);
    made[2] = (outer - w[1]) * (-1 / 6.0f);
    made[3] = even + odd;
    made[4] = even - odd;
    made[5] = w[2];
  }
}

// A 3 x 3 convolution's weights for conv_winograd, as kernels/convolution/pack_winograd.hpp has them:
// [group][unit][position][channel][block of the unit][v].
//
// operands: the packed floats; the weights (groups, outputs, inputs, 3, 3), of any strides.
// numbers: output blocks of a unit at most.
template <int M>
static void pack_winograd_kernels(const Step& s, int thread, int threads) {
  constexpr int kPositions = M + 2, kTogether = 4;  // channels that are read before one is transformed
  const Strided& w = s.operands[1];
  const std::int64_t outputs = w.size[1], inputs = w.size[2], blocks = (outputs + kWidth - 1) / kWidth;
  const std::int64_t units = (blocks + s.numbers[0] - 1) / s.numbers[0], parts = (inputs + kTogether - 1) / kTogether;
  const Range own = share(w.size[0] * units * parts, thread, threads);
  for (std::int64_t i = own.begin; i < own.end; ++i) {
    const std::int64_t group = i / parts / units, unit = i / parts % units, first = i % parts * kTogether;
    const std::int64_t begin = unit * blocks / units, span = ((unit + 1) * blocks / units - begin) * kWidth;
    const std::int64_t count = inputs - first < kTogether ? inputs - first : kTogether;
    float* packed = static_cast<float*>(s.operands[0].data) +
                    (group * blocks + begin) * kWidth * inputs * kPositions * kPositions + first * span;
    const float* from = static_cast<const float*>(w.data) + group * w.stride[0] + first * w.stride[2];
    for (std::int64_t block = 0; block < span / kWidth; ++block) {
      const std::int64_t output = (begin + block) * kWidth, left = outputs - output;
      const std::int64_t lanes = left < kWidth ? left : kWidth;
      alignas(4 * kWidth) float read[kTogether][9][kWidth] = {};
      for (std::int64_t lane = 0; lane < lanes; ++lane) {
        for (std::int64_t channel = 0; channel < count; ++channel) {
          const float* source = from + (output + lane) * w.stride[1] + channel * w.stride[2];
          for (int tap = 0; tap < 9; ++tap) {
            read[channel][tap][lane] = source[tap / 3 * w.stride[3] + tap % 3 * w.stride[4]];
          }
        }
      }
      for (std::int64_t channel = 0; channel < count; ++channel) {
        Vec half[3][kPositions];  // of w G^T
        for (int y = 0; y < 3; ++y) {
          const float* line = read[channel][3 * y];
          winograd_taps<M>({load(line), load(line + kWidth), load(line + 2 * kWidth)}, half[y]);
        }
        for (int x = 0; x < kPositions; ++x) {
          Vec column[kPositions];
          winograd_taps<M>({half[0][x], half[1][x], half[2][x]}, column);
          for (int y = 0; y < kPositions; ++y) {
            store(packed + ((y * kPositions + x) * inputs + channel) * span + block * kWidth, column[y]);
          }
        }
      }
    }
  }
}

// A depthwise convolution's weights for conv_depthwise: [block][kh][kw][v].
//
// operands: the packed floats; the weights (channels, 1, 1, kh, kw), of any strides.
static void pack_depthwise_kernels(const Step& s, int thread, int threads) {
  const Strided& w = s.operands[1];
  const std::int64_t taps = w.size[3] * w.size[4], blocks = (w.size[0] + kWidth - 1) / kWidth;
  const Range own = share(blocks, thread, threads);
  for (std::int64_t block = own.begin; block < own.end; ++block) {
    float* to = static_cast<float*>(s.operands[0].data) + block * taps * kWidth;
    for (std::int64_t i = 0; i < taps * kWidth; ++i) {
      const std::int64_t channel = block * kWidth + i % kWidth, tap = i / kWidth;
      to[i] = channel < w.size[0]
                  ? static_cast<const float*>(
                        w.data)[channel * w.stride[0] + tap / w.size[4] * w.stride[3] + tap % w.size[4] * w.stride[4]]
                  : 0.0f;
    }
  }
}

// One number a channel, filled up with zeros to whole blocks. operands: the packed floats; the numbers, on a line.
static void pack_channels(const Step& s, int thread, int threads) {
  const Strided &out = s.operands[0], &x = s.operands[1];
  const Range own = share(out.size[0], thread, threads);
  for (std::int64_t i = own.begin; i < own.end; ++i) {
    static_cast<float*>(out.data)[i] = i < x.size[0] ? static_cast<const float*>(x.data)[i * x.stride[0]] : 0.0f;
  }
}

}  // namespace powerlab::engine::POWERLAB_TIER
