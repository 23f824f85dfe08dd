#pragma once
// Reads and checks the flags that name the sections of a search.

#include <optional>
#include <string>

#include "hardware/cluster/cluster.hpp"
#include "models/model/model.hpp"
#include "models/plan/plan.hpp"
#include "models/software/software.hpp"

namespace orrery::scenarios {

/// The default software stack.
inline constexpr const char* usual_software = "generic";

/// Reads a name of the catalogue or a path. Errors  as for a scenario, reported at `--model: ...`
///                                                  or at the place in the file
models::Model read_model_flag(const std::string& text);
hardware::Cluster read_cluster_flag(const std::string& text);
models::Software read_software_flag(const std::string& text);
/// A cluster as its file states it, with everything that it names.
Json expanded_cluster(const std::string& text);

/// Errors  `--precision: expected one of fp32 tf32 ... nvfp4, found 'x'`
models::Precision read_precision_flag(const std::string& text);

/// Share of a GPU's memory to leave free: "6%"; by default the median error of predicted peaks.
/// Errors  `--headroom: expected a percentage from 0% to 99% such as 6%, found 'x'`
double read_headroom_flag(const std::optional<std::string>& text);
inline constexpr const char* headroom_help =
    "Share of memory to leave free, such as 6%; a plan that leaves less is marked 'tight' (the "
    "median error of predicted memory peaks)";

/// A share, as a percentage or a fraction: "2%", "0.02".
/// Errors  `--gap: expected a share below 1 such as 2% or 0.02, found 'x'`
double read_gap_flag(const std::string& text);

/// Tokens to train on. Errors  `--tokens: expected ..., found 'x'`
double read_tokens_flag(const std::string& text);

/// The flag for a JSON pointer of a refusal: "/plan/seq_len" is --seq-len.
std::string flag_of_pointer(const std::string& pointer);

}  // namespace orrery::scenarios
