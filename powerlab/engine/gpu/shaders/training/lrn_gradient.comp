// What local response normalisation gives back, images in blocks: with s = offset + alpha / size * sum of squares,
//   dx = dy * s^-beta - 2 alpha beta / size * x * sum of (dy * x * s^(-beta - 1)),
// the last sum over the channels in whose windows the channel lies. x is what was normalised, y the gradient.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "common.glsl"

layout(binding = 0) writeonly buffer Out { vec4 made[]; };
layout(binding = 1) readonly buffer X { float x[]; };
layout(binding = 2) readonly buffer Y { float y[]; };

layout(push_constant) uniform Push {
  int images, channels, pixels, size;
  float alpha, beta, offset;
} p;

int image, pixel;

int place(int channel) {
  return ((image * ((p.channels + 3) / 4) + channel / 4) * p.pixels + pixel) * 4 + channel % 4;
}

float base_of(int channel) {
  float sum = 0;
  for (int at = max(channel - (p.size - 1) / 2, 0); at <= min(channel + p.size / 2, p.channels - 1); ++at) {
    sum += x[place(at)] * x[place(at)];
  }
  return p.offset + p.alpha / float(p.size) * sum;
}

void main() {
  const int i = flat_index(), blocks = (p.channels + 3) / 4;
  if (i >= p.images * blocks * p.pixels) return;
  pixel = i % p.pixels;
  image = i / p.pixels / blocks;
  const int block = i / p.pixels % blocks;
  vec4 v = vec4(0);
  for (int c = 0; c < 4; ++c) {
    const int channel = 4 * block + c;
    if (channel >= p.channels) break;
    float shares = 0;
    for (int at = max(channel - p.size / 2, 0); at <= min(channel + (p.size - 1) / 2, p.channels - 1); ++at) {
      shares += y[place(at)] * x[place(at)] * pow(base_of(at), -p.beta - 1.0);
    }
    const float direct = y[place(channel)] * pow(base_of(channel), -p.beta);
    v[c] = direct - 2.0 * p.alpha * p.beta / float(p.size) * x[place(channel)] * shares;
  }
  made[i] = v;
}
