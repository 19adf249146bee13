// Stochastic gradient descent by PyTorch's definition (https://pytorch.org/docs/stable/optim.html). Numbers: rate, momentum,
// decay. NESTEROV: whether the gradient is taken ahead. Without momentum there is no velocity.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "finite.glsl"

layout(constant_id = 1) const bool MOMENTUM = false;
layout(constant_id = 2) const bool NESTEROV = false;

layout(binding = 0) buffer Weight { vec4 weight[]; };
layout(binding = 1) buffer Velocity { vec4 velocity[]; };
layout(binding = 2) readonly buffer Gradient { vec4 gradient[]; };
layout(binding = 3) readonly buffer Numbers { float numbers[]; };
layout(binding = 4) readonly buffer Loss { float loss[]; };

layout(push_constant) uniform Push {
  int count;
  float share_of_gradient;
} p;

void main() {
  const int i = flat_index();
  if (i >= p.count || !is_finite(loss[0])) return;
  vec4 way = gradient[i] * p.share_of_gradient + weight[i] * numbers[2];
  if (MOMENTUM) {
    const vec4 moved = velocity[i] * numbers[1] + way;
    velocity[i] = moved;
    way = NESTEROV ? way + moved * numbers[1] : moved;
  }
  weight[i] -= way * numbers[0];
}
