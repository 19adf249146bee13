// Weights that change from run to run, brought into the order in which kernels read them: by a step of the plan, in
// front of the one that reads them. What a model keeps as it is was packed when it was loaded (codegen/pack.py).
#pragma once

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
  for (std::int64_t i = own.begin; i < own.end; ++i) {
    const std::int64_t group = i / in_blocks / units, unit = i / in_blocks % units, block = i % in_blocks;
    const std::int64_t begin = unit * blocks / units, row = ((unit + 1) * blocks / units - begin) * kWidth;
    const std::int64_t left = inputs - block * lanes, some = left < lanes ? left : lanes;
    float* to = static_cast<float*>(s.operands[0].data) + (group * blocks + begin) * kWidth * inputs * taps +
                block * lanes * taps * row;
    for (std::int64_t lane = 0; lane < some; ++lane) {
      const std::int64_t input = block * lanes + lane, part = input / w.size[2];
      // The outputs of this group that read the input are those of its part of the merged ones.
      const std::int64_t first = part * w.size[1], last = first + w.size[1];
      for (std::int64_t tap = 0; tap < taps; ++tap) {
        const float* source = from + (group * merged + part) * w.stride[0] + input % w.size[2] * w.stride[2] +
                              tap / w.size[4] * w.stride[3] + tap % w.size[4] * w.stride[4];
        float* line = to + (tap * some + lane) * row;
        for (std::int64_t o = 0; o < row; ++o) {
          const std::int64_t output = begin * kWidth + o;
          line[o] = output < first || output >= last ? 0.0f : source[(output - first) * w.stride[1]];
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
