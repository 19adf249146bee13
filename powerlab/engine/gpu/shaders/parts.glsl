// Where the depth of a product is cut into parts, each a work group of its own: sums of parts go, unfinished, one tensor
// after another, to where sum_parts.comp adds them.

layout(binding = 0) restrict writeonly buffer Parts { vec4 parts[]; };

// The blocks of a window that are a part's: whole steps of DEPTH_BLOCKS.
ivec2 part_of(int part, int depth) {
  const int steps = (depth + DEPTH_BLOCKS - 1) / DEPTH_BLOCKS, each = (steps + p.parts - 1) / p.parts;
  return ivec2(min(part * each * DEPTH_BLOCKS, depth), min((part + 1) * each * DEPTH_BLOCKS, depth));
}

// Puts a sum of the block of outputs ``to``, of so many; or what the layer makes of it where there are no parts.
void put(int part, int to, int all, int constant, vec4 sum) {
  if (p.parts > 1) {
    parts[part * all + to] = sum;
    return;
  }
  sum += bias[constant];
  if (RESIDUAL) sum += vec4(residual[to]);
  made[to] = T4(finish(sum, p.low, p.high, p.slope, p.alpha, p.beta));
}
