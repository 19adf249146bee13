// General tensors of up to 5 axes, number by number: made = x, or a function of x, y and z (OPERATION: see strided.py).
// Truth is 1 and 0.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(constant_id = 1) const int OPERATION = 0;
layout(constant_id = 2) const int AXES = 5;  // the last ones; those before them have a size of 1

layout(binding = 0) writeonly buffer Out { T1 made[]; };
layout(binding = 1) readonly buffer X { T1 x[]; };
layout(binding = 2) readonly buffer Y { T1 y[]; };

layout(binding = 3) readonly buffer Z { T1 z[]; };

layout(push_constant) uniform Push {
  int sizes[5], out_strides[5], x_strides[5], y_strides[5], z_strides[5];
  int out_start, x_start, y_start, z_start, count;
} p;

void main() {
  int left = flat_index();
  if (left >= p.count) return;
  int to = p.out_start, from_x = p.x_start, from_y = p.y_start, from_z = p.z_start;
  for (int axis = 4; axis >= 5 - AXES; --axis) {
    const int at = left % p.sizes[axis];
    left /= p.sizes[axis];
    to += at * p.out_strides[axis];
    from_x += at * p.x_strides[axis];
    from_y += at * p.y_strides[axis];
    from_z += at * p.z_strides[axis];
  }
  const float a = float(x[from_x]);
  float b = 0, v = a;
  if (OPERATION != 0) b = float(y[from_y]);
  switch (OPERATION) {
    case 1: v = a + b; break;
    case 2: v = a - b; break;
    case 3: v = a * b; break;
    case 4: v = a / b; break;
    case 5: v = max(a, b); break;
    case 6: v = min(a, b); break;
    case 7: v = a < 0 ? a * b : a; break;  // parametric relu
    case 8: v = b == 2 ? a * a : pow(abs(a), b) * (a < 0 && mod(b, 2.0) == 1 ? -1.0 : 1.0); break;
    case 11: v = a == b ? 1.0 : 0.0; break;
    case 12: v = a < b ? 1.0 : 0.0; break;
    case 13: v = a > b ? 1.0 : 0.0; break;
    case 15: v = a <= b ? 1.0 : 0.0; break;
    case 16: v = a != b ? 1.0 : 0.0; break;
    case 17: v = a == 0 ? 1.0 : 0.0; break;
    case 18: v = a != 0 ? 1.0 : 0.0; break;
  }
  if (OPERATION == 9) v = (floatBitsToUint(a) & 0x7fffffffu) > 0x7f800000u ? 1.0 : 0.0;  // not a number
  if (OPERATION == 10) v = a != 0 ? b : float(z[from_z]);
  if (OPERATION == 14) v = fma(a, b, float(z[from_z]));
  made[to] = T1(v);
}
