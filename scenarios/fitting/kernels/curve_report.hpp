#pragma once
// Predicted against measured for rows of kernels or collectives, and for the fitted curves.

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "scenarios/validation/statistics.hpp"
#include "scenarios/validation/validation.hpp"
#include "sim/input/document.hpp"

namespace orrery::scenarios {

/// Which prediction is scored.
enum class Scoring : std::uint8_t {
  unseen,    // from fits without the row's curve
  in_sample  // from fits to every row
};

/// The result of one row. Times in seconds.
struct CurveRow {
  std::string run{};                 // column `run` or `id`
  std::string score_class{};         // rows that are scored together
  std::string curve{};               // the fit that should predict it
  std::string not_scored_because{};  // empty: scored
  std::string note{};                // which curve was used instead, or why there is none
  std::optional<double> measured{}, predicted{}, in_sample{};

  std::optional<double> error_pct() const;
  std::optional<double> in_sample_error_pct() const;
  /// Sets the times and the note, and why a row without a measured or predicted time is not scored.
  void answer(std::optional<double> measured_s, std::optional<double> predicted_s,
              const std::string& reported);
  bool scored() const { return not_scored_because.empty() && predicted && measured; }
};

/// One fitted curve, for the report and for files.
struct CurveCard {
  std::string name, kind, includes;
  std::set<std::string> sources;     // where the rows were published
  Json range = Json::object();       // column: [lowest, highest]
  Json parameters = Json::object();  // SI units and shares
  Json samples = Json::object();     // of the residual; empty without one
  Json catalogue = Json::object();   // catalogue_words.hpp; empty if it has none
  std::optional<ErrorSummary> in_sample, leave_out;
  std::size_t rows = 0;
  bool prices = true;  // false: a GPU's file has no place for it, no prediction uses it

  /// Extends the column's range to a value.
  template <class Value>
  void widen(const char* column, Value value) {
    if (!range.contains(column)) range[column] = {value, value};
    if (value < range[column][0]) range[column][0] = value;
    if (value > range[column][1]) range[column][1] = value;
  }
};

struct CurveReport {
  std::string kind;  // "kernels", "collectives"
  Scoring scoring = Scoring::unseen;
  std::vector<CurveRow> rows;
  std::vector<CurveCard> cards;  // for `orrery fit`; empty otherwise

  /// Adds to a card its errors over the scored rows of its curve.
  void add_errors(CurveCard& card) const;
};

/// Where a source of the shipped rows was published; for other sources the word itself.
std::string published_place(const std::string& source);

/// `validate --json`, `fit curves --json`.
Json to_json(const CurveReport& report, const std::vector<Grouping>& groupings);
/// The report as text: totals, a table by class and for each grouping, the `worst` rows; or the
/// curves.
std::string table_of(const CurveReport& report, const std::vector<Grouping>& groupings,
                     std::size_t worst);
/// A curve as a file of its own: formula's parameters, range, source, errors, what it includes.
Json curve_file(const CurveCard& card);

}  // namespace orrery::scenarios
