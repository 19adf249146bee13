// Operands of convolutions of bytes, and how they end: sums in 32 bits times a multiplier of their channel, what is below
// 0 times a slope, a second tensor added, and bytes again, or with FLOATS numbers of the network and a function of them.
// Images: [n][channel block][pixel], 4 channels a word.
#include "bytes.glsl"
#include "finish.glsl"
#include "window.glsl"

layout(constant_id = 2) const bool RESIDUAL = false;
layout(constant_id = 3) const bool FLOATS = false;

layout(binding = 0) restrict writeonly buffer Out { uint made[]; };
layout(binding = 1) restrict writeonly buffer OutFloats { T4 floats[]; };
layout(binding = 2) restrict readonly buffer X { uint x[]; };
layout(binding = 3) restrict readonly buffer Weights { uint weights[]; };
layout(binding = 4) restrict readonly buffer Begin { ivec4 begin[]; };  // of sums
layout(binding = 5) restrict readonly buffer Multipliers { vec4 multipliers[]; };
layout(binding = 6) restrict readonly buffer Residual { uint residual[]; };

layout(push_constant) uniform Push {
  FINISH_NUMBERS;
  float y_ratio;
  WINDOW_NUMBERS;
  int x_zero, y_zero, zero;
} p;

// Puts the sums of a block of channels, which is number ``block`` among those of the constants.
void put(int to, int block, ivec4 sums) {
  precise vec4 steps = vec4(sums) * multipliers[block];
  steps = mix(steps, steps * p.slope, lessThan(steps, vec4(0)));
  if (RESIDUAL) {
    const precise vec4 added = vec4(bytes_of(residual[to]) - p.y_zero) * p.y_ratio;
    steps += added;
  }
  if (FLOATS) floats[to] = T4(function_of(clamp(steps, p.low, p.high), p.alpha, p.beta));
  else made[to] = to_bytes(steps, p.low, p.high, p.zero);
}
