#pragma once
// The fields of a plan as a table: each row states what its field means and how JSON, --plan, CSV
// files of measured runs, titles and defaults treat it. Readers, writers, validation, reports,
// `orrery show plan-fields` and tests iterate the table; models/plan/README.md, which holds it,
// says what else a new field needs. How a field changes a step is in the lowering.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/plan/plan.hpp"

namespace orrery::models {

/// Inputs from which a default is derived, besides the fields of earlier rows.
struct PlanBasis {
  const Node& given;  // the plan's JSON
  const Model& model;
  std::int64_t gpus = 1;
};

/// What values a field has, and how its member is read and written.
struct PlanValue {
  /// An integer from `least` to `most`, true or false, one of `words`, a share above 0 and at most
  /// 1, a factor above 0, a size in bytes, a list of integers up to `most`, a list of `words`.
  enum class Kind : std::uint8_t { count, flag, word, share, factor, bytes, counts, word_list };

  Kind kind = Kind::count;
  std::int64_t least = 1, most = 0;
  std::int64_t (*count)(const Plan& plan) = nullptr;  // of Kind::count: the member
  std::vector<std::string> (*words)() = nullptr;      // of Kind::word and word_list
  void (*read)(const Node& value, Plan& plan, const PlanValue& own) = nullptr;
  Json (*write)(const Plan& plan) = nullptr;
  /// Appends the member's bytes; null: its JSON tells values apart.
  void (*key)(const Plan& plan, std::string& bytes) = nullptr;
};

/// One row of the table.
struct PlanField {
  /// How a plan's title shows it: not at all; as a degree, "TP 8", always or only if it is not the
  /// default (the product of all degrees is the number of GPUs); added to the field before, "+ SP";
  /// as a choice, after the degrees.
  enum class Title : std::uint8_t { none, degree, degree_where_used, addition, choice };
  /// Is the value of a new Plan reported as an assumption where none is stated, and written to
  /// JSON: both, only written, or neither?
  enum class Default : std::uint8_t { reported, silent, omitted };
  /// Does the --plan flag that a report prints include it even if it is the default?
  enum class Flag : std::uint8_t { where_needed, always };
  /// Does a software profile have a default for runs whose publication does not state it?
  enum class Stack : std::uint8_t { silent, has_default };
  /// Does the first line of a report state it where it is not the default?
  enum class Summary : std::uint8_t { silent, stated };
  /// Does a published recipe choose it for any plan of its model, or for its own degrees, GPU and
  /// precision alone?
  enum class Recipe : std::uint8_t { of_any_plan, of_one_plan };
  /// Does a search choose it, by a row of scenarios/search/space/dimensions.cpp or as a degree that
  /// follows, or why does it leave the field alone?
  ///   open      a plain choice that is not tried; another value may be faster or need less memory
  ///   question  part of what is asked: what is trained, and on which data
  ///   result    changes what is computed, or in which format
  ///   stack     as the stack and its recipes have it
  enum class Search : std::uint8_t { open, tried, question, result, stack };
  /// Does a layer's block depend on it? A search prices blocks once for plans whose values of such
  /// fields are the same; `differ_where_set`: all values but the default alike.
  enum class Blocks : std::uint8_t { differ, differ_where_set, same };
  /// What a field is about: `orrery show plan-fields` lists fields by it.
  enum class Group : std::uint8_t {
    parallelism,
    batch,
    task,
    state,
    activations,
    precision,
    experts,
    communication
  };

  std::string_view key;   // in JSON and in --plan
  std::string_view name;  // in a sentence of a report
  Group group;
  Search search = Search::open;
  Blocks blocks = Blocks::differ;
  Summary summary = Summary::silent;
  Recipe recipe = Recipe::of_any_plan;
  std::string_view not_executed = {};  // what the executor lacks wherever it is not the default
  /// The same by values: what the executor lacks for this plan; empty: nothing.
  std::string (*not_executed_if)(const Plan& plan, const Model& model) = nullptr;
  std::string_view meaning;             // a sentence without its full stop
  std::string_view other_values = {};   // after the words for `value`: "; or FILE.csv"
  std::string_view default_words = {};  // where the member of a new Plan does not say it
  PlanValue value = {};
  std::string_view column = {};  // of a CSV file of measured runs; empty: none states it
  Title title = Title::none;
  std::string_view title_label = {};  // "TP" in a title, followed by the value, except for flags
  std::string_view heading = {};      // of a table's column, if it differs from `title_label`
  Default by_default = Default::omitted;
  Flag flag = Flag::where_needed;
  Stack stack = Stack::silent;

  /// Where `value` alone does not say so: reads it from JSON; writes it, null if the plan does not
  /// have one (no compression: no share).
  void (*read)(const Node& value, Plan& plan) = nullptr;
  Json (*write)(const Plan& plan) = nullptr;
  /// Derives a value that was left out, where the value of a new Plan is not the default, and
  /// returns the text of its assumption, "8 derived from ..."; empty: none.
  std::string (*derive)(Plan& plan, const PlanBasis& basis) = nullptr;
  /// Returns an assumption about a value, whether given or derived; empty: none.
  std::string (*remark)(const Plan& plan, const PlanBasis& basis) = nullptr;
  /// Why a value that is not the default cannot be (conflicts.hpp); empty: it can.
  std::string (*conflict)(const Plan& plan, const Model& model) = nullptr;

  bool is_degree() const { return title == Title::degree || title == Title::degree_where_used; }
  void read_value(const Node& given, Plan& plan) const;
  /// Does the plan differ from a new Plan in this field?
  bool is_set(const Plan& plan) const;
  Json json(const Plan& plan) const;
  /// Appends bytes that tell values apart, as `blocks` says.
  void add_to_key(const Plan& plan, std::string& bytes) const;
  /// The value alone: "8", "true", "25 MB".
  std::string text(const Plan& plan) const;
  /// The field in a title: "TP 8", "+ SP", "ZeRO-1"; empty if it is not shown.
  std::string in_title(const Plan& plan) const;
  /// The value in a table's cell: the value alone, or of Title::addition all of in_title.
  std::string in_cell(const Plan& plan) const;
  /// The JSON of a value in --plan: "8", "0.01", "true", "bf16", "7:8:8:7".
  Json json_of(std::string_view text) const;
  /// The JSON of a value in a CSV cell, where flags are "yes" and "no".
  Json json_of_cell(std::string_view text) const;
  /// Which values it accepts: "1 to 4096", "true or false", "none, selective or full".
  std::string accepted() const;
  /// What holds where a plan does not state it: "1", "as tensor", "none, or the stack's".
  std::string default_text() const;
};

/// In the order in which they are listed.
inline constexpr Words<PlanField::Group, 8> plan_group_words{
    {{PlanField::Group::parallelism, "parallelism"},
     {PlanField::Group::batch, "batch and sequences"},
     {PlanField::Group::task, "task"},
     {PlanField::Group::state, "model state"},
     {PlanField::Group::activations, "activations"},
     {PlanField::Group::precision, "precision and kernels"},
     {PlanField::Group::experts, "experts"},
     {PlanField::Group::communication, "communication"}}};

/// All rows, in the order in which they are read and written: a field stands before the fields that
/// are derived from it.
std::span<const PlanField> plan_fields();
/// Errors  a key that no row has: ContractError
const PlanField& plan_field(std::string_view key);
/// The JSON of one value in --plan: a number, true or false, or else a word.
Json scalar_of(std::string_view text);

/// The degrees of a plan: "TP 8 + SP · PP 16 x 6 · DP 8 ZeRO-1".
std::string degrees_of(const Plan& plan);
/// The degrees and choices of a plan: "... · micro-batch 2 · recompute none".
std::string title_of(const Plan& plan);

}  // namespace orrery::models
