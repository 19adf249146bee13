// Suppression of boxes that a better box of the same class covers (ONNX's NonMaxSuppression).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace powerlab::engine {

struct Suppression {
  std::int64_t most;  // boxes left of a class of an image at most
  float overlap;      // intersection over union from which on a worse box goes, itself not included
  float least;        // scores are above it, or it is not a number, where any will do
};

// Returns (image, class, box) of every box that is left, one after the other: class by class, the best first, and of
// equal ones the first. `corners` are (images, boxes, 4), low ones before high ones; `scores` (images, classes, boxes).
// Scores that are not a number are the worst.
std::vector<std::int64_t> suppress(const Suppression& rule, std::int64_t images, std::int64_t classes,
                                   std::int64_t boxes, std::span<const float> corners, std::span<const float> scores);

}  // namespace powerlab::engine
