#include "scenarios/search/space/block_shapes.hpp"

#include <algorithm>
#include <iterator>
#include <numeric>
#include <utility>

#include "models/evaluation/chain.hpp"
#include "models/plan/derived.hpp"
#include "models/plan/fields.hpp"
#include "models/pricing/price.hpp"
#include "scenarios/search/plan_search.hpp"
#include "sim/errors.hpp"

namespace orrery::scenarios {

using models::MaxPlusMap;
using models::never;
using models::Plan;

namespace {

/// Maps of a Program's block, and its kernels' time.
MaxPlusMap map_of_block(const models::PricedProgram& priced, std::uint32_t block) {
  models::Chain<models::AffineTime> state;
  for (int i = 0; i < models::chain_states; ++i) state[i].coefficients[i] = 0;
  std::vector<models::AffineTime> ends;
  models::run_block(models::ChainBlock{priced, block}, state, ends, [](auto&&...) {});
  return MaxPlusMap::of(state);
}

std::int64_t kernels_of_block(const models::PricedProgram& priced, std::uint32_t block) {
  std::int64_t sum = 0;
  const std::vector<models::Operation>& operations = priced.program->blocks[block].operations;
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const models::OpKind kind = operations[i].kind;
    const bool moves = kind == models::OpKind::collective || kind == models::OpKind::copy;
    if (operations[i].queue != models::Lane::compute || moves) continue;
    sum += priced.blocks[block][i].duration.count();
  }
  return sum;
}

bool recomputes_partly(const Plan& plan) {
  return plan.recompute.layers > 0 || plan.recompute.every > 1;
}

/// GPUs of the fewest nodes that hold whole groups of tensor, context and expert ranks; all of the
/// plan's, if these are no whole number of such nodes.
std::int64_t gpus_of_shape(const Plan& plan, int node_gpus) {
  const std::int64_t dense = plan.tensor * plan.context;
  const std::int64_t experts = plan.experts.ranks * models::expert_tensor_of(plan);
  const std::int64_t gpus = std::lcm(std::lcm(dense, experts), std::int64_t{node_gpus});
  return plan.gpus() % gpus == 0 ? gpus : plan.gpus();
}

/// The plan whose blocks those of all plans of a shape are, on the fewest nodes that hold whole
/// groups of its tensor, context and expert ranks.
PlacedPlan plan_of_shape(const Plan& plan, int node_gpus) {
  const std::int64_t gpus = gpus_of_shape(plan, node_gpus);
  Plan whole = plan;
  whole.data = gpus / (plan.tensor * plan.context);
  whole.pipeline = 1;
  whole.stages = {};
  whole.sharding = {};
  whole.sharding.bucket = Bytes{std::int64_t{1} << 50};  // blocks alone: one reduction is enough
  whole.compression = {};
  whole.batch.global = whole.batch.micro * whole.data;
  // Of a part of the layers, which depends on the chunks: as if of none.
  if (recomputes_partly(plan)) whole.recompute = {};
  whole.offload.layers = 0;
  return {.plan = std::move(whole), .nodes = static_cast<int>((gpus - 1) / node_gpus + 1)};
}

std::int64_t sum_of_path(std::int64_t one, std::int64_t other) {
  return one < never / 2 || other < never / 2 ? never : one + other;
}

constexpr int host = models::state_host, compute = models::state_compute, io = models::state_io;

PassTimes times_of(const MaxPlusMap& map) {
  const auto path = [&](int from, int to) { return map.columns[from][to]; };
  return {.compute = path(compute, compute),
          .leaves = path(compute, io),
          .arrives = path(io, compute),
          .through = path(io, io),
          .host = path(host, host),
          .launched = path(host, compute),
          .sent = path(host, io)};
}

/// One phase after another on the same rank: the second has no input.
PassTimes then_cut(const PassTimes& one, const PassTimes& next) {
  const auto after = [&](std::int64_t begun, std::int64_t last) {
    return sum_of_path(begun, last);
  };
  return {.compute = after(one.compute, next.compute),
          .leaves = after(one.compute, next.leaves),
          .arrives = after(one.arrives, next.compute),
          .through = after(one.arrives, next.leaves),
          .host = after(one.host, next.host),
          .launched = after(one.launched, next.compute),
          .sent = after(one.launched, next.leaves),
          .kernels = one.kernels + next.kernels};
}

}  // namespace

std::string shape_key(const Plan& plan, int node_gpus) {
  const std::int64_t gpus = gpus_of_shape(plan, node_gpus);
  std::string key(reinterpret_cast<const char*>(&gpus), sizeof gpus);
  for (const models::PlanField& field : models::plan_fields()) field.add_to_key(plan, key);
  return key;
}

std::string joints_key(const PlacedPlan& placed) {
  const Plan& plan = placed.plan;
  Plan alike = plan;
  if (!plan.stages.by_time && plan.recompute.layers == 0 && plan.recompute.every == 1) {
    alike.recompute = {};
  }
  if (!models::shards_gradients(plan)) alike.batch.micro = 1;
  std::string key(reinterpret_cast<const char*>(&placed.nodes), sizeof placed.nodes);
  for (const models::PlanField& field : models::plan_fields()) {
    if (field.value.key != nullptr) {
      field.value.key(alike, key);
    } else {
      key += field.json(alike).dump();
    }
  }
  return key;
}

BlockShape::BlockShape(const PlanQuery& query, const PlacedPlan& placed) {
  PlacedPlan whole = plan_of_shape(placed.plan, query.cluster.node.gpus);
  kinds_ = kinds_of(query, whole);
  if (!recomputes_partly(placed.plan)) return;
  whole.plan.recompute.kind = placed.plan.recompute.kind;
  whole.plan.recompute.modules = placed.plan.recompute.modules;
  recomputing_ = static_cast<std::uint32_t>(kinds_.size());
  std::vector<Kind> again = kinds_of(query, whole);
  ensure(again.size() == kinds_.size(), "recomputation adds kinds of layers");
  std::ranges::move(again, std::back_inserter(kinds_));
}

std::vector<BlockShape::Kind> BlockShape::kinds_of(const PlanQuery& query,
                                                   const PlacedPlan& whole) {
  models::Question question = question_of(query, whole);
  // Slower kernels next to communication depend on how much there is of both.
  question.cluster.node.gpu.calibration.beside_communication.reset();
  const models::Program program = models::lower(question);
  std::vector<std::string> notes;
  const models::PricedProgram priced =
      models::price_program(program, question.cluster, question.software, notes,
                            {.sharing = models::LinkSharing::alone,
                             .order = question.network.order.axes,
                             .nccl = question.network.tuner()});
  std::vector<Kind> kinds;
  for (const models::LayerKind& each : program.kinds) {
    const auto number = static_cast<std::uint32_t>(kinds.size());
    kinds.push_back({.forward = map_of_block(priced, each.forward),
                     .backward = map_of_block(priced, each.backward),
                     .forward_kernels = kernels_of_block(priced, each.forward),
                     .backward_kernels = kernels_of_block(priced, each.backward),
                     .parameters = each.parameters,
                     .expert_parameters = each.expert_parameters,
                     .saved = program.blocks[each.backward].bytes(models::Role::saved),
                     .temporaries = program.blocks[each.backward].temporary_peak(),
                     .weights = models::bytes_in(program.formats.storage,
                                                 each.parameters - each.expert_parameters),
                     .is_layer = each.part == models::ModelPart::layer});
    if (each.part == models::ModelPart::embedding) embedding_ = number;
    if (each.part == models::ModelPart::head) head_ = number;
  }
  kind_of_layer_ = program.kind_of_layer;
  alike_ = std::ranges::adjacent_find(kind_of_layer_, std::not_equal_to{}) == kind_of_layer_.end();
  step_launch_ = priced.step_launch;
  transfer_launch_ = priced.transfer_launch;
  return kinds;
}

std::vector<BlockShape::Run> BlockShape::runs_of(const ChunkLayers& layers) const {
  std::vector<Run> runs;
  if (layers.has_embedding) runs.push_back({embedding_, 1});
  for (std::int64_t i = 0; i < layers.count; ++i) {
    std::uint32_t kind = kind_of_layer_[static_cast<std::size_t>(layers.first + i)];
    const bool early = layers.recomputed == 0 || i < layers.recomputed;
    if (recomputing_ > 0 && early && i % layers.every == 0) kind += recomputing_;
    const bool goes_on = i > 0 && runs.back().kind == kind;
    if (goes_on) {
      ++runs.back().count;
    } else {
      runs.push_back({kind, 1});
    }
  }
  if (layers.has_head) runs.push_back({head_, 1});
  return runs;
}

PassCosts BlockShape::pass_of(const std::vector<Run>& runs, MaxPlusMap Kind::*map,
                              std::int64_t Kind::*kernels) const {
  MaxPlusMap whole = MaxPlusMap::identity();
  PassCosts pass;
  bool first = true;
  for (const Run& run : runs) {
    const Kind& kind = kinds_[run.kind];
    whole = whole.then(models::power(kind.*map, run.count));
    PassTimes one = times_of(kind.*map);
    one.kernels = kind.*kernels;
    for (std::int64_t i = 0; i < run.count; ++i) {
      pass.cut = first ? one : then_cut(pass.cut, one);
      first = false;
    }
  }
  pass.whole = times_of(whole);
  pass.whole.kernels = pass.cut.kernels;
  return pass;
}

const ChunkCosts& BlockShape::costs(const ChunkLayers& layers) {
  const std::uint64_t first = alike_ ? 0 : static_cast<std::uint64_t>(layers.first);
  // 12 bits hold most_layers, which is at most what each of the others is.
  const auto packed = [](std::int64_t number, int bits) {
    return static_cast<std::uint64_t>(number) << bits;
  };
  const std::uint64_t key = (first << 50) | packed(layers.recomputed, 36) |
                            packed(layers.every, 22) | packed(layers.count, 8) |
                            (layers.has_embedding ? 2U : 0U) | (layers.has_head ? 1U : 0U);
  const auto [found, fresh] = known_.try_emplace(key);
  ChunkCosts& costs = found->second;
  if (!fresh) return costs;
  std::vector<Run> runs = runs_of(layers);
  for (const Run& run : runs) {
    const Kind& kind = kinds_[run.kind];
    costs.parameters += kind.parameters * run.count;
    costs.expert_parameters += kind.expert_parameters * run.count;
    costs.saved += kind.saved * run.count;
    costs.temporaries = std::max(costs.temporaries, kind.temporaries);
    if (!kind.is_layer) continue;
    costs.largest_layer = std::max(costs.largest_layer, kind.weights);
    costs.layers += kind.weights * run.count;
  }
  costs.forward = pass_of(runs, &Kind::forward, &Kind::forward_kernels);
  std::ranges::reverse(runs);
  costs.backward = pass_of(runs, &Kind::backward, &Kind::backward_kernels);
  return costs;
}

}  // namespace orrery::scenarios
