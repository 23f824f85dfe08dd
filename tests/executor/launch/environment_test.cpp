// Environments as launchers write them, cut to what decides.
#include "executor/launch/environment.hpp"

#include <catch2/catch.hpp>

#include "sim/errors.hpp"

namespace orrery::executor {

namespace {

Environment open_mpi_rank_3_of_4() {
  return {{"OMPI_COMM_WORLD_RANK", "3"},
          {"OMPI_COMM_WORLD_SIZE", "4"},
          {"OMPI_COMM_WORLD_LOCAL_RANK", "3"},
          {"OMPI_COMM_WORLD_LOCAL_SIZE", "4"},
          {"OMPI_COMM_WORLD_NODE_RANK", "3"},
          {"PMIX_NAMESPACE", "943390721"},
          {"PMIX_RANK", "3"}};
}

Environment slurm_rank_3_of_4() {
  return {{"SLURM_PROCID", "3"},
          {"SLURM_NTASKS", "4"},
          {"SLURM_STEP_NUM_TASKS", "4"},
          {"SLURM_LOCALID", "1"},
          {"SLURM_NODEID", "1"},
          {"SLURM_JOB_ID", "10"},
          {"SLURM_STEP_ID", "0"},
          {"SLURM_STEP_NODELIST", "n[1-2]"},
          {"SLURM_STEP_TASKS_PER_NODE", "2(x2)"}};
}

Environment torchrun_rank_5_of_8() {
  return {{"RANK", "5"},
          {"WORLD_SIZE", "8"},
          {"LOCAL_RANK", "1"},
          {"GROUP_RANK", "1"},
          {"LOCAL_WORLD_SIZE", "4"},
          {"MASTER_ADDR", "head"},
          {"MASTER_PORT", "29511"},
          {"TORCHELASTIC_RUN_ID", "run"},
          {"TORCHELASTIC_RESTART_COUNT", "2"}};
}

std::string refused_environment(const Environment& environment, const PlacementFlags& flags = {}) {
  try {
    placement(environment, flags);
  } catch (const InputError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("torchrun says rank, node and where to meet; a restart is another job") {
  const Placement placed = placement(torchrun_rank_5_of_8());
  CHECK(placed.launcher == Launcher::torchrun);
  CHECK(placed.rank == 5);
  CHECK(placed.ranks == 8);
  CHECK(placed.local_rank == 1);
  CHECK(placed.local_ranks == 4);
  CHECK(placed.node == 1);
  CHECK(placed.rendezvous == Address{"head", 29511});
  CHECK(placed.job == "run-2");
  // The agent of torchrun listens on its port itself.
  Environment with_store = torchrun_rank_5_of_8();
  with_store["TORCHELASTIC_USE_AGENT_STORE"] = "True";
  CHECK(placement(with_store).rendezvous == Address{"head", 29512});
  CHECK_FALSE(placed.mpi);
}

TEST_CASE("mpirun says no place to meet, for MPI finds its peers itself") {
  const Placement placed = placement(open_mpi_rank_3_of_4());
  CHECK(placed.launcher == Launcher::open_mpi);
  CHECK(placed.rank == 3);
  CHECK(placed.ranks == 4);
  CHECK(placed.local_ranks == 4);
  CHECK_FALSE(placed.node.has_value());
  CHECK_FALSE(placed.rendezvous.has_value());
  CHECK(placed.job == "943390721");
  CHECK(placement(open_mpi_rank_3_of_4(), {.address = std::string{"n1:4000"}}).rendezvous ==
        Address{"n1", 4000});
  CHECK(placed.mpi);
}

TEST_CASE("srun's ranks meet on the first host of the step, on a port of the job's own") {
  Environment step = slurm_rank_3_of_4();
  const Placement placed = placement(step);
  CHECK(placed.launcher == Launcher::slurm);
  CHECK(placed.rank == 3);
  CHECK(placed.ranks == 4);
  CHECK(placed.local_rank == 1);
  CHECK(placed.local_ranks == 2);
  CHECK(placed.node == 1);
  CHECK(placed.rendezvous->host == "n1");
  CHECK(placed.job == "10.0-0");
  CHECK_FALSE(placed.mpi);

  step["SLURM_PROCID"] = "0";
  CHECK(placement(step).rendezvous == placed.rendezvous);
  step["SLURM_RESTART_COUNT"] = "1";
  CHECK(placement(step).job == "10.0-1");
  step["SLURM_JOB_ID"] = "11";
  CHECK_FALSE(placement(step).rendezvous == placed.rendezvous);
  step["PMIX_RANK"] = "0";
  CHECK(placement(step).mpi);
}

TEST_CASE("mpiexec of MPICH says rank and size") {
  const Placement placed = placement({{"PMI_RANK", "1"},
                                      {"PMI_SIZE", "2"},
                                      {"PMI_FD", "8"},
                                      {"MPI_LOCALRANKID", "1"},
                                      {"MPI_LOCALNRANKS", "2"}});
  CHECK(placed.launcher == Launcher::pmi);
  CHECK(placed.rank == 1);
  CHECK(placed.ranks == 2);
  CHECK(placed.local_rank == 1);
  CHECK_FALSE(placed.mpi);
}

TEST_CASE("A pod of Kubeflow with one process is a rank") {
  const Placement placed = placement({{"PET_NODE_RANK", "2"},
                                      {"PET_NNODES", "3"},
                                      {"PET_MASTER_ADDR", "job-node-0-0.job"},
                                      {"PET_MASTER_PORT", "29500"}});
  CHECK(placed.rank == 2);
  CHECK(placed.ranks == 3);
  CHECK(placed.rendezvous == Address{"job-node-0-0.job", 29500});
}

TEST_CASE("Of several launchers the one nearest to the process wins") {
  // torchrun inside srun inside nothing: RANK wins over SLURM_PROCID, and over mpirun's.
  Environment both = slurm_rank_3_of_4();
  both.merge(open_mpi_rank_3_of_4());
  CHECK(placement(both).launcher == Launcher::open_mpi);
  both.merge(torchrun_rank_5_of_8());
  CHECK(placement(both).launcher == Launcher::torchrun);
  both["ORRERY_RANK"] = "1";
  both["ORRERY_RANKS"] = "2";
  CHECK(placement(both).launcher == Launcher::orrery);
  const Placement placed =
      placement(both, {.rank = 6, .ranks = 7, .address = std::string{"[::1]:4000"}});
  CHECK(placed.launcher == Launcher::flags);
  CHECK(placed.rank == 6);
  CHECK(placed.rendezvous == Address{"::1", 4000});
}

TEST_CASE("A step of one task is no launcher: the shell of an allocation has one too") {
  Environment shell = slurm_rank_3_of_4();
  shell["SLURM_NTASKS"] = shell["SLURM_STEP_NUM_TASKS"] = "1";
  shell["SLURM_PROCID"] = "0";
  CHECK(placement(shell).launcher == Launcher::alone);
  CHECK(placement(shell).reason == "SLURM_NTASKS is 1: this process is alone");
  CHECK(placement({}).reason == "no launcher's variables are set: this process is alone");
  CHECK(placement({}).ranks == 1);
}

TEST_CASE("Variables that cannot be are refused by name") {
  CHECK(refused_environment({{"RANK", "4"}, {"WORLD_SIZE", "4"}}) ==
        "RANK: expected a rank below WORLD_SIZE = 4, found 4");
  CHECK(refused_environment({{"RANK", "x"}, {"WORLD_SIZE", "4"}}) ==
        "RANK: expected a number, found 'x'");
  CHECK(refused_environment({{"OMPI_COMM_WORLD_RANK", "0"}}) == "OMPI_COMM_WORLD_SIZE: missing");
  CHECK(refused_environment(
            {{"PET_NODE_RANK", "0"}, {"PET_NNODES", "2"}, {"PET_N_PROC_PER_NODE", "8"}}) ==
        "PET_NPROC_PER_NODE: expected 1, found '8': several ranks of one pod are started by "
        "torchrun");
  CHECK(refused_environment({}, {.rank = 1}) ==
        "--rank: needs --ranks N and --address HOST:PORT, where rank 0 listens");
  CHECK(refused_environment({}, {.rank = 0, .ranks = 2, .address = std::string{"here"}}) ==
        "--address: expected HOST:PORT, found 'here'");
  CHECK(refused_environment(
            {{"RANK", "0"}, {"WORLD_SIZE", "1"}, {"MASTER_ADDR", "a"}, {"MASTER_PORT", "70000"}}) ==
        "MASTER_PORT: expected a port, found '70000'");
}

TEST_CASE("Lists of hosts open their brackets, with leading zeros and several of them") {
  using Hosts = std::vector<std::string>;
  CHECK(expand_hosts("n1") == Hosts{"n1"});
  CHECK(expand_hosts("n[1-2,7]") == Hosts{"n1", "n2", "n7"});
  CHECK(expand_hosts("gpu[08-10],login") == Hosts{"gpu08", "gpu09", "gpu10", "login"});
  CHECK(expand_hosts("r[1-2]n[3,4]-ib") == Hosts{"r1n3-ib", "r1n4-ib", "r2n3-ib", "r2n4-ib"});
  for (const char* wrong : {"n[1-", "n[2-1]", "n[a]", "", "n1]"}) {
    CHECK_THROWS_WITH(
        expand_hosts(wrong),
        "SLURM_STEP_NODELIST: expected hosts such as n[1-2,7], found '" + std::string{wrong} + "'");
  }
  CHECK(expand_tasks("4(x2),3") == std::vector<int>{4, 4, 3});
  CHECK(expand_tasks("4") == std::vector<int>{4});
  CHECK_THROWS_WITH(expand_tasks("4(2)"),
                    "SLURM_STEP_TASKS_PER_NODE: expected counts such as 4(x2),3, found '4(2)'");
}

}  // namespace orrery::executor
