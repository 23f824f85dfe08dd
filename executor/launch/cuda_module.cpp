#include "executor/launch/cuda_module.hpp"

#include <fmt/format.h>

namespace orrery::executor {

FoundCuda find_cuda(const Module& loaded) {
  if (!loaded.there) return {.absence = "this orrery was built without CUDA"};
  void* made = exported(loaded, cuda_module_symbol);
  if (made == nullptr) {
    const std::string why = loaded.why.empty() ? "it is another library" : loaded.why;
    return {.absence = fmt::format("the CUDA module cannot be loaded ({})", why)};
  }
  const CudaModule* module = reinterpret_cast<CudaModuleFunction>(made)();
  return {.module = module, .absence = module->absence()};
}

FoundCuda find_cuda() {
  return find_cuda(load_module("liborrery_cuda.so", Symbols::own));
}

}  // namespace orrery::executor
