#pragma once
// A question as a file asks it: model, cluster, plan and software in one JSON document. Names are
// expanded before pointers resolve, so a JSON pointer is the address of every number.

#include <string>
#include <string_view>
#include <vector>

#include "models/prediction/prediction.hpp"
#include "sim/input/document.hpp"

namespace orrery::scenarios {

/// Published figures that a scenario is laid beside.
struct Published {
  std::optional<Time> step;
  std::string source;
};

/// An expanded scenario: immutable, self-contained, cheap to copy by its JSON.
class Scenario {
 public:
  /// A path, or the name of a shipped scenario. Errors: InputError, `unknown scenario 'x'; known:`.
  static Scenario load(const std::string& path_or_name);
  /// Of a JSON document `{name?, model, cluster, plan, software?, tokens?, published?}` whose
  /// model, cluster and software may be names, paths relative to the file, or objects.
  static Scenario parse(const Json& json, const std::string& name);

  /// A copy with the values at JSON pointers replaced (the pointer must exist in the expansion, or
  /// name an optional member of an existing object). Strings stay strings; text from a command
  /// line is JSON if it parses as such. Errors: `--set /x/y: no such value; /x has: a b c`.
  Scenario replace(const std::vector<std::pair<std::string, Json>>& changes) const;

  /// Reads and checks everything. Errors: InputError with file and pointer.
  models::Question question() const;

  const Json& json() const { return json_; }
  const std::string& name() const { return name_; }
  std::optional<Published> published() const;
  /// Tokens to train on, where the scenario says so.
  std::optional<double> tokens() const;

 private:
  Json json_;
  std::string name_;
};

/// Names of the shipped scenarios.
std::vector<std::string> scenario_names();

}  // namespace orrery::scenarios
