#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "models/plan/conflicts.hpp"
#include "models/plan/layers_per_chunk.hpp"
#include "models/plan/plan.hpp"
#include "tests/models/draft.hpp"

namespace orrery::models {
namespace {

Model small_gpt() {
  ModelDraft model;
  model.depth = 32;
  model.hidden = 4096;
  model.attention.heads = model.attention.kv_heads = 32;
  model.attention.head_dim = 128;
  model.mlp.width = 16384;
  model.embedding.vocab = 51200;
  model.embedding.max_positions = 2048;
  return built(std::move(model));
}

/// On 64 GPUs, without a conflict.
Plan good_plan() {
  Plan plan;
  plan.tensor = 4;
  plan.pipeline = 4;
  plan.data = 4;
  plan.batch.global = 64;
  plan.batch.seq_len = 2048;
  return plan;
}

/// `pointer: problem` of every conflict.
std::vector<std::string> conflicts_of(const Plan& plan, const Model& model,
                                      std::int64_t gpus = 64) {
  std::vector<std::string> lines;
  for (const Conflict& conflict : conflicts(plan, model, gpus)) {
    lines.push_back(conflict.pointer + ": " + conflict.problem);
  }
  return lines;
}

using Lines = std::vector<std::string>;

}  // namespace

TEST_CASE("A plan that fits its model and cluster has no conflict") {
  CHECK(conflicts_of(good_plan(), small_gpt()).empty());
}

TEST_CASE("Degrees that do not multiply to the cluster's GPUs conflict") {
  CHECK(conflicts_of(good_plan(), small_gpt(), 128) ==
        Lines{"/data: tensor 4 x pipeline 4 x data 4 is 64 GPUs, the cluster has 128"});
}

TEST_CASE("More than 2^20 GPUs conflict") {
  Plan plan = good_plan();
  plan.data = 1 << 17;
  plan.batch.global = 1 << 17;
  CHECK(conflicts_of(plan, small_gpt(), 1 << 21) ==
        Lines{"/data: 2097152 GPUs are more than 2^20, the most that a plan may use"});
}

TEST_CASE("A tensor degree has to divide heads, key-value heads and MLP width") {
  Plan plan = good_plan();
  plan.tensor = 3;
  CHECK(conflicts_of(plan, small_gpt(), 48) ==
        Lines{"/tensor: tensor 3 does not divide the model's 32 attention heads",
              "/tensor: tensor 3 neither divides the model's 32 key-value heads nor is a multiple "
              "of them",
              "/tensor: tensor 3 does not divide the model's MLP width 16384"});
}

TEST_CASE("Key-value heads are replicated when tensor is a multiple of them") {
  ModelDraft model = draft_of(small_gpt());
  Plan plan = good_plan();
  model.attention.kv_heads = 2;
  CHECK(conflicts_of(plan, built(model)).empty());
  model.attention.heads = 36;  // 4 divides them, but neither divides nor is a multiple of 6
  model.attention.kv_heads = 6;
  CHECK(conflicts_of(plan, built(model)) ==
        Lines{"/tensor: tensor 4 neither divides the model's 6 key-value "
              "heads nor is a multiple of them"});
}

TEST_CASE("A vocabulary that tensor does not divide is padded, not refused") {
  Model model = small_gpt();
  model.embedding.vocab = 50257;
  CHECK(conflicts_of(good_plan(), model).empty());
}

TEST_CASE("Sequence parallelism needs tensor ranks that divide the sequence") {
  Plan plan = good_plan();
  plan.sequence_parallel = true;
  CHECK(conflicts_of(plan, small_gpt()).empty());
  plan.batch.seq_len = 2047;
  CHECK(conflicts_of(plan, small_gpt()) ==
        Lines{"/seq_len: tensor 4 does not divide seq_len 2047, as sequence parallelism needs"});
  plan.tensor = 1;
  CHECK(conflicts_of(plan, small_gpt(), 16) ==
        Lines{"/sequence: sequence parallelism needs tensor above 1"});
}

TEST_CASE("A sequence longer than the learned positions conflicts, a rotary one does not") {
  Model model = small_gpt();
  Plan plan = good_plan();
  plan.batch.seq_len = 4096;
  CHECK(conflicts_of(plan, model) ==
        Lines{"/seq_len: seq_len 4096 is longer than the model's 2048 learned positions"});
  model.embedding.positions = Positions::rotary;
  CHECK(conflicts_of(plan, model).empty());
}

TEST_CASE("Micro-batches of all replicas have to make up the global batch") {
  Plan plan = good_plan();
  plan.batch.global = 66;
  CHECK(conflicts_of(plan, small_gpt()) ==
        Lines{"/global_batch: micro_batch 1 x data 4 does not divide global_batch 66"});
}

TEST_CASE("State is sharded in any pipeline, among replicas that share out all of them") {
  Plan plan = good_plan();
  for (const Zero zero : {Zero::one, Zero::two, Zero::three}) {
    plan.sharding.zero = zero;
    CHECK(conflicts_of(plan, small_gpt()).empty());
  }
  plan.sharding.ranks = 3;
  CHECK(conflicts_of(plan, small_gpt()) ==
        Lines{"/data_shard: data_shard 3 does not divide data 4"});
  plan.sharding.ranks = 1;
  CHECK(conflicts_of(plan, small_gpt()) ==
        Lines{"/data_shard: data_shard 1 shards nothing; leave zero and data_shard out"});
  plan.sharding.ranks = 2;
  CHECK(conflicts_of(plan, small_gpt()).empty());
  plan.sharding.reshard = false;
  plan.sharding.prefetch = 2;
  CHECK(conflicts_of(plan, small_gpt()).empty());
  plan.offload.state = Offload::parameters;
  CHECK(conflicts_of(plan, small_gpt()).empty());
  plan.sharding.zero = Zero::none;
  CHECK(conflicts_of(plan, small_gpt()) ==
        Lines{"/data_shard: data_shard needs zero above 0",
              "/offload: offload needs zero above 0, where each rank updates its own shard",
              "/offload: offload parameters needs zero 3, which gathers weights",
              "/reshard: reshard false needs zero 3, which gathers weights",
              "/prefetch: prefetch needs zero 3, which gathers weights"});
}

TEST_CASE("Compression needs unsharded gradients and data parallelism") {
  Plan plan = good_plan();
  plan.compression.kind = Compression::fp16;
  CHECK(conflicts_of(plan, small_gpt()).empty());
  plan.sharding.zero = Zero::one;
  CHECK(conflicts_of(plan, small_gpt()) ==
        Lines{"/compression: compression fp16 needs zero 0, the plan has zero 1"});
  plan.sharding.zero = Zero::none;
  plan.compression.kind = Compression::top_k;
  plan.data = 1;
  CHECK(conflicts_of(plan, small_gpt(), 16) ==
        Lines{"/compression: compression top-k needs data above 1"});
}

TEST_CASE("An unknown schedule is answered with the known ones") {
  Plan plan = good_plan();
  plan.stages.schedule = "zb-h3";
  CHECK(conflicts_of(plan, small_gpt()) ==
        Lines{"/schedule: unknown schedule 'zb-h3'; known: naive gpipe 1f1b interleaved-1f1b zb-h1 "
              "zb-h2 zb-1p zb-2p zb-v dualpipe dualpipev"});
}

TEST_CASE(
    "A schedule on a V needs two chunks to a stage, DualPipe pairs of stages and many of both") {
  Plan plan = good_plan();
  plan.stages.schedule = "zb-v";
  CHECK(conflicts_of(plan, small_gpt()) == Lines{"/schedule: zb-v needs virtual_stages 2"});
  plan.stages.virtual_stages = 2;
  CHECK(conflicts_of(plan, small_gpt()).empty());
  plan.stages.schedule = "dualpipev";
  plan.batch.global = 16;  // 4 micro-batches
  CHECK(conflicts_of(plan, small_gpt()) ==
        Lines{"/schedule: dualpipev needs at least 8 micro-batches (twice the stages), found 4"});
  plan.stages.virtual_stages = 1;
  plan.stages.schedule = "dualpipe";
  CHECK(conflicts_of(plan, small_gpt()) ==
        Lines{"/schedule: dualpipe needs an even number of at least 8 micro-batches, found 4"});
}

TEST_CASE("Layers cut by time and a slot for embedding and head exclude each other") {
  Plan plan = good_plan();
  plan.stages.by_time = true;
  CHECK(conflicts_of(plan, small_gpt()).empty());
  plan.stages.embedding_counts = true;
  CHECK(conflicts_of(plan, small_gpt()) ==
        Lines{"/embedding_counts: embedding_counts and stage_layers exclude each other"});
}

TEST_CASE("Virtual stages and the interleaved schedule need each other") {
  Plan plan = good_plan();
  plan.stages.virtual_stages = 2;
  CHECK(conflicts_of(plan, small_gpt()) ==
        Lines{"/virtual_stages: 2 virtual stages need the schedule "
              "interleaved-1f1b or zb-v or dualpipev, not 1f1b"});
  plan.stages.schedule = "interleaved-1f1b";
  CHECK(conflicts_of(plan, small_gpt()).empty());
  plan.stages.virtual_stages = 1;
  CHECK(conflicts_of(plan, small_gpt()) ==
        Lines{"/schedule: interleaved-1f1b needs virtual_stages above 1"});
}

TEST_CASE("The interleaved schedule needs a pipeline and whole rounds of micro-batches") {
  Plan plan = good_plan();
  plan.stages.schedule = "interleaved-1f1b";
  plan.stages.virtual_stages = 2;
  plan.batch.global = 24;  // 6 micro-batches
  CHECK(conflicts_of(plan, small_gpt()) ==
        Lines{"/schedule: interleaved-1f1b needs a number of micro-batches that is a multiple of "
              "pipeline 4, found 6"});
  plan.pipeline = 1;
  plan.data = 16;
  plan.batch.global = 64;
  CHECK(conflicts_of(plan, small_gpt()) ==
        Lines{"/schedule: interleaved-1f1b needs pipeline above 1"});
}

TEST_CASE("Every stage needs a layer") {
  Model model = small_gpt();
  Plan plan = good_plan();
  model.layers.resize(3);
  CHECK(conflicts_of(plan, model) ==
        Lines{"/pipeline: pipeline 4 leaves a stage without a layer: the model has 3 layers"});
  model.layers.resize(7);
  plan.stages.virtual_stages = 2;
  plan.stages.schedule = "interleaved-1f1b";
  CHECK(conflicts_of(plan, model) == Lines{"/pipeline: pipeline 4 x virtual_stages 2 leaves a "
                                           "stage without a layer: the model has 7 layers"});
}

TEST_CASE("Slots of embedding and head may leave the first and last stage empty") {
  // 4 chunks of 7 slots: the head stands alone on the last. With 1 layer there are 3 slots.
  Model model = small_gpt();
  Plan plan = good_plan();
  plan.stages.embedding_counts = true;
  model.layers.resize(5);
  CHECK(conflicts_of(plan, model).empty());
  CHECK(layers_per_chunk(plan, model) == std::vector<std::int64_t>{1, 2, 2, 0});
  model.layers.resize(1);
  CHECK(conflicts_of(plan, model) ==
        Lines{"/pipeline: pipeline 4 leaves a stage without a layer: the model has 1 layers, and "
              "embedding and head count as a layer each"});
  model.layers.resize(6);
  CHECK(conflicts_of(plan, model).empty());
  CHECK(layers_per_chunk(plan, model) == std::vector<std::int64_t>{1, 2, 2, 1});
}

TEST_CASE("Layers given by stage have to be one positive count per stage and the model's sum") {
  Plan plan = good_plan();
  plan.stages.layers = {7, 9, 9, 7};
  CHECK(conflicts_of(plan, small_gpt()).empty());
  plan.stages.layers = {7, 9, 9, 8};
  CHECK(conflicts_of(plan, small_gpt()) ==
        Lines{"/stage_layers: stage_layers add up to 33, the model has 32 layers"});
  plan.stages.layers = {16, 0, 16};
  CHECK(conflicts_of(plan, small_gpt()) ==
        Lines{"/stage_layers: stage_layers has 3 entries for 4 stages",
              "/stage_layers: every stage except the first and the last, which hold embedding and "
              "head, needs at least one layer"});
  plan.stages.layers = {0, 16, 16, 0};
  CHECK(conflicts_of(plan, small_gpt()).empty());
  plan.stages.layers = {7, 9, 9, 7};
  plan.stages.embedding_counts = true;
  CHECK(conflicts_of(plan, small_gpt()) ==
        Lines{"/embedding_counts: embedding_counts and stage_layers exclude each other"});
}

TEST_CASE("A model that is only counted cannot be planned") {
  Model model = small_gpt();
  model.not_simulated = "mixture of experts is counted, not yet simulated";
  CHECK(conflicts_of(good_plan(), model) ==
        Lines{": the model cannot be simulated: mixture of experts is counted, not yet simulated"});
}

TEST_CASE("A count below one is reported alone, before anything is divided by it") {
  Plan plan = good_plan();
  plan.batch.micro = 0;
  CHECK(conflicts_of(plan, small_gpt()) == Lines{"/micro_batch: micro_batch 0 is below 1"});
}

TEST_CASE("Ranks share a sequence in pieces that are equal, of heads that they can trade") {
  Plan plan = good_plan();
  plan.context = 2;
  plan.data = 2;
  for (const ContextForm form :
       {ContextForm::all_gather, ContextForm::ring, ContextForm::ulysses}) {
    plan.context_exchange.form = form;
    CHECK(conflicts_of(plan, small_gpt()).empty());
  }
  CHECK(conflicts_of(plan, small_gpt(), 32) ==
        Lines{"/data: tensor 4 x context 2 x pipeline 4 x data 2 is 64 GPUs, the cluster has 32"});
  const Model grouped =
      changed(small_gpt(), [](ModelDraft& draft) { draft.attention.kv_heads = 4; });
  CHECK(conflicts_of(plan, grouped) == Lines{"/context: tensor 4 x 2 context ranks that exchange "
                                             "heads do not divide the model's 4 key-value heads"});
  plan.context_exchange.form = ContextForm::ring;
  CHECK(conflicts_of(plan, grouped).empty());
  plan.batch.seq_len = 2046;
  CHECK(
      conflicts_of(plan, small_gpt()) ==
      Lines{"/seq_len: context 2 cuts a sequence into 4 pieces, which do not divide seq_len 2046"});
  plan = good_plan();
  plan.context = 4;
  plan.data = 1;
  plan.context_exchange.form = ContextForm::hierarchical;
  CHECK(conflicts_of(plan, small_gpt()) ==
        Lines{"/context_heads: context_form hierarchical needs at least 2 groups of at least 2 "
              "ranks; context is 4 and context_heads is 1"});
  plan.context_exchange.heads = 2;
  CHECK(conflicts_of(plan, small_gpt()).empty());
  const Model window =
      changed(small_gpt(), [](ModelDraft& draft) { draft.attention.window = 1024; });
  CHECK(conflicts_of(plan, window) == Lines{"/context: context parallelism with a sliding window "
                                            "is simulated only with context_form ulysses"});
  plan.context_exchange.form = ContextForm::ulysses;
  plan.context_exchange.heads = 1;
  CHECK(conflicts_of(plan, window).empty());
}

TEST_CASE("Attention's chunks are whole on a rank, or its pieces are exchanged for heads") {
  const Model chunked = changed(small_gpt(), [](ModelDraft& draft) {
    draft.embedding.positions = Positions::rotary;
    draft.attention.chunk = 512;
  });
  Plan plan;
  plan.batch.micro = plan.batch.global = 1;
  plan.context = 2;
  plan.batch.seq_len = 2048;  // four pieces of 512
  CHECK(conflicts_of(plan, chunked, 2).empty());
  plan.batch.seq_len = 1024;
  CHECK(
      conflicts_of(plan, chunked, 2) ==
      Lines{"/context: context 2 cuts a sequence into pieces of 256 tokens, which are no multiple "
            "of the 512 tokens within which the model attends; context_form ulysses does not cut "
            "them"});
  plan.context_exchange.form = ContextForm::ulysses;
  CHECK(conflicts_of(plan, chunked, 2).empty());
  plan.context_exchange.form = ContextForm::ring;
  plan.batch.seq_len = 512;  // one chunk is no chunk
  CHECK(conflicts_of(plan, chunked, 2).empty());
}

TEST_CASE("What is said of experts has no effect on a model without them, and conflicts") {
  Plan plan = good_plan();
  plan.experts.dispatcher = Dispatcher::deepep;
  plan.experts.capacity = 1.25;
  CHECK(conflicts_of(plan, small_gpt()) ==
        Lines{"/dispatcher: has no effect: the model has no experts",
              "/capacity: has no effect: the model has no experts"});
}

TEST_CASE("What a paged or partly offloaded optimizer contradicts conflicts") {
  Plan plan = good_plan();
  plan.sharding.zero = Zero::one;
  plan.offload.share = 0.5;
  CHECK(conflicts_of(plan, small_gpt()) ==
        Lines{"/optimizer_offload_fraction: applies only to offload optimizer; offload is none"});
  plan.offload.state = Offload::optimizer;
  CHECK(conflicts_of(plan, small_gpt()).empty());
  plan.optimizer.paged = true;
  CHECK(conflicts_of(plan, small_gpt()) ==
        Lines{"/paged_optimizer: has no effect: offload optimizer keeps that state on the host"});
}

TEST_CASE("Tiles of an MLP conflict with what they cannot be combined with") {
  Plan plan = good_plan();
  plan.kernels.mlp_tiles = 4;
  CHECK(conflicts_of(plan, small_gpt()) ==
        Lines{"/tiled_mlp: is not simulated with tensor above 1, which cuts the MLP itself"});
  plan.tensor = 1;
  plan.data = 16;
  CHECK(conflicts_of(plan, small_gpt()).empty());
  plan.recompute.kind = Recompute::selective;
  plan.recompute.modules = {RecomputeModule::mlp};
  CHECK(
      conflicts_of(plan, small_gpt()) ==
      Lines{"/tiled_mlp: is not simulated with recomputed MLPs or activations: tiles are computed "
            "again already"});
}

TEST_CASE("A stated overlap of transfers has no effect without a pipeline") {
  Plan plan = good_plan();
  plan.overlap.transfers = false;
  CHECK(conflicts_of(plan, small_gpt()).empty());
  plan.pipeline = 1;
  plan.data = 16;
  CHECK(conflicts_of(plan, small_gpt()) == Lines{"/overlap_p2p: has no effect: pipeline is 1"});
}

}  // namespace orrery::models
