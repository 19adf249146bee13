// All kernels on bfloat16, or on float16 where POWERLAB_HALVES is defined, for one instruction set that multiplies it,
// with its flags and in its namespace, beside the tier whose vectors it has. A new kernel is a function in a header
// under kernels/pairs/ and one line here.
#include "kernels/pairs/conv_pairs.hpp"
#include "kernels/pairs/convert_pairs.hpp"
#include "kernels/pairs/depthwise_pairs.hpp"
#include "kernels/pairs/pool_pairs.hpp"
#if !defined(POWERLAB_HALVES)
#if defined(__AMX_BF16__) || defined(POWERLAB_AMX_MODEL)
#include "kernels/pairs/attention_pairs.hpp"
#endif
#include "kernels/pairs/gradient_pairs.hpp"
#include "kernels/pairs/matmul_pairs.hpp"
#include "kernels/pairs/pack_pairs.hpp"
#endif

namespace powerlab::engine::POWERLAB_TIER {

#if defined(POWERLAB_HALVES)
#define POWERLAB_NUMBERS "fp16"
#else
#define POWERLAB_NUMBERS "bf16"
#endif
#define POWERLAB_PAIR_KERNEL(family, tile, ...) POWERLAB_KERNEL(family, family tile, __VA_ARGS__)
#define POWERLAB_PAIR_TILE POWERLAB_TEXT(POWERLAB_TILE_BLOCKS) "x" POWERLAB_TEXT(POWERLAB_TILE_PIXELS)

static const Kernel kPairKernels[] = {
    POWERLAB_PAIR_KERNEL("conv_direct_" POWERLAB_NUMBERS, "_" POWERLAB_PAIR_TILE, conv_pairs<false>),
    POWERLAB_PAIR_KERNEL("conv_direct_" POWERLAB_NUMBERS "_f32", "_" POWERLAB_PAIR_TILE, conv_pairs<true>),
    POWERLAB_PAIR_KERNEL("conv_depthwise_" POWERLAB_NUMBERS, "", conv_depthwise_narrow<NarrowPixels>),
    POWERLAB_PAIR_KERNEL("conv_depthwise_to_" POWERLAB_NUMBERS, "", conv_depthwise_narrow<FloatPixels>),
    POWERLAB_PAIR_KERNEL("narrow_blocks_" POWERLAB_NUMBERS, "", narrow_blocks<false>),
    POWERLAB_PAIR_KERNEL("narrow_changed_" POWERLAB_NUMBERS, "", narrow_blocks<true>),
    POWERLAB_PAIR_KERNEL("narrow_planes_" POWERLAB_NUMBERS, "", narrow_planes),
    POWERLAB_PAIR_KERNEL("narrow_rows_" POWERLAB_NUMBERS, "", narrow_rows),
    POWERLAB_PAIR_KERNEL("pool_max_" POWERLAB_NUMBERS, "", pool_max_narrow),
#if !defined(POWERLAB_HALVES)
    POWERLAB_KERNEL("conv_weight_gradient_bf16", "conv_weight_gradient_bf16", conv_weight_gradient<PairProducts>),
    POWERLAB_KERNEL("pack_kernels_bf16", "pack_kernels_bf16", pack_pair_kernels),
    POWERLAB_PAIR_KERNEL("narrow_image_bf16", "", narrow_image),
    POWERLAB_PAIR_KERNEL("narrow_matrix_bf16", "", narrow_matrix),
    POWERLAB_PAIR_KERNEL("pack_matrix_bf16", "", pack_matrix_pairs),
    POWERLAB_PAIR_KERNEL("matmul_bf16", "", matmul_pairs),
#if defined(__AMX_BF16__) || defined(POWERLAB_AMX_MODEL)
    POWERLAB_PAIR_KERNEL("attention_bf16", "", attention_pairs),
#endif
#endif
};

extern const PairTable kPairTable;
const PairTable kPairTable = {POWERLAB_TEXT(POWERLAB_TIER),
                              POWERLAB_NUMBERS,
                              POWERLAB_TEXT(POWERLAB_BASE_TIER),
                              kPairTileBlocks,
                              kPairTilePixels,
                              kBlockChannels,
                              kPairKernels,
                              sizeof(kPairKernels) / sizeof(kPairKernels[0])};

}  // namespace powerlab::engine::POWERLAB_TIER
