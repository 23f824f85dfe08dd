#include "executor/module/gpu_vendors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>

#include "sim/errors.hpp"
#include "sim/input/text.hpp"

namespace orrery::executor {

namespace {

constexpr std::array vendors{
    GpuVendor{.word = "cuda",
              .title = "CUDA",
              .library = "liborrery_cuda.so",
              .symbol = cuda_module_symbol,
              .profile = "orrery-cuda",
              .fabric = "nccl",
              .fabric_title = "NCCL",
              .shared_gpu = "NCCL refuses several ranks on one GPU before its version 2.30"}};

/// Words a failure to load. The loader's message names a library and then what is wrong with it;
/// any other refusal is a sentence.
std::string load_failure(const GpuVendor& vendor, std::string_view why) {
  const std::size_t end = why.find(": ");
  const std::string_view library = why.substr(0, end);
  if (end == std::string_view::npos || library.find(' ') != std::string_view::npos) {
    return fmt::format("the {} module does not load ({})", vendor.title, why);
  }
  const std::string_view reason = why.substr(end + 2);
  const bool missing = reason.starts_with("cannot open shared object file");
  return fmt::format("the {} module does not load: {} ({}){}", vendor.title, library, reason,
                     missing ? "; put the folder that holds it on LD_LIBRARY_PATH" : "");
}

/// Looked for once in a process: a module is never unloaded.
const FoundGpus& found_once(const GpuVendor& vendor) {
  static std::mutex lock;
  static std::map<const GpuVendor*, FoundGpus> found;
  const std::lock_guard guard{lock};
  const auto known = found.find(&vendor);
  if (known != found.end()) return known->second;
  return found.emplace(&vendor, find_gpus(vendor)).first->second;
}

}  // namespace

std::span<const GpuVendor> gpu_vendors() {
  return vendors;
}

std::string backend_words() {
  std::string words = "cpu";
  for (std::size_t i = 0; i < vendors.size(); ++i) {
    words += fmt::format("{}{}", i + 1 == vendors.size() ? " or " : ", ", vendors[i].word);
  }
  return words;
}

std::string fabric_words() {
  std::string words = "tcp, mpi, threads";
  for (std::size_t i = 0; i < vendors.size(); ++i) {
    words += fmt::format("{}{}", i + 1 == vendors.size() ? " or " : ", ", vendors[i].fabric);
  }
  return words;
}

FoundGpus find_gpus(const GpuVendor& vendor, const Module& loaded) {
  if (!loaded.there) {
    return {.absence = fmt::format("this orrery was built without {}; ./setup.sh --build --{} "
                                   "builds it",
                                   vendor.title, vendor.word)};
  }
  void* made = exported(loaded, vendor.symbol);
  if (made == nullptr) {
    return {.absence =
                load_failure(vendor, loaded.why.empty() ? "it is another library" : loaded.why)};
  }
  const GpuModule* module = reinterpret_cast<GpuModuleFunction>(made)();
  return {.module = module, .absence = module->absence()};
}

FoundGpus find_gpus(const GpuVendor& vendor) {
  return find_gpus(vendor, load_module(vendor.library, Symbols::own));
}

const GpuModule& Backend::module() const {
  const FoundGpus& found = found_once(*vendor_);
  if (!found.absence.empty()) {
    throw InputError{"--backend", fmt::format("{}: {}", vendor_->word, printable(found.absence))};
  }
  return *found.module;
}

Backend backend_of(std::string_view word) {
  if (word == "cpu") return {};
  const auto known = std::find_if(vendors.begin(), vendors.end(),
                                  [&](const GpuVendor& each) { return each.word == word; });
  if (known == vendors.end()) {
    throw InputError{"--backend", fmt::format("expected {}, found '{}'", backend_words(), word)};
  }
  return Backend{*known};
}

}  // namespace orrery::executor
