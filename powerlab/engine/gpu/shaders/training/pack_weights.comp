// Brings the weights of a convolution, or its biases, which training moves, into the order in which a kernel reads them:
// [group][tile][row][column][in block][input][block of the tile][4 outputs], with zeros where there is none.
//
// ``merged`` groups of the model are one here, with zeros between them. Of weights a channel each, channels are outputs and
// inputs are 1.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(binding = 0) writeonly buffer Out { vec4 made[]; };
layout(binding = 1) readonly buffer X { float x[]; };

layout(push_constant) uniform Push {
  int count, tiles, tile_blocks, kernel_h, kernel_w, in_blocks, lanes, outputs, inputs, merged;
  int of_group, of_output, of_input, of_row, of_column, start;  // how far apart they are, and the first one
} p;

void main() {
  const int i = flat_index();
  if (i >= p.count) return;
  int left = i;
  const int block = left % p.tile_blocks;
  left /= p.tile_blocks;
  const int lane = left % p.lanes;
  left /= p.lanes;
  const int in_block = left % p.in_blocks;
  left /= p.in_blocks;
  const int column = left % p.kernel_w;
  left /= p.kernel_w;
  const int row = left % p.kernel_h;
  left /= p.kernel_h;
  const int tile = left % p.tiles, group = left / p.tiles, one = in_block * p.lanes + lane;
  vec4 v = vec4(0);
  for (int c = 0; c < 4; ++c) {
    const int output_at = (tile * p.tile_blocks + block) * 4 + c, own = output_at / p.outputs;
    if (own < p.merged && one / p.inputs == own) {
      v[c] = x[p.start + (group * p.merged + own) * p.of_group + output_at % p.outputs * p.of_output +
               one % p.inputs * p.of_input + row * p.of_row + column * p.of_column];
    }
  }
  made[i] = v;
}
