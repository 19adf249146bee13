// All kernels on bfloat16 for one instruction set that multiplies it, with its flags and in its namespace, beside the
// tier whose vectors it has. A new kernel is a function in a header under kernels/pairs/ and one line here.
#include "kernels/pairs/conv_pairs.hpp"
#include "kernels/pairs/convert_pairs.hpp"
#include "kernels/pairs/gradient_pairs.hpp"
#include "kernels/pairs/pack_pairs.hpp"

namespace powerlab::engine::POWERLAB_TIER {

#define POWERLAB_PAIR_TILE POWERLAB_TEXT(POWERLAB_TILE_BLOCKS) "x" POWERLAB_TEXT(POWERLAB_TILE_PIXELS)

static const Kernel kPairKernels[] = {
    POWERLAB_KERNEL("conv_direct_bf16", "conv_direct_bf16_" POWERLAB_PAIR_TILE, conv_pairs<false>),
    POWERLAB_KERNEL("conv_direct_bf16_f32", "conv_direct_bf16_f32_" POWERLAB_PAIR_TILE, conv_pairs<true>),
    POWERLAB_KERNEL("conv_weight_gradient_bf16", "conv_weight_gradient_bf16", conv_weight_gradient<PairProducts>),
    POWERLAB_KERNEL("pack_kernels_bf16", "pack_kernels_bf16", pack_pair_kernels),
    POWERLAB_KERNEL("narrow_blocks", "narrow_blocks_bf16", narrow_blocks<false>),
    POWERLAB_KERNEL("narrow_changed", "narrow_changed_bf16", narrow_blocks<true>),
    POWERLAB_KERNEL("narrow_rows", "narrow_rows_bf16", narrow_rows),
};

extern const PairTable kPairTable;
const PairTable kPairTable = {POWERLAB_TEXT(POWERLAB_TIER),
                              POWERLAB_TEXT(POWERLAB_BASE_TIER),
                              kPairTileBlocks,
                              kPairTilePixels,
                              kPairKernels,
                              sizeof(kPairKernels) / sizeof(kPairKernels[0])};

}  // namespace powerlab::engine::POWERLAB_TIER
