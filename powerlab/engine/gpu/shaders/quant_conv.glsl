// A convolution of bytes, 8-bit weights, sums in 32 bits: images [n][channel block][pixel], 4 channels a word. Lanes are
// pixels; each computes PIXELS pixels of 2 blocks. Weights: [group][tile of 2 blocks][tap][in block][8 outputs], 4 inputs
// a word. With BROADCAST 8 lanes load those of 8 outputs for each other: see conv.comp.
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_ballot : require
#include "bytes.glsl"

layout(constant_id = 1) const int PIXELS = 4;
layout(constant_id = 2) const bool RESIDUAL = false;
layout(constant_id = 3) const bool FLOATS = false;  // the result stays numbers of the network
layout(constant_id = 4) const bool BROADCAST = false;

layout(binding = 0) writeonly buffer Out { uint made[]; };
layout(binding = 1) writeonly buffer OutFloats { T4 floats[]; };
layout(binding = 2) readonly buffer X { uint x[]; };
layout(binding = 3) readonly buffer Weights { uint weights[]; };
layout(binding = 4) readonly buffer Begin { ivec4 begin[]; };
layout(binding = 5) readonly buffer Multipliers { vec4 multipliers[]; };
layout(binding = 6) readonly buffer Residual { uint residual[]; };

layout(push_constant) uniform Push {
  float low, high, slope, y_ratio;
  int images, in_h, in_w, out_h, out_w, kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w;
  int groups, in_blocks, out_blocks;  // blocks of one group
  int x_zero, y_zero, zero;
} p;

#define USE_WEIGHT(o)                                                                                        \
  {                                                                                                          \
    const uint weight = BROADCAST ? subgroupBroadcast(loaded, o) : weights[w + o];                           \
    [[unroll]] for (int i = 0; i < PIXELS; ++i) sums[2 * i + o / 4][o % 4] += dot_bytes(weight, values[i]);  \
  }

void main() {
  const int lanes = int(gl_WorkGroupSize.x), tiles = (p.out_blocks + 1) / 2;
  const int tile = int(gl_WorkGroupID.y) % tiles, group = int(gl_WorkGroupID.y) / tiles;
  const int first = int(gl_WorkGroupID.x + gl_WorkGroupID.z * gl_NumWorkGroups.x) * lanes * PIXELS;
  const int out_size = p.out_h * p.out_w, in_size = p.in_h * p.in_w, count = p.images * out_size;
  const uint outside = uint(p.x_zero) * 0x01010101u;

  int image[PIXELS], row[PIXELS], column[PIXELS], pixel[PIXELS];
  ivec4 sums[2 * PIXELS];
  [[unroll]] for (int i = 0; i < PIXELS; ++i) {
    const int at = min(first + i * lanes + int(gl_LocalInvocationID.x), count - 1);
    image[i] = at / out_size;
    pixel[i] = at - image[i] * out_size;
    row[i] = pixel[i] / p.out_w;
    column[i] = (pixel[i] - row[i] * p.out_w) * p.stride_w - p.pad_w;
    row[i] = row[i] * p.stride_h - p.pad_h;
    [[unroll]] for (int b = 0; b < 2; ++b) sums[2 * i + b] = begin[(group * tiles + tile) * 2 + b];
  }

  int w = (group * tiles + tile) * p.kernel_h * p.kernel_w * p.in_blocks * 8;
  for (int tap_row = 0; tap_row < p.kernel_h; ++tap_row) {
    for (int tap_column = 0; tap_column < p.kernel_w; ++tap_column) {
      int at[PIXELS];
      bool inside[PIXELS];
      [[unroll]] for (int i = 0; i < PIXELS; ++i) {
        const int y = row[i] + tap_row * p.dilation_h, x_at = column[i] + tap_column * p.dilation_w;
        inside[i] = y >= 0 && y < p.in_h && x_at >= 0 && x_at < p.in_w;
        at[i] = (image[i] * p.groups + group) * p.in_blocks * in_size + (inside[i] ? y * p.in_w + x_at : 0);
      }
      for (int block = 0; block < p.in_blocks; ++block) {
        uint values[PIXELS];
        [[unroll]] for (int i = 0; i < PIXELS; ++i) {
          const uint found = x[at[i]];
          values[i] = inside[i] ? found : outside;
          at[i] += in_size;
        }
        uint loaded = 0;
        if (BROADCAST) loaded = weights[w + (int(gl_SubgroupInvocationID) & 7)];
        USE_WEIGHT(0) USE_WEIGHT(1) USE_WEIGHT(2) USE_WEIGHT(3) USE_WEIGHT(4) USE_WEIGHT(5) USE_WEIGHT(6) USE_WEIGHT(7)
        w += 8;
      }
    }
  }

  [[unroll]] for (int i = 0; i < PIXELS; ++i) {
    const bool real = first + i * lanes + int(gl_LocalInvocationID.x) < count;
    [[unroll]] for (int b = 0; b < 2; ++b) {
      const int block = tile * 2 + b;
      if (real && block < p.out_blocks) {
        const int to = ((image[i] * p.groups + group) * p.out_blocks + block) * out_size + pixel[i];
        precise vec4 steps = vec4(sums[2 * i + b]) * multipliers[(group * tiles + tile) * 2 + b];
        steps = mix(steps, steps * p.slope, lessThan(steps, vec4(0)));
        if (RESIDUAL) {
          const precise vec4 added = vec4(bytes_of(residual[to]) - p.y_zero) * p.y_ratio;
          steps += added;
        }
        if (FLOATS) floats[to] = T4(clamp(steps, p.low, p.high));
        else made[to] = to_bytes(steps, p.low, p.high, p.zero);
      }
    }
  }
}
