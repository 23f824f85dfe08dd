#pragma once
// The fitted numbers of a software profile: host cost of launches, kernel choices and derates,
// overlap of communication, and memory besides tensors.

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "sim/quantity.hpp"

namespace orrery::models {

/// How the gradients of several micro-batches are accumulated.
enum class Accumulation : std::uint8_t {
  fused,     // the weight-gradient GEMM adds into fp32 accumulators
  separate,  // a separate kernel adds the 16-bit gradient to the accumulator
  in_place,  // the weight-gradient GEMM adds into 16-bit gradients
};
/// How ZeRO-1 distributes updated parameters.
enum class ZeroGather : std::uint8_t { all_gather, broadcast };

/// Inputs that sequence parallelism gathered in forward: gathered again in backward, or kept.
enum class Gathered : std::uint8_t { in_backward, kept };

/// How communication progresses once it is launched: `itself`, as NCCL does; or `blocking`, where
/// the host is inside a collective or receive until it ends, as with MPI on a CPU that progresses
/// only inside calls.
enum class Communication { itself, blocking };

/// Time on the host.
struct HostCosts {
  Time forward_launch{};        // one operation, forward and recomputation
  Time backward_launch{};       // one operation, backward and optimizer
  Time communication_launch{};  // one collective or transfer
  /// Launch of one CUDA graph of several operations (plan: cuda_graphs); if absent, a published
  /// one.
  std::optional<Time> graph_launch;
  /// Router and dispatcher of a layer with experts, forward and backward together: the framework
  /// launches many small operations for the few that a Program states.
  Time expert_layer{};
  /// Per expert of a grouped GEMM with block scales: quantisation and the layout of scales are
  /// launched expert by expert.
  Time expert_launch{};
  /// Of a matrix of an adapter under ZeRO-3 that is a unit of its own, in each pass: its gather,
  /// reduction and hooks, which no kernel hides. 0: gathered with its layer.
  Time sharded_adapter{};
  Time jitter{};             // per rank and collective: a group waits for its slowest host
  Time step{};               // data loading, logging, learning rate: once per step
  bool synchronous = false;  // a launch returns when the operation has ended (CPU)
  bool blocking_receive = false;
  Communication communication = Communication::itself;
  bool waits_for_tensor = false;  // in forward the host waits for tensor-parallel collectives
};

/// Which kernels the stack has, and factors on their time. Derates are factors: 1.2 is 20 % slower.
struct KernelChoices {
  /// GEMM time in a long step relative to the isolated kernel's, by GPU generation; "default" for
  /// generations without an entry.
  std::map<std::string, double> gemm_derate;
  /// A further factor for GEMMs in 8 or 4 bits, by GPU generation: the deviation of this stack's
  /// GEMM library from the one that the curve was fitted to.
  std::map<std::string, double> quantised_derate;
  /// The same for GEMMs in 4 bits, instead of quantised_derate.
  std::map<std::string, double> fp4_derate;
  /// GPU time of a GEMM in 8 or 4 bits on top of its curve and the passes over its operands, by GPU
  /// generation: scales, amax and transposes in small kernels.
  std::map<std::string, Time> quantised_gemm_overhead;
  /// Time of memory-bound kernels relative to a fused kernel with ideal traffic.
  double memory_derate = 1.0;
  /// A further factor for those on 16-bit tensors: automatic mixed precision leaves norms, softmax
  /// and losses in fp32 and casts around them.
  double mixed_derate = 1.0;
  /// The same of the optimizer's update, whose kernel is a library's whatever the layers run: one
  /// kernel (fused), or one for each of its operations (foreach), which move 2.9 times its bytes.
  /// As memory_derate where not stated.
  std::optional<double> optimizer_derate;
  /// Attention kernel by generation ("flash-2", "unfused", ...); "default" otherwise.
  std::map<std::string, std::string> attention;
  /// Attention time relative to that kernel's curve.
  double attention_derate = 1.0;
  /// Time of recurrences relative to their rates, which are of kernels alone
  /// (hardware/measured/rates.csv).
  double scan_derate = 1.0;
  double loss_forward_bytes = 32;   // per logit
  double loss_backward_bytes = 24;  // per logit
  double predicted_share = 1.0;     // share of an encoder's tokens that reach the vocabulary head
  /// Clamped gates of experts (gpt-oss): passes over the activation's 16-bit output besides those
  /// of an activation without clamps. The clamps alone by default
  /// (models/operations/parts/experts.cpp).
  double clamped_forward_passes = 8, clamped_backward_passes = 15;
  bool dropout = false;
  /// Time to add a micro-batch's gradients relative to one pass at memory bandwidth: many small
  /// kernels.
  double accumulate_derate = 1.0;
  /// Accumulation fused into the weight-gradient GEMM: exposed share of the time to read and write
  /// the fp32 accumulators.
  double accumulate_exposed = 0.0;
  /// The fused softmax supports up to 2048 tokens and attention batches (sequences times heads of a
  /// rank) in multiples of four; otherwise separate fp32 kernels run.
  bool softmax_in_fours = false;
};

/// What the stack overlaps with computation, and how well.
struct Overlap {
  bool tensor_backward = false;  // input-gradient all-reduce concurrently with the weight gradient
  /// Exposed tensor-parallel and data-parallel time over the cost model's. Below 1, the hidden rest
  /// still occupies its queue and links (models/pricing/wire.hpp).
  double tensor_exposed = 1.0, data_exposed = 1.0;
  bool gradients = true;          // data-parallel buckets concurrently with backward
  bool sharded_gradients = true;  // the same under ZeRO; as `gradients` where not stated
  /// The same where tensor groups span several nodes and keep the same NICs busy.
  bool gradients_across_tensor = true;
  /// Slowdown of kernels and ZeRO-3 gathers that run concurrently, over the shorter of the two:
  /// collectives take multiprocessors and memory bandwidth.
  double contention = 0.0;
  double data_efficiency = 1.0;  // share of the collective cost model's bandwidth that is reached
  /// The same of a collective library's all-to-all of experts between nodes, which waits for no
  /// kernel and so does not depend on how a stack overlaps. With the cost model's own 0.74 of the
  /// NICs it reaches 28 GB/s of 50.
  /// Source  steps of DeepSeek-V3, Qwen3 and Grok-1 on nodes of H100 in
  ///         scenarios/validation/runs.csv, whose dispatcher is NCCL's: 23 to 32 GB/s; all-to-all
  ///         of nccl-tests on two nodes of B200: 23 and 37 (Vultr's cluster test, 2026-05-18)
  double dispatch_efficiency = 0.76;
  Bytes bucket{};                    // size of a gradient bucket
  Time broadcast_per_rank{};         // of ZeRO-1's broadcasts, one owner after another
  std::int64_t broadcast_group = 0;  // most owners that broadcast in turn; 0: all data-parallel
};

/// What the stack's log reports as peak memory: all that the device holds, or what PyTorch's
/// allocator handed out, which includes neither the CUDA context nor NCCL's buffers.
enum class ReportedMemory : std::uint8_t { device, allocator };

/// Memory of one GPU besides tensors.
struct MemoryAllowances {
  Bytes context{};                 // CUDA context and libraries
  Bytes workspace{};               // of cuBLAS and similar libraries
  Bytes per_communicator{};        // NCCL buffers
  double fragmentation = 0;        // share of dynamic memory
  double state_fragmentation = 0;  // share of parameters, gradients and optimizer state
  /// A pipeline stage keeps the output that it sent until its backward begins.
  bool sent_kept = false;
  /// No separate 16-bit shards: the master weights are cast when they are gathered.
  bool masters_alone = false;
  /// Norms and gated activations are several operations of an eager framework, each of which saves
  /// what its backward reads: an RMSNorm its input in fp32 and, where its weight is trained, the
  /// normalised rows, instead of its input; a gated activation the activated gate as well.
  /// Source  huggingface/transformers models/llama/modeling_llama.py, LlamaRMSNorm and LlamaMLP
  bool saves_unfused = false;
  /// fp32 copies of the logits that the loss makes besides the one that is saved; -1: not even that
  /// one, since the gradient overwrites the logits.
  double loss_copies = 0;
  ReportedMemory reported = ReportedMemory::device;
};

}  // namespace orrery::models
