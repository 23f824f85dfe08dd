#pragma once
// Plans run on ranks that are threads of the test, and what they computed, put together into the
// tensors of the uncut model.

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "executor/fabric/threads/thread_fabric.hpp"
#include "executor/run/runner.hpp"
#include "models/plan/plan.hpp"
#include "models/software/software.hpp"
#include "tests/models/draft.hpp"

namespace orrery::executor {

/// What a rank runs on. The fabric goes first, then what carries it.
struct Rig {
  std::unique_ptr<Device> device;
  std::unique_ptr<Fabric> carrier, fabric;
};
using MakeRig = std::function<Rig(ThreadWorld& world, int rank)>;

/// What a run is and how it is disturbed.
struct Job {
  models::Model model;
  models::Plan plan;
  Arithmetic arithmetic = Arithmetic::real;
  std::int64_t steps = 1;
  // Planted faults: in the lowered Program, in every kernel's call.
  std::function<void(models::Program&)> tamper = {};
  std::function<void(Kernel&)> disturb = {};
  RunSettings settings = {};
  MakeRig rig = {};                               // nothing: the processor, and threads
  std::optional<models::Software> software = {};  // nothing: the processor's
};

/// Tensors of the uncut model by name; in the ring, integers whose bits these doubles are.
using Tensors = std::map<std::string, std::vector<double>>;

struct Outcome {
  std::vector<StepOutcome> steps;      // of rank 0
  Tensors gradients;                   // of the first step, before the update; none of a rig's
  Tensors parameters, first, second;   // after the last
  std::vector<Tensors> of_ranks;       // parameters after the last step, as each rank has them
  std::vector<MeasuredMemory> memory;  // by rank
  std::vector<Trace> traces;           // by rank, of the last step
  std::vector<GraphCounts> graphs;     // by rank, after the last step
  std::vector<RoutedBytes> routed;     // by rank, of the last step
};

models::Software cpu_software();
models::Program lowered(const models::Model& model, const models::Plan& plan,
                        const models::Software& software = cpu_software());
/// Runs the plan on as many threads as it has ranks. An error of any rank is thrown.
Outcome run(const Job& job);

/// Loads what a run left after so many steps, for a runner of any cut to go on from.
void go_on_from(const Outcome& left, std::int64_t steps, Runner& runner);

/// Largest ||a - b|| / ||b|| of all tensors; their names and sizes are checked to be equal.
double distance(const Tensors& a, const Tensors& b);
/// Are all bits equal?
bool same_bits(const Tensors& a, const Tensors& b);

/// GPT-like: learned positions, layer norms, gelu, biases, a tied head. Llama-like: rotary
/// positions, RMS norms, gated silu, grouped key-value heads, an untied head.
models::Model small_gpt(std::int64_t layers = 2);
models::Model small_llama(std::int64_t layers = 2);
/// GPT's sizes, but an encoder that fills in masked tokens: norms of sums, segments, a head with a
/// transform and a bias.
models::Model small_bert(std::int64_t layers = 2);
/// With latent attention.
models::Model small_deepseek(std::int64_t layers = 2);
/// As GPT-OSS: attention sinks, windows on every other layer, experts with biases and clamped
/// gates.
models::Model small_gpt_oss(std::int64_t layers = 2);
/// As Qwen3-Next: the gated delta rule, gated attention on every other layer, experts of which the
/// shared ones have a gate.
models::Model small_delta(std::int64_t layers = 2);
/// As Nemotron-H: Mamba-2, attention, experts of narrowed tokens, an MLP, each a layer of its own.
models::Model small_mamba(std::int64_t layers = 4);
/// As Llama 4: attention within chunks on every other layer.
models::Model small_chunked(std::int64_t layers = 2);
/// As Gemma 3: norms of 1 + weight on either side of attention and MLP, embeddings times a number,
/// windows on every other layer that rotate by a base of their own.
models::Model small_gemma(std::int64_t layers = 2);
/// As OLMo 2: norms of the outputs of attention and MLP, none of their inputs.
models::Model small_olmo(std::int64_t layers = 2);
/// As mBART: an encoder of 12 tokens, with MLPs and positions of its own, before a decoder whose
/// layers attend to it.
models::Model small_both_sides(std::int64_t layers = 2);
/// As BART: norms of sums, of both embeddings, and none after the last layers.
models::Model small_bart(std::int64_t layers = 2);
/// Either of them with four experts, of which a token meets two.
models::Model with_experts(const models::Model& plain);
/// Sequences of 8 in a global batch of `samples`, in fp64, on one rank; of experts with room
/// for all tokens to choose the same ones.
models::Plan small_plan(std::int64_t samples = 4);
/// The same without what is said of experts, if the model has none.
models::Plan plan_for(const models::Model& model, models::Plan plan);

}  // namespace orrery::executor
