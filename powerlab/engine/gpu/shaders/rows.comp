// What takes whole rows, a work group each: KIND 0 is softmax, 1 its logarithm, 2 layer normalisation (J. L. Ba et al.,
// 2016), 3 root mean square normalisation (B. Zhang and R. Sennrich, 2019), 4 division by the norm.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_arithmetic : require
#include "common.glsl"

layout(constant_id = 1) const int KIND = 0;
layout(constant_id = 2) const bool SCALED = false;
layout(constant_id = 3) const bool SHIFTED = false;

layout(binding = 0) writeonly buffer Out { T1 made[]; };
layout(binding = 1) readonly buffer X { T1 x[]; };
layout(binding = 2) readonly buffer Scale { T1 scale[]; };
layout(binding = 3) readonly buffer Shift { T1 shift[]; };

layout(push_constant) uniform Push {
  int rows, size, inner;  // numbers of a row lie ``inner`` apart
  int groups, run;        // rows after which scale and shift begin anew, and how many numbers share one of each
  int masked;             // whether a row of nothing but minus infinity becomes zeros
  float epsilon;
} p;

shared float parts[gl_WorkGroupSize.x];

float total_of(float own, bool largest) {
  float all = largest ? subgroupMax(own) : subgroupAdd(own);
  if (gl_NumSubgroups == 1) return all;
  if (subgroupElect()) parts[gl_SubgroupID] = all;
  barrier();
  all = parts[0];
  for (uint i = 1; i < gl_NumSubgroups; ++i) all = largest ? max(all, parts[i]) : all + parts[i];
  barrier();
  return all;
}

void main() {
  const int row = int(gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x);
  const int lanes = int(gl_WorkGroupSize.x), lane = int(gl_LocalInvocationID.x);
  const bool real = row < p.rows;
  const int start = min(row, p.rows - 1) / p.inner * p.size * p.inner + min(row, p.rows - 1) % p.inner;
  float most = -1.0 / 0.0, sum = 0;
  if (KIND < 2) {
    for (int i = lane; i < p.size; i += lanes) most = max(most, float(x[start + i * p.inner]));
    most = total_of(most, true);
    for (int i = lane; i < p.size; i += lanes) sum += exp(float(x[start + i * p.inner]) - most);
    sum = total_of(sum, false);
  } else {
    float mean = 0;
    if (KIND == 2) {
      for (int i = lane; i < p.size; i += lanes) sum += float(x[start + i * p.inner]);
      mean = total_of(sum, false) / float(p.size);
      sum = 0;
    }
    for (int i = lane; i < p.size; i += lanes) {
      const float away = float(x[start + i * p.inner]) - mean;
      sum += away * away;
    }
    sum = total_of(sum, false);
    sum = KIND == 4 ? 1.0 / max(sqrt(sum), p.epsilon) : 1.0 / sqrt(sum / float(p.size) + p.epsilon);
    most = mean;
  }
  if (!real) return;
  for (int i = lane; i < p.size; i += lanes) {
    const float away = float(x[start + i * p.inner]) - most;
    float v = away * sum;
    if (KIND == 0) v = p.masked != 0 && isinf(most) && most < 0 ? 0.0 : exp(away) / sum;
    if (KIND == 1) v = away - log(sum);
    const int own = row % p.groups * (p.size / p.run) + i / p.run;
    if (SCALED) v *= float(scale[own]);
    if (SHIFTED) v += float(shift[own]);
    made[start + i * p.inner] = T1(v);
  }
}
