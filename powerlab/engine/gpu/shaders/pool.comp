// Windows over images in blocks: KIND 0 takes maxima, 1 averages, 2 norms of power p.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(constant_id = 1) const int KIND = 0;

layout(binding = 0) writeonly buffer Out { T4 made[]; };
layout(binding = 1) readonly buffer X { T4 x[]; };

layout(push_constant) uniform Push {
  int planes, in_h, in_w, out_h, out_w, kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w, dilation_h, dilation_w;
  int counted_top, counted_left, counted_bottom, counted_right;  // pixels around the image that count in an average
  float power;
} p;

void main() {
  const int out_size = p.out_h * p.out_w, count = p.planes * out_size, wanted = flat_index();
  const int at = min(wanted, count - 1), plane = at / out_size, pixel = at - plane * out_size;
  const int row = pixel / p.out_w * p.stride_h - p.pad_h, column = pixel % p.out_w * p.stride_w - p.pad_w;
  vec4 most = vec4(-1.0 / 0.0), sum = vec4(0);
  int counted = 0;
  for (int tap_row = 0; tap_row < p.kernel_h; ++tap_row) {
    for (int tap_column = 0; tap_column < p.kernel_w; ++tap_column) {
      const int y = row + tap_row * p.dilation_h, x_at = column + tap_column * p.dilation_w;
      const bool inside = y >= 0 && y < p.in_h && x_at >= 0 && x_at < p.in_w;
      const vec4 found = vec4(x[plane * p.in_h * p.in_w + (inside ? y * p.in_w + x_at : 0)]);
      if (KIND == 0) most = inside ? max(most, found) : most;
      if (KIND == 1) sum += inside ? found : vec4(0);
      if (KIND == 2) sum += inside ? pow(abs(found), vec4(p.power)) : vec4(0);
      counted += int(y >= -p.counted_top && y < p.in_h + p.counted_bottom && x_at >= -p.counted_left &&
                     x_at < p.in_w + p.counted_right);
    }
  }
  vec4 result = most;
  if (KIND == 1) result = sum / float(max(counted, 1));
  if (KIND == 2) result = pow(sum, vec4(1.0 / p.power));
  if (wanted < count) made[at] = T4(result);
}
