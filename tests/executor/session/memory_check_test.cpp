#include "executor/session/memory_check.hpp"

#include <catch2/catch.hpp>

#include "tests/models/questions.hpp"

namespace orrery::executor {
namespace {

TEST_CASE("On cores all ranks of a host share its memory, and no others do") {
  // Two stages of four ranks, each far larger than any machine; the first has the embedding.
  const models::Question asked =
      models::question("gpt3-175b", "dgx-h100 x 1", "pipeline=2,global_batch=8,seq_len=2048");
  const auto needed = [&](const Placement& placed) {
    return no_room(asked, Backend{}, placed).value().found.needed;
  };
  const auto one = [&](int rank) {
    return needed({.launcher = Launcher::slurm, .rank = rank, .ranks = 8});
  };
  const Bytes first = one(0), last = one(7);
  CHECK(one(3) == first);
  CHECK(one(4) == last);
  CHECK(first != last);
  const auto of_host = [&](Launcher launcher, int rank, int local_rank, int local_ranks) {
    return needed({.launcher = launcher,
                   .rank = rank,
                   .ranks = 8,
                   .local_rank = local_rank,
                   .local_ranks = local_ranks});
  };
  CHECK(of_host(Launcher::slurm, 1, 1, 2) == first * 2);
  CHECK(of_host(Launcher::torchrun, 3, 0, 2) == first + last);
  CHECK(of_host(Launcher::open_mpi, 5, 1, 4) == last * 4);
  CHECK(of_host(Launcher::orrery, 2, 2, 8) == first * 4 + last * 4);
  CHECK(needed({.launcher = Launcher::alone, .ranks = 8}) == first * 4 + last * 4);
}

}  // namespace
}  // namespace orrery::executor
