// Where the depth of a product is cut into parts, each a work group of its own: sums of parts go, unfinished, one tensor
// after another, to where sum_parts.comp adds them.

layout(binding = 0) restrict writeonly buffer Parts { vec4 parts[]; };

// The blocks of a window that are a part's, whole steps of DEPTH_BLOCKS: from, to.
ivec2 part_of(int part, int depth) {
  return ivec2(min(part * p.part_blocks, depth), min((part + 1) * p.part_blocks, depth));
}

// Puts a sum of the block of outputs ``to``, of so many; or what the layer makes of it where there are no parts, by its
// bias and the number that is added, which lanes read before they need them: else each sum would wait for memory.
void put(int part, int to, int all, vec4 sum, vec4 shift, RAW4 added) {
  if (p.parts > 1) {
    parts[part * all + to] = sum;
    return;
  }
  sum += shift;
  if (RESIDUAL) sum += numbers_of(added);
  made[to] = T4(finish(sum, p.low, p.high, p.slope, p.alpha, p.beta));
}
