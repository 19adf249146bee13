// Local response normalisation over ``size`` channels of each pixel (Krizhevsky et al., 2012), images in blocks.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(binding = 0) writeonly buffer Out { T4 made[]; };
layout(binding = 1) readonly buffer X { T1 x[]; };

layout(push_constant) uniform Push {
  int images, channels, pixels, size;
  float alpha, beta, offset;
} p;

void main() {
  const int i = flat_index(), blocks = (p.channels + 3) / 4;
  if (i >= p.images * blocks * p.pixels) return;
  const int pixel = i % p.pixels, block = i / p.pixels % blocks, image = i / p.pixels / blocks;
  vec4 v = vec4(0), sums = vec4(0);
  for (int lane = 0; lane < 4; ++lane) {
    const int channel = 4 * block + lane;
    for (int at = channel - (p.size - 1) / 2; at <= channel + p.size / 2; ++at) {
      const int within = clamp(at, 0, p.channels - 1);
      const float found = float(x[((image * blocks + within / 4) * p.pixels + pixel) * 4 + within % 4]);
      sums[lane] += at == within ? found * found : 0.0;
      if (at == channel) v[lane] = at == within ? found : 0.0;
    }
  }
  made[i] = T4(v * pow(p.offset + p.alpha / float(p.size) * sums, vec4(-p.beta)));
}
