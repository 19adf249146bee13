// Products of F(2, 3) or F(4, 3), [position][block][tile], transformed back to pixels: A^T m A (A. Lavin and S. Gray,
// 2016), and what a convolution ends with. With VOLUME they are [n][position][block][plane][tile].
#extension GL_EXT_control_flow_attributes : require
#include "finish.glsl"

layout(constant_id = 2) const int TILE = 2;
layout(constant_id = 3) const bool RESIDUAL = false;

layout(binding = 0) writeonly buffer Out { T4 made[]; };
layout(binding = 1) readonly buffer X { T4 x[]; };
layout(binding = 2) readonly buffer Bias { vec4 bias[]; };
layout(binding = 3) readonly buffer Residual { T4 residual[]; };

layout(push_constant) uniform Push {
  FINISH_NUMBERS;
  int images, out_h, out_w, blocks, tiles_h, tiles_w;
#ifdef VOLUME
  int planes;
#endif
} p;

#include "winograd_tile.glsl"

vec4 m[SIDE * SIDE];

// A^T times SIDE vectors, ``step`` apart; the first TILE of them become the result.
void transform(int at, int step) {
  if (TILE == 2) {
    const vec4 a = m[at], b = m[at + step], c = m[at + 2 * step], e = m[at + 3 * step];
    m[at] = a + b + c;
    m[at + step] = b - c - e;
  } else {
    const vec4 a = m[at], b = m[at + step], c = m[at + 2 * step], e = m[at + 3 * step], f = m[at + 4 * step];
    const vec4 g = m[at + 5 * step];
    m[at] = a + b + c + e + f;
    m[at + step] = b - c + 2.0 * (e - f);
    m[at + 2 * step] = b + c + 4.0 * (e + f);
    m[at + 3 * step] = b - c + 8.0 * (e - f) + g;
  }
}

void main() {
  FIND_WINOGRAD_TILE
  const int row = within / p.tiles_w * TILE, column = within % p.tiles_w * TILE;
  [[unroll]] for (int s = 0; s < SIDE * SIDE; ++s) m[s] = vec4(x[PLACE(s)]);
  [[unroll]] for (int c = 0; c < SIDE; ++c) transform(c, SIDE);
  [[unroll]] for (int r = 0; r < TILE; ++r) transform(r * SIDE, 1);
  [[unroll]] for (int r = 0; r < TILE; ++r) {
    [[unroll]] for (int c = 0; c < TILE; ++c) {
      if (row + r < p.out_h && column + c < p.out_w) {
        const int to = (PLANE * p.out_h + row + r) * p.out_w + column + c;
        vec4 v = m[r * SIDE + c] + bias[block];
        if (RESIDUAL) v += vec4(residual[to]);
        made[to] = T4(finish(v, p.low, p.high, p.slope, p.alpha, p.beta));
      }
    }
  }
}
