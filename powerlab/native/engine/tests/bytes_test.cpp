// Kernels on bytes against plain integers, bit for bit, on random shapes: every instruction set of the tier that this
// processor has, the better ones hiding none of the others.
#include "reference/bytes.hpp"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "tests/test.hpp"

namespace powerlab::engine::test {
namespace {

using reference::ByteTensor;
using reference::Rounding;
using reference::Window;
constexpr int kBlock = 16;

bool is_signed(const ByteTable& bytes) { return std::string_view(bytes.form).starts_with("signed"); }

// A tensor of bytes in the kernels' layout: blocks of 16 channels, or words of four; what no one has written is 0xEE.
struct PlacedBytes {
  Floats memory;
  View view;
  int channels;  // of a block
  int flipped;   // bits of each byte: those that are stored as signed ones are 128 less

  PlacedBytes(const ByteTable& bytes, int n, int c, int h, int w, int halo, int block = kBlock)
      : memory(static_cast<std::size_t>(n) * ((c + block - 1) / block) * (block / 4) * (h + 2 * halo) * (w + 2 * halo)),
        view(view_in_blocks(memory.data(), n, c, h, w, block, block / 4, halo)),
        channels(block),
        flipped(is_signed(bytes) ? 128 : 0) {
    std::memset(memory.data(), 0xEE, memory.size() * sizeof(float));
  }
  std::uint8_t& at(int n, int c, int y, int x) {
    float* pixel = view.data + n * view.image + c / channels * view.plane + y * view.row + x * view.pixel;
    return reinterpret_cast<std::uint8_t*>(pixel)[c % channels];
  }
  void put(const ByteTensor& t, int zero) {
    std::memset(memory.data(), zero ^ flipped, memory.size() * sizeof(float));
    for (int n = 0; n < t.n; ++n) {
      for (int c = 0; c < view.blocks * channels; ++c) {
        for (int y = 0; y < t.h; ++y) {
          for (int x = 0; x < t.w; ++x)
            at(n, c, y, x) = c < t.c ? static_cast<std::uint8_t>(t.at(n, c, y, x, 0) ^ flipped) : 0xAA;
        }
      }
    }
  }
  int different(const ByteTensor& t) {
    int count = 0;
    for (int n = 0; n < t.n; ++n) {
      for (int c = 0; c < t.c; ++c) {
        for (int y = 0; y < t.h; ++y) {
          for (int x = 0; x < t.w; ++x) count += (at(n, c, y, x) ^ flipped) != t.at(n, c, y, x, -1);
        }
      }
    }
    return count;
  }
  // Bytes of the halo that somebody wrote.
  int written_around() {
    int count = 0;
    const View& v = view;
    for (int n = 0; n < v.n; ++n) {
      for (int block = 0; block < v.blocks; ++block) {
        for (int y = -v.top; y < v.h + v.bottom; ++y) {
          for (int x = -v.left; x < v.w + v.right; ++x) {
            if (y >= 0 && y < v.h && x >= 0 && x < v.w) continue;
            for (int c = 0; c < channels; ++c) count += at(n, block * channels + c, y, x) != 0xEE;
          }
        }
      }
    }
    return count;
  }
};

void fill(ByteTensor& t, Random& random) {
  for (auto& value : t.values)
    value = static_cast<std::uint8_t>(random.coin() ? random.whole(0, 255) : random.whole(0, 1) * 255);
}

Rounding random_rounding(Random& random) {
  const int zero = random.coin() ? 0 : random.whole(0, 255), low = random.coin() ? zero : 0;
  return {static_cast<float>(low - zero),
          static_cast<float>(255 - zero),
          zero,
          static_cast<float>(random.whole(1, 200)) / 97,
          random.whole(0, 255),
          random.coin() ? 1 : static_cast<float>(random.whole(0, 9)) / 37};
}

void set(Step& step, const Rounding& rounding, int x_zero, float x_ratio) {
  step.low = rounding.low;
  step.high = rounding.high;
  step.alpha = rounding.y_scale;
  step.beta = x_ratio;
  step.slope = rounding.slope;
  step.numbers[0] = rounding.zero;
  step.numbers[1] = rounding.y_zero;
  step.numbers[2] = x_zero;
}

// Weights of one word for one vector of outputs, as the form has them; weight(output, channel).
template <class W>
void pack_word(std::vector<std::uint8_t>& packed, std::string_view form, int v, W&& weight) {
  const auto put = [&](int value) { packed.push_back(static_cast<std::uint8_t>(value)); };
  if (form == "pairs") {
    for (int half = 0; half < 2; ++half) {
      for (int o = 0; o < v; ++o) {
        for (int pair = 0; pair < 2; ++pair) {
          const int value = weight(o, 2 * pair + half);
          put(value);
          put(value >> 8);
        }
      }
    }
    return;
  }
  if (form == "signed_pairs") {
    for (int half = 0; half < 2; ++half) {
      for (int o = 0; o < v; ++o) {
        for (int i = 0; i < 2; ++i) put(weight(o, 2 * half + i));
      }
    }
    return;
  }
  for (int o = 0; o < v; ++o) {
    for (int i = 0; i < 4; ++i) put(weight(o, i));
  }
}

Floats as_floats(const std::vector<std::uint8_t>& packed) {
  Floats floats((packed.size() + 3) / 4 + 64);
  std::memcpy(floats.data(), packed.data(), packed.size());
  return floats;
}

struct ByteCase {
  int n, in, out, h, w, kernel_h, kernel_w, stride, pad, dilation, groups;
  bool residual, words, floats, depthwise;
  int narrow;       // so many products fit 16 bits
  bool neighbours;  // of depthwise ones: pixels of a row share lanes
};

ByteCase random_case(Random& random) {
  ByteCase c{};
  c.n = random.whole(1, 2);
  c.groups = random.whole(0, 4) == 0 ? random.whole(2, 3) : 1;
  c.words = c.groups == 1 && random.whole(0, 3) == 0;
  c.in = c.words ? random.whole(1, 4) : c.groups > 1 ? c.groups * kBlock * random.whole(1, 2) : random.whole(1, 70);
  c.out = c.groups > 1 ? c.groups * kBlock * random.whole(1, 5) : random.whole(1, 150);
  c.kernel_h = random.whole(1, 5);
  c.kernel_w = random.coin() ? c.kernel_h : random.whole(1, 5);
  c.stride = random.whole(1, 2);
  c.dilation = c.words || random.whole(0, 3) ? 1 : 2;
  c.pad = random.whole(0, 2);
  c.h = random.whole((c.kernel_h - 1) * c.dilation + 1, 16);
  c.w = random.whole((c.kernel_w - 1) * c.dilation + 1, 30);
  c.residual = random.coin();
  c.floats = random.whole(0, 4) == 0;
  c.narrow = 1 << random.whole(0, 2);
  return c;
}

// A kernel of 1 x 1 over so many channels that what AMX gathers has room for a few tiles.
ByteCase random_deep_case(Random& random) {
  ByteCase c = random_case(random);
  c.kernel_h = c.kernel_w = c.groups = c.dilation = 1;
  c.words = false;
  c.in = kBlock * random.whole(100, 270);
  c.out = random.whole(1, 100);
  c.h = random.whole(2, 9);
  c.w = random.whole(1, 9);
  return c;
}

std::string name_of(const ByteTable& bytes, const ByteCase& c, int threads) {
  std::string text = std::string(bytes.name) + (c.neighbours  ? " neighbours"
                                                : c.depthwise ? " depthwise"
                                                : c.words     ? " words"
                                                              : " conv");
  for (const int number : {c.n, c.in, c.out, c.h, c.w, c.kernel_h, c.kernel_w, c.stride, c.pad, c.dilation, c.groups}) {
    text.append(1, ' ').append(std::to_string(number));
  }
  return text + (c.residual ? " residual" : "") + (c.floats ? " floats" : "") +
         (c.narrow > 1 ? " narrow " + std::to_string(c.narrow) : "") + " threads " + std::to_string(threads);
}

// Two words at a time, [block][kernel_h][kernel_w][two words][vector][v][8 channels]; weight(output, channel, ky, kx).
template <class W>
void pack_eights(std::vector<std::uint8_t>& packed, const ByteCase& c, int v, int begin, int end, int words,
                 W&& weight) {
  for (int block = 0; block < words; block += 4) {
    const int in_block = std::min(words - block, 4);
    for (int tap = 0; tap < c.kernel_h * c.kernel_w; ++tap) {
      for (int word = 0; word < in_block; word += 2) {
        for (int output = begin * v; output < end * v; ++output) {
          for (int i = 0; i < 8; ++i) {
            const int channel = word * 4 + i < in_block * 4 ? (block + word) * 4 + i : c.in;
            packed.push_back(static_cast<std::uint8_t>(weight(output, channel, tap / c.kernel_w, tap % c.kernel_w)));
          }
        }
      }
    }
  }
}

// Words that weights of an output have a tap.
int words_of(const ByteTable& bytes, const ByteCase& c) {
  const int words = (c.in / c.groups + 3) / 4;
  return std::string_view(bytes.form) == "word_blocks" && !c.words ? (words + 3) / 4 * 4 : words;
}

// [unit][block][kernel_h][kernel_w][word][vector], groups one after the other.
std::vector<std::uint8_t> packed_weights(const ByteTable& bytes, int v, const ByteCase& c,
                                         const std::vector<std::int8_t>& weights) {
  const int inputs = c.in / c.groups, outputs = c.out / c.groups, vectors = (outputs + v - 1) / v;
  const int most = c.narrow > 1 ? bytes.narrow_blocks : bytes.tile_blocks, units = (vectors + most - 1) / most;
  const int words = words_of(bytes, c), in_block = 4;
  std::vector<std::uint8_t> packed;
  for (int group = 0; group < c.groups; ++group) {
    for (int unit = 0; unit < units; ++unit) {
      const int begin = unit * vectors / units, end = (unit + 1) * vectors / units;
      const auto word_at = [&](int word, int ky, int kx) {
        for (int vector = begin; vector < end; ++vector) {
          pack_word(packed, c.narrow > 1 ? "words" : bytes.form, v, [&](int o, int i) -> int {
            const int output = vector * v + o, channel = word * 4 + i;
            if (output >= outputs || channel >= inputs) return 0;
            const std::size_t row = static_cast<std::size_t>(group * outputs + output) * inputs + channel;
            return weights[(row * c.kernel_h + ky) * c.kernel_w + kx];
          });
        }
      };
      if (std::string_view(bytes.form) == "signed_eights") {
        pack_eights(packed, c, v, begin, end, words, [&](int output, int channel, int ky, int kx) -> int {
          if (output >= outputs || channel >= inputs) return 0;
          const std::size_t row = static_cast<std::size_t>(group * outputs + output) * inputs + channel;
          return weights[(row * c.kernel_h + ky) * c.kernel_w + kx];
        });
        continue;
      }
      for (int first = 0; first < words; first += in_block) {
        for (int ky = 0; ky < c.kernel_h; ++ky) {
          for (int kx = 0; kx < c.kernel_w; ++kx) {
            for (int word = first; word < std::min(first + in_block, words); ++word) word_at(word, ky, kx);
          }
        }
      }
    }
  }
  return packed;
}

// [vector][kernel_h][group of taps][v][tap], 32 bits for the taps of a group.
std::vector<std::uint8_t> packed_neighbours(int v, int neighbours, const ByteCase& c,
                                            const std::vector<std::int8_t>& weights) {
  const int groups = (c.kernel_w + neighbours - 1) / neighbours, bytes = 4 / neighbours;
  std::vector<std::uint8_t> packed;
  for (int vector = 0; vector * v < c.out; ++vector) {
    for (int group = 0; group < c.kernel_h * groups; ++group) {
      for (int o = vector * v; o < (vector + 1) * v; ++o) {
        for (int tap = 0; tap < neighbours; ++tap) {
          const int ky = group / groups, kx = group % groups * neighbours + tap;
          const int weight = o < c.out && kx < c.kernel_w
                                 ? weights[static_cast<std::size_t>((o * c.kernel_h + ky) * c.kernel_w + kx)]
                                 : 0;
          for (int byte = 0; byte < bytes; ++byte) packed.push_back(static_cast<std::uint8_t>(weight >> (8 * byte)));
        }
      }
    }
  }
  return packed;
}

// The largest bytes of windows of `made`, which is what `step` makes: as one kernel, a band of rows at a time.
void check_pooled(const ByteTable& bytes, const ByteCase& c, Step step, const ByteTensor& made, int threads,
                  Random& random, Report& report) {
  const int kernel = std::min({random.whole(1, 3), made.h, made.w}), stride = random.whole(1, 3);
  const int pad = random.whole(0, kernel / 2), windows = random.whole(1, 4);
  ByteTensor expected(made.n, made.c, (made.h + 2 * pad - kernel) / stride + 1,
                      (made.w + 2 * pad - kernel) / stride + 1);
  reference::pool_max_bytes(made, {kernel, kernel, stride, stride, 1, 1, pad, pad}, expected);
  PlacedBytes out(bytes, expected.n, expected.c, expected.h, expected.w, 1);
  const int rows = (windows - 1) * stride + kernel;
  Step pool{};
  pool.x = view_in_blocks(nullptr, 1, made.c, rows, made.w, kBlock, kBlock / 4, 0);
  pool.out.h = made.h;
  pool.kernel_h = pool.kernel_w = kernel;
  pool.stride_h = pool.stride_w = stride;
  pool.pad_top = pool.pad_left = pad;
  Floats bands(static_cast<std::size_t>(threads * pool.x.image));
  step.out = out.view;
  step.scratch.data = bands.data();
  step.scratch.image = pool.x.image;
  step.channel_split = 1;
  step.parts = &pool;
  step.part_count = 1;
  run_kernel(bytes, "conv_pool_u8" + (c.narrow > 1 ? "_narrow" + std::to_string(c.narrow) : ""), step, threads);
  std::string name = name_of(bytes, c, threads) + ", pooled";
  for (const int number : {kernel, stride, pad, windows}) name.append(1, ' ').append(std::to_string(number));
  report.check(name, out.different(expected), 0);
  report.check(name + ", around", out.written_around(), 0);
}

void check_conv(const KernelTable& table, const ByteTable& bytes, const ByteCase& c, Random& random, Report& report) {
  const int v = table.vector_width;
  const int out_h = (c.h + 2 * c.pad - (c.kernel_h - 1) * c.dilation - 1) / c.stride + 1;
  const int out_w = (c.w + 2 * c.pad - (c.kernel_w - 1) * c.dilation - 1) / c.stride + 1;
  const int inputs = c.in / c.groups, taps = c.kernel_h * c.kernel_w, outputs = c.out / c.groups;
  ByteTensor x(c.n, c.in, c.h, c.w), residual(c.n, c.out, out_h, out_w), expected(c.n, c.out, out_h, out_w);
  fill(x, random);
  fill(residual, random);
  std::vector<std::int8_t> weights(static_cast<std::size_t>(c.out) * inputs * taps);
  const int most = c.narrow > 1 ? 128 / c.narrow : 127;
  for (auto& w : weights)
    w = static_cast<std::int8_t>(random.coin() ? random.whole(-most, most) : (random.whole(0, 1) * 2 - 1) * most);
  std::vector<std::int32_t> begin(static_cast<std::size_t>(c.out));
  std::vector<float> multipliers(begin.size());
  for (auto& b : begin) b = random.whole(-100000, 100000);
  for (auto& m : multipliers) m = static_cast<float>(random.next() + 1.001) / static_cast<float>(40 * inputs * taps);
  const int x_zero = random.coin() ? 0 : random.whole(0, 255);
  const Rounding rounding = random_rounding(random);
  const Window window{c.kernel_h, c.kernel_w, c.stride, c.stride, c.dilation, c.dilation, c.pad, c.pad};
  std::vector<float> floats(expected.values.size());
  reference::conv_bytes(x, weights, begin, multipliers, c.residual ? &residual : nullptr, window, c.groups, x_zero,
                        rounding, expected, c.floats ? &floats : nullptr);

  PlacedBytes placed(bytes, c.n, c.in, c.h, c.w, c.pad, c.words ? 4 : kBlock),
      other(bytes, c.n, c.out, out_h, out_w, 0);
  placed.put(x, x_zero);
  other.put(residual, 0);
  std::vector<std::uint8_t> packed;
  if (c.neighbours) {
    packed = packed_neighbours(v, bytes.depthwise_neighbours, c, weights);
  } else if (c.depthwise) {
    for (int vector = 0; vector * v < c.out; ++vector) {
      for (int tap = 0; tap < taps; ++tap) {
        for (int o = vector * v; o < (vector + 1) * v; ++o) {
          packed.push_back(o < c.out ? static_cast<std::uint8_t>(weights[static_cast<std::size_t>(o * taps + tap)])
                                     : 0);
        }
      }
    }
  } else {
    packed = packed_weights(bytes, v, c, weights);
  }
  Floats packed_floats = as_floats(packed);
  const int vectors = (outputs + v - 1) / v, groups = c.depthwise ? 1 : c.groups;
  const int per_group = c.out / groups, group_vectors = c.depthwise ? (c.out + v - 1) / v : vectors;
  Floats bias(static_cast<std::size_t>(groups) * group_vectors * 2 * v);
  for (int o = 0; o < c.out; ++o) {
    std::int32_t start = begin[static_cast<std::size_t>(o)];
    for (int i = 0; is_signed(bytes) && i < inputs * taps; ++i)
      start += 128 * weights[static_cast<std::size_t>(o * inputs * taps + i)];
    const int vector = o / per_group * group_vectors + o % per_group / v, lane = o % per_group % v;
    bias[static_cast<std::size_t>(vector * 2 * v + lane)] = std::bit_cast<float>(start);
    bias[static_cast<std::size_t>((vector * 2 + 1) * v + lane)] = multipliers[static_cast<std::size_t>(o)];
  }
  std::string family = c.depthwise ? "conv_depthwise_u8" : c.floats ? "conv_direct_u8_f32" : "conv_direct_u8";
  if (c.neighbours) family += "_neighbours";
  if (c.narrow > 1) family += "_narrow" + std::to_string(c.narrow);
  for (const int threads : {1, 2, 3}) {
    PlacedBytes out(bytes, c.n, c.out, out_h, out_w, 1);
    Placed wide(c.n, c.out, out_h, out_w, v, 1);
    Step step{};
    step.x = placed.view;
    step.out = c.floats ? wide.view : out.view;
    if (c.residual) step.y = other.view;
    step.kernel_h = c.kernel_h;
    step.kernel_w = c.kernel_w;
    step.stride_h = step.stride_w = c.stride;
    step.dilation_h = step.dilation_w = c.dilation;
    step.pad_top = step.pad_left = c.pad;
    step.groups = c.groups;
    step.channel_split = threads == 3 ? 3 : 1;
    step.chunk_tiles = threads == 1 ? 1 << 20 : 3;
    const int words = words_of(bytes, c);
    step.lanes = c.words ? 1 : 4;
    step.last_lanes = c.words ? 1 : words - (words - 1) / 4 * 4;
    step.weights = packed_floats.data();
    step.bias = bias.data();
    set(step, rounding, x_zero, 0);
    run_kernel(bytes, family, step, threads);
    const std::string name = name_of(bytes, c, threads);
    if (c.floats) {
      int wrong = 0;  // zeros of either sign are the same: Arm's maximum makes one of the other
      for (std::size_t i = 0; i < floats.size(); ++i) {
        const int at = static_cast<int>(i), column = at % out_w, y = at / out_w % out_h, o = at / out_w / out_h % c.out;
        wrong += wide.at(at / out_w / out_h / c.out, o, y, column) != floats[i];
      }
      report.check(name, wrong, 0);
    } else {
      report.check(name, out.different(expected), 0);
      report.check(name + ", around", out.written_around(), 0);
      if (!c.depthwise && !c.residual) check_pooled(bytes, c, step, expected, threads, random, report);
    }
  }
}

// Some channels of one image to some of another, the others of which stay.
void check_moves(const ByteTable& bytes, Random& random, Report& report) {
  const int n = random.whole(1, 2), h = random.whole(1, 5), w = random.whole(1, 9);
  ByteTensor x(n, random.whole(1, 70), h, w), y(n, random.whole(1, 70), h, w);
  fill(x, random);
  fill(y, random);
  const int from = random.whole(0, x.c - 1), to = random.whole(0, y.c - 1);
  const int count = random.whole(1, std::min(x.c - from, y.c - to));
  PlacedBytes placed(bytes, n, x.c, h, w, random.whole(0, 1)), out(bytes, n, y.c, h, w, 0);
  placed.put(x, 0);
  out.put(y, 0);
  for (int i = 0; i < n * count * h * w; ++i) {
    const int column = i % w, row = i / w % h, channel = i / w / h % count, image = i / w / h / count;
    const std::size_t at = static_cast<std::size_t>(((image * y.c + to + channel) * h + row) * w + column);
    y.values[at] = static_cast<std::uint8_t>(x.at(image, from + channel, row, column));
  }
  Step step{};
  step.x = placed.view;
  step.out = out.view;
  step.numbers[0] = from;
  step.numbers[1] = to;
  step.numbers[2] = count;
  run_kernel(bytes, "move_channels_u8", step, random.whole(1, 3));
  std::string name = std::string(bytes.name) + " move_channels_u8";
  for (const int number : {x.c, from, y.c, to, count}) name.append(1, ' ').append(std::to_string(number));
  report.check(name, out.different(y), 0);
}

void check_layers(const ByteTable& bytes, Random& random, Report& report) {
  const int n = random.whole(1, 2), c = random.whole(1, 50), h = random.whole(3, 12), w = random.whole(3, 20);
  ByteTensor x(n, c, h, w), y(n, c, h, w);
  fill(x, random);
  fill(y, random);
  PlacedBytes placed(bytes, n, c, h, w, 1), other(bytes, n, c, h, w, 0);
  const int x_zero = random.whole(0, 255);
  placed.put(x, x_zero);
  other.put(y, 0);
  const Rounding rounding = random_rounding(random);
  const float ratio = static_cast<float>(random.whole(1, 300)) / 131;
  const int kernel = std::min({random.whole(2, 5), h, w}), stride = random.whole(1, 2), pad = random.whole(0, 1),
            threads = random.whole(1, 3);
  const Window window{kernel, kernel, stride, stride, 1, 1, pad, pad};
  const int pooled_h = (h + 2 * pad - kernel) / stride + 1, pooled_w = (w + 2 * pad - kernel) / stride + 1;
  Step step{};
  step.x = placed.view;
  step.kernel_h = step.kernel_w = kernel;
  step.stride_h = step.stride_w = stride;
  step.pad_top = step.pad_left = pad;
  step.count_padding = random.coin();
  set(step, rounding, x_zero, ratio);
  const auto check = [&](const char* family, const ByteTensor& expected) {
    PlacedBytes out(bytes, expected.n, expected.c, expected.h, expected.w, 1);
    step.out = out.view;
    run_kernel(bytes, family, step, threads);
    const std::string name = std::string(bytes.name) + " " + family + " c" + std::to_string(c);
    report.check(name, out.different(expected), 0);
    report.check(name + ", around", out.written_around(), 0);
  };
  ByteTensor pooled(n, c, pooled_h, pooled_w), whole(n, c, 1, 1), sums(n, c, h, w);
  reference::pool_max_bytes(x, window, pooled);
  check("pool_max_u8", pooled);
  reference::pool_average_bytes(x, window, step.count_padding, x_zero, ratio, rounding, pooled);
  check("pool_average_u8", pooled);
  reference::pool_average_bytes(x, {h, w, 1, 1, 1, 1, 0, 0}, false, x_zero, ratio, rounding, whole);
  check("pool_global_average_u8", whole);
  reference::add_bytes(x, nullptr, x_zero, ratio, rounding, sums);
  check("add_u8", sums);
  step.y = other.view;
  reference::add_bytes(x, &y, x_zero, ratio, rounding, sums);
  check("add_u8", sums);

  const int filled = (c + kBlock - 1) / kBlock * kBlock;
  std::vector<float> factors(static_cast<std::size_t>(c)), shifts(factors.size());
  Floats weights(static_cast<std::size_t>(filled)), bias(weights.size());
  for (std::size_t i = 0; i < factors.size(); ++i) {
    weights[i] = factors[i] = static_cast<float>(random.whole(-300, 300)) / 171;
    bias[i] = shifts[i] = static_cast<float>(random.whole(-9000, 9000)) / 77;
  }
  step.weights = weights.data();
  step.bias = bias.data();
  reference::scale_shift_bytes(x, factors, shifts, rounding, sums);
  check("scale_shift_u8", sums);

  std::uint8_t results[256], stored[256];
  const int flipped = is_signed(bytes) ? 128 : 0;
  for (int i = 0; i < 256; ++i) {
    results[i] = static_cast<std::uint8_t>(random.whole(0, 255));
    stored[i ^ flipped] = static_cast<std::uint8_t>(results[i] ^ flipped);
  }
  step.weights = reinterpret_cast<const float*>(stored);
  for (int i = 0; i < n * c * h * w; ++i) {
    const int column = i % w, row = i / w % h, channel = i / w / h % c, image = i / w / h / c;
    sums.at(image, channel, row, column) = results[x.at(image, channel, row, column)];
  }
  check("lookup_u8", sums);

  step.stride_h = random.whole(1, 3);
  step.stride_w = random.whole(1, 3);
  ByteTensor larger(n, c, h * step.stride_h, w * step.stride_w);
  reference::resize_bytes(x, step.stride_h, step.stride_w, larger);
  check("resize_nearest_u8", larger);
}

// Rows of channels, of which some are apart, to bytes.
void check_rows(const ByteTable& bytes, Random& random, Report& report) {
  const int n = random.whole(1, 5), c = random.whole(1, 70), apart = random.whole(0, 9), zero = random.whole(0, 255);
  const float scale = static_cast<float>(random.whole(1, 99)) / 4096;
  const Rounding rounding{static_cast<float>(-zero), static_cast<float>(255 - zero), zero, 0, 0};
  Floats rows(static_cast<std::size_t>(n * (c + apart)));
  ByteTensor expected(n, c, 1, 1);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const float ties = static_cast<float>(random.whole(-600, 600)) / 2;  // as near to one integer as to the next
    rows[i] = scale * (random.coin() ? ties : static_cast<float>(600 * random.next() - 300));
  }
  for (int i = 0; i < n * c; ++i) {
    const float value = rows[static_cast<std::size_t>(i / c * (c + apart) + i % c)];
    expected.at(i / c, i % c, 0, 0) = reference::rounded(value / scale, rounding);
  }
  PlacedBytes out(bytes, n, c, 1, 1, 0);
  Step step{};
  set(step, rounding, zero, 0);
  step.alpha = scale;
  step.x = View{rows.data(), c + apart, 1, 1, 1, n, c, 1, 1, c, 0, 0, 0, 0};
  step.out = out.view;
  run_kernel(bytes, "quantize_rows", step, random.whole(1, 3));
  report.check(std::string(bytes.name) + " quantize rows c" + std::to_string(c), out.different(expected), 0);
}

// Floats to bytes and back: in blocks and in planes.
void check_conversions(const KernelTable& table, const ByteTable& bytes, Random& random, Report& report) {
  const int v = table.vector_width, n = random.whole(1, 2), c = random.whole(1, 40), h = random.whole(1, 6);
  const int w = random.whole(1, 40), zero = random.whole(0, 255), threads = random.whole(1, 3);
  const float scale = static_cast<float>(random.whole(1, 99)) / 4096;
  const Rounding rounding{static_cast<float>(-zero), static_cast<float>(255 - zero), zero, 0, 0};
  Placed blocks(n, c, h, w, v, 0), back(n, c, h, w, v, 0);
  Floats planes(static_cast<std::size_t>(n) * c * h * w);
  ByteTensor expected(n, c, h, w);
  for (int i = 0; i < static_cast<int>(planes.size()); ++i) {
    const int x = i % w, y = i / w % h, channel = i / w / h % c, image = i / w / h / c;
    // Halves of a scale, so that ties are met; and what is no number.
    const float value = random.whole(0, 20) == 0 ? std::numeric_limits<float>::quiet_NaN()
                                                 : static_cast<float>(random.whole(-600, 600)) * scale / 2;
    planes[static_cast<std::size_t>(i)] = value;
    blocks.at(image, channel, y, x) = value;
    expected.at(image, channel, y, x) = reference::rounded(value == value ? value / scale : 0, rounding);
  }
  Step step{};
  set(step, rounding, zero, scale);
  step.alpha = scale;
  const std::string name = std::string(bytes.name) + " quantize c" + std::to_string(c) + " w" + std::to_string(w);
  for (const int block : {kBlock, 4}) {
    if (block == 4 && c > 4) continue;
    PlacedBytes out(bytes, n, c, h, w, 1, block);
    View flat{planes.data(),
              static_cast<std::int64_t>(c) * h * w,
              static_cast<std::int64_t>(h) * w,
              w,
              1,
              n,
              c,
              h,
              w,
              c,
              0,
              0,
              0,
              0};
    step.x = flat;
    step.out = out.view;
    run_kernel(bytes, "quantize_planes", step, threads);
    report.check(name + " planes", out.different(expected), 0);
    report.check(name + " planes, around", out.written_around(), 0);
  }
  PlacedBytes out(bytes, n, c, h, w, 1);
  step.x = blocks.view;
  step.out = out.view;
  run_kernel(bytes, "quantize_blocks", step, threads);
  report.check(name + " blocks", out.different(expected), 0);
  Placed factors(n, c, 1, 1, v, 0);
  ByteTensor multiplied(n, c, h, w);
  for (int i = 0; i < static_cast<int>(planes.size()); ++i) {
    const int x = i % w, y = i / w % h, channel = i / w / h % c, image = i / w / h / c;
    const float value = planes[static_cast<std::size_t>(i)], factor = static_cast<float>(channel % 5 - 2 + image) / 2;
    factors.at(image, channel, 0, 0) = factor;
    multiplied.at(image, channel, y, x) = reference::rounded(value == value ? value * factor / scale : 0, rounding);
  }
  PlacedBytes scaled(bytes, n, c, h, w, 1);
  step.y = factors.view;
  step.out = scaled.view;
  run_kernel(bytes, "quantize_blocks", step, threads);
  report.check(name + " blocks with factors", scaled.different(multiplied), 0);
  step.y = View{};
  step.x = out.view;
  step.out = back.view;
  step.offset = scale;
  run_kernel(bytes, "dequantize_blocks", step, threads);
  int wrong = 0;
  for (int i = 0; i < static_cast<int>(planes.size()); ++i) {
    const int x = i % w, y = i / w % h, channel = i / w / h % c, image = i / w / h / c;
    wrong += back.at(image, channel, y, x) != static_cast<float>(expected.at(image, channel, y, x, 0) - zero) * scale;
  }
  report.check(name + " back", wrong, 0);
}

}  // namespace

void check_byte_convolutions(const KernelTable& table, const ByteTable& bytes, Report& report) {
  Random random(23);
  for (int i = 0; i < 150; ++i) {
    ByteCase c = random_case(random);
    if (std::string_view(bytes.form) != "pairs") c.narrow = 1;
    check_conv(table, bytes, c, random, report);
  }
  for (int i = 0; i < 12; ++i) {
    ByteCase c = random_deep_case(random);
    if (std::string_view(bytes.form) != "pairs") c.narrow = 1;
    check_conv(table, bytes, c, random, report);
  }
}

// Depthwise kernels of up to 15 x 15 on images of up to several strips.
void check_neighbours(const KernelTable& table, const ByteTable& bytes, Report& report) {
  Random random(25);
  for (int i = 0; i < 60 && bytes.depthwise_neighbours > 0; ++i) {
    ByteCase c = random_case(random);
    c.depthwise = c.neighbours = true;
    c.words = c.floats = false;
    c.narrow = c.dilation = 1;
    c.in = c.out = c.groups = random.whole(2, 50);
    c.kernel_h = random.whole(1, random.coin() ? 15 : 5);
    c.kernel_w = random.whole(bytes.depthwise_neighbours / 2 + 1, random.coin() ? 15 : 7);
    c.pad = random.whole(0, c.kernel_h / 2);
    c.h = random.whole(c.kernel_h, c.kernel_h + 12);
    c.w = random.whole(c.kernel_w, random.coin() ? c.kernel_w + 20 : 150);
    check_conv(table, bytes, c, random, report);
  }
}

void check_bytes(const KernelTable& table, Report& report) {
  for (const ByteTable* bytes : byte_tables(table)) {
    const int before = report.checked();
    check_byte_convolutions(table, *bytes, report);
    check_byte_products(*bytes, table.vector_width, report);
    Random random(24);
    for (int i = 0; i < 50; ++i) {
      ByteCase c = random_case(random);
      c.depthwise = true;
      c.words = c.floats = false;
      c.narrow = 1;
      c.in = c.out = c.groups = random.whole(2, 50);
      c.kernel_w = c.kernel_h;
      c.w = std::max(c.w, (c.kernel_w - 1) * c.dilation + 1);
      check_conv(table, *bytes, c, random, report);
    }
    check_neighbours(table, *bytes, report);
    for (int i = 0; i < 60; ++i) check_moves(*bytes, random, report);
    for (int i = 0; i < 30; ++i) check_layers(*bytes, random, report);
    for (int i = 0; i < 20; ++i) check_conversions(table, *bytes, random, report);
    for (int i = 0; i < 20; ++i) check_rows(*bytes, random, report);
    std::printf("%s: %s: %d checks\n", table.tier, bytes->name, report.checked() - before);
  }
}

}  // namespace powerlab::engine::test
