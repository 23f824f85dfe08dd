#include "models/prediction/host_memory.hpp"

#include <catch2/catch.hpp>

#include "models/prediction/memory_report.hpp"
#include "tests/models/questions.hpp"

namespace orrery::models {
namespace {

/// Llama 2 7B on 8 A100 with its optimizer on the host: 6,738,415,616 parameters, an eighth of them
/// on each rank.
Question offloading(const std::string& more = "") {
  return question("llama2-7b", "dgx-a100-80gb x 1",
                  "zero=2,offload=optimizer,micro_batch=1,global_batch=8,seq_len=1024" + more,
                  "generic");
}

TEST_CASE("An offloaded optimizer keeps 18 bytes of each parameter in host memory") {
  // Master weight 4, moments 8, gradient 4, updated weight 2; the node's ranks together.
  const Question asked = offloading();
  const Program program = lower(asked);
  const RankClass& ranks = program.classes.front();
  CHECK(kept_outside(asked, program, ranks).count() == 18 * ranks.owned);
  CHECK(8 * ranks.owned >= 6'738'415'616);
}

TEST_CASE("A host with too little memory for what is offloaded does not fit, by name") {
  // 6.74 billion parameters take 121.3 GB.
  Question asked = offloading();
  asked.cluster.node.host_memory = 128_GB;
  CHECK(predict(asked).fit != Fit::no);
  asked.cluster.node.host_memory = 120_GB;
  const Prediction found = predict(asked);
  CHECK(found.fit == Fit::no);
  REQUIRE(found.out_of_memory);
  CHECK(found.out_of_memory->place == MemoryPlace::host);
  CHECK(found.out_of_memory->needed.count() == Approx(121.3e9).epsilon(0.001));
  CHECK(words_of(*found.out_of_memory).starts_with("what is offloaded needs host memory of 113"));
  CHECK(estimate(asked).fit == Fit::no);
}

TEST_CASE("Drives that are too small are named, and the host's memory does not count then") {
  Question asked = offloading(",offload_device=nvme");
  asked.cluster.storage = {.read = 20_GBps, .write = 10_GBps, .capacity = 100_GB};
  asked.cluster.node.host_memory = 1_GB;
  const Prediction found = predict(asked);
  REQUIRE(found.out_of_memory);
  CHECK(found.out_of_memory->place == MemoryPlace::drives);
  asked.cluster.storage.capacity = 200_GB;
  CHECK_FALSE(predict(asked).out_of_memory);
}

TEST_CASE("Memory on CXL is an entry of a cluster: a tier with a rate and a size") {
  const auto with = [](const char* storage) {
    Question asked = offloading(",offload_device=nvme");
    const std::string cluster =
        R"({"node": "dgx-a100-80gb", "nodes": 1, "storage": )" + std::string{storage} + "}";
    const Document file = Document::parse(cluster, "cxl.json");
    const Document expanded = Document::from(hardware::expand_cluster(file.root()), "cxl.json");
    asked.cluster = hardware::read_cluster(expanded.root());
    return predict(asked);
  };
  const Prediction drives = with(R"({"read": "7 GB/s", "write": "4 GB/s", "capacity": "2 TB"})");
  const Prediction memory = with(R"({"read": "56 GB/s", "write": "56 GB/s", "capacity": "2 TB"})");
  CHECK(memory.step < drives.step);
  CHECK_FALSE(memory.out_of_memory);
  const Prediction small = with(R"({"read": "56 GB/s", "write": "56 GB/s", "capacity": "96 GB"})");
  REQUIRE(small.out_of_memory);
  CHECK(small.out_of_memory->place == MemoryPlace::drives);
}

TEST_CASE("Activations of offloaded layers count once for each micro-batch in flight") {
  const Question asked =
      question("llama2-7b", "dgx-a100-80gb x 1",
               "tensor=8,offload_layers=4,micro_batch=1,global_batch=2,seq_len=1024", "generic");
  const Program program = lower(asked);
  Bytes layer{};
  for (const Block& block : program.blocks) layer = std::max(layer, block.bytes(Role::on_host));
  REQUIRE(layer > Bytes{});
  CHECK(kept_outside(asked, program, program.classes.front()) == layer * 4);
}

TEST_CASE("A plan that offloads nothing needs nothing of its host; an unknown host is noted") {
  Question asked = offloading();
  asked.cluster.node.host_memory.reset();
  CHECK(host_note(asked) ==
        "/cluster/node/host_memory: not stated; whether what is offloaded fits there is not "
        "checked");
  asked.plan.offload.state = Offload::none;
  CHECK(host_note(asked).empty());
  asked.cluster.node.host_memory = 1_B;
  CHECK_FALSE(predict(asked).out_of_memory);
}

}  // namespace
}  // namespace orrery::models
