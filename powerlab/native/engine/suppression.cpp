#include "suppression.hpp"

#include <algorithm>
#include <cmath>

namespace powerlab::engine {
namespace {

constexpr std::int64_t kSides = 4;
constexpr std::size_t kTogether = 16;

struct Box {
  float low[2], high[2];

  float area() const { return (high[0] - low[0]) * (high[1] - low[1]); }
};

float shared_side(float low, float other_low, float high, float other_high) {
  const float side = std::min(high, other_high) - std::max(low, other_low);
  return side > 0 ? side : 0;
}

// The boxes of a class that are left, `kTogether` side by side; those that fill up the last ones share nothing with
// any.
class Kept {
 public:
  void clear() { count_ = 0; }

  std::size_t count() const { return count_; }

  void add(const Box& box) {
    const std::size_t place = count_ % kTogether;
    if (place == 0 && count_ / kTogether == groups_.size()) groups_.emplace_back();
    Group& group = groups_[count_ / kTogether];
    if (place == 0) group = Group{};
    for (int axis = 0; axis < 2; ++axis) {
      group.low[axis][place] = box.low[axis];
      group.high[axis][place] = box.high[axis];
    }
    group.area[place] = box.area();
    ++count_;
  }

  // Whether one of them shares more than `overlap` of a union with a box.
  bool covers(const Box& box, float overlap) const {
    if (overlap < 0 && count_ > 0) return true;
    const float area = box.area();
    const std::size_t groups = (count_ + kTogether - 1) / kTogether;
    for (std::size_t i = 0; i < groups; ++i) {
      const Group& group = groups_[i];
      float both[kTogether];
      unsigned shared = 0;
      for (std::size_t place = 0; place < kTogether; ++place) {
        both[place] = shared_side(group.low[0][place], box.low[0], group.high[0][place], box.high[0]) *
                      shared_side(group.low[1][place], box.low[1], group.high[1][place], box.high[1]);
      }
      for (const float area_of_both : both) shared |= area_of_both > 0;
      if (shared && shares(group, both, area, overlap)) return true;
    }
    return false;
  }

 private:
  struct Group {
    float low[2][kTogether]{}, high[2][kTogether]{}, area[kTogether]{};
  };

  static bool shares(const Group& group, const float (&both)[kTogether], float area, float overlap) {
    for (std::size_t place = 0; place < kTogether; ++place) {
      if (both[place] > 0 && !(both[place] / (group.area[place] + area - both[place]) <= overlap)) return true;
    }
    return false;
  }

  std::vector<Group> groups_;
  std::size_t count_ = 0;
};

}  // namespace

std::vector<std::int64_t> suppress(const Suppression& rule, std::int64_t images, std::int64_t classes,
                                   std::int64_t boxes, std::span<const float> corners, std::span<const float> scores) {
  std::vector<std::int64_t> found, waiting;
  Kept kept;
  for (std::int64_t row = 0; row < images * classes; ++row) {
    const float* const score = scores.data() + row * boxes;
    const float* const corner = corners.data() + row / classes * boxes * kSides;
    waiting.clear();
    for (std::int64_t box = 0; box < boxes; ++box) {
      if (std::isnan(rule.least) || score[box] > rule.least) waiting.push_back(box);
    }
    std::stable_sort(waiting.begin(), waiting.end(), [score](std::int64_t one, std::int64_t other) {
      return score[one] > score[other] || (!std::isnan(score[one]) && std::isnan(score[other]));
    });
    kept.clear();
    for (const std::int64_t box : waiting) {
      if (static_cast<std::int64_t>(kept.count()) >= rule.most) break;
      const float* const side = corner + box * kSides;
      const Box candidate{{side[0], side[1]}, {side[2], side[3]}};
      if (kept.covers(candidate, rule.overlap)) continue;
      kept.add(candidate);
      found.insert(found.end(), {row / classes, row % classes, box});
    }
  }
  return found;
}

}  // namespace powerlab::engine
