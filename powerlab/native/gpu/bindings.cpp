// Python's view of GPUs: powerlab.native._native.gpu.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <tuple>

#include "gpu/plan.hpp"

namespace nb = nanobind;

namespace powerlab {
namespace {

using gpu::Device;
using gpu::DeviceInfo;
using gpu::Library;
using gpu::Plan;

using InArray = nb::ndarray<const std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using OutArray = nb::ndarray<std::uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Inputs = std::vector<std::tuple<std::uint64_t, InArray>>;
using Outputs = std::vector<std::tuple<std::uint64_t, OutArray>>;
using Bound = std::tuple<int, std::uint64_t, std::uint64_t, bool>;

std::vector<Plan::In> ins(const Inputs& arrays) {
  std::vector<Plan::In> found;
  for (const auto& [offset, array] : arrays) found.push_back({offset, array.data(), array.size()});
  return found;
}

std::vector<Plan::Out> outs(const Outputs& arrays) {
  std::vector<Plan::Out> found;
  for (const auto& [offset, array] : arrays) found.push_back({offset, array.data(), array.size()});
  return found;
}

void add(Plan& plan, const std::string& name, const nb::bytes& code, const std::vector<std::uint32_t>& constants,
         const std::string& label, const std::vector<Bound>& bindings, const nb::bytes& push,
         const std::array<std::uint32_t, 3>& groups, std::uint32_t queue) {
  gpu::Dispatch dispatch{.label = label,
                         .shader = {name, {code.c_str(), code.size()}, constants, static_cast<int>(bindings.size())},
                         .bindings = {},
                         .push = {push.c_str(), push.size()},
                         .groups = {groups[0], groups[1], groups[2]},
                         .queue = queue};
  for (const auto& [room, offset, bytes, written] : bindings) {
    if (room < 0 || room >= gpu::kRooms) throw nb::value_error("there is no such room.");
    dispatch.bindings.push_back({static_cast<gpu::Room>(room), offset, bytes, written});
  }
  plan.add(std::move(dispatch));
}

std::vector<std::array<std::uint32_t, 3>> triples(const std::vector<gpu::MatrixSize>& sizes) {
  std::vector<std::array<std::uint32_t, 3>> found;
  for (const auto& size : sizes) found.push_back({size.m, size.n, size.k});
  return found;
}

void bind_info(nb::module_& module) {
  nb::class_<DeviceInfo>(module, "DeviceInfo")
      .def_ro("name", &DeviceInfo::name)
      .def_ro("driver", &DeviceInfo::driver)
      .def_ro("kind", &DeviceInfo::kind)
      .def_ro("api_version", &DeviceInfo::api_version)
      .def_ro("driver_version", &DeviceInfo::driver_version)
      .def_ro("vendor", &DeviceInfo::vendor)
      .def_ro("device", &DeviceInfo::device)
      .def_ro("cache_id", &DeviceInfo::cache_id)
      .def_ro("memory_bytes", &DeviceInfo::memory_bytes)
      .def_ro("largest_buffer_bytes", &DeviceInfo::largest_buffer_bytes)
      .def_ro("alignment_bytes", &DeviceInfo::alignment_bytes)
      .def_ro("shared_bytes", &DeviceInfo::shared_bytes)
      .def_ro("group_size", &DeviceInfo::group_size)
      .def_ro("subgroup_lanes", &DeviceInfo::subgroup_lanes)
      .def_ro("half_storage", &DeviceInfo::half_storage)
      .def_ro("half_arithmetic", &DeviceInfo::half_arithmetic)
      .def_ro("dot_product", &DeviceInfo::dot_product)
      .def_prop_ro("matrices", [](const DeviceInfo& info) { return triples(info.matrices); })
      .def_prop_ro("byte_matrices", [](const DeviceInfo& info) { return triples(info.byte_matrices); })
      .def_ro("queues", &DeviceInfo::queues)
      .def_ro("cores", &DeviceInfo::cores)
      .def_ro("tick_ns", &DeviceInfo::tick_ns);
}

void bind_device(nb::module_& module) {
  nb::class_<Library>(module, "Library")
      .def(nb::init<const std::string&>(), nb::arg("path"))
      .def("devices", &Library::devices);
  nb::class_<Device>(module, "Device")
      .def(
          "__init__",
          [](Device* self, std::shared_ptr<Library> library, std::size_t index, const nb::bytes& cache,
             bool host_constants) {
            new (self) Device(std::move(library), index, {cache.c_str(), cache.size()}, host_constants);
          },
          nb::arg("library"), nb::arg("index"), nb::arg("cache"), nb::arg("host_constants"))
      .def_prop_ro("pipelines", &Device::pipelines)
      .def_prop_ro("submits", &Device::submits)
      .def("pipeline_cache", [](const Device& device) {
        const auto data = device.pipeline_cache();
        return nb::bytes(data.data(), data.size());
      });
}

void bind_plan(nb::module_& module) {
  nb::class_<Plan>(module, "Plan")
      .def(
          "__init__",
          [](Plan* self, std::shared_ptr<Device> device, const std::array<std::uint64_t, 4>& bytes, bool synchronised) {
            const std::uint64_t rooms[gpu::kRooms] = {bytes[0], bytes[1], bytes[2], bytes[3]};
            new (self) Plan(std::move(device), rooms, synchronised);
          },
          nb::arg("device"), nb::arg("bytes"), nb::arg("synchronised"))
      .def(
          "upload",
          [](Plan& plan, std::uint64_t offset, const InArray& values) {
            const nb::gil_scoped_release release;
            plan.upload(offset, values.data(), values.size());
          },
          nb::arg("offset"), nb::arg("values"))
      .def("add", &add, nb::arg("name"), nb::arg("code"), nb::arg("constants"), nb::arg("label"), nb::arg("bindings"),
           nb::arg("push"), nb::arg("groups"), nb::arg("queue"))
      .def(
          "download",
          [](Plan& plan, int room, std::uint64_t offset, const OutArray& values) {
            if (room < 0 || room >= gpu::kRooms) throw nb::value_error("there is no such room.");
            const nb::gil_scoped_release release;
            plan.download(static_cast<gpu::Room>(room), offset, values.data(), values.size());
          },
          nb::arg("room"), nb::arg("offset"), nb::arg("values"))
      .def("finish", &Plan::finish, nb::arg("last"), nb::arg("sections"), nb::call_guard<nb::gil_scoped_release>())
      .def("section_ns", &Plan::section_ns, nb::call_guard<nb::gil_scoped_release>())
      .def(
          "run",
          [](Plan& plan, const Inputs& inputs, const Outputs& outputs, std::uint64_t timeout_ns) {
            const auto in = ins(inputs);
            const auto out = outs(outputs);
            const nb::gil_scoped_release release;
            plan.run(in, out, timeout_ns);
          },
          nb::arg("inputs"), nb::arg("outputs"), nb::arg("timeout_ns"))
      .def(
          "run_timed",
          [](Plan& plan, const Inputs& inputs, const Outputs& outputs, std::uint64_t timeout_ns) {
            const auto in = ins(inputs);
            const auto out = outs(outputs);
            const nb::gil_scoped_release release;
            return plan.run_timed(in, out, timeout_ns);
          },
          nb::arg("inputs"), nb::arg("outputs"), nb::arg("timeout_ns"))
      .def(
          "repeat",
          [](Plan& plan, const Inputs& inputs, std::size_t first, std::size_t last, std::uint32_t times,
             std::uint64_t timeout_ns) {
            const auto in = ins(inputs);
            const nb::gil_scoped_release release;
            return plan.repeat(in, first, last, times, timeout_ns);
          },
          nb::arg("inputs"), nb::arg("first"), nb::arg("last"), nb::arg("times"), nb::arg("timeout_ns"))
      .def("poison", &Plan::poison, nb::call_guard<nb::gil_scoped_release>())
      .def_prop_ro("barriers", &Plan::barriers)
      .def("steps", [](const Plan& plan) {
        nb::list steps;
        for (const auto& one : plan.dispatches()) steps.append(nb::make_tuple(one.shader.name, one.label));
        return steps;
      });
}

}  // namespace

void bind_gpu(nb::module_& module) {
  bind_info(module);
  bind_device(module);
  bind_plan(module);
}

}  // namespace powerlab
