#pragma once
// What PyTorch's profiler (Kineto) recorded of one rank: steps, where their time went, collectives
// and GEMM shapes. The trace is read piece by piece: memory grows with its events, about 60 bytes
// for each, not with its text. A trace without a GPU's kernels is read by the
// operators that compute themselves.
// Left out: what the profiler itself costs the host, Python's stacks, memory events.
//
// Steps are those of `ProfilerStep#N`, else of an annotation that the user names, else from one
// optimizer step to the next, else the whole trace is one. A step begins when the first kernel that
// was launched in it begins: a host runs ahead of its GPU by up to a whole step.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "scenarios/runback/run_class.hpp"

namespace orrery::scenarios {

/// [m, k] x [k, n], a number of times.
struct MatrixShape {
  std::int64_t m = 0, n = 0, k = 0, batch = 1;

  /// Its sizes in ascending order: the same for a product, its input and its weight gradient.
  MatrixShape sorted() const;
  friend auto operator<=>(const MatrixShape&, const MatrixShape&) = default;
};

/// Kernels alike, of one step.
struct KernelTally {
  double count = 0;
  Time total{};
};

/// Calls of one collective.
struct CollectiveKey {
  std::string kind;         // "all_reduce"; "nccl" where the trace does not say
  std::string group;        // the process group's description, or name
  std::int64_t ranks = 0;   // 0: not stated
  std::int64_t bytes = -1;  // as nccl-tests counts them; -1: not stated
  std::string members{};    // "[0, 1, 2, 3]", where stated
  friend auto operator<=>(const CollectiveKey&, const CollectiveKey&) = default;
};
struct ProfiledCall {
  std::size_t key = 0;  // in ProfiledRank::collectives
  Time begin{}, duration{};
};

struct ProfiledStep {
  std::string name;
  Time begin{}, duration{};  // on the GPU
  ClassTimes wall;           // adds up to the duration
  ClassTimes busy;           // time of kernels, concurrent or not
  std::array<std::int64_t, run_class_count> kernels{};
  std::vector<ProfiledCall> calls;
  bool used = true;  // false: a warm-up or extraordinary step
};

struct NamedKernel {
  std::string name;
  RunClass of{};
  KernelTally tally;  // in all used steps
};

struct ProfiledRank {
  std::string file;
  std::optional<std::int64_t> rank, world;
  std::string host, device;
  Bytes device_memory{};
  std::string steps_by;  // "ProfilerStep#", "Optimizer.step#AdamW.step", "the whole trace"
  std::vector<ProfiledStep> steps;
  std::vector<CollectiveKey> collectives;
  std::map<MatrixShape, KernelTally> shapes;  // sorted shapes, in all used steps
  std::vector<NamedKernel> kernels;           // largest first
  std::vector<std::string> notes;
  std::size_t events = 0;

  std::size_t used_steps() const;
  /// "rank 3", or the file's name.
  std::string name() const;
  /// Of the used steps.
  std::vector<double> step_seconds() const;
  /// The used steps nearest to their median (the middle half): mean of their wall times.
  ClassTimes wall() const;
  /// The same of kernels.
  ClassTimes busy() const;
  double kernels_per_step(RunClass which) const;
};

struct ProfileOptions {
  std::string step_mark{};            // an annotation that begins each step
  std::optional<std::size_t> skip{};  // steps left out at the beginning; default: the first of
                                      // three or more
};

/// Whether a file is such a trace, by its first bytes.
bool is_profile(std::string_view beginning);

/// Errors  not JSON, cut off, without an event that ran: InputError, with the byte or key
ProfiledRank read_profiled_rank(const std::string& path, const ProfileOptions& options);

/// The class of a kernel by its name.
/// Source  kernels of cuBLAS, cuBLASLt (nvjet), CUTLASS, cuDNN, rocBLAS (Cijk), FlashAttention,
///         Inductor (triton_poi/red/per: element by element and reductions), PyTorch's foreach
///         (multi_tensor_apply), Apex and Transformer Engine, as their sources name them
RunClass class_of_kernel(std::string_view name);

}  // namespace orrery::scenarios
