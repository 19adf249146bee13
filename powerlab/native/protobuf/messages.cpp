// Protobuf messages as Python objects, by a schema: powerlab/engine/frontend/onnx_reader/schema.py says which. In
// Python this took a fifth of the time in which a network of many layers is loaded.
#include "protobuf/messages.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <stdexcept>
#include <unordered_map>
#include <vector>

#include "protobuf/wire.hpp"

namespace nb = nanobind;

namespace powerlab {
namespace {

// As schema.py numbers them.
enum class Kind { kInteger, kIntegers, kFloat, kFloats, kDoubles, kString, kStrings, kBytes, kMessage, kMessages };

struct Member {
  std::uint64_t number;
  nb::object name;
  Kind kind;
  nb::object type;  // of a message
};

struct Limits {
  std::int64_t fields, integers;  // of a file; of a list
  int depth;
};

class Decoder {
 public:
  Decoder(nb::handle data, const Held& held, const Limits& limits)
      : data_(data), bytes_(held.data()), limits_(limits), left_(limits.fields) {}

  nb::object message(nb::handle type, Py_ssize_t begin, Py_ssize_t end) {
    if (++depth_ > limits_.depth) {
      throw std::runtime_error("its messages are nested more than " + std::to_string(limits_.depth) +
                               " deep; export the model again.");
    }
    const std::vector<Member>& members = members_of(type);
    nb::object made = nb::steal(PyObject_CallNoArgs(type.ptr()));
    if (!made.is_valid()) throw nb::python_error();
    for (Wire wire(bytes_, begin, end); !wire.ended();) {
      if (--left_ < 0) {
        throw std::runtime_error("it has more than " + std::to_string(limits_.fields) +
                                 " fields, which no network has; export the model again.");
      }
      const Field field = wire.field();
      const auto known =
          std::ranges::find_if(members, [&](const Member& member) { return member.number == field.key_number; });
      if (known != members.end()) set(made, *known, field);
    }
    --depth_;
    return made;
  }

 private:
  const std::vector<Member>& members_of(nb::handle type) {
    const auto [found, is_new] = members_.try_emplace(type.ptr());
    if (is_new) {
      for (const auto [number, member] : nb::cast<nb::dict>(type.attr("FIELDS"))) {
        found->second.push_back({nb::cast<std::uint64_t>(number), nb::object(member[0]),
                                 static_cast<Kind>(nb::cast<int>(member[1])), nb::object(member[2])});
      }
    }
    return found->second;  // references to elements outlive a rehash
  }

  void set(const nb::object& message, const Member& member, const Field& field) {
    switch (member.kind) {
      case Kind::kInteger:
        if (field.wire_type != kVarint) throw nb::value_error("something else stands where an integer belongs");
        put(message, member, nb::int_(std::bit_cast<std::int64_t>(field.number)));
        break;
      case Kind::kIntegers:
        add_integers(numbers(message, member, "q"), field);
        break;
      case Kind::kFloat: {
        if (field.wire_type != kFixed32) throw nb::value_error("something else stands where a float belongs");
        float value = 0;
        std::memcpy(&value, bytes_ + field.begin, sizeof value);
        put(message, member, nb::float_(static_cast<double>(value)));
        break;
      }
      case Kind::kFloats:
        add_floats(numbers(message, member, "f"), field);
        break;
      case Kind::kDoubles:
        add_floats(numbers(message, member, "d"), field);
        break;
      case Kind::kString:
        put(message, member, text(field));
        break;
      case Kind::kStrings:
        append(message, member, text(field));
        break;
      case Kind::kBytes:
        put(message, member, payload(field));
        break;
      case Kind::kMessage:
        put(message, member, inside(member, field));
        break;
      case Kind::kMessages:
        append(message, member, inside(member, field));
        break;
    }
  }

  static void put(const nb::object& message, const Member& member, const nb::object& value) {
    if (PyObject_SetAttr(message.ptr(), member.name.ptr(), value.ptr()) != 0) throw nb::python_error();
  }
  static void append(const nb::object& message, const Member& member, const nb::object& value) {
    if (PyList_Append(list(message, member).ptr(), value.ptr()) != 0) throw nb::python_error();
  }
  static nb::object list(const nb::object& message, const Member& member) { return nb::getattr(message, member.name); }

  // The array of numbers that a message has begun, or now begins; until then it has an empty tuple there.
  nb::object numbers(const nb::object& message, const Member& member, const char* code) {
    nb::object begun = nb::getattr(message, member.name);
    if (!PyTuple_Check(begun.ptr())) return begun;
    if (!array_.is_valid()) array_ = nb::module_::import_("array").attr("array");
    begun = array_(code);
    put(message, member, begun);
    return begun;
  }

  static void check_payload(const Field& field) {
    if (field.wire_type == kVarint) throw nb::value_error("a number stands where text or a message belongs");
  }
  nb::object payload(const Field& field) const {
    check_payload(field);
    return part_of(data_, field.begin, field.end);
  }
  nb::object text(const Field& field) const {
    check_payload(field);
    const char* begin = reinterpret_cast<const char*>(bytes_) + field.begin;
    nb::object found = nb::steal(PyUnicode_DecodeUTF8(begin, field.end - field.begin, nullptr));
    if (!found.is_valid()) {
      PyErr_Clear();
      throw nb::value_error("a name is not UTF-8");
    }
    return found;
  }
  nb::object inside(const Member& member, const Field& field) {
    check_payload(field);
    return message(member.type, field.begin, field.end);
  }

  // Numbers that follow on each other, many at once, but in little memory.
  void add_integers(const nb::object& numbers, const Field& field) const {
    if (field.wire_type == kVarint) {
      numbers.attr("append")(std::bit_cast<std::int64_t>(field.number));
      return;
    }
    std::array<std::uint64_t, 4096> some;
    for (Wire wire(bytes_, field.begin, field.end); !wire.ended();) {
      std::size_t count = 0;
      while (count < some.size() && !wire.ended()) some[count++] = wire.varint();
      numbers.attr("frombytes")(nb::bytes(some.data(), count * sizeof some[0]));
      if (static_cast<std::int64_t>(nb::len(numbers)) > limits_.integers) {
        throw std::runtime_error("it has a list of more than " + std::to_string(limits_.integers) +
                                 " integers; export the model again.");
      }
    }
  }
  void add_floats(const nb::object& numbers, const Field& field) const {
    check_payload(field);
    const auto size = nb::cast<Py_ssize_t>(numbers.attr("itemsize"));
    const int alone = size == 4 ? kFixed32 : kFixed64;
    if ((field.wire_type != kBytes && field.wire_type != alone) || (field.end - field.begin) % size != 0) {
      throw nb::value_error("a list of floats has a wrong size");
    }
    numbers.attr("frombytes")(part_of(data_, field.begin, field.end));
  }

  nb::handle data_;
  const std::uint8_t* bytes_;
  Limits limits_;
  std::int64_t left_;
  int depth_ = 0;
  nb::object array_;
  std::unordered_map<PyObject*, std::vector<Member>> members_;
};

}  // namespace

void bind_messages(nb::module_& module) {
  module.def(
      "decode",
      [](nb::handle type, nb::handle data, std::int64_t most_fields, std::int64_t most_integers, int most_depth) {
        const Held held(data);
        Decoder decoder(data, held, {.fields = most_fields, .integers = most_integers, .depth = most_depth});
        return decoder.message(type, 0, held.size());
      },
      nb::arg("type"), nb::arg("data"), nb::arg("most_fields"), nb::arg("most_integers"), nb::arg("most_depth"));
}

}  // namespace powerlab
