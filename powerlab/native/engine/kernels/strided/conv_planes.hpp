// Convolutions over images of three axes as general tensors: in groups, with computed weights, whatever the kernels in
// blocks do not take.
//
// Each thread copies the planes that windows see into its room, with zeros around them, so that no tap has to look
// where an image ends. Where windows move on by several pixels, those that one tap sees follow on each other: a plane
// lies as [row phase][column phase][row][column], phases being as many as the stride. Then every tap is one line over
// the whole plane, from an offset of its own; a register tile of outputs by vectors of that line goes over all taps.
// Between rows it makes numbers that nobody wants.
#pragma once

#include <string.h>

#include "kernels/strided/windows_strided.hpp"

namespace powerlab::engine::POWERLAB_TIER {

// How planes lie in the room.
struct PlaneRoom {
  std::int64_t phases[2], size[2];  // rows, columns
  std::int64_t floats;              // of a plane
  std::int64_t depth;               // planes that a window sees
  std::int64_t inputs;              // channels that there is room for

  PlaneRoom(const Strided& out, const Strided& weights, const WindowNumbers& k, std::int64_t room) {
    for (int axis = 0; axis < 2; ++axis) {
      phases[axis] = k.stride[axis + 1];
      size[axis] = (weights.size[axis + 3] - 1) * k.dilation[axis + 1] / phases[axis] + out.size[axis + 3];
    }
    floats = phases[0] * phases[1] * size[0] * size[1];
    depth = (weights.size[2] - 1) * k.dilation[0] + 1;
    inputs = (room - kPlaneSlack) / (depth * floats);
  }

  // Where the first pixel that a tap sees lies.
  std::int64_t tap(const WindowNumbers& k, std::int64_t ky, std::int64_t kx) const {
    const std::int64_t y = ky * k.dilation[1], x = kx * k.dilation[2];
    const std::int64_t phase = y % phases[0] * phases[1] + x % phases[1];
    return (phase * size[0] + y / phases[0]) * size[1] + x / phases[1];
  }

  static constexpr std::int64_t kPlaneSlack = 256;  // floats that the last tile may read behind the last plane
};

// Copies a plane of x into the room.
static void fill_plane(const PlaneRoom& room, const Strided& x, const float* from, const WindowNumbers& k, float* to) {
  const std::int64_t columns = x.size[4], step = room.phases[1];
  memset(to, 0, static_cast<std::size_t>(room.floats) * sizeof(float));
  const std::int64_t first = k.pad[2] < 0 ? -k.pad[2] : 0;
  for (std::int64_t row = k.pad[1] < 0 ? -k.pad[1] : 0; row < x.size[3]; ++row) {
    const std::int64_t y = row + k.pad[1];
    if (y / room.phases[0] >= room.size[0]) break;  // no window sees it
    const float* pixels = from + row * x.stride[3];
    float* line = to + (y % room.phases[0] * step * room.size[0] + y / room.phases[0]) * room.size[1];
    for (std::int64_t phase = 0; phase < step; ++phase, line += room.size[0] * room.size[1]) {
      const std::int64_t behind = (phase - k.pad[2] - first) % step;
      std::int64_t i = first + (behind < 0 ? behind + step : behind);
      std::int64_t at = (i + k.pad[2]) / step;
      for (; i < columns && at < room.size[1]; i += step, ++at) line[at] = pixels[i];
    }
  }
}

// What a tile computes: of `O` outputs, the pixels of a plane from `begin` on, as they lie in the room.
struct PlaneTile {
  const Step& s;
  const PlaneRoom& room;
  const WindowNumbers& k;
  const std::int64_t* taps;  // where the pixels of each lie
  const float* planes;       // of the first input
  std::int64_t n, output, z;
  std::int64_t first_input, inputs;  // of the group, which are in the room
};

// Adds to the result, or to the bias with the first inputs, what a tile has made.
template <int O, int V>
static inline void put_tile(const PlaneTile& t, const float (&made)[O][V * kWidth], std::int64_t begin) {
  const Strided& out = t.s.operands[0];
  const Strided* bias = t.s.operand_count == 6 ? &t.s.operands[3] : nullptr;
  const std::int64_t width = t.room.size[1];
  std::int64_t end = begin + V * kWidth;
  if (end > out.size[3] * width) end = out.size[3] * width;
  for (int o = 0; o < O; ++o) {
    const std::int64_t channel = t.output + o;
    const float start = bias ? static_cast<const float*>(bias->data)[channel * bias->stride[0]] : 0.0f;
    for (std::int64_t at = begin; at < end;) {
      const std::int64_t y = at / width, column = at % width;
      const std::int64_t rest = width - column < end - at ? width - column : end - at;
      const std::int64_t count = column + rest < out.size[4] ? rest : out.size[4] - column;
      const float* from = made[o] + (at - begin);
      float* to = row_at(out, t.n, channel, t.z, y) + column;
      if (t.first_input == 0) {
        for (std::int64_t i = 0; i < count; ++i) to[i] = start + from[i];
      } else {
        for (std::int64_t i = 0; i < count; ++i) to[i] += from[i];
      }
      at += rest;
    }
  }
}

template <int O, int V>
static void compute_plane(const PlaneTile& t) {
  const Strided &out = t.s.operands[0], &x = t.s.operands[1], &weights = t.s.operands[2];
  const std::int64_t pixels = out.size[3] * t.room.size[1], w_step = weights.stride[0];
  for (std::int64_t begin = 0; begin < pixels; begin += V * kWidth) {
    Vec acc[O][V];
    POWERLAB_UNROLL
    for (int o = 0; o < O; ++o) {
      POWERLAB_UNROLL
      for (int v = 0; v < V; ++v) acc[o][v] = broadcast(0);
    }
    for (std::int64_t input = 0; input < t.inputs; ++input) {
      for (std::int64_t kz = 0; kz < weights.size[2]; ++kz) {
        const std::int64_t from_z = source_of<false>(t.k, 0, t.z, kz, x.size[2]);
        if (from_z < 0) continue;
        const float* plane = t.planes + (input * t.room.depth + from_z % t.room.depth) * t.room.floats + begin;
        const std::int64_t* tap = t.taps;
        for (std::int64_t ky = 0; ky < weights.size[3]; ++ky) {
          const float* w = row_at(weights, t.output, t.first_input + input, kz, ky);
          for (std::int64_t kx = 0; kx < weights.size[4]; ++kx, w += weights.stride[4]) {
            const float* from = plane + *tap++;
            Vec seen[V];
            POWERLAB_UNROLL
            for (int v = 0; v < V; ++v) seen[v] = load_unaligned(from + v * kWidth);
            POWERLAB_UNROLL
            for (int o = 0; o < O; ++o) {
              const Vec factor = broadcast(w[o * w_step]);
              POWERLAB_UNROLL
              for (int v = 0; v < V; ++v) acc[o][v] += factor * seen[v];
            }
          }
        }
      }
    }
    alignas(64) float made[O][V * kWidth];
    POWERLAB_UNROLL
    for (int o = 0; o < O; ++o) {
      POWERLAB_UNROLL
      for (int v = 0; v < V; ++v) store_unaligned(made[o] + v * kWidth, acc[o][v]);
    }
    put_tile<O, V>(t, made, begin);
  }
}

// Operands: out, x, weights (O, C / groups, ...), a bias or none, the numbers, room for each thread: as many integers
// as a plane of the kernel has taps, then planes.
static void conv_planes(const Step& s, int thread, int threads) {
  constexpr int kOutputs = kWidth >= 16 ? 4 : 2, kAlone = kWidth >= 16 ? 8 : 4;
  const Strided &out = s.operands[0], &x = s.operands[1], &weights = s.operands[2];
  const WindowNumbers& k = *static_cast<const WindowNumbers*>(s.operands[s.operand_count - 2].data);
  const Strided& rooms = s.operands[s.operand_count - 1];
  const std::int64_t tap_count = weights.size[3] * weights.size[4];
  std::int64_t* const taps =
      reinterpret_cast<std::int64_t*>(static_cast<float*>(rooms.data) + thread * rooms.stride[0]);
  float* const planes = reinterpret_cast<float*>(taps + tap_count);
  const PlaneRoom room(out, weights, k, rooms.size[1] - 2 * tap_count);
  for (std::int64_t i = 0; i < tap_count; ++i) taps[i] = room.tap(k, i / weights.size[4], i % weights.size[4]);
  const std::int64_t outputs = out.size[1] / k.first, inputs = x.size[1] / k.first, bodies = out.size[0] * k.first;
  // Several threads may have outputs of the same group where there are few.
  const std::int64_t wanted = (2 * threads + bodies - 1) / bodies;
  const std::int64_t parts = wanted < outputs ? wanted : outputs;
  const Range units = share(bodies * parts, thread, threads);
  for (std::int64_t unit = units.begin; unit < units.end; ++unit) {
    const std::int64_t n = unit / parts / k.first, group = unit / parts % k.first, part = unit % parts;
    const std::int64_t first = group * outputs + part * outputs / parts;
    const std::int64_t last = group * outputs + (part + 1) * outputs / parts;
    for (std::int64_t input = 0; input < inputs; input += room.inputs) {
      const std::int64_t here = inputs - input < room.inputs ? inputs - input : room.inputs;
      std::int64_t filled = 0;  // planes of x
      for (std::int64_t z = 0; z < out.size[2]; ++z) {
        const std::int64_t low = z * k.stride[0] - k.pad[0];
        const std::int64_t high = low + room.depth < x.size[2] ? low + room.depth : x.size[2];
        for (filled = filled < low ? low : filled; filled < high; ++filled) {
          for (std::int64_t i = 0; i < here; ++i) {
            fill_plane(room, x, row_at(x, n, group * inputs + input + i, filled, 0), k,
                       planes + (i * room.depth + filled % room.depth) * room.floats);
          }
        }
        std::int64_t o = first;
        for (; o + kOutputs <= last; o += kOutputs) {
          compute_plane<kOutputs, 4>({s, room, k, taps, planes, n, o, z, input, here});
        }
        for (; o < last; ++o) compute_plane<1, kAlone>({s, room, k, taps, planes, n, o, z, input, here});
      }
    }
  }
}

}  // namespace powerlab::engine::POWERLAB_TIER
