// Numbers in 8 bits: 4 channels a word, the first one lowest. Sums of a convolution become bytes as on the processor:
// zero point + round(sum * multiplier), to the even one of two as near, within the bounds of the output.
ivec4 bytes_of(uint word) { return ivec4(uvec4(word, word >> 8, word >> 16, word >> 24) & 255u); }
uint word_of(ivec4 bytes) {
  const uvec4 low = uvec4(bytes) & 255u;
  return low.x | low.y << 8 | low.z << 16 | low.w << 24;
}
uint to_bytes(vec4 steps, float low, float high, int zero) {
  return word_of(ivec4(roundEven(clamp(steps, low, high))) + zero);
}
