#include "scenarios/runback/run_log.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <istream>
#include <map>
#include <numeric>
#include <regex>
#include <span>

#include "sim/errors.hpp"
#include "sim/input/csv.hpp"
#include "sim/input/document.hpp"
#include "sim/input/parse_json.hpp"
#include "sim/input/text.hpp"
#include "sim/input/unpacked_file.hpp"
#include "sim/statistics.hpp"

namespace orrery::scenarios {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view mllog_mark = ":::MLLOG";
constexpr std::string_view megatron_mark = "elapsed time per iteration (ms):";

bool text_holds(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// Without the escape sequences that colour a log.
std::string without_colours(std::string_view line) {
  std::string text;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '\x1b') {
      text += line[i];
      continue;
    }
    while (i < line.size() && !std::isalpha(static_cast<unsigned char>(line[i]))) ++i;
  }
  return text;
}

/// The number after `mark`, with commas between thousands.
std::optional<double> number_after(std::string_view line, std::string_view mark) {
  const std::size_t at = line.find(mark);
  if (at == std::string_view::npos) return std::nullopt;
  std::string digits;
  for (const char letter : trimmed(line.substr(at + mark.size()))) {
    if (letter == ',') continue;
    if (!std::isdigit(static_cast<unsigned char>(letter)) && letter != '.' && letter != '-' &&
        letter != '+' && letter != 'e' && letter != 'E') {
      break;
    }
    digits += letter;
  }
  const auto number = number_in<double>(digits);
  return number && std::isfinite(*number) ? number : std::nullopt;
}

/// A step's number as logs print it; 0 where it is none.
std::int64_t step_number(double number) {
  return std::abs(number) < 0x1p53 ? static_cast<std::int64_t>(number) : 0;
}

/// Reads a log line by line.
template <class Take>
void each_line(const std::string& path, const Take& take) {
  constexpr std::size_t longest = std::size_t{1} << 20;
  const auto file = unpacked_file(path);
  std::istream text{file.get()};
  text.exceptions(std::ios::badbit);
  std::string line;
  for (std::size_t number = 1; std::getline(text, line); ++number) {
    if (line.size() > longest) {
      throw InputError{fmt::format("{}:line {}", path, number), "is longer than 1 MiB"};
    }
    if (!line.empty() && line.back() == '\r') line.pop_back();
    take(without_colours(line), number);
  }
}

/// Takes a count that the log states; the last one holds, as batches may be ramped up.
void take_count(std::optional<double> stated, std::optional<std::int64_t>& count) {
  if (stated && *stated >= 1 && *stated < 0x1p40) count = static_cast<std::int64_t>(*stated);
}

void leave_out(std::size_t line, RunLog& log) {
  ++log.unusable;
  if (!log.first_unusable) log.first_unusable = line;
}

void take_megatron(const std::string& line, std::size_t number, RunLog& log) {
  const auto milliseconds = number_after(line, megatron_mark);
  if (milliseconds) take_count(number_after(line, "global batch size:"), log.global_batch);
  const std::size_t at = line.find("iteration");
  if (at == std::string::npos || !text_holds(line, megatron_mark)) return;
  if (!milliseconds || *milliseconds <= 0) return leave_out(number, log);
  const auto step = number_after(line.substr(at), "iteration");
  log.steps.push_back(
      {.step = step_number(step.value_or(static_cast<double>(log.steps.size() + 1))),
       .seconds = *milliseconds / 1e3});
}

/// Source  torchtitan 0.2.2, train.py: "Trainer is initialized with local batch size ..., global
///         batch size ..., gradient accumulation steps ..., sequence length ..."
void take_torchtitan(const std::string& line, std::size_t number, RunLog& log) {
  if (text_holds(line, "Trainer is initialized with")) {
    take_count(number_after(line, "global batch size "), log.global_batch);
    take_count(number_after(line, "sequence length "), log.seq_len);
  }
  if (!text_holds(line, "tps:") || !text_holds(line, "step:")) return;
  const auto rate = number_after(line, "tps:");
  const auto step = number_after(line, "step:");
  if (!rate || !step || *rate <= 0) return leave_out(number, log);
  log.steps.push_back({.step = step_number(*step), .tokens_per_second_per_gpu = *rate});
}

/// MLPerf's log: `tracked_stats` of a step, or blocks of samples between two times.
class MlLogReader {
 public:
  explicit MlLogReader(RunLog& log) : log_{log} {}

  void take(const std::string& line, std::size_t number) {
    const std::size_t at = line.find(mllog_mark);
    if (at == std::string::npos) return;
    const std::string place = fmt::format("{}:line {}", log_.file, number);
    const Json event = parse_json(trimmed(std::string_view{line}.substr(at + mllog_mark.size())),
                                  place, {.python_numbers = true, .repeatable = every_key});
    if (!event.is_object()) throw InputError{place, "expected an object after :::MLLOG"};
    const auto named = event.find("key");
    if (named == event.end() || !named->is_string()) return;  // says nothing that is read here
    const std::string key = named->get<std::string>();
    const Json value = event.contains("value") ? event["value"] : Json{};
    const Json metadata = event.contains("metadata") && event["metadata"].is_object()
                              ? event["metadata"]
                              : Json::object();
    if (key == "global_batch_size" && value.is_number()) {
      batch_ = value.get<double>();
      take_count(batch_, log_.global_batch);
    }
    if (key == "max_sequence_length" && value.is_number()) {
      take_count(value.get<double>(), log_.seq_len);
    }
    if (key == "tracked_stats" && value.is_object()) take_stats(value, metadata, number);
    const auto time = event.find("time_ms");
    if (key == "block_start" || key == "block_stop") {
      const double ms = time != event.end() && time->is_number() ? time->get<double>() : 0;
      take_block(key == "block_start", ms, metadata);
    }
  }

  void finish() {
    if (log_.steps.empty() && batch_ > 0) log_.steps = std::move(blocks_);
    if (log_.steps.empty() && !blocks_.empty()) {
      throw InputError{log_.file, "has blocks of samples, but no global_batch_size"};
    }
    for (LoggedStep& each : log_.steps) {
      if (each.seconds == 0 && batch_ > 0) each.seconds = batch_ / each.samples_per_second;
    }
  }

 private:
  static double number_of(const Json& from, std::span<const char* const> keys) {
    for (const char* key : keys) {
      const auto found = from.find(key);
      if (found != from.end() && found->is_number()) return found->get<double>();
    }
    return 0;
  }

  void take_stats(const Json& value, const Json& metadata, std::size_t line) {
    constexpr std::array times{"train_step_time", "step_time", "train_step_timing in s"};
    constexpr std::array rates{"throughput", "samples_per_second"};
    LoggedStep step;
    step.seconds = number_of(value, times);
    step.samples_per_second = number_of(value, rates);
    step.step = step_number(
        number_of(metadata, std::array{"step", "step_num", "samples_count", "epoch_num"}));
    if (step.seconds > 0 || step.samples_per_second > 0) {
      log_.steps.push_back(step);
      return;
    }
    const auto stated = [&](const char* key) { return value.contains(key); };
    if (std::ranges::any_of(times, stated) || std::ranges::any_of(rates, stated)) {
      leave_out(line, log_);
    }
  }

  void take_block(bool begins, double ms, const Json& metadata) {
    const bool counts_epochs = !metadata.contains("samples_count");
    const double samples = number_of(metadata, std::array{"samples_count", "first_epoch_num"});
    // Language models write samples as epoch numbers; a handful of epochs is no number of samples.
    constexpr double least_samples = 1000;
    if (counts_epochs && !begins && samples < least_samples) return;
    if (begins) {
      begin_ = ms;
      first_ = samples;
      return;
    }
    const double count = samples > first_ ? samples - first_ : samples;
    if (begin_ > 0 && ms > begin_ && count > 0) {
      blocks_.push_back(
          {.step = step_number(samples), .samples_per_second = count / (ms - begin_) * 1e3});
    }
    begin_ = 0;
  }

  RunLog& log_;
  std::vector<LoggedStep> blocks_;
  double batch_ = 0, begin_ = 0, first_ = 0;
};

/// Seconds that a name's unit stands for: "step_time_ms".
double unit_of(const std::string& name) {
  if (name.ends_with("_ms") || text_holds(name, "(ms)")) return 1e-3;
  if (name.ends_with("_us")) return 1e-6;
  return 1;
}

bool is_metric_line(std::string_view line) {
  const auto cells = split(trimmed(line), ' ');
  return (cells.size() == 3 || cells.size() == 2) && cells[0].size() >= 12 &&
         number_in<std::int64_t>(cells[0]) && number_in<double>(cells[1]);
}

/// `TIMESTAMP VALUE STEP` of MLflow's file store, one file for each metric.
struct MetricFile {
  fs::path path;
  std::string name;
};

std::vector<MetricFile> metric_files(const fs::path& path) {
  std::vector<MetricFile> files;
  if (!fs::is_directory(path)) return {{path, path.filename().string()}};
  const fs::path folder = fs::is_directory(path / "metrics") ? path / "metrics" : path;
  for (const auto& each :
       fs::recursive_directory_iterator{folder, fs::directory_options::skip_permission_denied}) {
    if (each.is_regular_file()) {
      files.push_back({each.path(), fs::relative(each.path(), folder).generic_string()});
    }
  }
  std::ranges::sort(files, {}, &MetricFile::name);
  return files;
}

/// A run of MLflow's file store.
struct StoredRun {
  fs::path folder;
  std::string id, name;
};

/// The value of a key at the beginning of a line of meta.yaml.
std::string meta_value(const fs::path& file, std::string_view key) {
  std::string value;
  each_line(file.string(), [&](const std::string& line, std::size_t) {
    if (!line.starts_with(key) || line.substr(key.size(), 1) != ":") return;
    value = std::string{trimmed(std::string_view{line}.substr(key.size() + 1))};
    std::erase_if(value, [](char letter) { return letter == '\'' || letter == '"'; });
  });
  return value;
}

bool is_run_folder(const fs::path& folder) {
  std::error_code unknown;
  return fs::is_directory(folder / "metrics", unknown);
}

/// The runs of a folder: itself, those of an experiment, or those of a store's experiments. What
/// may not be read is no run.
std::vector<StoredRun> stored_runs(const fs::path& path) {
  std::vector<fs::path> folders;
  const auto look = [&](const auto& self, const fs::path& folder, int levels) -> void {
    if (is_run_folder(folder)) {
      folders.push_back(folder);
      return;
    }
    if (levels == 0) return;
    std::error_code end, unknown;
    fs::directory_iterator each{folder, fs::directory_options::skip_permission_denied, end};
    for (; !end && each != fs::directory_iterator{}; each.increment(end)) {
      if (each->is_directory(unknown) && each->path().filename() != ".trash") {
        self(self, each->path(), levels - 1);
      }
    }
  };
  constexpr int store_levels = 2;  // experiment, run
  look(look, path, store_levels);
  std::ranges::sort(folders);
  std::vector<StoredRun> runs;
  for (const fs::path& folder : folders) {
    StoredRun run{folder, folder.filename().string(), {}};
    const fs::path meta = folder / "meta.yaml", tag = folder / "tags" / "mlflow.runName";
    std::error_code unknown;
    if (fs::is_regular_file(meta, unknown)) run.name = meta_value(meta, "run_name");
    if (run.name.empty() && fs::is_regular_file(tag, unknown)) {
      run.name = std::string{trimmed(first_bytes(tag.string(), 4096))};
    }
    runs.push_back(std::move(run));
  }
  return runs;
}

std::string listed_runs(const std::vector<StoredRun>& runs) {
  constexpr std::size_t most = 8;
  std::string text;
  for (std::size_t i = 0; i < std::min(runs.size(), most); ++i) {
    text += fmt::format("{}{}{}", i == 0 ? "" : ", ", printable(runs[i].id, 40),
                        runs[i].name.empty() ? "" : " (" + printable(runs[i].name, 40) + ")");
  }
  return text + (runs.size() > most ? fmt::format(" and {} more", runs.size() - most) : "");
}

/// Errors  no run, several without a choice, none or several of the name: InputError
StoredRun chosen_run(const std::string& path, const std::string& wanted) {
  const std::vector<StoredRun> runs = stored_runs(path);
  if (runs.empty()) {
    throw InputError{path,
                     "is no run of MLflow: it has no meta.yaml; name the files of a folder of "
                     "traces"};
  }
  if (wanted.empty() && runs.size() == 1) return runs.front();
  if (wanted.empty()) {
    throw InputError{path, fmt::format("holds {} runs; choose one with --run NAME or ID: {}",
                                       runs.size(), listed_runs(runs))};
  }
  std::vector<StoredRun> found;
  for (const StoredRun& each : runs) {
    if (each.id == wanted || each.name == wanted) found.push_back(each);
  }
  if (found.size() == 1) return found.front();
  throw InputError{"--run", fmt::format("'{}' is {} of the runs in {}: {}", printable(wanted, 60),
                                        found.empty() ? "none" : "the name of several", path,
                                        listed_runs(found.empty() ? runs : found))};
}

/// Batch and length where a run's parameters name them as trainers do. `train_batch_size` is the
/// global batch of DeepSpeed's configuration, but one process's in Hugging Face's arguments.
void take_parameters(const fs::path& folder, RunLog& log) {
  constexpr std::string_view batches[] = {"global_batch_size", "global_batch"};
  constexpr std::string_view lengths[] = {"seq_len", "seq_length", "sequence_len",
                                          "max_sequence_length"};
  const auto value_of = [&](std::string_view name) -> std::optional<double> {
    const fs::path file = folder / "params" / name;
    if (!fs::is_regular_file(file)) return std::nullopt;
    return number_in<double>(trimmed(first_bytes(file.string(), 4096)));
  };
  for (const std::string_view each : batches) {
    if (!log.global_batch) take_count(value_of(each), log.global_batch);
  }
  if (!log.global_batch && value_of("train_micro_batch_size_per_gpu")) {
    take_count(value_of("train_batch_size"), log.global_batch);
  }
  for (const std::string_view each : lengths) {
    if (!log.seq_len) take_count(value_of(each), log.seq_len);
  }
}

void read_mlflow(const std::string& path, const std::string& run, RunLog& log) {
  constexpr std::string_view times[] = {"step_time",         "iteration_time", "iter_time",
                                        "time_per_step",     "batch_time",     "train_step_timing",
                                        "time_per_iteration"};
  fs::path folder{path};
  if (fs::is_directory(folder) && folder.filename() != "metrics") {
    folder = chosen_run(path, run).folder;
    take_parameters(folder, log);
  } else if (!run.empty()) {
    throw InputError{"--run", path + " is one run's metrics, not a store"};
  }
  const std::vector<MetricFile> files = metric_files(folder);
  const MetricFile* chosen = nullptr;
  for (const std::string_view each : times) {
    for (const MetricFile& file : files) {
      if (!chosen && text_holds(file.name, each)) chosen = &file;
    }
  }
  const bool direct = chosen != nullptr;
  if (!chosen) {
    for (const MetricFile& file : files) {
      if (!chosen && text_holds(file.name, "loss")) chosen = &file;
    }
  }
  if (!chosen && !files.empty()) chosen = &files.front();
  if (!chosen) throw InputError{path, "holds no metric"};
  double last = 0;
  std::int64_t last_step = 0;
  each_line(chosen->path.string(), [&](const std::string& line, std::size_t number) {
    if (trimmed(line).empty()) return;
    const std::string place = fmt::format("{}:line {}", chosen->path.string(), number);
    if (!is_metric_line(line)) {
      throw InputError{place, "expected 'TIMESTAMP VALUE STEP', as MLflow's file store writes it"};
    }
    const auto cells = split(trimmed(line), ' ');
    const double at = *number_in<double>(cells[0]) / 1e3;
    const std::int64_t step = cells.size() == 3 ? number_in<std::int64_t>(cells[2]).value_or(0)
                                                : static_cast<std::int64_t>(log.steps.size());
    if (direct) {
      const double value = *number_in<double>(cells[1]) * unit_of(chosen->name);
      if (value > 0)
        log.steps.push_back({.step = step, .seconds = value});
      else
        leave_out(number, log);
    } else if (last > 0 && step > last_step && at > last) {
      log.steps.push_back(
          {.step = step,
           .seconds = (at - last) / (static_cast<double>(step) - static_cast<double>(last_step))});
    }
    last = at;
    last_step = step;
  });
  if (!direct) {
    log.notes.push_back(
        fmt::format("{}: no metric of step times; the times between the entries of '{}' are taken",
                    path, chosen->name));
  }
}

/// A column of times, by its name.
bool is_time_column(std::string_view name) {
  constexpr std::string_view quantities[] = {"step", "iteration", "iter",    "compute",
                                             "time", "elapsed",   "forward", "backward"};
  const bool unit = name.ends_with("_s") || name.ends_with("_ms") || name.ends_with("_us") ||
                    name == "step_time" || name == "elapsed";
  return unit && std::ranges::any_of(quantities,
                                     [&](std::string_view each) { return text_holds(name, each); });
}

void read_steps_csv(const std::string& path, RunLog& log) {
  const orrery::Table table = orrery::Table::load(path);
  std::string column, rank, step, node;
  for (const std::string& name : table.columns()) {
    const bool better = column.empty() || text_holds(name, "compute");
    if (is_time_column(name) && better) column = name;
    if (name == "rank" || name == "global_rank") rank = name;
    if (name == "step" || name == "iteration") step = name;
    if (name == "node" || name == "host" || name == "hostname") node = name;
  }
  if (column.empty()) {
    throw InputError{path,
                     "has no column of step times; accepted: step_time_s, step_time_ms, "
                     "elapsed_ms, compute_s, compute_ms ..., with rank, step and node"};
  }
  log.quantity = column;
  log.own_time = text_holds(column, "compute") || text_holds(column, "forward") ||
                 text_holds(column, "backward");
  for (std::size_t i = 0; i < table.size(); ++i) {
    const Row row = table[i];
    LoggedStep made;
    made.seconds = row.number(column).value_or(0) * unit_of(column);
    if (made.seconds < 0 || made.seconds > 1e7) row.fail_expected(column, "a time of a step");
    if (made.seconds == 0) {
      ++log.unusable;
      continue;
    }
    made.step = static_cast<std::int64_t>(i);
    if (!step.empty()) made.step = row.integer(step).value_or(made.step);
    if (!rank.empty()) made.rank = row.integer(rank);
    if (!node.empty()) made.node = std::string{row.text(node)};
    log.steps.push_back(made);
  }
}

std::string_view format_of(const std::string& path, std::string_view beginning) {
  std::error_code unknown;
  if (fs::is_directory(path, unknown)) return "MLflow";
  if (text_holds(beginning, mllog_mark)) return "MLLOG";
  if (text_holds(beginning, megatron_mark)) return "Megatron-LM";
  if (text_holds(beginning, "tps:") && text_holds(beginning, "step:")) return "torchtitan";
  const std::string_view first = trimmed(beginning.substr(0, beginning.find('\n')));
  if (is_metric_line(first)) return "MLflow";
  if (first.find(',') != std::string_view::npos) {
    for (const std::string_view cell : split(first, ',')) {
      if (is_time_column(trimmed(cell))) return "CSV";
    }
  }
  return {};
}

InputError no_step_in(const std::string& path) {
  return {path,
          "no step time found; accepted: traces of PyTorch's profiler, iteration lines of "
          "Megatron-LM, torchtitan's lines, :::MLLOG, a run of MLflow's file store, CSV with a "
          "column such as step_time_s"};
}

std::string beginning_of(const std::string& path) {
  constexpr std::size_t enough = std::size_t{4} << 20;
  std::error_code unknown;
  return fs::is_directory(path, unknown) ? std::string{} : first_bytes(path, enough);
}

}  // namespace

std::size_t warm_up_of(const std::vector<double>& seconds) {
  constexpr double slower = 1.1;  // than the usual step: still warming up
  if (seconds.size() < 2) return 0;
  if (seconds.size() < 5) {
    const double others = median(std::vector<double>(seconds.begin() + 1, seconds.end()));
    return seconds[0] > slower * others ? 1 : 0;
  }
  const double usual = median(std::vector<double>(
      seconds.begin() + static_cast<std::ptrdiff_t>(seconds.size() / 2), seconds.end()));
  std::size_t count = 1;
  while (count < seconds.size() / 3 && seconds[count] > slower * usual) ++count;
  return count;
}

StepStatistics statistics_of(const std::vector<double>& seconds, std::optional<std::size_t> skip) {
  StepStatistics found;
  found.left_out = skip.value_or(warm_up_of(seconds));
  if (found.left_out >= seconds.size()) {
    throw InputError{"--skip", fmt::format("leaves no step of {}", seconds.size())};
  }
  const std::vector<double> kept(seconds.begin() + static_cast<std::ptrdiff_t>(found.left_out),
                                 seconds.end());
  found.steps = kept.size();
  found.median = median(kept);
  found.p10 = quantile(kept, 0.1);
  found.p90 = quantile(kept, 0.9);
  for (const double each : kept) found.slow += each > 1.5 * found.median ? 1 : 0;
  // Slopes of at most some 500 x 500 pairs, evenly taken.
  const std::size_t stride = std::max<std::size_t>(1, kept.size() / 500);
  std::vector<double> slopes;
  for (std::size_t i = 0; i < kept.size(); i += stride) {
    for (std::size_t j = i + stride; j < kept.size(); j += stride) {
      slopes.push_back((kept[j] - kept[i]) / static_cast<double>(j - i));
    }
  }
  if (!slopes.empty()) {
    found.trend = median(std::move(slopes)) * static_cast<double>(kept.size() - 1) / found.median;
  }
  return found;
}

std::vector<double> RunLog::step_seconds(const models::Question* question) const {
  std::vector<double> all;
  for (const LoggedStep& each : steps) {
    if (each.seconds > 0) {
      all.push_back(each.seconds);
      continue;
    }
    if (!question) {
      all.push_back(1 / std::max(each.samples_per_second, each.tokens_per_second_per_gpu));
      continue;
    }
    const models::BatchSizes& batch = question->plan.batch;
    const auto samples = static_cast<double>(batch.global);
    all.push_back(each.samples_per_second > 0 ? samples / each.samples_per_second
                                              : samples * static_cast<double>(batch.seq_len) /
                                                    (each.tokens_per_second_per_gpu *
                                                     static_cast<double>(question->plan.gpus())));
  }
  return all;
}

bool is_run_log(const std::string& path, std::string_view beginning) {
  return !format_of(path, beginning).empty();
}

RunLog read_run_log(const std::string& path, const std::string& run) {
  RunLog log;
  log.file = path;
  const std::string beginning = beginning_of(path);
  log.format = format_of(path, beginning);
  const std::string other = log.format.empty() || log.format == "CSV" ? stranger(beginning) : "";
  if (!other.empty()) throw InputError{path, other};
  if (log.format.empty()) throw no_step_in(path);
  if (!run.empty() && log.format != "MLflow") {
    throw InputError{"--run", path + " is no store of MLflow's runs"};
  }
  static const std::regex numbered{R"(rank[-_ ]?0*(\d{1,7}))", std::regex::icase};
  std::smatch found;
  const std::string name = fs::path{path}.filename().string();
  if (std::regex_search(name, found, numbered)) log.rank = std::stoll(found[1].str());
  if (log.format == "MLflow") {
    read_mlflow(path, run, log);
  } else if (log.format == "CSV") {
    read_steps_csv(path, log);
  } else {
    MlLogReader mllog{log};
    each_line(path, [&](const std::string& line, std::size_t number) {
      if (log.format == "Megatron-LM") take_megatron(line, number, log);
      if (log.format == "torchtitan") take_torchtitan(line, number, log);
      if (log.format == "MLLOG") mllog.take(line, number);
    });
    if (log.format == "MLLOG") mllog.finish();
  }
  constexpr double longest = 1e7;  // seconds; beyond it, or no number, a line is damaged
  log.unusable += std::erase_if(log.steps, [](const LoggedStep& each) {
    const double rate = std::max(each.samples_per_second, each.tokens_per_second_per_gpu);
    const bool timed = each.seconds > 0 && each.seconds < longest;
    return !timed && !(each.seconds == 0 && rate > 1e-6 && std::isfinite(rate));
  });
  if (log.steps.empty()) throw no_step_in(path);
  if (log.unusable > 0) {
    log.notes.push_back(fmt::format(
        "{}: {} of {} steps left out, whose time is no number above 0{}", path, log.unusable,
        log.unusable + log.steps.size(),
        log.first_unusable ? fmt::format("; the first in line {}", *log.first_unusable) : ""));
  }
  return log;
}

std::string stranger(std::string_view beginning) {
  struct Stranger {
    std::string_view mark, also, what;
  };
  constexpr Stranger strangers[] = {
      {"algbw", "busbw",
       "is a log of nccl-tests; `orrery diagnose` compares several, `orrery collective --against` "
       "lays one next to the prediction"},
      {"#bytes", "#iterations", "is a log of perftest; `orrery diagnose` compares several"},
      {"NCCL INFO", "", "is a log of NCCL; `orrery calibrate --import` reads it"},
      {"# OSU ", "", "is a log of the OSU benchmarks; `orrery calibrate --import` reads it"},
      {"fio version", "", "is a log of fio; `orrery calibrate --import` reads it"},
      {"\"model_type\"", "\"hidden_size\"", "is a model; state it with --model"},
      {"\"nodes\"", "\"schema\"",
       "is an execution trace of PyTorch, which has no times of kernels; record a trace with "
       "torch.profiler"},
      {"#SBATCH", "", "is a launch script; `orrery import` reads it"},
      {"step_time_s", "software", "holds published runs; `orrery fit software --from` reads it"},
  };
  for (const Stranger& each : strangers) {
    const bool both = each.also.empty() || text_holds(beginning, each.also);
    if (text_holds(beginning, each.mark) && both) return std::string{each.what};
  }
  return {};
}

}  // namespace orrery::scenarios
