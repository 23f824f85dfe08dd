#pragma once
// Vendors whose GPUs a run can use, a row each. Kernels, device and fabric are in a module of the
// vendor's own (module.hpp), which is loaded when its word is asked for: orrery links to none.

#include <span>
#include <string>
#include <string_view>

#include "executor/module/gpu_module.hpp"
#include "executor/module/module.hpp"

namespace orrery::executor {

/// What is particular to a vendor's module.
struct GpuVendor {
  std::string_view word;          // of --backend: "cuda"
  std::string_view title;         // in sentences: "CUDA"
  const char* library;            // the module's file
  const char* symbol;             // its one exported function, a GpuModuleFunction
  std::string_view profile;       // the software profile of our own executor on it
  std::string_view fabric;        // its collective library as a word of --fabric: "nccl"
  std::string_view fabric_title;  // ... and in sentences: "NCCL"
  std::string_view shared_gpu;    // why several ranks on one GPU do not use it
};
/// All vendors; nothing else in the code lists them.
std::span<const GpuVendor> gpu_vendors();
/// "cpu or cuda": what --backend takes.
std::string backend_words();
/// "tcp, mpi, threads or nccl": what --fabric takes.
std::string fabric_words();

/// A vendor's module, and why it cannot be used: one of
///   this orrery was built without CUDA; ./setup.sh --build --cuda builds it
///   the CUDA module does not load: libcublasLt.so.13 (cannot open shared object file: No such file
///       or directory); put the folder that holds it on LD_LIBRARY_PATH
///   the CUDA module does not load (REASON)
/// or what the module itself says (GpuModule::absence):
///   no NVIDIA driver is loaded here
///   the NVIDIA driver is for CUDA 12.4, this orrery needs 13.0
///   no GPU is visible (CUDA_VISIBLE_DEVICES is '')
struct FoundGpus {
  const GpuModule* module = nullptr;
  std::string absence{};  // empty: module is there, and a GPU
};
FoundGpus find_gpus(const GpuVendor& vendor);
FoundGpus find_gpus(const GpuVendor& vendor, const Module& loaded);

/// What a run computes on: a vendor's GPUs, or, without one, cores of this machine.
class Backend {
 public:
  constexpr Backend() = default;
  explicit constexpr Backend(const GpuVendor& vendor) : vendor_{&vendor} {}

  constexpr bool has_gpus() const { return vendor_ != nullptr; }
  /// Precondition: has_gpus().
  const GpuVendor& vendor() const { return *vendor_; }
  /// Its module; loaded once. Errors  InputError `--backend: cuda: REASON`, as FoundGpus states it.
  /// Precondition: has_gpus().
  const GpuModule& module() const;
  /// The software profile of our own executor on it: "orrery-cpu", "orrery-cuda".
  std::string_view profile() const { return has_gpus() ? vendor_->profile : "orrery-cpu"; }

 private:
  const GpuVendor* vendor_ = nullptr;
};

/// Reads --backend. What it needs is not yet looked for.
/// Errors  InputError `--backend: expected cpu or cuda, found 'x'`
Backend backend_of(std::string_view word);

}  // namespace orrery::executor
