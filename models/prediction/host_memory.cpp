#include "models/prediction/host_memory.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "models/operations/blocks.hpp"
#include "models/pricing/price.hpp"
#include "models/program/opcodes.hpp"

namespace orrery::models {

namespace {

/// Trained state of a rank, with the buffers through which gradients and weights pass.
Bytes offloaded_state(const Question& question, const Program& program, const RankClass& ranks) {
  if (!program.sharding.optimizer_on_host) return {};
  const DType storage = program.formats.storage, gradient = program.formats.gradient;
  const std::int64_t there = program.sharding.on_host(ranks.owned);
  const Bytes trained = bytes_in(master_dtype(question.plan), there) +
                        moments_bytes(question.plan, there) + bytes_in(gradient, there) +
                        bytes_in(storage, there);
  return program.sharding.parameters_on_host ? trained + program.shard_of(ranks.frozen) : trained;
}

/// What a chunk's forward leaves outside the GPU for its backward.
Bytes offloaded_by(const Program& program, const Chunk& chunk) {
  Bytes sum{};
  for (const Invocation& run : program.phases[chunk.forward].invocations) {
    sum += program.blocks[run.block].bytes(Role::on_host) * run.count;
  }
  return sum;
}

/// The most that offloaded activations of a rank occupy at once.
Bytes offloaded_activations(const Program& program, const RankClass& ranks) {
  Bytes held{}, most{};
  for (const Instruction& each : ranks.instructions) {
    if (!runs_phase(each)) continue;
    const Bytes bytes = offloaded_by(program, program.chunks[each.chunk]);
    if ((each.binds & bit(slot_saved)) != 0) held += bytes;
    most = std::max(most, held);
    if ((each.frees & bit(slot_saved)) != 0) held += bytes * -1;
  }
  return most;
}

bool offloads(const Plan& plan) {
  return plan.offload.state != Offload::none || plan.offload.layers > 0 || plan.optimizer.paged;
}

MemoryPlace place_of(const Plan& plan) {
  return plan.offload.device == OffloadDevice::nvme ? MemoryPlace::drives : MemoryPlace::host;
}

std::optional<Bytes> size_of(const Question& question) {
  const hardware::Cluster& cluster = question.cluster;
  return place_of(question.plan) == MemoryPlace::drives ? cluster.storage.capacity
                                                        : cluster.node.host_memory;
}

}  // namespace

Bytes kept_outside(const Question& question, const Program& program, const RankClass& ranks) {
  return offloaded_state(question, program, ranks) + offloaded_activations(program, ranks);
}

std::optional<OutOfMemory> host_shortage(const Question& question, const Program& program,
                                         const std::vector<StageMemory>& memory) {
  const auto available = size_of(question);
  if (!offloads(question.plan) || !available) return std::nullopt;
  std::vector<Bytes> of_stage;
  for (std::size_t c = 0; c < program.classes.size(); ++c) {
    const RankClass& ranks = program.classes[c];
    of_stage.resize(std::max<std::size_t>(of_stage.size(), ranks.stage + 1));
    of_stage[ranks.stage] =
        std::max(of_stage[ranks.stage], kept_outside(question, program, ranks) + memory[c].paged);
  }
  // Ranks of a stage are neighbours, and a node has the ranks of one stage or of several.
  const std::int64_t all = program.mesh.ranks(), here = question.cluster.node.gpus;
  const std::int64_t of_one = all / std::ssize(of_stage);
  std::optional<OutOfMemory> found;
  for (std::int64_t first = 0; first < all; first += here) {
    Bytes needed{};
    for (std::int64_t rank = first; rank < std::min(all, first + here); ++rank) {
      needed += of_stage[static_cast<std::size_t>(rank / of_one)];
    }
    if (needed <= *available || (found && needed <= found->needed)) continue;
    found = OutOfMemory{.rank = static_cast<std::uint32_t>(first),
                        .needed = needed,
                        .available = *available,
                        .place = place_of(question.plan)};
  }
  return found;
}

std::string host_note(const Question& question) {
  if (!offloads(question.plan) || size_of(question)) return {};
  const bool drives = place_of(question.plan) == MemoryPlace::drives;
  return fmt::format("{}: not stated; whether what is offloaded fits there is not checked",
                     drives ? "/cluster/storage/capacity" : "/cluster/node/host_memory");
}

std::string host_adam_note(const Question& question) {
  const hardware::NodeType& node = question.cluster.node;
  const bool measured =
      node.host_adam || (node.gpu.generation.host_cores && node.gpu.calibration.kernel("adam"));
  if (question.plan.offload.state == Offload::none || measured) return {};
  Operation adam;
  adam.kind = OpKind::adam;
  adam.bytes = 1_GB;
  return fmt::format(
      "/cluster/node/host_adam: not stated; {:.0f} GB/s assumed, as measured on a "
      "DGX-2's two Xeon",
      1 / seconds(host_adam_time(adam, node, 1)));
}

}  // namespace orrery::models
