#include "scenarios/validation/measured_run.hpp"

#include <regex>

#include "models/plan/fields.hpp"
#include "sim/errors.hpp"

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

std::optional<double> positive(const Row& row, const char* column) {
  const auto value = row.number(column);
  if (value && !(*value > 0)) row.fail_expected(column, "a number above 0");
  return value;
}

std::string text(const Row& row, const char* column) {
  return std::string{row.text(column)};
}

/// Reads the cell of a column that holds a plan field.
void read_cell(const Row& row, std::string_view key, std::string_view column, bool is_count,
               MeasuredRun& run) {
  if (column.empty()) return;
  const std::string named{column};
  std::string cell = is_count ? "" : text(row, named.c_str());
  if (is_count) {
    if (const auto value = count(row, named.c_str())) cell = std::to_string(*value);
  }
  if (!cell.empty()) run.plan.emplace(key, std::move(cell));
}

void read_plan_cells(const Row& row, MeasuredRun& run) {
  for (const models::PlanField& field : models::plan_fields()) {
    read_cell(row, field.key, field.column, field.value.kind == models::PlanValue::Kind::count,
              run);
  }
}

/// HSDP: sharded inside a node and replicated between nodes, unless the ranks per shard are stated.
/// Source  ShardingStrategy.HYBRID_SHARD of PyTorch's FullyShardedDataParallel
void read_hybrid_shards(MeasuredRun& run) {
  if (run.stated("zero") != "hsdp" || !run.gpus_per_node) return;
  run.plan["zero"] = "3";
  run.plan["data_shard"] = std::to_string(*run.gpus_per_node);
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

/// The release of the software: its column, or else a version in the source's location or name.
std::string release_of(const Row& row) {
  std::string stated = text(row, "release");
  if (stated.empty()) stated = release_in(text(row, "source_location"));
  if (stated.empty()) stated = release_in(text(row, "source"));
  return stated;
}

MeasuredRun read_run(const Row& row, bool by_id) {
  MeasuredRun run;
  run.run = text(row, by_id ? "id" : "run");
  run.source = text(row, "source");
  run.software = text(row, "software");
  run.release = release_of(row);
  run.year = row.integer("software_year");
  run.task = text(row, "task");
  run.family = text(row, "family");
  run.model = text(row, "model");
  run.layers = count(row, "layers");
  run.hidden = count(row, "hidden");
  run.heads = count(row, "heads");
  run.kv_heads = count(row, "kv_heads");
  run.ffn_hidden = count(row, "ffn_hidden");
  run.vocab = count(row, "vocab");
  run.experts = row.integer("experts");
  run.experts_per_token = row.integer("experts_per_token");
  run.gpu = text(row, "gpu");
  run.gpus = count(row, "gpus");
  run.gpus_per_node = count(row, "gpus_per_node");
  run.intra_node = text(row, "intra_node");
  run.network = text(row, "network");
  read_plan_cells(row, run);
  read_hybrid_shards(run);
  run.step_time = positive(row, "step_time_s");
  run.peak_memory = positive(row, "peak_memory_gb");
  run.site = text(row, "site");
  run.set_aside = text(row, "set_aside");
  run.reported_apart = text(row, "reported_apart");
  return run;
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
    runs.push_back(read_run(table[i], !table.has("run")));
  }
  return runs;
}

std::vector<std::string> cells_of(const orrery::Table& table, const std::string& column) {
  std::vector<std::string> cells;
  cells.reserve(table.size());
  for (std::size_t i = 0; i < table.size(); ++i) cells.emplace_back(table[i].text(column));
  return cells;
}

}  // namespace orrery::scenarios
