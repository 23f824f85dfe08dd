#include "models/pricing/rank_load.hpp"

#include <catch2/catch.hpp>

#include "tests/models/evaluation/programs.hpp"
#include "tests/models/questions.hpp"

namespace orrery::models {
namespace {

/// Two stages, three micro-batches: 1 us of NIC for each transfer down, 2 us for each one up.
Case two_stages() {
  Case made = simple_pipeline("gpipe", {2, 1, 3}, 1_us, 1_us);
  made.priced.channel_links.resize(made.program->channels.size());
  made.priced.channel_links[forward_channel(0)].nic = 1_us;
  made.priced.channel_links[backward_channel(1)].nic = 2_us;
  return made;
}

void add_traffic(Case& made, std::uint16_t communicator, std::uint32_t rank_class, Time nic) {
  append_joint(made, Opcode::reduce_gradient,
               {.name = "a", .communicator = communicator, .classes = {rank_class}}, 0_us, 0_us);
  made.priced.collectives.back().links.nic = nic;
}

TEST_CASE("A NIC sends and receives at once, and collectives do both") {
  // Each stage has 3 us one way and 6 us the other; stage 1 reduces for 5 us: 6 and 11 us.
  Case made = two_stages();
  add_traffic(made, data_group, 1, 5_us);
  const std::vector<RankLoad> loads = loads_of(made.priced);
  REQUIRE(loads.size() == 2);
  CHECK(loads[0].nic() == 6_us);
  CHECK(loads[1].nic() == 11_us);
  CHECK(loads[0].sm == 6_us);  // three forwards and three backwards
  CHECK(loads[0].nvlink() == Time{});
  CHECK(loads[0].most_on_nic() == TimeClass::pp);

  const StepBound bound = bound_of(loads);
  CHECK(bound.time == 11_us);
  CHECK(bound.rank_class == 1);
  CHECK(bound.part == TimeClass::pp);
  const Busy busy = busy_of(loads[1], 22_us);
  CHECK(busy.nic == 0.5);
  CHECK(busy.sm == Approx(6.0 / 22));
}

TEST_CASE("The bound is named after what sends most") {
  Case made = two_stages();
  add_traffic(made, data_group, 0, 7_us);
  add_traffic(made, tensor_group, 0, 8_us);
  CHECK(bound_of(loads_of(made.priced)).part == TimeClass::tp);
  add_traffic(made, data_group, 0, 7_us);
  CHECK(bound_of(loads_of(made.priced)).part == TimeClass::dp);
  CHECK(bound_of(loads_of(made.priced)).time == 28_us);
}

TEST_CASE("Queues that together ask more of a NIC than the step lasts make it longer, and say so") {
  // Each stage sends up and down at the same time, and reduces gradients. With slower NICs each of
  // these still fits into the step; all of them do not.
  Question asked = question("llama2-7b", "dgx-h100 x 8",
                            "tensor=8,pipeline=4,virtual_stages=8,zero=1,micro_batch=1,"
                            "global_batch=64,seq_len=1024",
                            "nemo");
  for (const double factor : {1.0, 0.25, 0.05}) {
    asked.cluster.fabric.bandwidth = 50_GBps * factor;
    const Prediction found = predict(asked);
    const bool binds = found.step > found.times.scheduled();
    CHECK(binds == (factor < 1));
    INFO(factor << ": " << seconds(found.step) << " s, NIC " << found.busy.nic);
    CHECK(found.busy.nic <= 1);
    CHECK((found.busy.nic == 1) == binds);
    Time parts{};
    for (const Time each : found.breakdown) parts += each;
    CHECK(parts == found.step);
    const std::string note = "/cluster/fabric: a rank of stage 1 needs its NIC for";
    CHECK((found.assumptions.back().rfind(note, 0) == 0) == binds);
    if (binds) CHECK(found.bottleneck() == TimeClass::pp);
  }
}

}  // namespace
}  // namespace orrery::models
