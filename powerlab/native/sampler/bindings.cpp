#include <nanobind/nanobind.h>

namespace powerlab {
void bind_sampler(nanobind::module_&) {}
}  // namespace powerlab
