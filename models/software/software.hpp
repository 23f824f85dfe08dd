#pragma once
// The software profile: what one stack's launch costs, which kernels it has, what it fuses and
// overlaps, where it synchronises. Data, like a GPU: a JSON file, fitted once per stack.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hardware/gpu.hpp"
#include "hardware/site.hpp"
#include "models/plan/plan.hpp"
#include "models/software/descent.hpp"
#include "models/software/runnable.hpp"
#include "models/software/stack_costs.hpp"
#include "sim/input/document.hpp"
#include "sim/quantity.hpp"

namespace orrery::models {

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
  double few_bits_derate(std::string_view generation, hardware::DType type) const;
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
