#pragma once
// The software profile: what one stack's launch costs, which kernels it has, what it fuses and
// overlaps, where it synchronises. Data, like a GPU: a JSON file, fitted once per stack.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hardware/gpu.hpp"
#include "hardware/site.hpp"
#include "models/plan/plan.hpp"
#include "models/software/descent.hpp"
#include "models/software/runnable.hpp"
#include "sim/input/document.hpp"
#include "sim/quantity.hpp"

namespace orrery::models {

/// Where gradients of several micro-batches meet.
enum class Accumulation : std::uint8_t {
  fused,     // the weight-gradient GEMM adds into fp32 accumulators
  separate,  // a kernel of its own adds the 16-bit gradient
  in_place,  // 16-bit gradients, added by the GEMM
};
/// How ZeRO-1 hands out updated parameters.
enum class ZeroGather : std::uint8_t { all_gather, broadcast };

/// What becomes of inputs gathered under sequence parallelism between forward and backward.
enum class Gathered : std::uint8_t { again, kept };

/// Who moves communication on once it is launched: itself, as with NCCL; or the host, which is
/// inside a collective or a receive until it ends, as with MPI on a CPU that progresses only inside
/// calls.
enum class Communication { itself, blocking };

struct HostCosts {
  Time forward_launch{};        // one operation, forward and recomputation
  Time backward_launch{};       // one operation, backward and optimizer
  Time communication_launch{};  // one collective or transfer
  /// One CUDA graph of a stretch of operations (plan: cuda_graphs); where not stated, as published.
  std::optional<Time> graph_launch;
  /// Router and dispatcher of a layer with experts, forward and backward together: many small
  /// operations of the framework for the few that a Program states.
  Time expert_layer{};
  /// One expert's part of a grouped GEMM whose operands have scales for blocks: its quantisation
  /// and the layout of its scales are launched expert by expert.
  Time expert_launch{};
  Time jitter{};             // per rank and collective: a group waits for its slowest host
  Time step{};               // data loading, logging, learning rate: once per step
  bool synchronous = false;  // a launch returns when the operation has ended (CPU)
  bool blocking_receive = false;
  Communication communication = Communication::itself;
  bool waits_for_tensor = false;  // tensor-parallel collectives bring the hosts together again
};

struct KernelChoices {
  /// GEMM time in a long step over the isolated kernel, by GPU generation; "default" otherwise.
  std::map<std::string, double> gemm_derate;
  /// GPU time that a product in 8 or 4 bits takes beyond its curve and the passes over its
  /// operands, by GPU generation: scales, amax and transposes in small kernels.
  std::map<std::string, Time> quantised_start;
  /// Memory-bound time over the fused kernel's ideal traffic.
  double memory_derate = 1.0;
  /// The same once more for kernels on 16-bit tensors: automatic mixed precision leaves norms,
  /// softmax and losses in fp32 and casts around them.
  double mixed_derate = 1.0;
  /// Attention kernel by generation ("flash-2", "unfused", ...); "default" otherwise.
  std::map<std::string, std::string> attention;
  /// Attention time over that kernel's curve.
  double attention_derate = 1.0;
  double loss_forward_bytes = 32;   // per logit
  double loss_backward_bytes = 24;  // per logit
  double predicted_share = 1.0;     // of an encoder's tokens that reach the vocabulary head
  bool dropout = false;
  /// Adding a micro-batch's gradients, over one pass at memory speed: many small kernels.
  double accumulate_derate = 1.0;
  /// Fused into the weight gradient: share of reading and writing the fp32 sums that the product
  /// does not hide.
  double accumulate_exposed = 0.0;
  /// The fused softmax takes up to 2048 tokens and attention batches in fours (sequences times
  /// heads of a rank); others go through separate fp32 kernels.
  bool softmax_in_fours = false;
};

struct Overlap {
  bool tensor_backward = false;  // input-gradient all-reduce next to the weight gradient
  /// Tensor-parallel time that others wait for over its cost model's, and the same of data-parallel
  /// time. What is below 1 still occupies the queue and its links (models/pricing/wire.hpp).
  double tensor_exposed = 1.0, data_exposed = 1.0;
  bool gradients = true;          // data-parallel buckets next to backward
  bool sharded_gradients = true;  // the same under ZeRO; read as `gradients` where not stated
  /// Time by which kernels and gathers of ZeRO-3 slow each other while both run, over the shorter
  /// of the two: collectives take multiprocessors and memory bandwidth.
  double contention = 0.0;
  double data_efficiency = 1.0;  // share of the collective cost model's bandwidth that is reached
  Bytes bucket{};                // gradient bucket
  Time broadcast_per_rank{};     // of ZeRO-1's broadcasts, one owner after another
  std::int64_t broadcast_group = 0;  // most owners that share; 0: all data-parallel ranks
};

/// What the stack's log calls its peak of memory: all that the device holds, or what PyTorch's
/// allocator handed out, which knows neither the CUDA context nor NCCL's buffers.
enum class ReportedMemory : std::uint8_t { device, allocator };

struct MemoryAllowances {
  Bytes context{};           // CUDA context and libraries
  Bytes workspace{};         // cuBLAS and friends
  Bytes per_communicator{};  // NCCL buffers
  double fragmentation = 0;  // share of dynamic memory
  /// The pipeline holds what a stage sent until backward begins at it.
  bool sent_kept = false;
  /// Shards of parameters are the master weights, cast when they are gathered.
  bool masters_alone = false;
  /// fp32 copies of the logits that the loss makes next to the one that is saved; -1: not even that
  /// one, the gradient is left where the logits were.
  double loss_copies = 0;
  ReportedMemory reported = ReportedMemory::device;
};

/// What a run of this stack does where its publication does not say.
struct RunDefaults {
  /// Of its fields those that a profile may state (PlanField::Stack): precision, recompute, zero,
  /// and sequence, wherever there is tensor parallelism.
  Plan plan;
  std::int64_t vocab = 51200;
  std::int64_t layers_per_chunk = 0;  // of a pipeline; 0: one chunk on each stage
};

/// Where and on what runs of a fit were measured. An empty network is that of one node.
struct FittedPlace {
  std::string site, gpu, network;  // network: the fabric's latency class
};

/// ln(measured / predicted) of runs that a fit of this stack had not seen: quantiles, each error
/// over the widening of its borrowed curves (models/prediction/uncertainty.hpp).
struct Residuals {
  double p10 = 0, p50 = 0, p90 = 0;  // p10 <= 0 <= p90
  std::int64_t rows = 0;
  std::string source;
  std::string of = "this stack";  // whose runs
  /// Where the runs were measured and in which years; without places they hold wherever the stack
  /// runs.
  std::vector<FittedPlace> places{};
  int from_year = 0, to_year = 9999;
};

/// Runs that a profile stands for: a stack as CSV files name it, in some years, on one node or on
/// several.
struct Scope {
  std::string stack;
  int from_year = 0, to_year = 9999;
  enum class Nodes : std::uint8_t { any, one, several } nodes = Nodes::any;

  bool holds(std::string_view named, int year, std::int64_t of_nodes) const;
};

struct Software {
  std::string name;
  int year = 0;
  std::string source;
  std::string limits;  // what the profile does not describe of its stack, in words
  /// Stacks that share code: "megatron". Their numbers say the most of each other's.
  std::string lineage;
  HostCosts host;
  KernelChoices kernels;
  Overlap overlap;
  Accumulation accumulation = Accumulation::fused;
  hardware::DType gradient = hardware::DType::fp32;  // accumulators and reduction
  std::optional<hardware::DType> gradient_of_fp16;   // the same of runs in fp16 where it differs
  ZeroGather zero_gather = ZeroGather::all_gather;
  Gathered gathered = Gathered::again;
  bool embedding_counts = false;  // default stage rule
  MemoryAllowances memory;
  RunDefaults defaults;
  RunnablePlans runs;
  std::optional<Residuals> residuals;
  std::vector<Scope> stands_for;  // besides the stack of its own name, and before that one's file

  /// What gradients are added up and reduced in by a run that computes in `type`.
  hardware::DType gradient_beside(hardware::DType type) const;
  double gemm_derate(std::string_view generation) const;
  Time quantised_start(std::string_view generation) const;
  std::string_view attention(std::string_view generation) const;
};

/// The profile for a run of a stack named in a CSV file: of `own` and then of the shipped ones the
/// first that stands for it, else the one of its name, else `generic` and an assumption; shipped
/// ones as they were in that year (0: not known).
Software software_for_run(std::string_view stack, int year, std::int64_t nodes,
                          const std::vector<Software>& own, std::vector<std::string>& assumptions);
Software read_software(const Node& node);

/// The stack as it runs at a site: what the site changes of its numbers.
Software at_site(Software software, const hardware::Site& site);

}  // namespace orrery::models
