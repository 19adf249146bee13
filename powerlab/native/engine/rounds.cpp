#include "rounds.hpp"

#include <cstddef>
#include <cstring>

namespace powerlab::engine {

std::int64_t run_rounds(Plan& plan, const Rounds& rounds, std::vector<const float*> inputs,
                        std::span<float* const> outputs, std::span<const std::int64_t> floats) {
  std::int64_t number = rounds.first;
  inputs[static_cast<std::size_t>(rounds.number)] = reinterpret_cast<const float*>(&number);
  std::vector<float*> made(outputs.begin(), outputs.end());
  for (std::int64_t done = 0; done < rounds.most;) {
    plan.run(inputs, made);
    for (const auto& [output, rows] : rounds.gathered) {
      const auto index = static_cast<std::size_t>(output);
      std::memcpy(rows + done * floats[index], made[index], static_cast<std::size_t>(floats[index]) * sizeof(float));
    }
    std::int64_t goes_on = 1;
    if (rounds.goes_on >= 0) std::memcpy(&goes_on, made[static_cast<std::size_t>(rounds.goes_on)], sizeof goes_on);
    ++done;
    ++number;
    if (goes_on == 0) return done;
    for (const auto& [input, output] : rounds.states) {
      inputs[static_cast<std::size_t>(input)] = made[static_cast<std::size_t>(output)];
    }
    for (std::size_t i = 0; i < made.size(); ++i) made[i] = outputs[i] + done % 2 * floats[i];
  }
  return rounds.most;
}

}  // namespace powerlab::engine
