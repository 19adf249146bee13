// Moves channels between images in blocks: those from number FROM on of x become those from TO on of the result. What is
// filled behind them is 0.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(binding = 0) writeonly buffer Out { T1 made[]; };
layout(binding = 1) readonly buffer X { T1 x[]; };

layout(push_constant) uniform Push { int images, pixels, x_blocks, out_blocks, from, to, count, filled; } p;

void main() {
  const int i = flat_index(), written = p.count + p.filled;
  if (i >= p.images * written * p.pixels) return;
  const int pixel = i % p.pixels, one = i / p.pixels % written, image = i / p.pixels / written;
  const int source = p.from + min(one, p.count - 1), target = p.to + one;
  const float found = float(x[((image * p.x_blocks + source / 4) * p.pixels + pixel) * 4 + source % 4]);
  made[((image * p.out_blocks + target / 4) * p.pixels + pixel) * 4 + target % 4] = T1(one < p.count ? found : 0.0);
}
