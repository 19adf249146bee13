// The kernel contract: what every kernel of the engine is given, and what it must keep.
//
// A kernel is a function `void kernel(const Step& step, int thread, int threads)`. The plan calls it once for each
// share, thread = 0 .. threads-1, at the same time, on whichever of its threads is free; the next step begins when all
// are done. A kernel
//   - computes the share of `step.out` that falls to `thread`, and writes nothing else but its part of `scratch`:
//   shares never overlap, so there are no locks, and its result does not depend on `threads`;
//   - reads `step.x`, `step.y`, the weights and the bias only; `out` never overlaps them. A general kernel has
//   `operands` instead: it writes the first (the first few, if its file says so) and reads the others;
//   - allocates nothing, throws nothing, blocks on nothing: every size was checked when the plan was built;
//   - tells numbers it cannot compute with, such as an index outside its data, by setting `*fault`, and goes on with
//   something else: the plan's run ends with an error;
//   - is run `rounds` times, with a barrier between, where a step says so: only then may it read what it wrote in
//   the rounds before;
//   - may write the channels that fill up the last channel block, and leaves the halo alone (the plan has zeroed it).
//
// Names are a grammar: <operation>_<algorithm>_<type>_<blocks>x<pixels>_<tier>, as in conv_direct_f32_4x6_avx512: the
// algorithm where there is a choice, the tile (channel blocks x pixels held in registers) where there is one.
//
// Layouts, all of one View type, strides counted in floats:
//   blocked      [n][c / v][h][w][v], v = the tier's vector width; pixel = v. Channels are filled up to a multiple of
//   v. interleaved  [n][h][w][c]: one block of c channels, pixel = c; for a first layer with few channels. planar
//   [n][c][h][w], pixel = 1; each image filled up to a multiple of 16 floats.
// A view may carry a halo of zeros around each plane, which makes a convolution's padding disappear from its kernel.
//
// Quantized tensors hold bytes, [n][c / 16][h][w][16] in every tier; their views count in floats too, each of
// which is then a word of four channels, and their halo holds zero points. kernels/bytes/words.hpp has the rest.
// Tensors of 16-bit floats have words of two channels: kernels/pairs/words.hpp.
//
// Everything here is plain data without member functions: the header is compiled once per instruction set, and an
// inline function shared between them could reach a processor that lacks its instructions.
#pragma once

#include <cstdint>

namespace powerlab::engine {

struct View {
  float* data;  // the first pixel inside the halo; null where the operand is absent
  std::int64_t image, plane, row, pixel;
  std::int32_t n, c, h, w;                // logical sizes
  std::int32_t blocks;                    // planes an image has in this layout
  std::int32_t top, left, bottom, right;  // the halo, in pixels
};

// What the elements of a general tensor are: float32, or int64 as which every integer and bool is carried.
enum class Element : std::int32_t { kFloat, kInt };

constexpr int kMostAxes = 8;

// A general tensor: any sizes and strides over plain memory. A stride of 0 repeats an element, a negative one goes
// backwards from `data`, which is the element at index 0 of every axis.
struct Strided {
  void* data;
  Element element;
  std::int32_t rank;
  std::int64_t size[kMostAxes], stride[kMostAxes];  // strides in elements
};

// Why a step could not compute with the numbers it was given.
enum Fault : std::int32_t { kSound, kIndexOutside, kDivisionByZero, kPast64Bits };

// Functions of one number that a convolution or product may end with; kFunctionNames has their families.
enum Function : std::int32_t {
  kNoFunction,
  kElu,
  kGelu,
  kGeluTanh,
  kMish,
  kHardSigmoid,
  kHardSwish,
  kSigmoid,
  kSilu,
  kSoftplus,
  kSwish,
  kTanh,
  kFunctions,
};
constexpr const char* kFunctionNames[kFunctions] = {"",     "elu",          "gelu",       "gelu_tanh",
                                                    "mish", "hard_sigmoid", "hard_swish", "sigmoid",
                                                    "silu", "softplus",     "swish",      "tanh"};

struct Step {
  View x, y, out;        // y: residual of a convolution, second operand of an addition
  View scratch;          // memory a kernel may use as it likes: image floats for each thread
  const float* weights;  // packed as the kernel's file says
  const float* bias;     // one float a channel, filled up like the channels
  std::int32_t kernel_h, kernel_w, stride_h, stride_w, dilation_h, dilation_w, pad_top, pad_left;
  float low, high;                  // the result is clamped to [low, high],
  float slope = 1;                  //   after what is below 0 was multiplied by this,
  bool adds_last = false;           //   before y is added to it, where that is a convolution's residual,
  Function function = kNoFunction;  // and this is made of it, which may take alpha and beta
  float x_low, x_high;              // the same for x, where a kernel activates what it reads
  float x_slope = 1;
  std::int32_t groups;              // convolution: groups, each of whole channel blocks on both sides
  std::int32_t joined_inputs = 0;   // convolution: input channels of each group that was joined with others to one of
  std::int32_t joined_outputs = 0;  //   whole blocks, and output channels; 0: there are none
  std::int32_t lanes;               // convolution: channels in a full block of x
  std::int32_t last_lanes;          // convolution: channels in the last block of x of each group
  std::int32_t chunk_blocks;        // convolution: blocks of x reduced before the next tile is taken up
  std::int32_t chunk_tiles;         // convolution: tiles taken up before the next channels of out
  std::int32_t channel_split;       // convolution: how many parts the output channels are divided into among threads
  std::int32_t unit_blocks;         // gemv, convolution: output blocks taken together, at most; 0: a register tile's
  std::int32_t count_padding;       // average pooling: 1 where the divisor counts padding
  std::int32_t size;                // local response normalisation: channels in the window
  float alpha, beta, offset;        // local response normalisation, functions
  std::int32_t rounds = 1;          // how often the kernel is run, for LSTM: steps of time
  std::int32_t round = 0;           // which of these runs it is; set by the plan
  std::int32_t backwards;           // LSTM: 1 where time runs from the last step to the first
  std::int32_t halo = 0;    // the bits of each float of out's halo, which the plan writes: four zero points, or 0
  const Strided* operands;  // general kernels: what is written, then what is read
  std::int32_t operand_count;
  std::int64_t numbers[4];  // general kernels: as the kernel's file says
  std::int32_t* fault;      // a Fault, for any thread to set; set by the plan
  const Step* parts;        // chain: the convolutions it is made of; their views have no data
  std::int32_t part_count;
  const Step* next;  // one of the steps behind that has the same kernel, or null: its weights may be fetched; set by
                     // the plan
};

// `blocks` blocks of `pixels` pixels of an output, which a function ends: see kernels/epilogue.hpp.
struct OutTile {
  float* data;
  std::int64_t plane, pixel;
  std::int64_t blocks, pixels;
};

using KernelFunction = void (*)(const Step& step, int thread, int threads);

struct Kernel {
  const char* family;  // what the plan asks for, such as "conv_direct"
  const char* name;    // what it gets, such as "conv_direct_f32_4x6_avx512"
  KernelFunction run;
};

// Kernels on bytes, which need instructions of their own: best of those that the processor has and whose vectors are as
// wide as the tier's.
struct ByteTable {
  const char* name;  // of the instruction set, such as "avx512vnni"
  const char* tier;  // whose vectors it has
  const char* form;  // how weights lie, as kernels/bytes/words.hpp calls it
  std::int32_t tile_blocks, tile_pixels;
  std::int32_t narrow_blocks, narrow_pixels;  // the tile of narrow weights
  std::int32_t depthwise_neighbours;          // pixels of a lane: kernels/bytes/depthwise_neighbours.hpp; 0: not there
  const Kernel* kernels;
  std::int32_t kernel_count;
};

// Kernels on 16-bit floats, likewise: there are none where no instruction multiplies these.
struct PairTable {
  const char* name;     // of the instruction set, such as "avx512bf16"
  const char* numbers;  // "bf16" or "fp16", which is in the names of families
  const char* tier;
  std::int32_t tile_blocks, tile_pixels;
  std::int32_t block;  // channels
  const Kernel* kernels;
  std::int32_t kernel_count;
};

struct WinogradWeights;

struct KernelTable {
  const char* tier;
  std::int32_t vector_width;  // floats
  std::int32_t tile_blocks;   // conv_direct's register tile: at most so many channel blocks
  std::int32_t tile_pixels;   //   and so many pixels
  std::int32_t tall_blocks;   // its other register tile, of more blocks and fewer pixels; 0: there is none
  std::int32_t tall_pixels;
  std::int32_t long_pixels;  // pixels of a tile of one block, where groups have no more
  const Kernel* kernels;
  std::int32_t kernel_count;
  void (*pack_winograd)(const WinogradWeights& sizes, const float* weights, const double* g, float* buffer,
                        float* packed);
};

}  // namespace powerlab::engine
