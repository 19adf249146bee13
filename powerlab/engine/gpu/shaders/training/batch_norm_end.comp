// What a batch norm makes of its sums (channel_sums.comp, KIND 1): a factor and a summand a channel, in whole blocks, the
// running statistics after, and the batch's mean and one over its deviation. Lanes are channels.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(binding = 0) writeonly buffer Factor { float factor[]; };
layout(binding = 1) writeonly buffer Summand { float summand[]; };
layout(binding = 2) writeonly buffer MeanAfter { float mean_after[]; };
layout(binding = 3) writeonly buffer VarianceAfter { float variance_after[]; };
layout(binding = 4) writeonly buffer Mean { float mean_of[]; };
layout(binding = 5) writeonly buffer Inverse { float inverse_of[]; };
layout(binding = 6) readonly buffer Sums { float sums[]; };
layout(binding = 7) readonly buffer X { float x[]; };
layout(binding = 8) readonly buffer Scale { float scale[]; };
layout(binding = 9) readonly buffer Shift { float shift[]; };
layout(binding = 10) readonly buffer MeanBefore { float mean_before[]; };
layout(binding = 11) readonly buffer VarianceBefore { float variance_before[]; };

layout(push_constant) uniform Push {
  int channels, pixels, count, parts;  // pixels of an image, and of all
  float epsilon, kept;
} p;

void main() {
  const int c = flat_index(), blocks = (p.channels + 3) / 4, at = min(c, p.channels - 1);
  if (c >= 4 * blocks) return;
  float first = 0, second = 0;
  for (int part = 0; part < p.parts; ++part) {
    first += sums[(part * blocks + at / 4) * 8 + at % 4];
    second += sums[(part * blocks + at / 4) * 8 + 4 + at % 4];
  }
  const float moved = first / float(p.count), mean = x[at / 4 * p.pixels * 4 + at % 4] + moved;
  const float variance = max(second / float(p.count) - moved * moved, 0.0);
  const float inverse = 1.0 / sqrt(variance + p.epsilon), steep = scale[at] * inverse;
  factor[c] = c == at ? steep : 0.0;
  summand[c] = c == at ? shift[at] - mean * steep : 0.0;
  if (c != at) return;
  mean_after[c] = p.kept * mean_before[c] + (1.0 - p.kept) * mean;
  variance_after[c] = p.kept * variance_before[c] + (1.0 - p.kept) * variance;
  mean_of[c] = mean;
  inverse_of[c] = inverse;
}
