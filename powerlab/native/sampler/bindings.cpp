// Python's view of the sampler: powerlab.native._native.sampler.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include <cerrno>
#include <cstdint>
#include <memory>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "sampler/sampler.hpp"

namespace nb = nanobind;

namespace powerlab {
namespace {

using sampler::Sampler;
using sampler::Samples;
using sampler::Source;

using Column = nb::ndarray<nb::numpy, std::int64_t, nb::ndim<1>>;

// Hands a vector to NumPy without copying it: the array keeps it alive.
Column to_array(std::vector<std::int64_t>&& column) {
  auto kept = std::make_unique<std::vector<std::int64_t>>(std::move(column));
  auto* data = kept->data();
  const std::size_t length = kept->size();
  nb::capsule owner(kept.get(),
                    [](void* pointer) noexcept { delete static_cast<std::vector<std::int64_t>*>(pointer); });
  kept.release();
  return Column(data, {length}, owner);
}

nb::list take(Sampler& self) {
  std::vector<Samples> taken;
  {
    nb::gil_scoped_release unlocked;
    taken = self.take();
  }
  nb::list result;
  for (Samples& samples : taken) {
    result.append(nb::make_tuple(to_array(std::move(samples.time_ns)), to_array(std::move(samples.value)),
                                 to_array(std::move(samples.cost_ns)), samples.failed_reads));
  }
  return result;
}

// A std::system_error becomes the OSError that Python's own open() would raise: its what() starts with the path.
void raise_os_error(const std::exception_ptr& pointer, void*) {
  try {
    std::rethrow_exception(pointer);
  } catch (const std::system_error& error) {
    nb::object arguments = nb::make_tuple(error.code().value(), error.what());
    PyErr_SetObject(PyExc_OSError, arguments.ptr());
  }
}

}  // namespace

void bind_sampler(nb::module_& module) {
  nb::register_exception_translator(raise_os_error);
  nb::class_<Sampler>(module, "Sampler", "Samples integer files in a thread that needs no interpreter lock.")
      .def(
          nb::init<const std::vector<std::vector<Source>>&, std::int64_t>(), nb::arg("channels"), nb::arg("period_ns"),
          "Open one or two files a channel, each a path or an open descriptor, which is duplicated; raises OSError for "
          "a file that cannot be opened, ValueError for a bad period or a channel without files.")
      .def("start", &Sampler::start, nb::call_guard<nb::gil_scoped_release>(), "Begin to sample.")
      .def("stop", &Sampler::stop, nb::call_guard<nb::gil_scoped_release>(), "Return when the thread is gone.")
      .def("take", &take,
           "Hand over per channel (time_ns, value, cost_ns, failed_reads): int64 arrays of one length, and a count.")
      .def_prop_ro("rounds", &Sampler::rounds, "How often every channel has been read since start.")
      .def_prop_ro("missed_deadlines", &Sampler::missed_deadlines, "Periods skipped because reading took too long.")
      .def_prop_ro("cpu_ns", &Sampler::cpu_ns, "Processor time of the last recording's thread; 0 until it has ended.")
      .def_prop_ro("wall_ns", &Sampler::wall_ns, "How long the last recording's thread lived; 0 until it has ended.");
}

}  // namespace powerlab
