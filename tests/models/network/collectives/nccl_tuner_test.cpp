// What NCCL's own cost model chooses, on machines whose graphs are known.

#include <catch2/catch.hpp>

#include <cmath>

#include "hardware/catalogue.hpp"
#include "models/network/collectives/nccl_settings.hpp"
#include "models/network/collectives/nccl_tuner.hpp"
#include "sim/errors.hpp"

namespace orrery::models {
namespace {

TunedChoice best(const char* cluster, Collective collective, Bytes size, const GroupShape& group) {
  return nccl_choices(collective, size, group, hardware::named_cluster(cluster)).front();
}

constexpr GroupShape of_8{.ranks = 8, .nodes = 1, .ranks_per_node = 8};
constexpr GroupShape of_32{.ranks = 32, .nodes = 4, .ranks_per_node = 8};

TEST_CASE("On eight H100 NCCL reduces by ring and LL up to 1 MiB, in the switch from 2 MiB") {
  const auto at = [](std::int64_t size) {
    return best("dgx-h100 x 1", Collective::all_reduce, Bytes{size}, of_8);
  };
  CHECK(at(64 << 10).algorithm == "ring");
  CHECK(at(1 << 20).algorithm == "ring");
  CHECK(at(1 << 20).protocol == Protocol::ll);
  CHECK(at(2 << 20).algorithm == "nvls");
  // 8 channels of 40 GB/s at 0.85 x 7/8 x 2, times 8/14; and 25 us.
  const double rate = 8 * 40e9 * 0.85 * 7 / 8 * 2 * 8 / 14;
  CHECK(at(1 << 30).expected == Approx(25e-6 + (1 << 30) / rate));
  // 6.6 us, 14 hops of 0.6 us, and LL's 141 GB/s times 8/14.
  CHECK(at(64 << 10).expected == Approx(15e-6 + (64 << 10) / (141e9 * 8 / 14)));
}

TEST_CASE("On several nodes of H100 all-reduces of 64 MiB go by NVLS trees") {
  const auto at = [](std::int64_t size) {
    return best("dgx-h100 x 4", Collective::all_reduce, Bytes{size}, of_32);
  };
  CHECK(at(64 << 20).algorithm == "nvls_tree");
  CHECK(at(1 << 10).algorithm == "tree");
  // Eight channels of 45.5 GB/s, the cap at four nodes; 25 us and four hops of 20.9 us.
  const double bus = 8 * 45.5e9;
  CHECK(at(64 << 20).expected == Approx(108.6e-6 + (64 << 20) * 62.0 / 32 / bus));
}

TEST_CASE("A100 has no switch that reduces, gathers are rings, and messages are not tuned") {
  CHECK(best("dgx-a100-80gb x 1", Collective::all_reduce, Bytes{1 << 30}, of_8).algorithm ==
        "ring");
  CHECK(best("dgx-a100-80gb x 1", Collective::all_gather, Bytes{1 << 30}, of_8).algorithm ==
        "ring");
  CHECK(nccl_choices(Collective::all_to_all, Bytes{1 << 20}, of_8,
                     hardware::named_cluster("dgx-h100 x 1"))
            .empty());
}

NcclSettings settings_of(const char* name, const char* value) {
  NcclSettings settings{.place = "--env"};
  read_nccl_variable(name, value, settings);
  return settings;
}

TEST_CASE("NCCL_ALGO lists algorithms for all functions, or for one") {
  const auto of = settings_of("NCCL_ALGO", "ring,nvls;allreduce:^Tree;Broadcast:ring");
  CHECK(of.allows(Collective::all_gather, "ring", Protocol::ll));
  CHECK_FALSE(of.allows(Collective::all_gather, "tree", Protocol::ll));
  CHECK(of.allows(Collective::all_reduce, "nvls_tree", Protocol::simple));
  CHECK_FALSE(of.allows(Collective::all_reduce, "tree", Protocol::simple));
  CHECK_FALSE(of.allows(Collective::broadcast, "nvls", Protocol::simple));
  const auto one = settings_of("NCCL_PROTO", "allreduce:LL");
  CHECK(one.restricts(Collective::all_reduce));
  CHECK_FALSE(one.restricts(Collective::reduce_scatter));
  CHECK_THROWS_WITH(settings_of("NCCL_ALGO", "Ring;Tree"),
                    "--env: NCCL_ALGO: expected a function and a colon before each list after the "
                    "first, found 'Tree'");
  CHECK_THROWS_WITH(
      settings_of("NCCL_ALGO", "alltoall:Ring"),
      "--env: NCCL_ALGO: expected one or more of AllReduce, AllGather, ReduceScatter, "
      "Broadcast, Reduce, found 'alltoall'");
}

TEST_CASE("A price that NCCL's tuner decides is that of the algorithm which it would run") {
  const auto cluster = hardware::named_cluster("dgx-h100 x 1");
  const auto priced = [&](const NcclSettings& settings, const CollectiveChoice& choice) {
    return price(Collective::all_reduce, 1_MiB, of_8, cluster,
                 {.choice = choice, .nccl = &settings});
  };
  const CollectiveTime tuned = priced({}, {});
  CHECK(tuned.algorithm == "ring");
  CHECK(tuned.protocol == Protocol::ll);
  // A tree inside a node has the ring's latency, and its bytes 8/7 and 1/0.92 times as long.
  const auto named = [&](std::string_view algorithm) {
    return price(Collective::all_reduce, 1_MiB, of_8, cluster,
                 {.choice = {.algorithm = algorithm, .protocol = Protocol::ll}});
  };
  const NcclSettings trees = [] {
    NcclSettings settings = settings_of("NCCL_ALGO", "Tree");
    read_nccl_variable("NCCL_PROTO", "LL", settings);
    return settings;
  }();
  CHECK(priced(trees, {}).time == named("tree").time);
  CHECK(named("tree").latency == named("ring").latency);
  CHECK(seconds(named("tree").fluid) == Approx(seconds(named("ring").fluid) * 8 / 7 / 0.92));
  CHECK_THROWS_WITH(
      price(Collective::all_gather, 1_MiB, of_8, cluster, {.nccl = &trees}),
      Catch::StartsWith("--env: no allowed algorithm and protocol supports all_gather of 8 ranks"));
  // It does not tune all-to-alls.
  CHECK(price(Collective::all_to_all, 1_MiB, of_8, cluster, {.nccl = &trees}).algorithm ==
        "pairwise");
}

}  // namespace
}  // namespace orrery::models
