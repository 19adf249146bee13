// The fields of a protobuf message, without a schema: powerlab/engine/frontend/onnx_reader/wire.py says what they are.
// In Python this loop took a fifth of the time in which a network of many layers is loaded.
#include <nanobind/nanobind.h>

#include <cstdint>
#include <string>

namespace nb = nanobind;

namespace powerlab {

namespace {

enum WireType { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

// The bytes of a message, held as long as they are read.
class Message {
 public:
  explicit Message(nb::handle object) {
    if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_SIMPLE) != 0) throw nb::python_error();
  }
  Message(const Message&) = delete;
  Message& operator=(const Message&) = delete;
  ~Message() { PyBuffer_Release(&view_); }

  bool ended() const { return at_ == view_.len; }
  std::uint64_t varint() {
    constexpr int kMostBytes = 10, kBits = 7;
    std::uint64_t value = 0;
    for (int count = 0; count < kMostBytes; ++count) {
      if (ended()) throw nb::value_error("it ends inside a number");
      const std::uint8_t byte = static_cast<const std::uint8_t*>(view_.buf)[at_++];
      value |= static_cast<std::uint64_t>(byte & 0x7F) << kBits * count;
      if (byte < 0x80) return value;
    }
    throw nb::value_error("a number is longer than ten bytes");
  }
  // Where the next so many bytes begin.
  Py_ssize_t skip(std::uint64_t bytes) {
    if (bytes > static_cast<std::uint64_t>(view_.len - at_)) throw nb::value_error("it ends inside a field");
    const Py_ssize_t begin = at_;
    at_ += static_cast<Py_ssize_t>(bytes);
    return begin;
  }

 private:
  Py_buffer view_{};
  Py_ssize_t at_ = 0;
};

nb::object part_of(nb::handle data, Py_ssize_t begin, std::uint64_t bytes) {
  return nb::steal(PySequence_GetSlice(data.ptr(), begin, begin + static_cast<Py_ssize_t>(bytes)));
}

// The first fields of a message, `most` at most: (number, wire type, an integer or a part of `data`).
nb::list fields(nb::handle data, std::int64_t most) {
  Message message(data);
  nb::list found;
  for (std::int64_t count = 0; count < most && !message.ended(); ++count) {
    const std::uint64_t key = message.varint(), number = key >> 3;
    const int wire_type = static_cast<int>(key & 7);
    if (number == 0) throw nb::value_error("a field has the number 0");
    std::uint64_t size = 0;
    switch (wire_type) {
      case kVarint:
        found.append(nb::make_tuple(number, wire_type, message.varint()));
        continue;
      case kBytes:
        size = message.varint();
        break;
      case kFixed64:
        size = 8;
        break;
      case kFixed32:
        size = 4;
        break;
      default:
        throw nb::value_error(("wire type " + std::to_string(wire_type) + " is unknown").c_str());
    }
    const Py_ssize_t begin = message.skip(size);
    nb::object part = part_of(data, begin, size);
    if (!part.is_valid()) throw nb::python_error();
    found.append(nb::make_tuple(number, wire_type, part));
  }
  return found;
}

}  // namespace

void bind_protobuf(nb::module_& module) { module.def("fields", &fields, nb::arg("data"), nb::arg("most")); }

}  // namespace powerlab
