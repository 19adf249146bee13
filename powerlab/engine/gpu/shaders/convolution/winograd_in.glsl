// Tiles of an image, transformed for F(2, 3) or F(4, 3) (A. Lavin and S. Gray, 2016): B^T d B of each tile of TILE + 2
// rows and columns, position by position: [position][block][tile]. With VOLUME planes are transformed, each by itself, as
// products over planes want them: [n][position][block][plane][tile].
#extension GL_EXT_control_flow_attributes : require

layout(constant_id = 1) const int TILE = 2;

layout(binding = 0) writeonly buffer Out { T4 made[]; };
layout(binding = 1) readonly buffer X { T4 x[]; };

layout(push_constant) uniform Push {
  int images, in_h, in_w, blocks, tiles_h, tiles_w, pad_h, pad_w;
#ifdef VOLUME
  int planes;
#endif
} p;

#include "winograd_tile.glsl"

vec4 d[SIDE * SIDE];

// B^T times SIDE vectors, ``step`` apart.
void transform(int at, int step) {
  if (TILE == 2) {
    const vec4 a = d[at], b = d[at + step], c = d[at + 2 * step], e = d[at + 3 * step];
    d[at] = a - c;
    d[at + step] = b + c;
    d[at + 2 * step] = c - b;
    d[at + 3 * step] = b - e;
  } else {
    const vec4 a = d[at], b = d[at + step], c = d[at + 2 * step], e = d[at + 3 * step], f = d[at + 4 * step];
    const vec4 g = d[at + 5 * step];
    d[at] = 4.0 * a - 5.0 * c + f;
    d[at + step] = e + f - 4.0 * (b + c);
    d[at + 2 * step] = f - e + 4.0 * (b - c);
    d[at + 3 * step] = f - c + 2.0 * (e - b);
    d[at + 4 * step] = f - c + 2.0 * (b - e);
    d[at + 5 * step] = 4.0 * b - 5.0 * e + g;
  }
}

void main() {
  FIND_WINOGRAD_TILE
  const int row = within / p.tiles_w * TILE - p.pad_h, column = within % p.tiles_w * TILE - p.pad_w;
  const int from = PLANE * p.in_h * p.in_w;
  [[unroll]] for (int r = 0; r < SIDE; ++r) {
    [[unroll]] for (int c = 0; c < SIDE; ++c) {
      const int y = row + r, x_at = column + c;
      const bool inside = y >= 0 && y < p.in_h && x_at >= 0 && x_at < p.in_w;
      const vec4 found = vec4(x[from + (inside ? y * p.in_w + x_at : 0)]);
      d[r * SIDE + c] = inside ? found : vec4(0);
    }
  }
  [[unroll]] for (int c = 0; c < SIDE; ++c) transform(c, SIDE);
  [[unroll]] for (int r = 0; r < SIDE; ++r) transform(r * SIDE, 1);
  [[unroll]] for (int s = 0; s < SIDE * SIDE; ++s) made[PLACE(s)] = T4(d[s]);
}
