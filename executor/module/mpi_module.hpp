#pragma once
// Loads MPI instead of linking to it: its fabric is in a module of its own (module.hpp), loaded
// when a launcher of MPI started the run.

#include <memory>

#include "executor/fabric/fabric.hpp"

namespace orrery::executor {

/// Does the module exist, and does it load? MPI is not initialised by this.
bool mpi_module_loads();

/// Initialises MPI together with all other ranks of the launcher.
/// Errors  RunFailure{local_failure}: `MPI cannot be loaded (REASON)`
std::unique_ptr<Fabric> mpi_fabric();

}  // namespace orrery::executor
