// One step of time of an LSTM (Hochreiter and Schmidhuber, 1997), for all sequences: a lane a hidden unit. What inputs and
// biases add to the gates is there: [step][sequence][unit], gates i, o, f, c of a unit together, as are weights [k][unit].
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(constant_id = 1) const bool FIRST = false;  // whether the states before are all zero

layout(binding = 0) buffer Hidden { T1 hidden[]; };
layout(binding = 1) buffer Cells { float cells[]; };
layout(binding = 2) readonly buffer Gates { T4 gates[]; };
layout(binding = 3) readonly buffer Weights { T4 weights[]; };

layout(push_constant) uniform Push { int units, batch, step, out_start, before_start; } p;

float sigmoid(float v) { return 1.0 / (1.0 + exp(clamp(-v, -88.0, 88.0))); }
float tanh_of(float v) {
  const float e = exp(2.0 * clamp(v, -15.0, 15.0));
  return abs(v) < 0.1 ? v * (1.0 - v * v * (1.0 / 3.0 - v * v * (2.0 / 15.0))) : (e - 1.0) / (e + 1.0);
}

void main() {
  const int wanted = int(gl_GlobalInvocationID.x), unit = min(wanted, p.units - 1), sequence = int(gl_WorkGroupID.y);
  vec4 sums = vec4(gates[(p.step * p.batch + sequence) * p.units + unit]);
  if (!FIRST) {
    for (int k = 0; k < p.units; ++k) {
      sums += float(hidden[p.before_start + sequence * p.units + k]) * vec4(weights[k * p.units + unit]);
    }
  }
  const int at = sequence * p.units + unit;
  float cell = sigmoid(sums.x) * tanh_of(sums.w);
  if (!FIRST) cell += sigmoid(sums.z) * cells[at];
  if (wanted < p.units) {
    cells[at] = cell;
    hidden[p.out_start + at] = T1(sigmoid(sums.y) * tanh_of(cell));
  }
}
