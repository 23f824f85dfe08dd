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
  made.priced.counts = counts_of(*made.program);
  return made;
}

void add_traffic(Case& made, std::uint16_t communicator, std::uint32_t rank_class, Time nic) {
  append_joint(made, Opcode::reduce_gradient,
               {.name = "a", .communicator = communicator, .classes = {rank_class}}, 0_us, 0_us);
  made.priced.collectives.back().links.nic = nic;
  made.priced.counts = counts_of(*made.program);
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

TEST_CASE("A transfer and a phase load their NVLink each time they run") {
  // Three micro-batches pass stage 0: 3 x 2 us for those that it sends, 3 x 5 us received at once.
  Case made = two_stages();
  made.priced.channel_links[forward_channel(0)].nvlink = 2_us;
  made.priced.channel_links[backward_channel(1)].nvlink = 5_us;
  CHECK(loads_of(made.priced)[0].nvlink() == 15_us);

  // By hand: tensor parallelism of Megatron-LM all-reduces [1024, 4096] in bf16 over 8 GPUs twice
  // in a layer's forward and twice in its backward. Twice the layers or micro-batches, twice the
  // time.
  const auto tensor = [](std::int64_t layers, int micro_batches) {
    Question asked = question("llama2-7b", "dgx-h100 x 1",
                              "tensor=8,micro_batch=1,seq_len=1024,recompute=none,sequence=false,"
                              "global_batch=" +
                                  std::to_string(micro_batches));
    asked.model.layers.resize(layers);
    const Prediction found = predict(asked);
    return load_of(found.priced, 0)
        .collectives[static_cast<std::size_t>(TimeClass::tp)]
        .nvlink.count();
  };
  const std::int64_t two_layers = tensor(4, 1) - tensor(2, 1);
  CHECK(tensor(6, 1) - tensor(4, 1) == two_layers);
  CHECK(two_layers > 0);
  CHECK(tensor(4, 3) == 3 * tensor(4, 1));
  const Bytes all_reduced{std::int64_t{2} * 4 * 1024 * 4096 * 2};  // layers, calls, numbers, bytes
  const double seconds_at_full_rate =
      static_cast<double>(all_reduced.count()) * 2 * 7 / 8 / 450e9;  // a ring sends 2 (n - 1) / n
  CHECK(static_cast<double>(two_layers) * 1e-12 == Approx(seconds_at_full_rate).epsilon(0.5));
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
