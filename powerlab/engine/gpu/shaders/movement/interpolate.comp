// Images in blocks, resized any other way: each pixel is a sum of taps, whose places and weights lie in pairs
// [new row or column][tap]; a place below 0 is outside and stands for the extrapolation value.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(binding = 0) writeonly buffer Out { T4 made[]; };
layout(binding = 1) readonly buffer X { T4 x[]; };
layout(binding = 2) readonly buffer Rows { vec2 rows[]; };
layout(binding = 3) readonly buffer Columns { vec2 columns[]; };

layout(push_constant) uniform Push {
  int planes, in_h, in_w, out_h, out_w, row_taps, column_taps;
  float extrapolation;
} p;

void main() {
  const int i = flat_index(), size = p.out_h * p.out_w;
  if (i >= p.planes * size) return;
  const int plane = i / size, row = i % size / p.out_w, column = i % p.out_w;
  vec4 sum = vec4(0);
  bool outside = false;
  for (int r = 0; r < p.row_taps; ++r) {
    const vec2 down = rows[row * p.row_taps + r];
    for (int c = 0; c < p.column_taps; ++c) {
      const vec2 across = columns[column * p.column_taps + c];
      outside = outside || down.x < 0 || across.x < 0;
      const int from = (plane * p.in_h + max(int(down.x), 0)) * p.in_w + max(int(across.x), 0);
      sum += down.y * across.y * vec4(x[from]);
    }
  }
  made[i] = T4(outside ? vec4(p.extrapolation) : sum);
}
