// Blocks of 4 channels to rows [n][channel][pixel].
layout(binding = 0) writeonly buffer Out { TO made[]; };
layout(binding = 1) readonly buffer X { T1 x[]; };

layout(push_constant) uniform Push { int images, channels, pixels; } p;

void main() {
  const int i = flat_index(), blocks = (p.channels + 3) / 4;
  if (i >= p.images * p.channels * p.pixels) return;
  const int pixel = i % p.pixels, channel = i / p.pixels % p.channels, image = i / p.pixels / p.channels;
  made[i] = TO(float(x[((image * blocks + channel / 4) * p.pixels + pixel) * 4 + channel % 4]));
}
