// Convolutions, products and gradients of 16-bit floats on models: AMX's tiles of bfloat16 as the manual says what they
// do, and arithmetic in float16 in plain C++. So every processor of the family checks which numbers are multiplied, in
// what order they are added and rounded, and that no instruction of AMX would fault.
#include "tests/test.hpp"

#if defined(__x86_64__)
#include <cstdio>

namespace powerlab::engine {
namespace amx_pairs_model {
extern const PairTable kPairTable;
}
namespace halves_model {
extern const PairTable kPairTable;
}

namespace test {

void check_pair_models(Report& report) {
  for (const PairTable* pairs : {&amx_pairs_model::kPairTable, &halves_model::kPairTable}) {
    const int before = report.checked();
    check_pair_convolutions(16, *pairs, report);
    if (pairs == &amx_pairs_model::kPairTable) {
      check_pair_products(16, *pairs, report);
      check_pair_attentions(16, *pairs, report);
      check_pair_gradients(16, *pairs, report);
    }
    std::printf("%s: %d checks\n", pairs->name, report.checked() - before);
  }
}

}  // namespace test
}  // namespace powerlab::engine

#else

namespace powerlab::engine::test {

void check_pair_models(Report&) {}

}  // namespace powerlab::engine::test

#endif
