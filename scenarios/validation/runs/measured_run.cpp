#include "scenarios/validation/runs/measured_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <regex>

#include "models/plan/fields.hpp"
#include "scenarios/validation/runs/other_simulators.hpp"
#include "sim/errors.hpp"
#include "sim/input/text.hpp"

namespace orrery::scenarios {

namespace {

/// Whether a table holds training runs, not collectives, kernels or goodput.
bool holds_training_runs(const orrery::Table& table) {
  return table.has("step_time_s") && table.has("global_batch") && table.has("layers");
}

void check_header(const orrery::Table& table) {
  if (!holds_training_runs(table)) {
    throw InputError{table.name(),
                     "holds no training runs; accepted: a header with run, software, family, "
                     "layers, hidden, heads, seq_len, gpu, gpus, tp, pp, global_batch and "
                     "step_time_s (collectives, kernels and goodput are not validated yet)"};
  }
  table.require({"software", "family", "layers", "hidden", "heads", "seq_len", "gpu", "gpus", "tp",
                 "pp", "global_batch", "step_time_s"});
  if (!table.has("run") && !table.has("id")) table.require({"run"});
}

std::optional<std::int64_t> count(const Row& row, const char* column) {
  const auto value = row.integer(column);
  if (value && *value < 1) row.fail_expected(column, "a count of at least 1");
  return value;
}

std::optional<double> within(const Row& row, const char* column, double least, double most,
                             const char* expected) {
  const auto value = row.number(column);
  if (value && !(*value >= least && *value <= most)) row.fail_expected(column, expected);
  return value;
}

std::string text(const Row& row, const char* column) {
  return std::string{row.text(column)};
}

/// The columns that may state a plan field: as published tables name it, and by its key.
std::vector<std::string> columns_of(const models::PlanField& field) {
  std::vector<std::string> columns{std::string{field.key}};
  if (!field.column.empty() && field.column != field.key) columns.emplace_back(field.column);
  return columns;
}

/// The text of a cell that holds a plan field; empty if it states nothing. Words and lists are
/// checked where the plan is made, so that an unknown one skips its row alone.
std::string plan_cell(const Row& row, const std::string& column, const models::PlanValue& value) {
  using Kind = models::PlanValue::Kind;
  const std::string cell = text(row, column.c_str());
  if (cell.empty()) return {};
  if (value.kind == Kind::count) {
    const auto number = row.integer(column);
    if (*number < value.least) {
      row.fail_expected(column, fmt::format("a count of at least {}", value.least));
    }
    return std::to_string(*number);
  }
  if (value.kind != Kind::flag) return cell;
  if (cell == "yes" || cell == "true") return "yes";
  if (cell == "no" || cell == "false") return "no";
  row.fail_expected(column, "yes or no");
}

void read_plan_cells(const Row& row, MeasuredRun& run) {
  for (const models::PlanField& field : models::plan_fields()) {
    const std::string key{field.key};
    for (const std::string& column : columns_of(field)) {
      const std::string cell = plan_cell(row, column, field.value);
      if (cell.empty()) continue;
      const auto [stated, first] = run.plan.emplace(key, cell);
      if (!first && stated->second != cell) {
        row.fail_expected(column, fmt::format("{}, as column '{}' says", stated->second, key));
      }
    }
  }
}

/// HSDP: sharded inside a node and replicated between nodes, unless the ranks per shard are stated.
/// Source  ShardingStrategy.HYBRID_SHARD of PyTorch's FullyShardedDataParallel
void read_hybrid_shards(MeasuredRun& run) {
  if (run.stated("zero") != "hsdp" || !run.gpus_per_node) return;
  run.plan["zero"] = "3";
  run.plan["data_shard"] = std::to_string(*run.gpus_per_node);
}

/// "selective:layernorm:moe" names the modules that selective recomputation runs again.
void read_recomputed_modules(MeasuredRun& run) {
  const std::string cell = run.stated("recompute");
  const std::string_view selective = "selective:";
  if (!cell.starts_with(selective)) return;
  run.plan["recompute"] = "selective";
  run.plan.emplace("recompute_modules", cell.substr(selective.size()));
}

/// The last calendar version in a text: "25.04.02" of "README.md (v25.02..v25.04.02)".
std::string release_in(const std::string& text) {
  static const std::regex calendar{
      R"((?:^|[^0-9.]|\.\.)v?((?:2[0-9])\.(?:0[1-9]|1[0-2])(?:\.\d+)*))"};
  std::string last;
  for (std::sregex_iterator at{text.begin(), text.end(), calendar}, end; at != end; ++at) {
    last = (*at)[1].str();
  }
  return last;
}

/// Takes the release from a text that states it, unless a column read before has.
void take_release(const std::string& release, MeasuredRun& run) {
  if (run.release.empty()) run.release = release;
}

/// One column of a file of training runs.
struct RunColumn {
  const char* name;
  void (*read)(const Row& row, const char* column, MeasuredRun& run);
};

template <std::string MeasuredRun::*member>
void read_text(const Row& row, const char* column, MeasuredRun& run) {
  run.*member = text(row, column);
}

template <std::optional<std::int64_t> MeasuredRun::*member>
void read_count(const Row& row, const char* column, MeasuredRun& run) {
  run.*member = count(row, column);
}

template <std::optional<std::int64_t> MeasuredRun::*member>
void read_integer(const Row& row, const char* column, MeasuredRun& run) {
  run.*member = row.integer(column);
}

template <std::optional<std::int64_t> MeasuredRun::*member>
void read_count_or_none(const Row& row, const char* column, MeasuredRun& run) {
  run.*member = row.integer(column);
  if (run.*member && *(run.*member) < 0) row.fail_expected(column, "a count of at least 0");
}

/// No step is shorter than a microsecond: launching one kernel takes longer.
void read_step_time(const Row& row, const char* column, MeasuredRun& run) {
  run.step_time = within(row, column, 1e-6, 1e7, "seconds of a step, from 1e-6 to 1e7");
}

void read_peak_memory(const Row& row, const char* column, MeasuredRun& run) {
  run.peak_memory = within(row, column, 1e-3, 1e6, "GiB of one GPU, from 0.001 to 1e6");
}

void read_source(const Row& row, const char* column, MeasuredRun& run) {
  run.source = text(row, column);
  take_release(release_in(run.source), run);
}

void read_tied(const Row& row, const char* column, MeasuredRun& run) {
  const std::string cell = text(row, column);
  if (cell.empty()) return;
  if (cell != "yes" && cell != "no") row.fail_expected(column, "yes or no");
  run.tied = cell == "yes";
}

/// All columns but those of plan fields and of the run's name. The release is that of its own
/// column, or else a version in the source's location or name.
constexpr RunColumn run_columns[] = {
    {"release", read_text<&MeasuredRun::release>},
    {"source_location", [](const Row& row, const char* column,
                           MeasuredRun& run) { take_release(release_in(text(row, column)), run); }},
    {"source", read_source},
    {"software", read_text<&MeasuredRun::software>},
    {"software_year", read_integer<&MeasuredRun::year>},
    {"task", read_text<&MeasuredRun::task>},
    {"family", read_text<&MeasuredRun::family>},
    {"model", read_text<&MeasuredRun::model>},
    {"layers", read_count<&MeasuredRun::layers>},
    {"hidden", read_count<&MeasuredRun::hidden>},
    {"heads", read_count<&MeasuredRun::heads>},
    {"kv_heads", read_count<&MeasuredRun::kv_heads>},
    {"ffn_hidden", read_count<&MeasuredRun::ffn_hidden>},
    {"vocab", read_count<&MeasuredRun::vocab>},
    {"tied", read_tied},
    {"experts", read_integer<&MeasuredRun::experts>},
    {"experts_per_token", read_integer<&MeasuredRun::experts_per_token>},
    {"dense_layers", read_count_or_none<&MeasuredRun::dense_layers>},
    {"prediction_layers", read_count_or_none<&MeasuredRun::prediction_layers>},
    {"gpu", read_text<&MeasuredRun::gpu>},
    {"gpus", read_count<&MeasuredRun::gpus>},
    {"gpus_per_node", read_count<&MeasuredRun::gpus_per_node>},
    {"intra_node", read_text<&MeasuredRun::intra_node>},
    {"network", read_text<&MeasuredRun::network>},
    {"step_time_s", read_step_time},
    {"peak_memory_gb", read_peak_memory},
    {"site", read_text<&MeasuredRun::site>},
    {"set_aside", read_text<&MeasuredRun::set_aside>},
    {"reported_apart", read_text<&MeasuredRun::reported_apart>},
};

MeasuredRun read_run(const Row& row, const char* named_by) {
  MeasuredRun run;
  run.run = text(row, named_by);
  for (const RunColumn& each : run_columns) each.read(row, each.name, run);
  read_plan_cells(row, run);
  read_hybrid_shards(run);
  read_recomputed_modules(run);
  return run;
}

const char* naming_column(const orrery::Table& table) {
  return table.has("run") ? "run" : "id";
}

std::vector<std::string> known_columns(const orrery::Table& table) {
  std::vector<std::string> known{naming_column(table)};
  for (const RunColumn& each : run_columns) known.emplace_back(each.name);
  for (const models::PlanField& field : models::plan_fields()) {
    for (std::string& each : columns_of(field)) known.push_back(std::move(each));
  }
  if (table.has("simulator")) {
    known.insert(known.end(), simulator_columns.begin(), simulator_columns.end());
  }
  return known;
}

}  // namespace

std::string MeasuredRun::stated(std::string_view key) const {
  const auto cell = plan.find(key);
  return cell == plan.end() ? std::string{} : cell->second;
}

std::optional<std::int64_t> MeasuredRun::count(std::string_view key) const {
  const auto cell = plan.find(key);
  if (cell == plan.end()) return std::nullopt;
  return std::stoll(cell->second);
}

MeasuredRun MeasuredRun::question() const {
  MeasuredRun asked = *this;
  asked.run.clear();
  asked.set_aside.clear();
  asked.reported_apart.clear();
  asked.step_time.reset();
  asked.peak_memory.reset();
  return asked;
}

std::vector<MeasuredRun> read_runs(const orrery::Table& table) {
  check_header(table);
  std::vector<MeasuredRun> runs;
  runs.reserve(table.size());
  for (std::size_t i = 0; i < table.size(); ++i) {
    runs.push_back(read_run(table[i], naming_column(table)));
  }
  return runs;
}

std::vector<std::string> unread_columns(const orrery::Table& table) {
  const std::vector<std::string> known = known_columns(table);
  std::vector<std::string> unread;
  for (const std::string& column : table.columns()) {
    if (std::ranges::find(known, column) == known.end()) unread.push_back(column);
  }
  return unread;
}

std::string words_of_unread(const orrery::Table& table) {
  const std::vector<std::string> known = known_columns(table);
  const std::vector<std::string_view> words{known.begin(), known.end()};
  std::string text;
  for (const std::string& column : unread_columns(table)) {
    const std::string_view meant = nearest(column, words);
    text += text.empty() ? "columns that nothing reads: " : ", ";
    text += meant.empty() ? column : fmt::format("{} (did you mean '{}'?)", column, meant);
  }
  return text.empty() ? text : text + "\n";
}

std::vector<std::string> cells_of(const orrery::Table& table, const std::string& column) {
  std::vector<std::string> cells;
  cells.reserve(table.size());
  for (std::size_t i = 0; i < table.size(); ++i) cells.emplace_back(table[i].text(column));
  return cells;
}

}  // namespace orrery::scenarios
