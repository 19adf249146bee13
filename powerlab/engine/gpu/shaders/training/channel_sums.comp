// Sums over all pixels of each channel, images in blocks: a work group has one block of channels and a part of the pixels.
// KIND 0 sums x; 1 what x has above a pixel of it, and the square of that; 2 y, and y times what x has above the mean.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(constant_id = 1) const int KIND = 0;

const int EACH = KIND == 0 ? 1 : 2;

layout(binding = 0) writeonly buffer Out { vec4 made[]; };  // [part][block][sum]
layout(binding = 1) readonly buffer X { vec4 x[]; };
layout(binding = 2) readonly buffer Y { vec4 y[]; };
layout(binding = 3) readonly buffer Mean { float mean[]; };

layout(push_constant) uniform Push { int images, channels, pixels, parts; } p;

shared vec4 sums[2 * gl_WorkGroupSize.x];

void main() {
  const int lane = int(gl_LocalInvocationID.x), lanes = int(gl_WorkGroupSize.x), blocks = (p.channels + 3) / 4;
  const int block = int(gl_WorkGroupID.x), part = int(gl_WorkGroupID.y), count = p.images * p.pixels;
  const int each = (count + p.parts - 1) / p.parts, end = min((part + 1) * each, count);
  vec4 level = vec4(0), first = vec4(0), second = vec4(0);
  if (KIND == 1) level = x[block * p.pixels];  // near the mean, so that squares do not cancel
  if (KIND == 2) {
    for (int c = 0; c < 4; ++c) level[c] = mean[min(4 * block + c, p.channels - 1)];
  }
  for (int at = part * each + lane; at < end; at += lanes) {
    const int image = at / p.pixels, from = (image * blocks + block) * p.pixels + at - image * p.pixels;
    const vec4 apart = x[from] - level, given = KIND == 2 ? y[from] : apart;
    first += given;
    if (KIND != 0) second += given * apart;
  }
  sums[lane] = first;
  sums[lanes + lane] = second;
  for (int half_of = lanes / 2; half_of > 0; half_of /= 2) {
    barrier();
    if (lane < half_of) {
      sums[lane] += sums[lane + half_of];
      sums[lanes + lane] += sums[lanes + lane + half_of];
    }
  }
  if (lane == 0) {
    made[(part * blocks + block) * EACH] = sums[0];
    if (KIND != 0) made[(part * blocks + block) * EACH + 1] = sums[lanes];
  }
}
