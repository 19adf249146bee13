// The instruction that multiplies and sums four signed and four unsigned bytes (SPV_KHR_integer_dot_product).
#extension GL_EXT_spirv_intrinsics : require

// OpSUDot of two words: capabilities DotProduct and DotProductInput4x8BitPacked, format PackedVectorFormat4x8Bit.
spirv_instruction(extensions = ["SPV_KHR_integer_dot_product"], capabilities = [6019, 6018], id = 4452)
int dot_words(int signed_bytes, int unsigned_bytes, spirv_literal int format);

int dot_bytes(uint signed_bytes, uint unsigned_bytes) {
  return dot_words(int(signed_bytes), int(unsigned_bytes), 0);
}
