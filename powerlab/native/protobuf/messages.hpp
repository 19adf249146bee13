// Protobuf messages as Python objects.
#pragma once

#include <nanobind/nanobind.h>

namespace powerlab {

void bind_messages(nanobind::module_& module);

}  // namespace powerlab
