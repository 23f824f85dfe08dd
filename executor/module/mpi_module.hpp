#pragma once
// MPI without being linked to it: the fabric lies in a module of its own (module.hpp), loaded when
// a launcher of MPI started the run.

#include <memory>

#include "executor/fabric/fabric.hpp"

namespace orrery::executor {

/// Is it there and does it load? MPI is not initialised yet.
bool mpi_module_loads();

/// Initialises MPI together with all other ranks of the launcher.
/// Errors  RunFailure{local_failure}: `MPI cannot be loaded (REASON)`
std::unique_ptr<Fabric> mpi_fabric();

}  // namespace orrery::executor
