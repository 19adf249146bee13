// Adds the parts of gradients of weights, and puts them in the model's order: (outputs, inputs of a group, taps). ``merged``:
// groups were computed as one, of which those between different groups are left out.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(binding = 0) writeonly buffer Out { float made[]; };
layout(binding = 1) readonly buffer Parts { float parts[]; };

layout(push_constant) uniform Push { int count, outputs, inputs, taps, out_blocks, in_blocks, merged, parts_count, all; } p;

void main() {
  const int i = flat_index();
  if (i >= p.count) return;
  const int tap = i % p.taps, within = i / p.taps % p.inputs, whole = i / p.taps / p.inputs;
  const int own = whole / p.outputs, group = p.merged != 0 ? 0 : own;
  const int one = p.merged != 0 ? whole : whole % p.outputs, read = p.merged != 0 ? own * p.inputs + within : within;
  const int block = (group * p.out_blocks + one / 4) * p.taps + tap;
  const int at = ((block * p.in_blocks + read / 4) * 4 + read % 4) * 4 + one % 4;
  float sum = 0;
  for (int part = 0; part < p.parts_count; ++part) sum += parts[part * p.all + at];
  made[i] = sum;
}
