#include "executor/module/mpi_module.hpp"

#include <fmt/format.h>

#include "executor/errors.hpp"
#include "executor/module/module.hpp"

namespace orrery::executor {

namespace {

/// Open MPI's own plugins look for its symbols among the global ones.
Module load_mpi_module() {
  return load_module("liborrery_mpi.so", Symbols::global);
}

}  // namespace

bool mpi_module_loads() {
  return load_mpi_module().handle != nullptr;
}

std::unique_ptr<Fabric> mpi_fabric() {
  const Module module = load_mpi_module();
  void* made = exported(module, "orrery_mpi_fabric");
  if (made == nullptr) {
    throw RunFailure{Exit::local_failure, fmt::format("MPI cannot be loaded ({})", module.why)};
  }
  return std::unique_ptr<Fabric>{reinterpret_cast<Fabric* (*)()>(made)()};
}

}  // namespace orrery::executor
