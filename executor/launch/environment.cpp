#include "executor/launch/environment.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>

#include "sim/errors.hpp"

namespace orrery::executor {

namespace {

constexpr int default_port = 29500;  // torchrun's

/// Reads variables of an environment by type.
class Variables {
 public:
  explicit Variables(const Environment& environment) : environment_{environment} {}

  bool has(std::string_view name) const { return environment_.find(name) != environment_.end(); }
  std::optional<std::string> text(std::string_view name) const {
    const auto found = environment_.find(name);
    if (found == environment_.end() || found->second.empty()) return std::nullopt;
    return found->second;
  }
  std::optional<int> number(std::string_view name) const {
    const auto found = text(name);
    if (!found) return std::nullopt;
    int value = 0;
    const char* end = found->data() + found->size();
    const auto [rest, error] = std::from_chars(found->data(), end, value);
    if (error != std::errc{} || rest != end || value < 0) {
      throw InputError{std::string{name}, fmt::format("expected a number, found '{}'", *found)};
    }
    return value;
  }
  int need(std::string_view name) const {
    const auto value = number(name);
    if (!value) throw InputError{std::string{name}, "missing"};
    return *value;
  }
  std::optional<std::string> first_text(std::initializer_list<std::string_view> names) const {
    for (const std::string_view each : names) {
      if (const auto value = text(each)) return value;
    }
    return std::nullopt;
  }

 private:
  const Environment& environment_;
};

/// MASTER_ADDR and MASTER_PORT, under torchrun's names and Kubeflow's.
std::optional<Address> master(const Variables& variables) {
  const auto host = variables.first_text({"MASTER_ADDR", "PET_MASTER_ADDR"});
  if (!host) return std::nullopt;
  const std::string_view port = variables.has("MASTER_PORT") ? "MASTER_PORT" : "PET_MASTER_PORT";
  const int value = variables.number(port).value_or(default_port);
  if (value > 65535) {
    throw InputError{std::string{port}, fmt::format("expected a port, found '{}'", value)};
  }
  return Address{.host = *host, .port = static_cast<std::uint16_t>(value)};
}

void require_rank(const Placement& placed, const std::string& rank, const std::string& ranks) {
  if (placed.rank < placed.ranks) return;
  throw InputError{rank, fmt::format("expected a rank below {} = {}, found {}", ranks, placed.ranks,
                                     placed.rank)};
}

Placement by_flags(const PlacementFlags& flags) {
  if (!flags.ranks || !flags.address) {
    throw InputError{"--rank", "needs --ranks N and --address HOST:PORT, where rank 0 listens"};
  }
  const Placement placed{.launcher = Launcher::flags,
                         .rank = *flags.rank,
                         .ranks = *flags.ranks,
                         .rendezvous = parse_address(*flags.address, "--address"),
                         .job = *flags.address,
                         .reason = "--rank and --ranks are given"};
  require_rank(placed, "--rank", "--ranks");
  return placed;
}

Placement by_orrery(const Variables& variables) {
  Placement placed{.launcher = Launcher::orrery,
                   .rank = variables.need("ORRERY_RANK"),
                   .ranks = variables.need("ORRERY_RANKS"),
                   .node = 0,
                   .job = variables.text("ORRERY_JOB").value_or(""),
                   .reason = "ORRERY_RANK and ORRERY_RANKS are set (started by orrery)"};
  placed.local_rank = placed.rank;
  placed.local_ranks = placed.ranks;
  require_rank(placed, "ORRERY_RANK", "ORRERY_RANKS");
  return placed;
}

Placement by_torchrun(const Variables& variables) {
  Placement placed{.launcher = Launcher::torchrun,
                   .rank = variables.need("RANK"),
                   .ranks = variables.need("WORLD_SIZE"),
                   .local_rank = variables.number("LOCAL_RANK"),
                   .local_ranks = variables.number("LOCAL_WORLD_SIZE"),
                   .node = variables.number("GROUP_RANK"),
                   .rendezvous = master(variables),
                   .reason = "RANK and WORLD_SIZE are set (torchrun)"};
  placed.job = fmt::format("{}-{}", variables.text("TORCHELASTIC_RUN_ID").value_or("torchrun"),
                           variables.number("TORCHELASTIC_RESTART_COUNT").value_or(0));
  // The agent keeps a store of its own on that port.
  const bool taken = variables.text("TORCHELASTIC_USE_AGENT_STORE").value_or("False") == "True";
  if (taken && placed.rendezvous) ++placed.rendezvous->port;
  require_rank(placed, "RANK", "WORLD_SIZE");
  return placed;
}

/// A pod of Kubeflow Trainer v2 that runs us and not torchrun: the pod is the rank.
Placement by_pod(const Variables& variables) {
  const auto processes =
      variables.first_text({"PET_NPROC_PER_NODE", "PET_N_PROC_PER_NODE"}).value_or("1");
  if (processes != "1") {
    throw InputError{"PET_NPROC_PER_NODE",
                     fmt::format("expected 1, found '{}': several ranks of one pod are started by "
                                 "torchrun",
                                 processes)};
  }
  Placement placed{.launcher = Launcher::torchrun,
                   .rank = variables.need("PET_NODE_RANK"),
                   .ranks = variables.need("PET_NNODES"),
                   .local_rank = 0,
                   .local_ranks = 1,
                   .rendezvous = master(variables),
                   .job = variables.text("PET_RDZV_ID").value_or("kubeflow"),
                   .reason = "PET_NODE_RANK and PET_NNODES are set (Kubeflow)"};
  placed.node = placed.rank;
  require_rank(placed, "PET_NODE_RANK", "PET_NNODES");
  return placed;
}

Placement by_open_mpi(const Variables& variables) {
  // OMPI_COMM_WORLD_NODE_RANK is the rank on the node, not the node's.
  Placement placed{
      .launcher = Launcher::open_mpi,
      .rank = variables.need("OMPI_COMM_WORLD_RANK"),
      .ranks = variables.need("OMPI_COMM_WORLD_SIZE"),
      .local_rank = variables.number("OMPI_COMM_WORLD_LOCAL_RANK"),
      .local_ranks = variables.number("OMPI_COMM_WORLD_LOCAL_SIZE"),
      .rendezvous = master(variables),
      .job = variables.text("PMIX_NAMESPACE").value_or(fmt::format("mpirun-{}", getppid())),
      .mpi = true,
      .reason = "OMPI_COMM_WORLD_RANK is set (mpirun)"};
  require_rank(placed, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE");
  return placed;
}

/// A port that follows from the job, so that its ranks agree on it and two jobs on one host differ.
std::uint16_t port_of_job(std::string_view job) {
  std::uint32_t sum = 0;
  for (const char each : job) sum = sum * 31 + static_cast<unsigned char>(each);
  return static_cast<std::uint16_t>(default_port + sum % 2000);
}

Placement by_slurm(const Variables& variables) {
  const std::string_view tasks =
      variables.has("SLURM_STEP_NUM_TASKS") ? "SLURM_STEP_NUM_TASKS" : "SLURM_NTASKS";
  Placement placed{.launcher = Launcher::slurm,
                   .rank = variables.need("SLURM_PROCID"),
                   .ranks = variables.need(tasks),
                   .local_rank = variables.number("SLURM_LOCALID"),
                   .node = variables.number("SLURM_NODEID"),
                   .rendezvous = master(variables),
                   .mpi = variables.has("PMIX_RANK"),
                   .reason = "SLURM_PROCID and SLURM_STEP_ID are set (srun)"};
  placed.job = fmt::format("{}.{}-{}", variables.text("SLURM_JOB_ID").value_or("0"),
                           variables.text("SLURM_STEP_ID").value_or("0"),
                           variables.number("SLURM_RESTART_COUNT").value_or(0));
  if (const auto spread = variables.text("SLURM_STEP_TASKS_PER_NODE"); spread && placed.node) {
    const std::vector<int> counts = expand_tasks(*spread);
    const auto node = static_cast<std::size_t>(*placed.node);
    if (node < counts.size()) placed.local_ranks = counts[node];
  }
  const auto nodes = variables.first_text({"SLURM_STEP_NODELIST", "SLURM_NODELIST"});
  if (!placed.rendezvous && nodes) {
    placed.rendezvous = Address{expand_hosts(*nodes).front(), port_of_job(placed.job)};
  }
  require_rank(placed, "SLURM_PROCID", std::string{tasks});
  return placed;
}

Placement by_pmi(const Variables& variables) {
  // Hydra states no job: use the parent of a host's ranks, which is Hydra's proxy.
  Placement placed{.launcher = Launcher::pmi,
                   .rank = variables.need("PMI_RANK"),
                   .ranks = variables.need("PMI_SIZE"),
                   .local_rank = variables.number("MPI_LOCALRANKID"),
                   .local_ranks = variables.number("MPI_LOCALNRANKS"),
                   .rendezvous = master(variables),
                   .job = variables.text("PMI_JOBID").value_or(fmt::format("pmi-{}", getppid())),
                   .reason = "PMI_RANK and PMI_SIZE are set (mpiexec)"};
  require_rank(placed, "PMI_RANK", "PMI_SIZE");
  return placed;
}

Placement detected(const Environment& environment, const PlacementFlags& flags) {
  const Variables variables{environment};
  if (flags.rank) return by_flags(flags);
  if (variables.has("ORRERY_RANK") && variables.has("ORRERY_RANKS")) return by_orrery(variables);
  if (variables.has("RANK") && variables.has("WORLD_SIZE")) return by_torchrun(variables);
  if (variables.has("PET_NODE_RANK") && variables.has("PET_NNODES")) return by_pod(variables);
  if (variables.has("OMPI_COMM_WORLD_RANK")) return by_open_mpi(variables);
  const bool step = variables.has("SLURM_PROCID") && variables.has("SLURM_STEP_ID");
  const bool alone = variables.text("SLURM_NTASKS").value_or("1") == "1";
  if (step && !alone) return by_slurm(variables);
  if (variables.has("PMI_RANK") && variables.has("PMI_SIZE")) return by_pmi(variables);
  return {.launcher = Launcher::alone,
          .local_rank = 0,
          .local_ranks = 1,
          .node = 0,
          .reason = step ? "SLURM_NTASKS is 1: this process is alone"
                         : "no launcher's variables are set: this process is alone"};
}

}  // namespace

std::string_view name(Launcher launcher) {
  constexpr std::string_view names[] = {"flags", "orrery",  "torchrun", "mpirun",
                                        "srun",  "mpiexec", "none"};
  return names[static_cast<int>(launcher)];
}

Environment environment() {
  Environment all;
  for (char** each = environ; *each != nullptr; ++each) {
    const std::string_view entry{*each};
    const std::size_t equals = entry.find('=');
    if (equals == std::string_view::npos) continue;
    all.emplace(entry.substr(0, equals), entry.substr(equals + 1));
  }
  return all;
}

Placement placement(const Environment& environment, const PlacementFlags& flags) {
  Placement placed = detected(environment, flags);
  if (flags.address) {
    placed.rendezvous = parse_address(*flags.address, "--address");
    placed.by_address = true;
  }
  return placed;
}

}  // namespace orrery::executor
