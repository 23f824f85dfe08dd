#pragma once
// A question as a file asks it: model, cluster, plan and software in one JSON document. Names are
// expanded before pointers resolve, so a JSON pointer is the address of every number.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/prediction/prediction.hpp"
#include "scenarios/exchange/sections.hpp"
#include "sim/input/document.hpp"

namespace orrery::scenarios {

/// Where sections from files or flags of their own were written, by the section's name.
using Origins = std::map<std::string, Origin>;

/// Published figures that a scenario is compared with.
struct Published {
  std::optional<Time> step;
  std::optional<FlopRate> model_rate;  // model FLOPs per second and GPU, where no step is stated
  std::string source;
};

/// The flags --model, --cluster, --plan and --software (names or paths; the plan also
/// `tensor=8,pipeline=16`), and --year.
struct ScenarioParts {
  std::optional<std::string> model{}, cluster{}, plan{}, software{};
  std::optional<int> year{};  // of the software: the profile as of that year
};

/// An expanded scenario: immutable, self-contained, cheap to copy by its JSON.
class Scenario {
 public:
  /// A path, the name of a shipped scenario, or the document as text. Errors: InputError, `unknown
  /// scenario 'x'; known:`.
  static Scenario load(const std::string& path_or_name);
  /// A scenario, if one is given, with the given parts replacing its own before names are expanded.
  static Scenario load(const std::optional<std::string>& path_or_name, const ScenarioParts& parts);
  /// Of a JSON document `{name?, model, cluster, plan, software?, tokens?, published?, notes?,
  /// network?, placement?, perturbations?, jobs?, collectives?, run?, data?}` (network_request.hpp;
  /// whole_run/run_inputs.hpp; data_section.hpp) whose model, cluster, plan and software may be
  /// names, paths relative to the file, or objects. name  the file, as errors say it
  static Scenario parse(const Json& json, const std::string& name);

  /// A copy with the values at JSON pointers replaced (the pointer must exist in the expansion, or
  /// name an optional member of an existing object); names among the values are expanded too. The
  /// published figure is dropped when model, cluster or plan change. A stated /plan/data that the
  /// changed nodes or degrees contradict is derived again, with an assumption.
  /// Errors: `--set /x/y: no such value; /x has: a b c`.
  Scenario replace(const std::vector<std::pair<std::string, Json>>& changes) const;
  /// The two halves of `replace`, for many what-ifs that share some changes: the values put in
  /// their places, and then /plan/data derived where all changes together contradict it.
  Scenario with_values(const std::vector<std::pair<std::string, Json>>& changes) const;
  Scenario with_derived_data(const std::vector<std::pair<std::string, Json>>& changes) const;
  /// A copy that has read its cluster: questions of its what-ifs with the same cluster need not
  /// read it again. Errors: as `question`, of the cluster alone
  Scenario with_cluster_read() const;

  /// Reads and checks everything. Errors: InputError with file and pointer.
  models::Question question() const;

  const Json& json() const { return json_; }
  /// The scenario's `name`, or else its file.
  std::string name() const;
  /// The file that errors name.
  const std::string& file() const { return file_; }
  std::optional<Published> published() const;
  /// Tokens to train on, where the scenario says so.
  std::optional<double> tokens() const;

 private:
  Scenario(Json json, std::string file, Origins origins);
  static Scenario expand(const Document& written, const ScenarioParts& parts);
  /// Why `question` refuses it; empty: it does not.
  std::string refusal() const;
  /// Derives /plan/data where the stated degree is refused and another one is not.
  /// changed  what changed the number of ranks, as the assumption names it
  void derive_refused_data(const std::string& changed);

  Json json_;
  std::string file_;
  std::shared_ptr<const hardware::Cluster> cluster_;  // as read; null: not yet, or changed since
  /// Sections that came from a file or flag of their own, whose mistakes are reported there.
  Origins origins_;
};

/// Names of the shipped scenarios.
std::vector<std::string> scenario_names();

/// `POINTER=VALUE` of a command line: the pointer, and the value as JSON if it parses as such or
/// else as the text that it is. Errors: `--set: expected POINTER=VALUE, found 'x'`.
std::pair<std::string, Json> parse_change(std::string_view text);

}  // namespace orrery::scenarios
