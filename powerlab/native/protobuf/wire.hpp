// The wire format of protobuf (https://protobuf.dev/programming-guides/encoding): keys, numbers, lengths.
#pragma once

#include <nanobind/nanobind.h>

#include <cstdint>
#include <string>

namespace powerlab {

enum WireType { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

// The bytes of an object with a buffer, held as long as they are read.
class Held {
 public:
  explicit Held(nanobind::handle object) {
    if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_SIMPLE) != 0) throw nanobind::python_error();
  }
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  ~Held() { PyBuffer_Release(&view_); }

  const std::uint8_t* data() const { return static_cast<const std::uint8_t*>(view_.buf); }
  Py_ssize_t size() const { return view_.len; }

 private:
  Py_buffer view_{};
};

// A field: its value is `number` where it is a varint, else the bytes from `begin` to `end` of what is held.
struct Field {
  std::uint64_t key_number;
  int wire_type;
  std::uint64_t number = 0;
  Py_ssize_t begin = 0, end = 0;
};

// Goes through a message, or a list of numbers. Throws nanobind::value_error, which says what is wrong.
class Wire {
 public:
  Wire(const std::uint8_t* data, Py_ssize_t begin, Py_ssize_t end) : data_(data), at_(begin), end_(end) {}

  bool ended() const { return at_ == end_; }

  std::uint64_t varint() {
    constexpr int kMostBytes = 10, kBits = 7;
    std::uint64_t value = 0;
    for (int count = 0; count < kMostBytes; ++count) {
      if (ended()) throw nanobind::value_error("it ends inside a number");
      const std::uint8_t byte = data_[at_++];
      value |= static_cast<std::uint64_t>(byte & 0x7F) << kBits * count;
      if (byte < 0x80) return value;
    }
    throw nanobind::value_error("a number is longer than ten bytes");
  }

  Field field() {
    const std::uint64_t key = varint();
    Field found{.key_number = key >> 3, .wire_type = static_cast<int>(key & 7)};
    if (found.key_number == 0) throw nanobind::value_error("a field has the number 0");
    std::uint64_t bytes = 0;
    switch (found.wire_type) {
      case kVarint:
        found.number = varint();
        return found;
      case kBytes:
        bytes = varint();
        break;
      case kFixed64:
        bytes = 8;
        break;
      case kFixed32:
        bytes = 4;
        break;
      default:
        throw nanobind::value_error(("wire type " + std::to_string(found.wire_type) + " is unknown").c_str());
    }
    if (bytes > static_cast<std::uint64_t>(end_ - at_)) throw nanobind::value_error("it ends inside a field");
    found.begin = at_;
    found.end = at_ += static_cast<Py_ssize_t>(bytes);
    return found;
  }

 private:
  const std::uint8_t* data_;
  Py_ssize_t at_, end_;
};

// A part of an object with a buffer, which is of the same kind.
inline nanobind::object part_of(nanobind::handle data, Py_ssize_t begin, Py_ssize_t end) {
  nanobind::object part = nanobind::steal(PySequence_GetSlice(data.ptr(), begin, end));
  if (!part.is_valid()) throw nanobind::python_error();
  return part;
}

}  // namespace powerlab
