#pragma once
// MPI without being linked to it: the fabric lies in a module of its own, loaded when a launcher of
// MPI started the run. A machine without MPI runs everything else.

#include <memory>
#include <string>
#include <vector>

#include "executor/fabric.hpp"

namespace orrery::executor {

/// Where the module is looked for: beside the program, above it, in the lib folder beside its own,
/// then by the system's rules.
std::vector<std::string> mpi_module_paths();

/// Is it there and does it load? MPI is not initialised yet.
bool mpi_module_loads();

/// Initialises MPI together with all other ranks of the launcher.
/// Errors  RunFailure{local_failure}: `MPI cannot be loaded (REASON)`
std::unique_ptr<Fabric> mpi_fabric();

}  // namespace orrery::executor
