// One step of time of a recurrent cell, for all sequences: SLICES lanes a hidden unit, of whose sums each makes a part, and
// the first goes on with them. CELL 0 is an LSTM (Hochreiter and
// Schmidhuber, 1997) with peepholes (Gers et al., 2002), 1 a GRU (Cho et al., 2014), 2 an RNN; any functions of ONNX,
// clipped, for sequences of different lengths. PHASE 1 makes the gates of a GRU that resets before the product, and 2 its
// candidate; 0 is all of a step.
//
// What inputs and biases add to the gates: [step][sequence][unit], the gates of a unit in ONNX's order, as are weights
// [k][unit]. State: [4][sequence][unit]: hidden units after even and after odd turns, cells or update gates, and hidden
// units times their reset gates. Of units: peepholes of input, output and forget gate, or a GRU's bias of the recurrent
// part of its candidate.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "common.glsl"

layout(constant_id = 1) const int CELL = 0;
layout(constant_id = 2) const int PHASE = 0;
layout(constant_id = 3) const bool FIRST = false;  // of the steps: states are the initial ones
layout(constant_id = 4) const bool GIVEN = false;  // whether there are any; else they are zero
layout(constant_id = 5) const bool LAST = false;   // of the steps: states are put out
layout(constant_id = 6) const int FUNCTION_0 = 0;
layout(constant_id = 7) const int FUNCTION_1 = 1;
layout(constant_id = 8) const int FUNCTION_2 = 1;
layout(constant_id = 9) const int SLICES = 1;

layout(binding = 0) writeonly buffer Out { T1 made[]; };
layout(binding = 1) buffer State { float state[]; };
layout(binding = 2) writeonly buffer LastHidden { T1 last_hidden[]; };
layout(binding = 3) writeonly buffer LastCells { T1 last_cells[]; };
layout(binding = 4) readonly buffer Gates { T4 gates[]; };
layout(binding = 5) readonly buffer Weights { T4 weights[]; };
layout(binding = 6) readonly buffer OfUnits { vec4 of_units[]; };
layout(binding = 7) readonly buffer Lengths { float lengths[]; };
layout(binding = 8) readonly buffer FirstHidden { T1 first_hidden[]; };
layout(binding = 9) readonly buffer FirstCells { T1 first_cells[]; };

layout(push_constant) uniform Push {
  float clip, alpha[3], beta[3];
  int couples;  // whether an LSTM forgets what its input gate leaves
  int units, batch, step, turn, out_start, state_start;
} p;

const int UNITS = int(gl_WorkGroupSize.x) / SLICES;  // of a work group
shared vec4 parts[SLICES > 1 ? int(gl_WorkGroupSize.x) : 1];

float tanh_of(float v) {
  const float e = exp(2.0 * clamp(v, -15.0, 15.0));
  return abs(v) < 0.1 ? v * (1.0 - v * v * (1.0 / 3.0 - v * v * (2.0 / 15.0))) : (e - 1.0) / (e + 1.0);
}

// The codes of functions, in the order of powerlab/engine/ops/cells.py.
float function_of(int code, int index, float x) {
  const float alpha = p.alpha[index], beta = p.beta[index];
  switch (code) {
    case 0: return 1.0 / (1.0 + exp(clamp(-x, -88.0, 88.0)));
    case 1: return tanh_of(x);
    case 2: return max(x, 0.0);
    case 3: return alpha * x + beta;
    case 4: return x < 0 ? alpha * x : x;
    case 5: return x < alpha ? 0.0 : x;
    case 6: return alpha * tanh_of(beta * x);
    case 7: return clamp(alpha * x + beta, 0.0, 1.0);
    case 8: return x < 0 ? alpha * (exp(x) - 1.0) : x;
    case 9: return x / (1.0 + abs(x));
  }
  return max(x, 0.0) + log(1.0 + exp(-min(abs(x), 88.0)));
}
float first_function(float x) { return function_of(FUNCTION_0, 0, clamp(x, -p.clip, p.clip)); }
float second_function(float x) { return function_of(FUNCTION_1, 1, clamp(x, -p.clip, p.clip)); }

void main() {
  const int lane = int(gl_LocalInvocationID.x), slice = lane / UNITS, sequence = int(gl_WorkGroupID.y);
  const int wanted = int(gl_WorkGroupID.x) * UNITS + lane % UNITS, unit = min(wanted, p.units - 1);
  const int row = sequence * p.units, at = row + unit, size = p.batch * p.units;
  const int now = p.turn % 2 * size, before = size - now;
  const bool zero = FIRST && !GIVEN;
  vec4 sums = vec4(0);
  if (!zero) {
    for (int k = slice; k < p.units; k += SLICES) {
      float hidden;
      if (PHASE == 2) hidden = state[3 * size + row + k];
      else if (FIRST) hidden = float(first_hidden[p.state_start + row + k]);
      else hidden = state[before + row + k];
      sums += hidden * vec4(weights[k * p.units + unit]);
    }
    if (SLICES > 1) {
      parts[lane] = sums;
      [[unroll]] for (int half_of = SLICES / 2; half_of > 0; half_of /= 2) {
        barrier();
        if (slice < half_of) {
          sums += parts[lane + half_of * UNITS];
          parts[lane] = sums;
        }
      }
    }
  }
  const vec4 inputs = vec4(gates[(p.step * p.batch + sequence) * p.units + unit]), own = of_units[unit];
  float hidden_before = 0, cell_before = 0;
  if (!zero) {
    hidden_before = FIRST ? float(first_hidden[p.state_start + at]) : state[before + at];
    if (CELL == 0) cell_before = FIRST ? float(first_cells[p.state_start + at]) : state[2 * size + at];
  }
  const bool runs = float(p.step) < lengths[sequence];
  if (wanted >= p.units || slice > 0) return;

  if (CELL == 1 && PHASE == 1) {
    state[2 * size + at] = first_function(inputs.x + sums.x);
    state[3 * size + at] = first_function(inputs.y + sums.y) * hidden_before;
    return;
  }
  float hidden, cell = cell_before;
  if (CELL == 0) {
    const float taken = first_function(inputs.x + sums.x + own.x * cell_before);
    const float kept = p.couples != 0 ? 1.0 - taken : first_function(inputs.z + sums.z + own.z * cell_before);
    cell = kept * cell_before + taken * second_function(inputs.w + sums.w);
    hidden = first_function(inputs.y + sums.y + own.y * cell) * function_of(FUNCTION_2, 2, cell);
    cell = runs ? cell : cell_before;
    state[2 * size + at] = cell;
  } else if (CELL == 1) {
    const float update = PHASE == 2 ? state[2 * size + at] : first_function(inputs.x + sums.x);
    float recurrent = sums.z;
    if (PHASE == 0) recurrent = first_function(inputs.y + sums.y) * (sums.z + own.x);
    const float candidate = second_function(inputs.z + recurrent);
    hidden = candidate + update * (hidden_before - candidate);
  } else {
    hidden = first_function(inputs.x + sums.x);
  }
  made[p.out_start + at] = T1(runs ? hidden : 0.0);
  hidden = runs ? hidden : hidden_before;  // behind its end a sequence keeps its state
  state[now + at] = hidden;
  if (LAST) {
    last_hidden[p.state_start + at] = T1(hidden);
    last_cells[p.state_start + at] = T1(cell);
  }
}
