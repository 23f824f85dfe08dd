#pragma once
// Determines which rank this process is and where it connects to the others, from what its launcher
// left in the environment, read in one fixed order. The answer includes the reason, because "which
// variables were used" is the first question about a run that hangs.
//
//   1  flags                       --rank, --ranks, --address
//   2  ORRERY_RANK + ORRERY_RANKS  ranks that `orrery execute` starts itself
//   3  RANK + WORLD_SIZE           torchrun; PET_* of Kubeflow where one process runs per pod
//   4  OMPI_COMM_WORLD_*           mpirun of Open MPI
//   5  SLURM_PROCID, SLURM_STEP_ID srun, of more than one task
//   6  PMI_RANK + PMI_SIZE         mpiexec of MPICH and Intel MPI
//   7  nothing of these            one process, alone
// Source  the variables were read from ranks of Open MPI 4.1.4, Slurm 22.05 and MPICH 4.0.2;
//         torchrun's and Kubeflow's are those of their documentation

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace orrery::executor {

using Environment = std::map<std::string, std::string, std::less<>>;
/// The environment of this process.
Environment environment();

enum class Launcher : std::uint8_t { flags, orrery, torchrun, open_mpi, slurm, pmi, alone };
std::string_view name(Launcher launcher);

/// Where a process listens: at a port of a host, given by name or IP address, or at a Unix socket.
struct Address {
  std::string host{};
  std::uint16_t port = 0;
  std::string path{};  // of the Unix socket; then there are no host and port
  friend bool operator==(const Address&, const Address&) = default;
};
/// "node1:29500", "[::1]:29500", "/run/user/1000/orrery/store".
std::string text_of(const Address& address);
/// Parses a host and a port. Errors: InputError `PLACE: expected HOST:PORT, found 'x'`.
Address parse_address(std::string_view text, const std::string& place);

/// What the command line says about this process.
struct PlacementFlags {
  std::optional<int> rank{}, ranks{};
  std::optional<std::string> address{};
};

/// Which rank a process is, and where it connects to the others.
struct Placement {
  Launcher launcher = Launcher::alone;
  int rank = 0, ranks = 1;
  std::optional<int> local_rank{}, local_ranks{}, node{};
  std::optional<Address> rendezvous{};  // where rank 0 listens, if ranks are on several hosts
  bool by_address = false;              // `--address` says where
  std::string job{};                    // the same for all ranks of a run, different between runs
  bool mpi = false;                     // MPI finds its peers by itself
  std::string reason{};                 // one sentence
};

/// Reads the first launcher's variables that apply; flags come first.
/// Errors  a variable that is no number or a rank beyond the world: InputError naming it
Placement placement(const Environment& environment, const PlacementFlags& flags = {});

/// "n[1-2,7],gpu[08-10]" as single names.
/// Errors  brackets that do not close or a range that runs backwards: InputError
std::vector<std::string> expand_hosts(std::string_view list);
/// How many tasks each node has: "4(x2),3" is 4 4 3.
std::vector<int> expand_tasks(std::string_view list);

}  // namespace orrery::executor
