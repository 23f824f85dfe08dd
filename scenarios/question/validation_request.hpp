#pragma once
// A validation (predicted against measured): the flags of `orrery validate`, and its report. The
// table holds training runs, kernels or collectives; its header says which.

#include <optional>
#include <string>
#include <vector>

#include "scenarios/search/workers.hpp"
#include "sim/input/document.hpp"

namespace orrery::scenarios {

struct ValidationRequest {
  std::string file;                     // CSV
  std::vector<std::string> by{};        // columns by which errors are grouped
  std::vector<std::string> software{};  // profiles that replace the shipped ones of their stacks
  std::optional<std::size_t> worst{};   // runs or rows that the text lists; nullopt: 10
  /// Training runs only: a folder for accuracy.md and accuracy.svg; a file for the record of
  /// errors.
  std::optional<std::string> page{}, record{};
  /// Training runs only: a column whose values are left out in turn. Only `threads` goes with it.
  std::optional<std::string> leave_out{};
  std::size_t own = 0;     // with leave_out: runs of each group that are known
  bool in_sample = false;  // kernels and collectives only: score fits that have seen every row
  unsigned threads = 0;    // 0: as many as the machine has
};

struct ValidationReport {
  Json json;             // `orrery validate --json`
  std::string text;      // for people
  bool stopped = false;  // by progress: json is null and no file is written
};

/// progress  called for training runs only; the others take no time
/// Errors    InputError: `--by: unknown column 'x' in FILE`, a flag that the file or --leave-out
///           does not take; OutputError
ValidationReport validate(const ValidationRequest& request, const Progress& progress);

}  // namespace orrery::scenarios
