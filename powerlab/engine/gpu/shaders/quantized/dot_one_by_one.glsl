// Four products of a signed and an unsigned byte, made one by one and summed.
int dot_bytes(uint signed_bytes, uint unsigned_bytes) {
  const int a = int(signed_bytes), b = int(unsigned_bytes);
  return bitfieldExtract(a, 0, 8) * (b & 255) + bitfieldExtract(a, 8, 8) * (b >> 8 & 255) +
         bitfieldExtract(a, 16, 8) * (b >> 16 & 255) + (a >> 24) * (b >> 24 & 255);
}
