// Adam and AdamW by PyTorch's definition (https://pytorch.org/docs/stable/optim.html). Numbers: rate over what makes up for
// the first moment's beginning at 0, one over the root of the same of the second, beta1, 1 - beta1, beta2, 1 - beta2, epsilon,
// decay. DECOUPLED: whether the weight is multiplied by decay itself, and decay not added to the gradient.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"
#include "finite.glsl"

layout(constant_id = 1) const bool DECOUPLED = false;

layout(binding = 0) buffer Weight { vec4 weight[]; };
layout(binding = 1) buffer First { vec4 first[]; };
layout(binding = 2) buffer Second { vec4 second[]; };
layout(binding = 3) readonly buffer Gradient { vec4 gradient[]; };
layout(binding = 4) readonly buffer Numbers { float numbers[]; };
layout(binding = 5) readonly buffer Loss { float loss[]; };

layout(push_constant) uniform Push {
  int count;
  float share_of_gradient;
} p;

void main() {
  const int i = flat_index();
  if (i >= p.count || !is_finite(loss[0])) return;
  vec4 moved = weight[i], way = gradient[i] * p.share_of_gradient;
  if (DECOUPLED) {
    moved *= numbers[7];
  } else {
    way += moved * numbers[7];
  }
  const vec4 mean = first[i] * numbers[2] + way * numbers[3];
  const vec4 square = second[i] * numbers[4] + way * way * numbers[5];
  first[i] = mean;
  second[i] = square;
  weight[i] = moved - mean * numbers[0] / (sqrt(square) * numbers[1] + numbers[6]);
}
