// Which optional instructions of 64-bit Arm this processor has.
#pragma once

namespace powerlab::engine {

// Dot products of bytes: ARMv8.2's FEAT_DotProd.
bool has_dot_products();

}  // namespace powerlab::engine
