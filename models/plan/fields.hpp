#pragma once
// The fields of a plan: one row each says how JSON, --plan, CSV files of measured runs, titles and
// defaults treat it. Readers, writers, validation, reports and tests iterate the table, so that a
// new field is a row and its use in the lowering (and a row of scenarios/search/dimensions.cpp
// where a search tries it).

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/plan/plan.hpp"

namespace orrery::models {

/// What a default is derived from, besides the fields before it.
struct PlanBasis {
  const Node& given;  // the plan's JSON
  const Model& model;
  std::int64_t gpus = 1;
};

struct PlanField {
  /// What a value is: an integer from `least` to `most`, true or false, one of `words`, a share
  /// above 0 and at most 1, a factor above 0, a size in bytes, a list of integers up to
  /// `most`, a list of `words`.
  enum class Kind : std::uint8_t { count, flag, word, share, factor, bytes, counts, some };
  /// Its place in a plan's title: none; a degree, "TP 8", whose product is the plan's GPUs, shown
  /// always or only above 1; added to the field before, "+ SP"; a choice, after the degrees.
  enum class Title : std::uint8_t { none, degree, degree_where_used, addition, choice };
  /// Is a default reported, as an assumption?
  enum class Default : std::uint8_t { reported, silent };
  /// Does JSON have it even where it is what a new Plan has?
  enum class Written : std::uint8_t { always, where_changed };
  /// Does a report's flag have it even where it is the default?
  enum class Flag : std::uint8_t { where_needed, always };
  /// Does a software profile say what its stack's runs do where a publication does not?
  enum class Stack : std::uint8_t { silent, has_default };

  std::string_view key;   // in JSON and in --plan
  std::string_view name;  // in a sentence
  Kind kind = Kind::count;
  std::string_view column = {};  // of a CSV file of measured runs; empty: none states it
  Title title = Title::none;
  std::string_view titled = {};   // "TP"; with a value after it, but for flags
  std::string_view heading = {};  // of a table's column, where it is not `titled`
  Default by_default = Default::reported;
  Flag flag = Flag::where_needed;
  Stack stack = Stack::silent;

  std::int64_t Plan::*count = nullptr;  // of Kind::count: all that a row needs
  std::int64_t least = 1, most = 0;
  bool Plan::*on = nullptr;                       // of Kind::flag: likewise
  std::vector<std::string> (*words)() = nullptr;  // of Kind::word and some

  /// A value that is there, and how it is written; null where it is not (no compression, no share).
  void (*read)(const Node& value, Plan& plan) = nullptr;
  Json (*write)(const Plan& plan) = nullptr;
  Written written = Written::always;
  /// Sets what was left out, if not to what a new Plan has, and returns what its assumption says:
  /// "8 derived from ..."; empty: nothing.
  std::string (*derive)(Plan& plan, const PlanBasis& basis) = nullptr;
  /// An assumption about a value, whether given or derived; empty: none.
  std::string (*remark)(const Plan& plan, const PlanBasis& basis) = nullptr;

  bool is_degree() const { return title == Title::degree || title == Title::degree_where_used; }
  void read_value(const Node& value, Plan& plan) const;
  Json json(const Plan& plan) const;
  /// The value by itself: "8", "true", "25 MB".
  std::string text(const Plan& plan) const;
  /// "TP 8", "+ SP", "ZeRO-1"; empty where there is nothing to say.
  std::string in_title(const Plan& plan) const;
  /// The value by itself; of additions all of in_title.
  std::string in_cell(const Plan& plan) const;
  /// The JSON of a value in --plan, "8", "0.01", "true", "bf16", "7:8:8:7".
  Json json_of(std::string_view text) const;
  /// ... and of a CSV file's cell, where flags are "yes" and "no".
  Json json_of_cell(std::string_view text) const;
};

/// In the order in which they are read and written: what another derives from stands before it.
std::span<const PlanField> plan_fields();
/// Errors  a key that no row has: ContractError
const PlanField& plan_field(std::string_view key);
/// The JSON of a value in --plan by itself: a number, true or false, or else a word.
Json scalar_of(std::string_view text);

/// What training stacks can do and Orrery does not simulate yet: refused by name.
struct UnsimulatedField {
  std::string_view key;
  std::string_view column;            // of a CSV file of measured runs; empty: none
  void (*refuse)(const Node& value);  // unless it says what a plan without it does
};
std::span<const UnsimulatedField> unsimulated_fields();

/// "TP 8 + SP · PP 16 x 6 · DP 8 ZeRO-1".
std::string degrees_of(const Plan& plan);
/// The same and its choices: "... · micro-batch 2 · recompute none".
std::string title_of(const Plan& plan);

}  // namespace orrery::models
