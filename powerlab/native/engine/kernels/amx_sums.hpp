// A convolution's sums in AMX: up to four vectors of 16 outputs x 16 pixels, or two x twice 16. Who includes this says
// before, as POWERLAB_TILE_MULTIPLY, what words are made of, and as POWERLAB_TILE_BEGIN what sums begin with.
//
// A row of `a` is what a pixel reads of one kernel row: words that follow on each other in memory, of neighbouring
// taps too where these are neighbours; pixels of a row lie a stride apart, so tiles are loaded from where the image
// lies, and rows may overlap. Weights are whole blocks of 16 channels: their words are the rows of `b`. They come from
// the second-level cache, and what they are multiplied with from the first: two tiles of pixels load them once.
//
// Under a kernel of 1 x 1 a run is no more than a block, of bytes a quarter of a tile's row. There the words of several
// blocks are gathered into rows before, once for all units of outputs, unless they follow on each other anyway, as
// features do.
//
// Tiles of sums are multiplied in the background: what the former ones become is computed behind the multiplications
// of the next ones, and before these are stored.
#pragma once

#include "kernels/amx.hpp"

namespace powerlab::engine::POWERLAB_TIER {

// Words of a kernel row that are multiplied at once: all, or the largest equal parts that fit the rows of a tile.
static inline int words_at_once(int run) {
  int parts = (run + kTileRows - 1) / kTileRows;
  while (run % parts) ++parts;
  return run / parts;
}

// Tiles as a step wants them, for as long as it runs: their configuration belongs to the thread.
class Tiles {
 public:
  explicit Tiles(const Step& s) {
    const bool neighbours = s.x.pixel * s.dilation_w == s.lanes;
    runs_ = neighbours ? 1 : s.kernel_w;
    run_ = (neighbours ? s.kernel_w : 1) * s.lanes;
    words_ = words_at_once(run_);
    const int blocks = static_cast<int>(s.x.blocks / s.groups), all = blocks * s.lanes;
    if (s.kernel_h * s.kernel_w > 1 || blocks == 1) return;
    int together = s.x.plane == s.lanes || all > kMostWords || s.lanes != kGatheredWords ? 1 : kTileRows / s.lanes;
    while (together > 1 && blocks % together) --together;
    gathers_ = together > 1;
    if (!gathers_ && s.x.plane != s.lanes) return;
    row_ = true;
    run_ = all;
    words_ = gathers_ ? together * s.lanes : words_at_once(all);
  }
  // Rows of so many words each.
  explicit Tiles(int row) : runs_(1), run_(row), words_(words_at_once(row)), row_(true) {}
  // From now on rows have so many words.
  void set_row(int row) {
    run_ = row;
    const int words = words_at_once(row);
    if (words != words_) second_ = kOther;
    words_ = words;
  }
  Tiles(const Tiles&) = delete;
  Tiles& operator=(const Tiles&) = delete;
  ~Tiles() {
    if (first_) POWERLAB_TILE_RELEASE();
  }

  // Tiles 0 to 3 are sums, 4 and 5 are `a`, 6 and 7 weights. Of one tile of pixels there are up to four sums; where
  // there is a second one (of more than 0 pixels), two of each, and its `a` is the other.
  void configure(int first, int second) {
    if (first == first_ && second == second_) return;
    first_ = first;
    second_ = second;
    TileConfig config;
    for (int tile = 0; tile < kTiles; ++tile) {
      const int pixels = tile == 5 || ((tile == 2 || tile == 3) && second > 0) ? second : first;
      config.rows[tile] = static_cast<std::uint8_t>(tile < 6 ? pixels : words_);
      const bool is_a = tile == 4 || tile == 5;
      config.row_bytes[tile] = static_cast<std::uint16_t>(config.rows[tile] == 0 ? 0
                                                          : is_a                 ? 4 * words_
                                                                                 : kTileRowBytes);
    }
    POWERLAB_TILE_CONFIGURE(config);
  }
  int runs() const { return runs_; }
  int run() const { return run_; }
  int words() const { return words_; }
  // Whether all blocks of a pixel are one run, and whether that is gathered.
  bool row() const { return row_; }
  bool gathers() const { return gathers_; }

  static constexpr int kMostWords = 1024, kGatheredWords = 4;  // of a pixel, and of a block, that are gathered

 private:
  static constexpr int kOther = -1;  // pixels that no tile has

  int first_ = 0, second_ = 0;  // pixels
  int runs_, run_, words_;      // runs of neighbouring words in a kernel row, words of a run and of a multiplication
  bool row_ = false, gathers_ = false;
};

// The tiles of a convolution: one waits for the next one, so that two go together, and what is gathered stays for all
// units of outputs.
template <typename Tile>
class ConvTiles : public Tiles {
 public:
  using Tiles::Tiles;

  // How many of `tiles` go through all units before the next ones: what is gathered has room for so many, in pairs.
  std::int64_t at_once(std::int64_t tiles) const {
    if (!gathers()) return tiles;
    const std::int64_t most = kGathered / (kTileRows * run()) / 2 * 2, chunks = (tiles + most - 1) / most;
    return chunks < 2 ? tiles : ((tiles + chunks - 1) / chunks + 1) / 2 * 2;
  }
  // A unit begins: of which group, and with which of a step's tiles.
  void begin(std::int64_t group, std::int64_t tile) {
    next_ = 0;
    if (group == group_ && tile == tile_) return;
    group_ = group;
    tile_ = tile;
    known_ = 0;
  }
  // Takes a tile, which reads its words where they are gathered, if they are; returns whether it has to wait.
  bool waits(Tile& t, int pixels) {
    place(t, pixels);
    if (pixels_) return false;
    waiting_ = t;
    pixels_ = pixels;
    return true;
  }
  const Tile& waiting() const { return waiting_; }
  int pixels() const { return pixels_; }  // of the one that waits; 0: there is none
  void empty() { pixels_ = 0; }

 private:
  static constexpr std::int64_t kGathered = 2 * kTileRows * kMostWords;

  void place(Tile& t, int pixels) {
    if (!gathers()) return;
    float* to = gathered_ + next_ * kTileRows * run();
    if (next_++ == known_) {
      ++known_;
      gather(t, pixels, to);
      // Instructions that load tiles do not tell the compiler that they read memory.
      __atomic_signal_fence(__ATOMIC_SEQ_CST);
    }
    t.x = to;
  }
  // The words of a tile's pixels, [multiplication][16 pixels][word].
  void gather(const Tile& t, int pixels, float* to) const {
    const int words = this->words();
    for (int block = 0; block < t.blocks; ++block) {
      const int word = block * kGatheredWords;
      float* row = to + word / words * kTileRows * words + word % words;
      const float* x = t.x + block * t.x_plane;
      for (int p = 0; p < pixels; ++p, row += words, x += t.x_pixel) __builtin_memcpy(row, x, 4 * kGatheredWords);
    }
  }

  Tile waiting_;
  int pixels_ = 0;
  std::int64_t group_ = -1, tile_ = -1;
  std::int64_t next_ = 0, known_ = 0;  // of the chunk's tiles: the next one, and how many are gathered
  alignas(64) float gathered_[kGathered];
};

// Sums of `kVectors` of outputs of a unit that has `unit`, the first of them `vector`: in tiles 0 to 3; of two tiles of
// pixels (`kTwo`, the other one `second` floats on) in tiles 0 and 1, and 2 and 3. T: a tile of a step. What comes next
// is prefetched meanwhile: `prefetch`, evenly.
template <int kVectors, bool kTwo, typename T>
static inline __attribute__((always_inline)) void tile_sums(const T& t, std::int64_t second, int vector, int unit,
                                                            const char* prefetch, const Tiles& tiles) {
  static_assert(kVectors <= (kTwo ? 2 : 4));
  constexpr std::int64_t kLineBytes = 64;
  const int words = tiles.words(), parts = tiles.run() / words, runs = tiles.runs(), kernel_h = t.kernel_h;
  const int blocks = tiles.row() ? 1 : t.blocks;
  const std::int64_t row_bytes = unit * kTileRowBytes, weight_bytes = words * row_bytes;
  const std::int64_t pixel = 4 * (tiles.gathers() ? words : t.x_pixel),
                     step = tiles.gathers() ? kTileRows * words : words;
  const std::int64_t prefetch_step = words * t.prefetch_step;
  POWERLAB_TILE_BEGIN(0, t, vector);
  if constexpr (kVectors > 1) POWERLAB_TILE_BEGIN(1, t, vector + 1);
  if constexpr (kTwo) POWERLAB_TILE_BEGIN(2, t, vector);
  if constexpr (kTwo && kVectors > 1) POWERLAB_TILE_BEGIN(3, t, vector + 1);
  if constexpr (!kTwo && kVectors > 2) POWERLAB_TILE_BEGIN(2, t, vector + 2);
  if constexpr (!kTwo && kVectors > 3) POWERLAB_TILE_BEGIN(3, t, vector + 3);
  const std::uint8_t* weights = reinterpret_cast<const std::uint8_t*>(t.weights) + vector * kTileRowBytes;
  const char* due = prefetch;
  for (int block = 0; block < blocks; ++block) {
    for (int ky = 0; ky < kernel_h; ++ky) {
      for (int run = 0; run < runs; ++run) {
        const float* x = t.x + block * t.x_plane + ky * t.x_row + run * t.x_column;
        for (int part = 0; part < parts; ++part, x += step, weights += weight_bytes) {
          POWERLAB_TILE_LOAD(4, x, pixel);
          POWERLAB_TILE_LOAD(6, weights, row_bytes);
          POWERLAB_TILE_MULTIPLY(0, 4, 6);
          if constexpr (kTwo) {
            POWERLAB_TILE_LOAD(5, x + second, pixel);
            POWERLAB_TILE_MULTIPLY(2, 5, 6);
          }
          if constexpr (kVectors > 1) {
            POWERLAB_TILE_LOAD(7, weights + kTileRowBytes, row_bytes);
            POWERLAB_TILE_MULTIPLY(1, 4, 7);
          }
          if constexpr (kTwo && kVectors > 1) POWERLAB_TILE_MULTIPLY(3, 5, 7);
          if constexpr (!kTwo && kVectors > 2) {
            POWERLAB_TILE_LOAD(6, weights + 2 * kTileRowBytes, row_bytes);
            POWERLAB_TILE_MULTIPLY(2, 4, 6);
          }
          if constexpr (!kTwo && kVectors > 3) {
            POWERLAB_TILE_LOAD(7, weights + 3 * kTileRowBytes, row_bytes);
            POWERLAB_TILE_MULTIPLY(3, 4, 7);
          }
          // All lines of it: where there are few tiles, much of the next unit falls to each.
          for (due += prefetch_step; prefetch < due; prefetch += kLineBytes) __builtin_prefetch(prefetch, 0, 2);
        }
      }
    }
  }
}

constexpr int kTileSums = kTileRows * kWidth;

// Computes a unit's vectors of outputs of one tile of pixels. finish(tile, pixels, first vector, vectors, sums) makes
// results of sums, [vector][16 pixels][16]; how many vectors is a constant's type.
template <int kVectors, typename Sum, typename T, typename Finish>
static inline __attribute__((always_inline)) void run_one(const T& t, int pixels, Tiles& tiles, Finish finish) {
  alignas(64) Sum sums[kVectors * kTileSums];
  tiles.configure(pixels, 0);
  tile_sums<kVectors, false>(t, 0, 0, kVectors, t.prefetch, tiles);
  POWERLAB_TILE_STORE(0, sums, kTileRowBytes);
  if constexpr (kVectors > 1) POWERLAB_TILE_STORE(1, sums + kTileSums, kTileRowBytes);
  if constexpr (kVectors > 2) POWERLAB_TILE_STORE(2, sums + 2 * kTileSums, kTileRowBytes);
  if constexpr (kVectors > 3) POWERLAB_TILE_STORE(3, sums + 3 * kTileSums, kTileRowBytes);
  finish(t, pixels, 0, Count<kVectors>{}, sums);
}

// The same of two tiles, which read the same weights: two vectors of both at a time.
template <int kVectors, typename Sum, typename T, typename Finish>
static inline __attribute__((always_inline)) void run_two(const T& first, int first_pixels, const T& second,
                                                          int second_pixels, Tiles& tiles, Finish finish) {
  constexpr int kFirst = kVectors < 2 ? 1 : 2, kLast = kVectors - kFirst;  // vectors that go first, and then
  alignas(64) Sum sums[2][2][2 * kTileSums];
  const std::int64_t apart = second.x - first.x;
  const auto store = [&](Sum(&to)[2][2 * kTileSums], bool both) __attribute__((always_inline)) {
    POWERLAB_TILE_STORE(0, to[0], kTileRowBytes);
    POWERLAB_TILE_STORE(2, to[1], kTileRowBytes);
    if (!both) return;
    POWERLAB_TILE_STORE(1, to[0] + kTileSums, kTileRowBytes);
    POWERLAB_TILE_STORE(3, to[1] + kTileSums, kTileRowBytes);
  };
  tiles.configure(first_pixels, second_pixels);
  tile_sums<kFirst, true>(first, apart, 0, kVectors, first.prefetch, tiles);
  store(sums[0], kFirst > 1);
  if constexpr (kLast > 0) tile_sums<kLast, true>(first, apart, 2, kVectors, second.prefetch, tiles);
  finish(first, first_pixels, 0, Count<kFirst>{}, sums[0][0]);
  finish(second, second_pixels, 0, Count<kFirst>{}, sums[0][1]);
  if constexpr (kLast > 0) {
    store(sums[1], kLast > 1);
    finish(first, first_pixels, 2, Count<kLast>{}, sums[1][0]);
    finish(second, second_pixels, 2, Count<kLast>{}, sums[1][1]);
  }
}

// A unit of `kVectors` of a tile, and of the next one; null: there is none.
template <int kVectors, typename Sum, typename T, typename Finish>
static inline __attribute__((always_inline)) void run_tiles(const T& first, int first_pixels, const T* second,
                                                            int second_pixels, Tiles& tiles, Finish finish) {
  if (second)
    run_two<kVectors, Sum>(first, first_pixels, *second, second_pixels, tiles, finish);
  else
    run_one<kVectors, Sum>(first, first_pixels, tiles, finish);
}

}  // namespace powerlab::engine::POWERLAB_TIER
