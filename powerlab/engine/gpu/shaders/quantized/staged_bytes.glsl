// What staged.glsl wants of tiles of bytes, 4 inputs a word: all but where they go in shared memory, and as what.
#define VALUE uint
#define FACTOR uint
#define PLACE bvec2  // within the image, within the window
#define KEPT_FACTOR(factor) factor
#include "staged.glsl"

#define FIND_FACTOR(k, e) weights[min(from + k * TILE_OUTPUTS + e, last)]  // beyond the last one, values are 0

uint find_value(ivec4 corner, int k, int e, int end, out bvec2 place) {
  const int at = k + e / TILE_PIXELS;
  bool inside;
  const int from = place_of(corner, at, inside);
  place = bvec2(inside, at < end);
  return x[from];
}
