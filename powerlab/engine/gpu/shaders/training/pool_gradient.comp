// What a pool gives back, images in blocks: each pixel adds up what the windows that saw it have for it. KIND 0: a maximum,
// whose gradient goes to the first of the largest pixels; 1: an average.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(constant_id = 1) const int KIND = 0;

layout(binding = 0) writeonly buffer Out { vec4 made[]; };
layout(binding = 1) readonly buffer X { vec4 x[]; };  // what the pool read
layout(binding = 2) readonly buffer Y { vec4 y[]; };  // the gradient of what it made

layout(push_constant) uniform Push {
  int planes, in_h, in_w, out_h, out_w, kernel_h, kernel_w, stride_h, stride_w, pad_h, pad_w;
  int counts_pads;
} p;

// The windows along an axis that see a place: from the first on, before the second.
ivec2 windows(int place, int pad, int kernel, int stride, int count) {
  return ivec2((max(place + pad - kernel + 1, 0) + stride - 1) / stride, min((place + pad) / stride + 1, count));
}

// The places along an axis that a window sees, likewise.
ivec2 seen(int window, int pad, int kernel, int stride, int size) {
  const int from = window * stride - pad;
  return ivec2(max(from, 0), min(from + kernel, size));
}

void main() {
  const int in_size = p.in_h * p.in_w, out_size = p.out_h * p.out_w, i = flat_index();
  if (i >= p.planes * in_size) return;
  const int plane = i / in_size, pixel = i - plane * in_size, row = pixel / p.in_w, column = pixel % p.in_w;
  const ivec2 down = windows(row, p.pad_h, p.kernel_h, p.stride_h, p.out_h);
  const ivec2 across = windows(column, p.pad_w, p.kernel_w, p.stride_w, p.out_w);
  vec4 sum = vec4(0);
  for (int window_row = down.x; window_row < down.y; ++window_row) {
    const ivec2 rows = seen(window_row, p.pad_h, p.kernel_h, p.stride_h, p.in_h);
    for (int window_column = across.x; window_column < across.y; ++window_column) {
      const ivec2 columns = seen(window_column, p.pad_w, p.kernel_w, p.stride_w, p.in_w);
      const vec4 given = y[plane * out_size + window_row * p.out_w + window_column];
      if (KIND == 1) {
        const int inside = (rows.y - rows.x) * (columns.y - columns.x);
        sum += given / float(p.counts_pads != 0 ? p.kernel_h * p.kernel_w : inside);
        continue;
      }
      vec4 most = x[plane * in_size + rows.x * p.in_w + columns.x];
      ivec4 place = ivec4(rows.x * p.in_w + columns.x);
      for (int r = rows.x; r < rows.y; ++r) {
        for (int c = columns.x; c < columns.y; ++c) {
          const vec4 found = x[plane * in_size + r * p.in_w + c];
          const bvec4 larger = greaterThan(found, most);
          most = mix(most, found, larger);
          place = ivec4(larger.x ? r * p.in_w + c : place.x, larger.y ? r * p.in_w + c : place.y,
                        larger.z ? r * p.in_w + c : place.z, larger.w ? r * p.in_w + c : place.w);
        }
      }
      sum += mix(vec4(0), given, equal(place, ivec4(pixel)));
    }
  }
  made[i] = sum;
}
