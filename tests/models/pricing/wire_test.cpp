#include "models/pricing/wire.hpp"

#include <catch2/catch.hpp>
#include <set>

#include "models/network/collectives/nccl_settings.hpp"
#include "models/pricing/price.hpp"
#include "models/program/opcodes.hpp"
#include "tests/models/questions.hpp"

namespace orrery::models {
namespace {

/// Priced with one share of data-parallel and of tensor-parallel time shown.
struct Shown {
  Question asked;
  Program program;
  PricedProgram priced;
  Shown(const std::string& plan, double data, double tensor)
      : asked{question("gpt2-xl", "dgx-h100 x 2", plan, "nemo")} {
    asked.software.overlap.data_exposed = data;
    asked.software.overlap.tensor_exposed = tensor;
    program = lower(asked);
    std::vector<std::string> notes;
    priced = price_program(program, asked.cluster, asked.software, notes);
  }
};

/// What comm:dp is busy with over a step of the first class.
Time on_data_queue(const Shown& shown) {
  Time sum = shown.priced.carried_by(0);
  for (const Instruction& each : shown.program.classes[0].instructions) {
    if (is_joint(each)) sum += shown.priced.collectives[each.target].occupied();
  }
  return sum;
}

TEST_CASE("However little is shown of data-parallel traffic, its queue is as long busy with it") {
  for (const char* zero : {"0", "1", "2", "3"}) {
    const std::string plan = std::string{"micro_batch=1,global_batch=32,seq_len=1024,zero="} + zero;
    const Shown all{plan, 1, 1}, quarter{plan, 0.25, 1};
    INFO("ZeRO-" << zero);
    CHECK(on_data_queue(quarter) == on_data_queue(all));
    for (std::size_t i = 0; i < all.priced.collectives.size(); ++i) {
      const PricedOperation& whole = all.priced.collectives[i];
      const PricedOperation& part = quarter.priced.collectives[i];
      CHECK(part.links.nic == whole.links.nic);
      const bool of_data = all.program.collectives[i].communicator == data_group;
      if (!of_data) CHECK(part.duration == whole.duration);
      // Sums after a reduction are no traffic: they stay.
      if (of_data && all.program.collectives[i].accumulate_traffic == Bytes{}) {
        CHECK(ratio(part.duration, whole.duration) == Approx(0.25).epsilon(1e-6));
      }
    }
  }
}

TEST_CASE("A plan without overlap shows all data-parallel time, whatever its stack hides") {
  const std::string plan = "micro_batch=1,global_batch=32,seq_len=1024,zero=1,overlap=false";
  const Shown all{plan, 1, 1}, quarter{plan, 0.25, 1};
  REQUIRE(all.priced.collectives.size() == quarter.priced.collectives.size());
  for (std::size_t i = 0; i < all.priced.collectives.size(); ++i) {
    CHECK(quarter.priced.collectives[i].duration == all.priced.collectives[i].duration);
  }
}

TEST_CASE("Experts' rows between nodes have a share of the rate of their own") {
  const auto rows = [](const std::string& plan, double dispatch, double data) {
    Question asked = question("mixtral-8x7b", "dgx-h100 x 2",
                              "global_batch=16,seq_len=1024,expert=" + plan, "megatron-core");
    asked.software.overlap.dispatch_efficiency = dispatch;
    asked.software.overlap.data_efficiency = data;
    const Program program = lower(asked);
    std::vector<std::string> notes;
    const PricedProgram priced = price_program(program, asked.cluster, asked.software, notes);
    for (std::size_t b = 0; b < program.blocks.size(); ++b) {
      for (std::size_t i = 0; i < program.blocks[b].operations.size(); ++i) {
        const Operation& op = program.blocks[b].operations[i];
        if (op.collective() == Collective::all_to_all && op.kind == OpKind::collective) {
          return priced.blocks[b][i];
        }
      }
    }
    throw ContractError{"nothing is dispatched"};
  };
  const auto time = [&](const std::string& plan, double dispatch, double data) {
    return rows(plan, dispatch, data).duration;
  };
  // Ranks of an expert group in one stage of 16 ranks; groups of 8 stay in a node.
  const std::string across = "8,tensor=2,sequence=true,expert_tensor=1,dispatcher=alltoall";
  const std::string inside = "8,expert_tensor=1,dispatcher=alltoall";
  const std::string copies = "8,tensor=2,sequence=true,expert_tensor=2,dispatcher=";
  CHECK(time(inside, 0.5, 1) == time(inside, 1, 1));
  CHECK(ratio(time(copies + "alltoall", 0.5, 1), time(copies + "alltoall", 1, 1)) ==
        Approx(2).epsilon(1e-6));
  // What fills half of a NIC's rate keeps the NIC for twice as long.
  const PricedOperation whole = rows(copies + "alltoall", 1, 1);
  const PricedOperation half = rows(copies + "alltoall", 0.5, 1);
  CHECK(whole.links.nic > Time{});
  CHECK(ratio(half.links.nic, whole.links.nic) == Approx(2).epsilon(1e-6));
  CHECK(ratio(half.fluid, whole.fluid) == Approx(2).epsilon(1e-6));
  CHECK(time(copies + "alltoall", 0.5, 0.6) == time(copies + "alltoall", 0.5, 1));
  CHECK(time(copies + "deepep", 0.5, 1) == time(copies + "deepep", 1, 1));
  CHECK(time(across, 0.5, 1) == time(across, 1, 1));
}

TEST_CASE("Only a gather after the optimizer is carried into the next step") {
  // ZeRO-1: three quarters of the gather's time; none without it.
  const std::string plan = "micro_batch=1,global_batch=32,seq_len=1024,zero=";
  const Shown one{plan + "1", 0.25, 1}, three{plan + "3", 0.25, 1};
  const JointCollective& gather = one.program.collectives.back();
  REQUIRE(gather.name == "parameters.s0");
  const Time shown = one.priced.collectives.back().duration;
  CHECK(ratio(one.priced.carried_by(0), shown) == Approx(3).epsilon(1e-6));
  CHECK(one.priced.collectives.back().lead == Time{});
  CHECK(three.priced.carried_by(0) == Time{});
}

TEST_CASE("Tensor-parallel traffic is hidden before reductions and after gathers") {
  const std::string plan = "tensor=8,sequence=true,micro_batch=1,global_batch=8,seq_len=1024";
  const Shown all{plan, 1, 1}, third{plan, 1, 0.3}, slower{plan, 1, 1.5};
  int gathers = 0, scatters = 0;
  for (std::size_t b = 0; b < all.program.blocks.size(); ++b) {
    for (std::size_t i = 0; i < all.program.blocks[b].operations.size(); ++i) {
      const Operation& op = all.program.blocks[b].operations[i];
      if (op.kind != OpKind::collective) continue;
      const PricedOperation& whole = all.priced.blocks[b][i];
      const PricedOperation& part = third.priced.blocks[b][i];
      CHECK(part.occupied() == whole.duration);
      CHECK((part.lead == Time{} || part.trail == Time{}));
      const bool gather = op.collective() == Collective::all_gather;
      CHECK((gather ? part.trail : part.lead) == whole.duration - part.duration);
      ++(gather ? gathers : scatters);
      // Slower than its law, nothing of it is hidden.
      CHECK(slower.priced.blocks[b][i].occupied() == slower.priced.blocks[b][i].duration);
    }
  }
  CHECK(gathers > 0);
  CHECK(scatters > 0);
}

TEST_CASE("A transfer inside a node leaves the NIC alone, also where another one crosses") {
  // 4 stages of 4 ranks on 2 nodes of 8: stages 0 and 1 share a node, 1 and 2 do not.
  const Shown shown{"tensor=4,pipeline=4,micro_batch=1,global_batch=8,seq_len=1024", 1, 1};
  const auto& links = shown.priced.channel_links;
  CHECK(links[forward_channel(0)].nic == Time{});
  CHECK(links[forward_channel(0)].nvlink > Time{});
  CHECK(links[forward_channel(1)].nic > Time{});
  CHECK(links[forward_channel(2)].nic == Time{});
  CHECK(links[backward_channel(2)].nic > Time{});
}

TEST_CASE("NCCL's environment holds for transfers inside a node, too") {
  // With a limit of channels tables price nothing, so that a slow one changes no transfer.
  Question asked = question("gpt2-xl", "dgx-h100 x 2",
                            "tensor=4,pipeline=4,micro_batch=1,global_batch=8,seq_len=1024");
  const Program program = lower(asked);
  const NcclSettings limited{.channels = 64};
  const auto inside = [&](const NcclSettings* nccl) {
    std::vector<std::string> notes;
    const PricedProgram priced =
        price_program(program, asked.cluster, asked.software, notes, {.nccl = nccl});
    return priced.channel_links[forward_channel(0)].nvlink;
  };
  const Time free = inside(&limited);
  asked.cluster.measured_collectives = {
      {"send_receive", 2, 1, hardware::SizeTable{{{1_KiB, 5_us}, {1_GiB, 3_s}}}}};
  CHECK(inside(&limited) == free);
  CHECK(inside(nullptr) > free);
}

TEST_CASE("A plan that overlaps nothing in its tensor group shows all of its traffic") {
  const std::string plan = "tensor=4,sequence=true,micro_batch=1,global_batch=32,seq_len=1024";
  const Shown some{plan, 1, 0.3}, none{plan + ",tensor_overlap=false", 1, 0.3}, all{plan, 1, 1};
  const auto seen = [](const Shown& shown) {
    Time sum{};
    for (std::size_t b = 0; b < shown.program.blocks.size(); ++b) {
      const Block& block = shown.program.blocks[b];
      for (std::size_t i = 0; i < block.operations.size(); ++i) {
        const bool collective = block.operations[i].kind == OpKind::collective;
        if (collective) sum += shown.priced.blocks[b][i].duration;
      }
    }
    return sum;
  };
  CHECK(seen(none) == seen(all));
  CHECK(ratio(seen(some), seen(all)) == Approx(0.3).epsilon(1e-6));
}

TEST_CASE("A joint collective costs what it costs alone, whatever others send as much") {
  for (const char* plan : {"zero=1,micro_batch=1,global_batch=32,seq_len=1024,bucket=64MB",
                           "zero=3,micro_batch=1,global_batch=32,seq_len=1024,offload=parameters",
                           "zero=2,data_shard=4,micro_batch=1,global_batch=32,seq_len=1024"}) {
    const Shown shown{plan, 0.4, 1};
    const WirePricer wires{shown.program, shown.asked.cluster, shown.asked.software};
    REQUIRE(shown.program.collectives.size() > 2);
    for (std::size_t i = 0; i < shown.program.collectives.size(); ++i) {
      const PricedOperation alone = wires.joint(shown.program.collectives[i]);
      INFO(plan << ": " << shown.program.collectives[i].name);
      CHECK(shown.priced.collectives[i].links.nvlink == alone.links.nvlink);
      CHECK(shown.priced.collectives[i].pattern == alone.pattern);
      CHECK(shown.priced.collectives[i].flows == alone.flows);
    }
  }
  const Shown whole{"zero=3,micro_batch=1,global_batch=32,seq_len=1024", 1, 1};
  const WirePricer wires{whole.program, whole.asked.cluster, whole.asked.software};
  std::set<Time> different;
  for (std::size_t i = 0; i < whole.program.collectives.size(); ++i) {
    const JointCollective& each = whole.program.collectives[i];
    if (each.kind == Collective::all_reduce) continue;
    CHECK(wires.joint(each).lead == whole.priced.collectives[i].lead);
    different.insert(wires.joint(each).duration);
  }
  CHECK(different.size() > 1);
}

}  // namespace
}  // namespace orrery::models
