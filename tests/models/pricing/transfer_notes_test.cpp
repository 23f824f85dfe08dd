#include <catch2/catch.hpp>

#include "models/network/collectives/nccl_settings.hpp"
#include "models/pricing/notes.hpp"
#include "tests/models/questions.hpp"

namespace orrery::models {
namespace {

/// What is said of a plan's transfers where a leaf has `ratio` times as many links down as up.
std::vector<std::string> said(const std::string& cluster, const std::string& plan, double ratio,
                              int nodes_per_leaf) {
  Question asked = question("gpt2", cluster, plan);
  asked.cluster.fabric.oversubscription = ratio;
  asked.cluster.fabric.nodes_per_leaf = nodes_per_leaf;
  std::vector<std::string> notes;
  note_oversubscription(lower(asked), asked.cluster, notes);
  return notes;
}

}  // namespace

TEST_CASE("An oversubscription that changes no time says why") {
  const std::string head = "/cluster/fabric/oversubscription: 4 changes no time of this plan: ";
  const std::string plan = "global_batch=64,seq_len=128";
  CHECK(said("dgx-h100 x 1", plan, 4, 16) == std::vector{head + "no transfer leaves its node"});
  CHECK(said("dgx-h100 x 8", plan, 4, 16) ==
        std::vector{head + "all 8 nodes are under one leaf switch, which has room for 16"});
  CHECK(said("dgx-h100 x 8", plan, 4, 4) ==
        std::vector{head +
                    "a ring or tree crosses the uplinks of a leaf switch once in each direction, "
                    "and those of its 4 nodes are as fast as full uplinks of 1 nodes"});
}

TEST_CASE("An oversubscription that is felt, or none, says nothing") {
  CHECK(said("dgx-h100 x 8", "global_batch=64,seq_len=128", 4, 2).empty());
  CHECK(said("dgx-h100 x 8", "global_batch=64,seq_len=128", 1, 2).empty());
}

TEST_CASE("An oversubscription is felt or not by what NCCL's environment lets run") {
  // A measured table knows no oversubscription, and a limit of channels means that no table
  // answers.
  Question asked = question("gpt2", "dgx-h100 x 8", "global_batch=64,seq_len=128,zero=0");
  asked.cluster.fabric.oversubscription = 4;
  asked.cluster.fabric.nodes_per_leaf = 2;
  asked.cluster.measured_collectives = {
      {"all_reduce", 64, 8, hardware::SizeTable{{{8_B, 30_us}, {1_GiB, 10_ms}}}}};
  const Program program = lower(asked);
  std::vector<std::string> notes;
  note_oversubscription(program, asked.cluster, notes);
  CHECK(notes.size() == 1);
  notes.clear();
  const NcclSettings limited{.channels = 64};
  note_oversubscription(program, asked.cluster, notes, {.nccl = &limited});
  CHECK(notes.empty());
}

TEST_CASE("Measured collectives that price nothing of a plan are named, with what it runs") {
  Question asked = question("gpt2", "dgx-h100 x 2", "tensor=2,global_batch=16,seq_len=128,zero=1");
  const hardware::SizeTable table{{{1_KiB, 30_us}, {1_MiB, 330_us}}};
  asked.cluster.measured_collectives = {
      {"all_reduce", 8, 1, table}, {"all_to_all", 8, 1, table}, {"broadcast", 16, 2, table}};
  std::vector<std::string> notes;
  note_tables(lower(asked), asked.cluster, notes);
  REQUIRE_FALSE(notes.empty());
  CHECK(notes.back() ==
        "measured collectives that this plan does not use: all_to_all of 8 ranks, broadcast of 16 "
        "ranks on 2 nodes; it runs all_gather across nodes, all_gather inside a node, all_reduce "
        "across nodes, all_reduce inside a node, reduce_scatter across nodes");
}

}  // namespace orrery::models
