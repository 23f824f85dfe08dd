#pragma once
// What one stack's launches cost, which kernels it has, what it overlaps, and what memory it takes
// besides tensors.

#include <cstdint>
#include <map>
#include <optional>
#include <string>

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
  /// The same once more for products in 8 or 4 bits, by GPU generation: as far as a curve that was
  /// fitted to another library's products misses this one's.
  std::map<std::string, double> quantised_derate;
  /// ... in 4 bits, in its place.
  std::map<std::string, double> fp4_derate;
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
  Bytes context{};                 // CUDA context and libraries
  Bytes workspace{};               // cuBLAS and friends
  Bytes per_communicator{};        // NCCL buffers
  double fragmentation = 0;        // share of dynamic memory
  double state_fragmentation = 0;  // share of parameters, gradients and optimizer state
  /// The pipeline holds what a stage sent until backward begins at it.
  bool sent_kept = false;
  /// Shards of parameters are the master weights, cast when they are gathered.
  bool masters_alone = false;
  /// fp32 copies of the logits that the loss makes next to the one that is saved; -1: not even that
  /// one, the gradient is left where the logits were.
  double loss_copies = 0;
  ReportedMemory reported = ReportedMemory::device;
};

}  // namespace orrery::models
