#include "scenarios/whatif/variants.hpp"

#include <fmt/format.h>

#include "models/plan/fields.hpp"
#include "scenarios/report/sections.hpp"
#include "scenarios/report/style.hpp"
#include "sim/errors.hpp"
#include "sim/input/units.hpp"

namespace orrery::scenarios {

namespace {

using Changes = std::vector<std::pair<std::string, Json>>;

std::size_t combinations(const std::vector<ValueList>& lists) {
  std::size_t count = 1;
  for (const ValueList& list : lists) {
    count *= list.values.size();
    if (count > most_variants) {
      throw InputError{"--set",
                       fmt::format("the lists have more than {} combinations", most_variants)};
    }
  }
  return count;
}

/// Combination number `row`; the last list varies fastest.
Changes changes_of(const std::vector<ValueList>& lists, std::size_t row) {
  Changes changes(lists.size());
  for (std::size_t i = lists.size(); i-- > 0;) {
    const std::size_t count = lists[i].values.size();
    changes[i] = {lists[i].pointer, lists[i].values[row % count]};
    row /= count;
  }
  return changes;
}

WhatIf predicted(const Scenario& base, Changes changes, const WhatIfRequest& request) {
  WhatIf row;
  row.changes = std::move(changes);
  try {
    models::Question question = (row.changes.empty() ? base : base.replace(row.changes)).question();
    if (request.headroom) question.headroom = *request.headroom;
    const models::Prediction found = models::predict(question);
    row.figures = found;
    row.uncertainty = found.uncertainty;
    row.memory = found.memory.at(found.fullest).total;
    row.gpus = question.plan.gpus();
    row.plan = models::degrees_of(question.plan);
  } catch (const InputError& error) {
    row.refused = error.what();
  }
  return row;
}

std::string words_of(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

/// Of the step, against the reference; nothing for the reference itself.
std::optional<double> change_of(const WhatIfTable& table, const WhatIf& row) {
  const WhatIf* reference = table.reference();
  if (!reference || reference == &row || !row.refused.empty()) return std::nullopt;
  return ratio(row.figures.step, reference->figures.step) - 1;
}

std::optional<double> days_of(const WhatIfTable& table, const WhatIf& row) {
  if (!table.tokens || !row.refused.empty()) return std::nullopt;
  return *table.tokens / row.figures.tokens_per_second / seconds_per_day;
}

Json row_json(const WhatIfTable& table, const WhatIf& row) {
  Json changes = Json::object();
  for (const auto& [pointer, value] : row.changes) changes[pointer] = value;
  Json json{{"changes", std::move(changes)},
            {"refused", row.refused.empty() ? Json(nullptr) : Json(row.refused)}};
  const models::StepFigures& found = row.figures;
  const auto put = [&](const char* key, Json value) {
    json[key] = row.refused.empty() ? std::move(value) : Json(nullptr);
  };
  const auto or_null = [](std::optional<double> value) { return value ? Json(*value) : Json{}; };
  put("gpus", row.gpus);
  put("step_time_s", seconds(found.step));
  put("uncertainty", {{"p10", seconds(row.uncertainty.p10)},
                      {"p50", seconds(row.uncertainty.p50)},
                      {"p90", seconds(row.uncertainty.p90)}});
  put("tokens_per_s", found.tokens_per_second);
  put("mfu", found.mfu);
  put("peak_memory_bytes", row.memory.count());
  put("fit", models::name(found.fit));
  put("cost_usd_per_step", found.cost ? Json(found.cost->count()) : Json(nullptr));
  put("energy_j_per_step", found.energy.count());
  const auto change = change_of(table, row);
  json["change_pct"] = change ? Json(100 * *change) : Json(nullptr);
  json["days"] = or_null(days_of(table, row));
  return json;
}

std::string fit_cell(models::Fit fit) {
  if (fit == models::Fit::yes) return {};
  if (fit == models::Fit::no) return "does not fit in memory";
  return fit == models::Fit::tight ? "fits tightly" : "may not fit";
}

std::vector<std::string> cells_of(const WhatIfTable& table, const WhatIf& row) {
  std::vector<std::string> cells;
  for (const auto& [pointer, value] : row.changes) cells.push_back(words_of(value));
  if (row.changes.empty()) cells.assign(table.lists.size(), "as stated");
  if (!row.refused.empty()) {
    cells.insert(cells.end(), {"", "", "", "", "", ""});
    if (table.tokens) cells.emplace_back();
    cells.push_back(row.refused);
    return cells;
  }
  const models::StepFigures& found = row.figures;
  const auto change = change_of(table, row);
  cells.insert(cells.end(),
               {row.plan, step_part(found.step, found.step),
                change ? fmt::format("{:+.1f} %", 100 * *change) : std::string{},
                percent(found.mfu), format(row.memory),
                found.cost ? fmt::format("${:.2f}", found.cost->count()) : std::string{}});
  if (const auto days = days_of(table, row)) cells.push_back(fmt::format("{:.1f}", *days));
  cells.push_back(fit_cell(found.fit));
  return cells;
}

}  // namespace

const WhatIf* WhatIfTable::reference() const {
  if (stated.refused.empty()) return &stated;
  for (const WhatIf& row : rows) {
    if (row.refused.empty()) return &row;
  }
  return nullptr;
}

WhatIfTable predict_variants(const Scenario& base, const std::vector<ValueList>& lists,
                             const WhatIfRequest& request, const Workers& workers) {
  WhatIfTable table;
  table.scenario = base.name();
  table.lists = lists;
  table.tokens = request.tokens;
  table.rows.resize(combinations(lists));
  table.stated = predicted(base, {}, request);
  std::vector<char> done(table.rows.size(), 0);
  table.stopped = !workers.work_through(table.rows.size(), [&](std::size_t i, unsigned) {
    table.rows[i] = predicted(base, changes_of(lists, i), request);
    done[i] = 1;
  });
  std::size_t kept = 0;
  for (std::size_t i = 0; i < done.size(); ++i) {
    if (done[i] != 0) std::swap(table.rows[kept++], table.rows[i]);
  }
  table.rows.resize(kept);
  return table;
}

Json to_json(const WhatIfTable& table) {
  Json lists = Json::array(), rows = Json::array();
  for (const ValueList& list : table.lists) {
    lists.push_back({{"pointer", list.pointer}, {"values", list.values}});
  }
  for (const WhatIf& row : table.rows) rows.push_back(row_json(table, row));
  return {{"scenario", table.scenario},
          {"lists", std::move(lists)},
          {"stated", row_json(table, table.stated)},
          {"variants", std::move(rows)},
          {"complete", !table.stopped}};
}

std::string text_of(const WhatIfTable& table, bool colour) {
  std::vector<TextTable::Column> columns;
  for (const ValueList& list : table.lists) columns.emplace_back(list.pointer);
  columns.insert(columns.end(), {"<plan", "step", "change", "MFU", "memory", "$/step"});
  if (table.tokens) columns.emplace_back("days");
  columns.emplace_back("<");
  TextTable lines{std::move(columns)};
  if (table.stated.refused.empty()) lines.add(cells_of(table, table.stated));
  for (const WhatIf& row : table.rows) lines.add(cells_of(table, row));
  std::string text = toned(fmt::format("What if, {}", table.scenario), Tone::bold, colour) + "\n\n";
  text += lines.text(colour);
  if (table.stopped) text += "\nStopped before the other values.\n";
  return text;
}

}  // namespace orrery::scenarios
