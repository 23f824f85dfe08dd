#pragma once
// How far predictions were off on published runs: published_errors.json, which `orrery validate
// scenarios/validation/runs.csv --record FILE` writes and a test keeps up to date. Leaves out what
// those runs have in common with each other and not with the one that is asked about.

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "hardware/dtype.hpp"
#include "models/prediction/error/evidence.hpp"

namespace orrery::models {

/// Errors of a set of step times, in percent, 100 (predicted / measured - 1).
struct StepErrors {
  std::int64_t rows = 0;
  double median_pct = 0, p90_pct = 0;  // of |error|
  double bias_pct = 0;                 // median of the signed error
};

/// How well predictions order the published plans of one model.
struct Ordering {
  double pairs_in_order = 0;  // percent of pairs of plans measured more than 5 % apart
  double mean_regret = 0;     // percent: the plan predicted fastest over the fastest measured
  double plan_spread = 0;     // percent: spread of errors that plans of one model do not share
  /// Percent: the median difference between the errors of two plans, for plans with the same
  /// tensor, pipeline and micro-batch sizes and for others.
  double gap_of_alike = 0, gap_of_others = 0;
};

/// The highest share of a GPU's peak that a published run of pre-training without experts reached.
struct HighestMfu {
  double mfu = 0;         // of the measured step, by Prediction's count of operations
  std::int64_t rows = 0;  // runs of models of this size on this GPU in as many bits
  std::string run;        // model and stack
};

struct PublishedErrors {
  std::string source;         // the command
  StepErrors dense;           // plans of ZeRO-0 and ZeRO-1, by which stacks are fitted
  Ordering fitted, unfitted;  // with the stacks' own profiles; with the generic one for all
  StepErrors sharded;         // ZeRO-2, ZeRO-3 and FSDP: no stack is fitted to them
  RangeRecord ranges;
  std::map<std::string, HighestMfu> highest_mfu;  // by size_and_peak
  std::int64_t memory_rows = 0;
  double memory_median_pct = 0;  // of |error| of peak memory
  RangeRecord memory_ranges;
};

/// The record that is built in.
const PublishedErrors& published_errors();

/// Name of the class of models of like size on a GPU of like peak: "models of 100 billion
/// parameters and more on a100-sxm-80gb in 16 bits"; below that size, of 10 billion and more, or of
/// fewer.
std::string size_and_peak(std::int64_t parameters, const std::string& gpu,
                          hardware::DType products);

}  // namespace orrery::models
