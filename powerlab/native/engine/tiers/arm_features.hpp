// Which optional instructions of 64-bit Arm this processor has.
#pragma once

namespace powerlab::engine {

// Dot products of bytes: ARMv8.2's FEAT_DotProd.
bool has_dot_products();

// Products of matrices of bytes: ARMv8.6's FEAT_I8MM.
bool has_byte_matrices();

// Dot products of bfloat16: ARMv8.6's FEAT_BF16.
bool has_bf16_dot_products();

// Arithmetic in float16, of vectors: ARMv8.2's FEAT_FP16.
bool has_half_arithmetic();

}  // namespace powerlab::engine
