// What the gradient of a batch norm makes of its sums (channel_sums.comp, KIND 2): the gradients of scale and shift, and for
// batch_norm_gradient.comp four numbers a channel, in whole blocks. Lanes are channels.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(binding = 0) writeonly buffer Numbers { float numbers[]; };  // [steep, bent, level, mean][channel]
layout(binding = 1) writeonly buffer OfScale { float of_scale[]; };
layout(binding = 2) writeonly buffer OfShift { float of_shift[]; };
layout(binding = 3) readonly buffer Sums { float sums[]; };
layout(binding = 4) readonly buffer Scale { float scale[]; };
layout(binding = 5) readonly buffer Mean { float mean[]; };
layout(binding = 6) readonly buffer Inverse { float inverse_of[]; };

layout(push_constant) uniform Push { int channels, count, parts; } p;

void main() {
  const int c = flat_index(), blocks = (p.channels + 3) / 4, filled = 4 * blocks, at = min(c, p.channels - 1);
  if (c >= filled) return;
  float first = 0, second = 0;
  for (int part = 0; part < p.parts; ++part) {
    first += sums[(part * blocks + at / 4) * 8 + at % 4];
    second += sums[(part * blocks + at / 4) * 8 + 4 + at % 4];
  }
  const float inverse = inverse_of[at], steep = c == at ? scale[at] * inverse : 0.0;
  numbers[c] = steep;
  numbers[filled + c] = -steep * inverse * inverse * second / float(p.count);
  numbers[2 * filled + c] = -steep * first / float(p.count);
  numbers[3 * filled + c] = mean[at];
  if (c != at) return;
  of_scale[c] = second * inverse;
  of_shift[c] = first;
}
