// Rows [n][channel][pixel] to blocks of 4 channels; what fills up the last block is 0.
layout(binding = 0) writeonly buffer Out { T4 made[]; };
layout(binding = 1) readonly buffer X { FROM x[]; };

layout(push_constant) uniform Push { int images, channels, pixels; } p;

void main() {
  const int i = flat_index(), blocks = (p.channels + 3) / 4;
  if (i >= p.images * blocks * p.pixels) return;
  const int pixel = i % p.pixels, block = i / p.pixels % blocks, image = i / p.pixels / blocks;
  vec4 v = vec4(0);
  for (int lane = 0; lane < 4; ++lane) {
    const int channel = 4 * block + lane;
    const float found = float(x[(image * p.channels + min(channel, p.channels - 1)) * p.pixels + pixel]);
    v[lane] = channel < p.channels ? found : 0.0;
  }
  made[i] = T4(v);
}
