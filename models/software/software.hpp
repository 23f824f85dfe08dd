#pragma once
// The software profile of one training stack: host costs of launches, which kernels it has, what it
// fuses and overlaps, where it synchronises. Data, like a GPU: a JSON file, fitted once per stack.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hardware/cluster/site.hpp"
#include "hardware/gpu/gpu.hpp"
#include "models/plan/plan.hpp"
#include "models/software/resolved_profile.hpp"
#include "models/software/runnable.hpp"
#include "models/software/stack_costs.hpp"
#include "sim/input/document.hpp"
#include "sim/quantity.hpp"

namespace orrery::models {

/// Defaults for runs of this stack whose publication leaves them open.
struct RunDefaults {
  /// Only the fields that a profile may state (PlanField::Stack): precision, recompute, zero, and
  /// sequence parallelism for plans with tensor parallelism.
  Plan plan;
  std::vector<std::string> stated;  // keys of `plan` that the profile states
  std::int64_t vocab = 51200;
  std::int64_t layers_per_chunk = 0;  // of a pipeline; 0: one chunk on each stage
};

/// Site, GPU and network on which the runs of a fit were measured. Empty network: one node.
struct FittedPlace {
  std::string site, gpu, network;  // network: the fabric's latency class
};

/// Quantiles of ln(measured / predicted) over runs that were held out of this stack's fit; each
/// error is divided by the widening for its fallback curves
/// (models/prediction/error/uncertainty.hpp).
struct Residuals {
  double p10 = 0, p90 = 0;  // p10 <= 0 <= p90; the median is 0: the prediction itself
  std::int64_t rows = 0;
  std::string source;
  std::string of = "this stack";  // the stack whose runs they are
  /// Where and in which years the runs were measured; without places they apply to any site.
  std::vector<FittedPlace> places{};
  int from_year = 0, to_year = 9999;
};

/// A run of a stack, as far as it decides which profile stands for the stack.
struct StackRun {
  std::string_view stack;
  int year = 0;  // 0: not known
  std::int64_t nodes = 1;
  std::string_view site = {};  // empty: not known
};

/// Runs that a profile is used for: a stack as CSV files name it, in a range of years, on one node
/// or on several.
struct Scope {
  std::string stack;
  int from_year = 0, to_year = 9999;
  enum class Nodes : std::uint8_t { any, one, several } nodes = Nodes::any;
  std::string site = {};  // runs of this installation alone; empty: of any

  bool holds(const StackRun& run) const;
};

/// One software profile, complete.
struct Software {
  std::string name;
  int year = 0;
  std::string source;
  std::string limits;  // what the profile leaves out of its stack, in words
  /// A name for stacks that share code, such as "megatron": their fits predict each other best.
  std::string lineage;
  HostCosts host;
  KernelChoices kernels;
  Overlap overlap;
  Accumulation accumulation = Accumulation::fused;
  hardware::DType gradient = hardware::DType::fp32;  // format of accumulation and reduction
  std::optional<hardware::DType> gradient_of_fp16;   // the same for runs in fp16, where it differs
  ZeroGather zero_gather = ZeroGather::all_gather;
  Gathered gathered = Gathered::in_backward;
  bool embedding_counts = false;  // default of the plan's field: embedding and head take slots
  MemoryAllowances memory;
  RunDefaults defaults;
  RunnablePlans runs;
  /// Measured step over the one that all numbers above explain, common to the runs that the profile
  /// was fitted to (`orrery fit software`); 1 in all shipped profiles. Part of every prediction.
  double unexplained = 1;
  std::optional<Residuals> residuals;
  std::vector<Scope> stands_for;  // runs of other names it is used for; before a profile's own name

  /// Format in which a run that computes in `type` accumulates and reduces gradients.
  hardware::DType gradient_dtype_for(hardware::DType type) const;
  double gemm_derate(std::string_view generation) const;
  double low_precision_gemm_derate(std::string_view generation, hardware::DType type) const;
  Time quantised_gemm_overhead(std::string_view generation) const;
  std::string_view attention(std::string_view generation) const;
  /// The same for a plan that may choose another kernel.
  std::string_view attention(std::string_view generation, AttentionKernel chosen) const;
};

/// The predicted step: what the Program explains, times what the profile's runs took beyond it.
Time with_unexplained(Time explained, const Software& software);

/// Are its numbers fitted to runs of this stack? Those of a profile without residuals are not.
inline bool is_fitted(const Software& software) {
  return software.residuals && software.residuals->of == Residuals{}.of;
}

/// The profile for a run of a stack named in a CSV file. Looks in `own`, then in the shipped
/// profiles: the first whose `stands_for` matches, else the one of that name. If neither has one,
/// `generic`, with an assumption. Shipped profiles are taken as of the run's year.
Software software_for_run(const StackRun& run, const std::vector<Software>& own,
                          std::vector<std::string>& assumptions);
Software read_software(const Node& node);

/// The profile with a site's corrections applied.
Software at_site(Software software, const hardware::Site& site);
/// The profile with another attention kernel; with no name, the profile itself.
Software with_attention(Software software, const std::string& kernel);

}  // namespace orrery::models
