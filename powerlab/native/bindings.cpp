// The extension module `powerlab.native._native`: one submodule a part of the core, each bound in a file of its own.
#include <nanobind/nanobind.h>

namespace powerlab {
void bind_engine(nanobind::module_& module);
void bind_gpu(nanobind::module_& module);
void bind_protobuf(nanobind::module_& module);
void bind_sampler(nanobind::module_& module);
}  // namespace powerlab

NB_MODULE(_native, module) {
  module.doc() = "powerlab's native core";
  auto engine = module.def_submodule("engine", "Plans of kernels, run by threads of their own");
  powerlab::bind_engine(engine);
  auto gpu = module.def_submodule("gpu", "GPUs that Vulkan's loader knows, and plans of dispatches on them");
  powerlab::bind_gpu(gpu);
  auto protobuf = module.def_submodule("protobuf", "Protobuf messages");
  powerlab::bind_protobuf(protobuf);
  auto sampler = module.def_submodule("sampler", "Power sampling in a thread of its own");
  powerlab::bind_sampler(sampler);
}
