#include "byte_weights.hpp"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <vector>

namespace powerlab::engine {
namespace {

constexpr std::int64_t kWord = 4;  // channels

enum class Form { kWords, kPairs, kSignedPairs, kSignedEights };

Form form_of(std::string_view name) {
  if (name == "words" || name == "word_blocks") return Form::kWords;
  if (name == "pairs") return Form::kPairs;
  if (name == "signed_pairs") return Form::kSignedPairs;
  if (name == "signed_eights") return Form::kSignedEights;
  throw std::invalid_argument("weights of bytes have no such form; please report this as a bug.");
}

std::int64_t divide_up(std::int64_t value, std::int64_t divisor) { return (value + divisor - 1) / divisor; }

// Bytes of a word of weights of one output.
std::int64_t word_bytes(Form form) { return form == Form::kPairs ? 2 * kWord : kWord; }

// Words of weights that a block of so many has.
std::int64_t packed_words(Form form, std::int64_t words) {
  return form == Form::kSignedEights ? divide_up(words, 2) * 2 : words;
}

// The outputs of a unit, `room` of them, of which the first `count` there are.
struct Unit {
  const ByteWeights& sizes;
  const std::int8_t* weights;  // of the first output
  std::int64_t count, room;

  // `channels` neighbouring channels of an output under a tap, from `first` on; zeros behind the last there is.
  template <int channels>
  void channels_of(std::int64_t output, std::int64_t first, std::int64_t tap, std::int8_t (&found)[channels]) const {
    const std::int64_t there = output < count ? std::clamp<std::int64_t>(sizes.from.inputs - first, 0, channels) : 0;
    const std::int8_t* from =
        weights + output * sizes.from.output_stride + first * sizes.from.input_stride + tap * sizes.from.tap_stride;
    if (there == channels && sizes.from.input_stride == 1) {
      std::memcpy(found, from, channels);
      return;
    }
    for (int i = 0; i < channels; ++i) found[i] = i < there ? from[i * sizes.from.input_stride] : std::int8_t{0};
  }
};

// Words in which halves of the channels of `width` outputs each follow on each other: two bytes, or two of 16 bits.
template <typename Number>
std::uint8_t* pack_halves(const Unit& unit, std::int64_t word, std::int64_t tap, int apart, std::uint8_t* out) {
  const std::int64_t width = unit.sizes.width, half_bytes = width * 2 * std::int64_t{sizeof(Number)};
  for (std::int64_t begin = 0; begin < unit.room; begin += width, out += 2 * half_bytes) {
    for (std::int64_t o = 0; o < width; ++o) {
      std::int8_t found[kWord];
      unit.channels_of(begin + o, word * kWord, tap, found);
      for (int half = 0; half < 2; ++half) {
        const int first = apart == 1 ? 2 * half : half;
        const Number pair[2] = {found[first], found[first + apart]};
        std::memcpy(out + half * half_bytes + o * static_cast<std::int64_t>(sizeof pair), pair, sizeof pair);
      }
    }
  }
  return out;
}

// `words` words of all outputs of a unit under a tap.
std::uint8_t* pack_tap(Form form, const Unit& unit, std::int64_t first, std::int64_t words, std::int64_t tap,
                       std::uint8_t* out) {
  if (form == Form::kSignedEights) {
    for (std::int64_t word = 0; word < words; word += 2) {
      for (std::int64_t output = 0; output < unit.room; ++output, out += 2 * kWord) {
        std::int8_t found[2 * kWord];
        unit.channels_of(output, (first + word) * kWord, tap, found);
        if (word + 1 == words) std::fill_n(found + kWord, kWord, std::int8_t{0});
        std::memcpy(out, found, sizeof found);
      }
    }
    return out;
  }
  for (std::int64_t word = first; word < first + words; ++word) {
    if (form == Form::kPairs) {
      out = pack_halves<std::int16_t>(unit, word, tap, 2, out);
    } else if (form == Form::kSignedPairs) {
      out = pack_halves<std::int8_t>(unit, word, tap, 1, out);
    } else {
      for (std::int64_t output = 0; output < unit.room; ++output, out += kWord) {
        std::int8_t found[kWord];
        unit.channels_of(output, word * kWord, tap, found);
        std::memcpy(out, found, sizeof found);
      }
    }
  }
  return out;
}

void check(const ByteWeights& s) {
  const bool sound = s.groups > 0 && s.from.outputs > 0 && s.from.inputs > 0 && s.from.taps > 0 && s.width > 0 &&
                     s.tile_vectors > 0 && s.words > 0 && s.from.outputs % s.groups == 0;
  if (!sound) throw std::invalid_argument("the sizes of weights of bytes do not fit; please report this as a bug.");
}

constexpr int kLanes = 32;
constexpr std::int64_t kFits = 255;  // so many numbers of 8 bits add up to one of 16

// Adds whole vectors of up to `columns` bytes that follow on each other to their sums; returns how many bytes that
// were.
std::int64_t sum_lanes(const std::int8_t* from, std::int64_t columns, std::int64_t& sum, std::int64_t& absolute) {
  const std::int64_t turns = std::min(columns / kLanes, kFits);
  std::int16_t some[kLanes] = {}, sizes[kLanes] = {};
  for (std::int64_t turn = 0; turn < turns; ++turn) {
    for (int i = 0; i < kLanes; ++i) {
      const std::int16_t value = from[turn * kLanes + i];
      some[i] = static_cast<std::int16_t>(some[i] + value);
      sizes[i] = static_cast<std::int16_t>(sizes[i] + (value < 0 ? -value : value));
    }
  }
  for (int i = 0; i < kLanes; ++i) {
    sum += some[i];
    absolute += sizes[i];
  }
  return turns * kLanes;
}

// The same where what lies together are rows: column by column.
void sum_by_columns(const ByteMatrix& m, std::span<std::int64_t> sums, std::span<std::int64_t> absolute) {
  std::vector<std::int16_t> some(sums.size()), sizes(sums.size());
  for (std::int64_t begin = 0; begin < m.columns; begin += kFits) {
    std::fill(some.begin(), some.end(), std::int16_t{0});
    std::fill(sizes.begin(), sizes.end(), std::int16_t{0});
    for (std::int64_t column = begin; column < std::min(begin + kFits, m.columns); ++column) {
      const std::int8_t* from = m.data + column * m.column_stride;
      for (std::size_t row = 0; row < some.size(); ++row) {
        const std::int16_t value = from[row];
        some[row] = static_cast<std::int16_t>(some[row] + value);
        sizes[row] = static_cast<std::int16_t>(sizes[row] + (value < 0 ? -value : value));
      }
    }
    for (std::size_t row = 0; row < some.size(); ++row) {
      sums[row] += some[row];
      absolute[row] += sizes[row];
    }
  }
}

}  // namespace

std::int64_t packed_bytes(const ByteWeights& sizes, std::string_view name) {
  check(sizes);
  const Form form = form_of(name);
  const std::int64_t total = divide_up(sizes.from.inputs, kWord),
                     vectors = divide_up(sizes.from.outputs / sizes.groups, sizes.width);
  const std::int64_t words =
      total / sizes.words * packed_words(form, sizes.words) + packed_words(form, total % sizes.words);
  return sizes.groups * vectors * sizes.width * words * sizes.from.taps * word_bytes(form);
}

void pack_bytes(const ByteWeights& sizes, std::string_view name, const std::int8_t* weights,
                std::span<std::uint8_t> packed) {
  if (std::ssize(packed) != packed_bytes(sizes, name)) {
    throw std::invalid_argument("there is no room for the weights of bytes; please report this as a bug.");
  }
  const Form form = form_of(name);
  const std::int64_t of_group = sizes.from.outputs / sizes.groups, vectors = divide_up(of_group, sizes.width);
  const std::int64_t units = divide_up(vectors, sizes.tile_vectors), total = divide_up(sizes.from.inputs, kWord);
  std::uint8_t* out = packed.data();
  for (std::int64_t group = 0; group < sizes.groups; ++group) {
    for (std::int64_t i = 0; i < units; ++i) {
      const std::int64_t begin = i * vectors / units * sizes.width, end = (i + 1) * vectors / units * sizes.width;
      const Unit unit{sizes, weights + (group * of_group + begin) * sizes.from.output_stride,
                      std::min(end, of_group) - begin, end - begin};
      for (std::int64_t word = 0; word < total; word += sizes.words) {
        const std::int64_t count = std::min(sizes.words, total - word);
        for (std::int64_t tap = 0; tap < sizes.from.taps; ++tap) out = pack_tap(form, unit, word, count, tap, out);
      }
    }
  }
}

bool sums_stay_below(const WeightLayout& from, const std::int8_t* weights, std::int64_t words, int most) {
  for (std::int64_t output = 0; output < from.outputs; ++output) {
    for (std::int64_t tap = 0; tap < from.taps; ++tap) {
      const std::int8_t* first = weights + output * from.output_stride + tap * from.tap_stride;
      for (std::int64_t input = 0; input < from.inputs; input += words * kWord) {
        for (std::int64_t pair = 0; pair < kWord; pair += 2) {
          int above = 0, below = 0;
          for (std::int64_t word = 0; word < words; ++word) {
            for (std::int64_t i = input + word * kWord + pair; i < input + word * kWord + pair + 2; ++i) {
              const int value = i < from.inputs ? first[i * from.input_stride] : 0;
              (value < 0 ? below : above) += value;
            }
          }
          if (above > most || -below > most) return false;
        }
      }
    }
  }
  return true;
}

void sum_rows(const ByteMatrix& m, std::span<std::int64_t> sums, std::span<std::int64_t> absolute) {
  if (std::ssize(sums) != m.rows || std::ssize(absolute) != m.rows) {
    throw std::invalid_argument("there is no room for the sums of rows of bytes; please report this as a bug.");
  }
  std::fill(sums.begin(), sums.end(), 0);
  std::fill(absolute.begin(), absolute.end(), 0);
  if (m.row_stride == 1 && m.column_stride != 1) {
    sum_by_columns(m, sums, absolute);
    return;
  }
  for (std::size_t row = 0; row < sums.size(); ++row) {
    const std::int8_t* from = m.data + static_cast<std::int64_t>(row) * m.row_stride;
    std::int64_t column = 0;
    if (m.column_stride == 1) {
      for (; column + kLanes <= m.columns;
           column += sum_lanes(from + column, m.columns - column, sums[row], absolute[row])) {
      }
    }
    for (; column < m.columns; ++column) {
      const std::int8_t value = from[column * m.column_stride];
      sums[row] += value;
      absolute[row] += value < 0 ? -value : value;
    }
  }
}

}  // namespace powerlab::engine
