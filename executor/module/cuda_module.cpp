#include "executor/module/cuda_module.hpp"

#include <fmt/format.h>

namespace orrery::executor {

namespace {

/// Words a failure to load. The loader's message names a library and then what is wrong with it;
/// any other refusal is a sentence.
std::string load_failure(std::string_view why) {
  const std::size_t end = why.find(": ");
  const std::string_view library = why.substr(0, end);
  if (end == std::string_view::npos || library.find(' ') != std::string_view::npos) {
    return fmt::format("the CUDA module does not load ({})", why);
  }
  const std::string_view reason = why.substr(end + 2);
  const bool missing = reason.starts_with("cannot open shared object file");
  return fmt::format("the CUDA module does not load: {} ({}){}", library, reason,
                     missing ? "; put the folder that holds it on LD_LIBRARY_PATH" : "");
}

}  // namespace

FoundCuda find_cuda(const Module& loaded) {
  if (!loaded.there) {
    return {.absence = "this orrery was built without CUDA; ./setup.sh --build --cuda builds it"};
  }
  void* made = exported(loaded, cuda_module_symbol);
  if (made == nullptr) {
    return {.absence = load_failure(loaded.why.empty() ? "it is another library" : loaded.why)};
  }
  const GpuModule* module = reinterpret_cast<CudaModuleFunction>(made)();
  return {.module = module, .absence = module->absence()};
}

FoundCuda find_cuda() {
  return find_cuda(load_module("liborrery_cuda.so", Symbols::own));
}

}  // namespace orrery::executor
