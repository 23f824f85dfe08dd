#pragma once
// The input of a run besides its Program (tokens, initial parameters, options), and what a step
// reports.

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "executor/device/device.hpp"
#include "executor/layout/state.hpp"
#include "models/program/memory.hpp"
#include "sim/quantity.hpp"

namespace orrery::executor {

/// Source of tokens. Every rank that asks for a sample gets the same one, however the plan shards.
class TokenSource {
 public:
  virtual ~TokenSource() = default;
  /// tokens.size() consecutive tokens of one sample of the global batch, each in [0, vocab). The
  /// label of a token is the next one. `step` counts from 0. Called by any thread. Returns how long
  /// reading from storage took; 0 where nothing is read.
  /// Errors  RunFailure{local_failure}: what was there before can no longer be read
  virtual Time fill(std::int64_t step, std::int64_t sample,
                    std::span<std::int64_t> tokens) const = 0;
  /// Identifies the tokens by content, whatever their files are called: "crc32c 1a2b3c4d of 5678
  /// bytes". Empty: tokens have no digest, and a change of them is not noticed.
  virtual std::string digest() const { return {}; }
};

/// Tokens that are a function of (seed, step, sample, position) and nothing else.
std::unique_ptr<TokenSource> synthetic_tokens(std::uint64_t seed, std::int64_t vocab);
/// The bytes of text files, one after another and then from the beginning again; samples do not
/// overlap. Files are read sample by sample, pipes as a whole.
/// Errors  a file that cannot be read, no bytes in all of them, a vocabulary below 256: InputError
std::unique_ptr<TokenSource> text_tokens(const std::vector<std::string>& files, std::int64_t vocab,
                                         std::int64_t global_batch);

/// What the trace of a step holds: one record for each instruction, or for each operation of it.
enum class TraceDetail : std::uint8_t { none, instructions, operations };
/// The detail that can be recorded: kernels launched as one CUDA graph have no times of their own.
constexpr TraceDetail recordable(TraceDetail asked, bool graphs) {
  const bool together = graphs && asked == TraceDetail::operations;
  return together ? TraceDetail::instructions : asked;
}

/// Source of initial parameters, where they are not drawn from the seed.
class ParameterSource {
 public:
  ParameterSource() = default;
  ParameterSource(const ParameterSource&) = delete;
  ParameterSource& operator=(const ParameterSource&) = delete;
  virtual ~ParameterSource() = default;

  /// Called once with all tensors of the model, before they are asked for.
  /// Errors  InputError: it lacks one of them
  virtual void require(const std::vector<StateTensor>& tensors) = 0;
  /// Reads elements of a tensor from `first` on. Called by any thread.
  virtual void fill(const StateTensor& tensor, std::int64_t first, std::span<double> to) const = 0;
};

/// How many batches a rank reads ahead of its step, as member `data` of a scenario states it.
struct ReadAhead {
  std::int64_t batches = 2;  // that may be ready before a step
  bool background = true;    // false: a step's batch is read when the step begins
};

/// The batch of one step: what reading it, making tokens and labels of it and copying it to the
/// device took, and how long the step waited for it.
struct InputTimes {
  Time read{}, decode{}, copy{}, wait{};
};

/// What freed memory is filled with: nothing, or NaN, so that a use after free shows.
enum class Freed : std::uint8_t { left, poisoned };

/// Options of a run.
struct RunSettings {
  std::uint64_t seed = 1;
  Arithmetic arithmetic = Arithmetic::real;
  AdamStep adam;      // the run itself sets `step` and `gradient_scale`
  double clip = 1.0;  // limit of the gradient's norm; 0: none
  /// Initial value of the dynamic loss scale; nullopt: 2^16 in fp16, no scale in other formats.
  std::optional<double> loss_scale = {};
  const TokenSource* tokens = nullptr;  // outlives the run; null: synthetic from `seed`
  ReadAhead ahead = {};
  ParameterSource* initial = nullptr;  // outlives Runner's constructor; null: drawn from `seed`
  TraceDetail trace = TraceDetail::operations;
  Freed freed = Freed::left;
  /// Called as parameters are drawn, every few million elements: how many so far, and of how many.
  std::function<void(std::int64_t drawn, std::int64_t of)> drawn;
  /// Called now and then by other long work that is no instruction (tokens, graph capture), as a
  /// heartbeat.
  std::function<void()> alive = {};
  /// Called when the gradients are complete, before the norm and the update (tests).
  std::function<void()> before_update;
};

/// What one step reports.
struct StepOutcome {
  double loss = 0;           // mean over the tokens of the global batch
  double gradient_norm = 0;  // before clipping, without the loss scale
  double loss_scale = 1;     // that backward was run with
  std::int64_t skipped = 0;  // updates skipped so far, because gradients were not finite
  Time wall{};               // of this rank, from its wait for data to the end of its last
                             // instruction
  InputTimes input{};        // 0 on ranks that read nothing
  /// In ring arithmetic: instead of `loss` and `gradient_norm`.
  std::uint64_t ring_loss = 0, ring_norm = 0;
};

/// CUDA graphs that were captured so far, and launches of them in the last step.
struct GraphCounts {
  std::int64_t graphs = 0, nodes = 0, launches = 0;
};

/// Bytes that a rank sent to others in all-to-alls of experts' rows in the last step, and that it
/// would have sent with all slots instead of occupied ones.
struct RoutedBytes {
  std::int64_t rows = 0, slots = 0;
  int group = -1;                     // first rank of the expert-parallel group; -1: none
  std::vector<std::int64_t> arrived;  // rows for its own experts, at each routing of tokens
};

/// Where a rank is, for a watchdog. `waits_for` is empty while it computes.
struct Progress {
  std::int64_t step = 0;        // from 0
  std::size_t instruction = 0;  // index in the rank's list; the list's length: between steps
  std::string waits_for;        // "receive from rank 3", "comm:tp of ranks 0 1"
  std::string text;             // all of it, with the instruction in words
  /// The host itself computes, so that CPU time counts as progress.
  bool works = false;
  std::chrono::milliseconds limit{60'000};  // how long it may stay here
};

/// Memory of one rank: the highest sum of live buffers as instructions ran, and what was allocated.
struct MeasuredMemory {
  models::MemoryByKind by_kind{};  // at the peak
  std::size_t instruction = 0;     // at which the peak was reached
  Bytes peak{};                    // sum of by_kind
  Bytes padding{};                 // allocated beyond the peak: gaps in the arena, padded pieces
  Bytes allocated{};               // from the device, in all
  Bytes host{};                    // host memory for what is offloaded
  Bytes resident{};                // of the process, highest so far, as the system counts it
};

}  // namespace orrery::executor
