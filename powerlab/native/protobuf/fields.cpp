// The fields of a protobuf message, without a schema: powerlab/engine/frontend/onnx_reader/wire.py says what they are.
#include "protobuf/messages.hpp"
#include "protobuf/wire.hpp"

namespace nb = nanobind;

namespace powerlab {
namespace {

// The first fields of a message, `most` at most: (number, wire type, an integer or a part of `data`).
nb::list fields(nb::handle data, std::int64_t most) {
  const Held held(data);
  Wire wire(held.data(), 0, held.size());
  nb::list found;
  for (std::int64_t count = 0; count < most && !wire.ended(); ++count) {
    const Field field = wire.field();
    if (field.wire_type == kVarint) {
      found.append(nb::make_tuple(field.key_number, field.wire_type, field.number));
    } else {
      found.append(nb::make_tuple(field.key_number, field.wire_type, part_of(data, field.begin, field.end)));
    }
  }
  return found;
}

}  // namespace

void bind_protobuf(nb::module_& module) {
  module.def("fields", &fields, nb::arg("data"), nb::arg("most"));
  bind_messages(module);
}

}  // namespace powerlab
