#include "scenarios/exchange/launch_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <optional>

#include "scenarios/exchange/meanings.hpp"
#include "scenarios/exchange/shell.hpp"
#include "sim/input/byte_order_mark.hpp"
#include "sim/input/parse_json.hpp"
#include "sim/input/text.hpp"

namespace orrery::scenarios {

namespace {

enum class FileFormat : std::uint8_t { json, yaml, toml, shell };

FileFormat format_of(std::string_view text, const std::string& path) {
  const std::string suffix = std::filesystem::path{path}.extension().string();
  if (suffix == ".yaml" || suffix == ".yml") return FileFormat::yaml;
  if (suffix == ".toml") return FileFormat::toml;
  if (suffix == ".json") return FileFormat::json;
  const std::string_view content = trimmed(text);
  return content.starts_with("{") ? FileFormat::json : FileFormat::shell;
}

/// A file of a tool is known by a top-level key, or by two: KEY+KEY. The first that fits decides.
struct KnownBy {
  std::string_view keys, tool;
};
constexpr std::array<KnownBy, 24> known_by{{{"modules", "primus"},
                                            {"compute_environment", "accelerate"},
                                            {"distributed_type", "accelerate"},
                                            {"parallelism_config", "accelerate"},
                                            {"pipe_parallel_size", "gpt-neox"},
                                            {"model_parallel_size", "gpt-neox"},
                                            {"zero_optimization", "deepspeed"},
                                            {"train_batch_size", "deepspeed"},
                                            {"train_micro_batch_size_per_gpu", "deepspeed"},
                                            {"base_model", "axolotl"},
                                            {"base_config", "maxtext"},
                                            {"per_device_batch_size", "maxtext"},
                                            {"ici_fsdp_parallelism", "maxtext"},
                                            {"trainer+model", "nemo"},
                                            {"trainer+strategy", "nemo"},
                                            {"model+train", "megatron-bridge"},
                                            {"model+ddp", "megatron-bridge"},
                                            {"model+mixed_precision", "megatron-bridge"},
                                            {"parallelism", "torchtitan"},
                                            {"training+model", "torchtitan"},
                                            {"spec+kind", "k8s"},
                                            {"resources+run", "skypilot"},
                                            {"resources+num_nodes", "skypilot"},
                                            {"bf16+optimizer", "deepspeed"}}};

std::string_view tool_of(const Json& document) {
  if (!document.is_object()) return {};
  for (const KnownBy& each : known_by) {
    const auto keys = split(each.keys, '+');
    if (std::ranges::all_of(keys, [&](auto key) { return document.contains(std::string{key}); })) {
      return each.tool;
    }
  }
  return {};
}

/// ${NAME:default}, ${NAME:-default} of configurations: the default; the rest stays.
std::string with_defaults(std::string text) {
  for (std::size_t begin = text.find("${"); begin != std::string::npos;
       begin = text.find("${", begin + 1)) {
    const std::size_t colon = text.find(':', begin), end = text.find('}', begin);
    if (end == std::string::npos || colon == std::string::npos || colon > end) continue;
    const std::string name = text.substr(begin + 2, colon - begin - 2);
    const bool variable = !name.empty() && std::ranges::all_of(name, [](unsigned char c) {
      return std::isupper(c) || std::isdigit(c) || c == '_';
    });
    if (!variable) continue;
    std::size_t from = colon + 1;
    if (text[from] == '-') ++from;
    text = text.substr(0, begin) + text.substr(from, end - from) + text.substr(end + 1);
  }
  return text;
}

/// Options of a nested document by their dotted paths.
class Flattened {
 public:
  Flattened(LaunchFile& file, std::string tool) : file_{file}, tool_{std::move(tool)} {}

  void add(const Json& value, const std::string& option, const std::string& pointer) {
    if (value.is_object() && !value.empty()) {
      for (const auto& [key, member] : value.items()) {
        if (key == "_orrery") continue;  // what an export could only comment
        add(member, option.empty() ? key : option + "." + key, pointer + "/" + key);
      }
      return;
    }
    LaunchOption made{option, expanded_value(value), file_.file + ":" + pointer, tool_};
    if (made.value.is_string() && made.value.get<std::string>().find("${") != std::string::npos) {
      made.unknown = made.value.get<std::string>();
    }
    file_.options.push_back(std::move(made));
  }

 private:
  static Json expanded_value(const Json& value) {
    if (!value.is_string()) return value;
    const auto text = value.get<std::string>();
    const std::string expanded = with_defaults(text);
    if (expanded == text) return value;
    return json_of_yaml(expanded.empty() ? "null" : expanded, "value");
  }

  LaunchFile& file_;
  std::string tool_;
};

/// Primus: the options of the framework that it wraps.
void add_primus(const Json& document, LaunchFile& file) {
  for (const auto& [name, module] : document.at("modules").items()) {
    if (!module.is_object()) continue;
    const Json word = module.value("framework", Json("megatron"));
    if (!word.is_string()) {
      throw InputError{file.file + ":/modules/" + name + "/framework: expected text"};
    }
    const auto framework = word.get<std::string>();
    file.tool = framework == "torchtitan" ? "primus-titan"
                : framework == "maxtext"  ? "maxtext"
                                          : "primus";
    const std::string pointer = "/modules/" + name;
    for (const auto& [key, value] : module.items()) {
      if (key == "framework" || key == "config") continue;  // which defaults it starts from
      const bool inner = key == "overrides";
      Flattened{file, file.tool}.add(value, inner ? "" : key, pointer + "/" + key);
    }
  }
}

/// NCCL's variables among the `env` of pods: `[{name, value}]`.
void take_environment(const Json& part, int level, LaunchFile& file) {
  constexpr int deepest = 64;
  if (level > deepest || !part.is_structured()) return;
  if (part.is_object() && part.contains("env") && part["env"].is_array()) {
    for (const Json& each : part["env"]) {
      if (!each.is_object() || !each.contains("name") || !each["name"].is_string()) continue;
      const auto name = each["name"].get<std::string>();
      const Json value = each.value("value", Json(nullptr));
      if (name.rfind("NCCL_", 0) != 0 || value.is_null()) continue;
      file.environment[name] = value.is_string() ? value.get<std::string>() : value.dump();
    }
  }
  for (const Json& each : part) take_environment(each, level + 1, file);
}

LaunchFile of_script(std::string_view text, const std::string& path);

/// A task of SkyPilot: its sizes, its variables, and what its `run` starts.
void add_skypilot(Json document, LaunchFile& file) {
  Json& resources = document["resources"];
  if (resources.is_object() && resources.contains("accelerators")) {
    Json& stated = resources["accelerators"];
    if (stated.is_object() && stated.size() == 1) {  // {H100: 8} is H100:8
      stated = fmt::format("{}:{}", stated.begin().key(), stated.begin()->dump());
    }
  }
  if (document.contains("envs") && document["envs"].is_object()) {
    for (const auto& [name, value] : document["envs"].items()) {
      if (name.rfind("NCCL_", 0) != 0 || value.is_null()) continue;
      file.environment[name] = value.is_string() ? value.get<std::string>() : value.dump();
    }
  }
  const Json run = document.value("run", Json(nullptr));
  for (const char* key : {"envs", "run", "setup", "name"}) document.erase(key);
  Flattened{file, "skypilot"}.add(document, "", "");
  if (!run.is_string()) return;
  try {
    LaunchFile started = of_script(run.get<std::string>(), file.file + ":/run");
    // Its own variables say what num_nodes and accelerators do.
    std::erase_if(started.options, [](const LaunchOption& each) {
      return each.unknown.find("SKYPILOT_") != std::string::npos ||
             each.unknown.find("NNODES") != std::string::npos ||
             each.unknown.find("NODE_RANK") != std::string::npos;
    });
    file.tool = started.tool;
    std::ranges::move(started.options, std::back_inserter(file.options));
    std::ranges::move(started.notes, std::back_inserter(file.notes));
    file.environment.merge(started.environment);
  } catch (const InputError&) {
    file.notes.emplace_back("/run: starts no training that is known here");
  }
}

LaunchFile of_document(const Json& document, const std::string& path) {
  LaunchFile file{path, std::string{tool_of(document)}, {}};
  if (file.tool.empty()) {
    if (document.contains("model_type"))
      throw InputError{path, fmt::format("is a model's config.json, not a launch file; --model {} "
                                         "takes it in simulate and plan, show models {} counts it",
                                         path, path)};
    std::string known;
    for (const LaunchTool& each : launch_tools()) known += fmt::format(" {}", each.name);
    throw InputError{path, "no key tells which tool the file is of; known:" + known};
  }
  if (file.tool == "primus" && document.at("modules").is_object()) {
    add_primus(document, file);
  } else if (file.tool == "k8s") {
    file.tool.clear();
    Flattened{file, "k8s"}.add(document, "", "");
    take_environment(document, 0, file);
  } else if (file.tool == "skypilot") {
    file.tool.clear();
    add_skypilot(document, file);
  } else {
    Flattened{file, file.tool}.add(document, "", "");
  }
  return file;
}

bool is_option_word(std::string_view word) {
  return word.size() > 2 && word.starts_with("--") && word[2] != '-';
}

Json scalar_in(const std::string& text) {
  if (const auto integer = orrery::number_in<std::int64_t>(text)) return *integer;
  if (const auto number = orrery::number_in<double>(text)) return *number;
  return text;
}

/// How the options of a command's part are written.
struct OptionStyle {
  std::string tool;
  char replaced, by;  // megatron: - by _; launchers: _ by -
};

std::string name_in(std::string_view word, const OptionStyle& style) {
  std::string name{word.substr(2)};
  std::ranges::replace(name, style.replaced, style.by);
  return name;
}

/// The short options of Slurm and torchrun that say nodes, tasks and GPUs.
std::string_view long_of_short(std::string_view word) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 3> names{
      {{"-N", "--nodes"}, {"-n", "--ntasks"}, {"-G", "--gpus"}}};
  for (const auto& [brief, full] : names) {
    if (word == brief) return full;
  }
  return {};
}

/// Reads `--name value...` or `--name=value` of words [begin, end).
void add_words(const std::vector<ShellWord>& words, std::size_t begin, std::size_t end,
               const OptionStyle& style, LaunchFile& file) {
  for (std::size_t i = begin; i < end;) {
    std::string text = words[i].text;
    if (style.tool != "megatron") {
      if (const auto full = long_of_short(text); !full.empty()) text = full;
    }
    if (!is_option_word(text)) {
      ++i;
      continue;
    }
    LaunchOption option{name_in(text, style), nullptr,
                        fmt::format("{}:line {}", file.file, words[i].line), style.tool};
    const auto note_unknown = [&](const ShellWord& word) {
      if (word.is_unknown()) option.unknown = word.shown();
    };
    const std::size_t equals = text.find('=');
    ++i;
    if (equals != std::string::npos) {
      option.option = name_in(text.substr(0, equals), style);
      option.value = scalar_in(text.substr(equals + 1));
      note_unknown(words[i - 1]);
    } else {
      Json values = Json::array();
      for (; i < end && !is_option_word(words[i].text) && long_of_short(words[i].text).empty();
           ++i) {
        values.push_back(scalar_in(words[i].text));
        note_unknown(words[i]);
      }
      if (values.size() == 1) option.value = values[0];
      if (values.size() > 1) option.value = values;
    }
    file.options.push_back(std::move(option));
  }
}

/// How many words follow an option of Open MPI's mpirun, which takes - and -- alike.
/// Source  mpirun(1) of Open MPI 4.1.4
std::size_t words_after(std::string_view option) {
  constexpr std::array<std::string_view, 45> alone{"allow-run-as-root",
                                                   "bind-to-core",
                                                   "bind-to-socket",
                                                   "bycore",
                                                   "bynode",
                                                   "byslot",
                                                   "continuous",
                                                   "d",
                                                   "debug",
                                                   "debug-daemons",
                                                   "debug-daemons-file",
                                                   "disable-recovery",
                                                   "display-allocation",
                                                   "display-devel-allocation",
                                                   "display-devel-map",
                                                   "display-diffable-map",
                                                   "display-map",
                                                   "display-topo",
                                                   "do-not-launch",
                                                   "do-not-resolve",
                                                   "enable-recovery",
                                                   "get-stack-traces",
                                                   "h",
                                                   "help",
                                                   "index-argv-by-rank",
                                                   "leave-session-attached",
                                                   "merge-stderr-to-stdout",
                                                   "nolocal",
                                                   "nooversubscribe",
                                                   "noprefix",
                                                   "novm",
                                                   "output-proctable",
                                                   "oversubscribe",
                                                   "pernode",
                                                   "q",
                                                   "quiet",
                                                   "report-bindings",
                                                   "report-child-jobs-separately",
                                                   "report-state-on-timeout",
                                                   "show-progress",
                                                   "tag-output",
                                                   "timestamp-output",
                                                   "use-hwthread-cpus",
                                                   "v",
                                                   "verbose"};
  if (option == "mca" || option == "gmca") return 2;
  return std::ranges::find(alone, option) == alone.end() ? 1 : 0;
}

/// mpirun's own words, from the one after its name to the program that it starts. Variables that it
/// passes on (-x NAME=VALUE) are environment. Returns where the program stands.
std::size_t add_mpirun_words(const std::vector<ShellWord>& words, std::size_t begin,
                             LaunchFile& file) {
  std::size_t i = begin;
  while (i < words.size() && words[i].text.starts_with('-') && words[i].text.size() > 1) {
    const std::size_t letter = words[i].text.find_first_not_of('-');
    if (letter == std::string::npos) break;
    const std::string name = words[i].text.substr(letter);
    LaunchOption option{name, nullptr, fmt::format("{}:line {}", file.file, words[i].line),
                        "mpirun"};
    std::string value;
    for (std::size_t left = words_after(name); left > 0 && i + 1 < words.size(); --left) {
      ++i;
      value += (value.empty() ? "" : " ") + words[i].text;
      if (words[i].is_unknown()) option.unknown = words[i].shown();
    }
    ++i;
    const std::size_t equals = value.find('=');
    if (name == "x" && value.starts_with("NCCL_") && equals != std::string::npos) {
      file.environment[value.substr(0, equals)] = value.substr(equals + 1);
      continue;
    }
    if (!value.empty()) option.value = scalar_in(value);
    file.options.push_back(std::move(option));
  }
  return i;
}

/// Which tool options after a training script are of: that whose lists know most of them.
std::string tool_of_words(const std::vector<ShellWord>& words, std::size_t begin) {
  std::size_t megatron = 0, titan = 0, all = 0;
  for (std::size_t i = begin; i < words.size(); ++i) {
    if (!is_option_word(words[i].text)) continue;
    ++all;
    const std::string plain = words[i].text.substr(2, words[i].text.find('=') - 2);
    const std::string name = name_in("--" + plain, {"megatron", '-', '_'});
    const LaunchTool& tool = launch_tool("megatron");
    if (std::ranges::any_of(tool.lists,
                            [&](auto list) { return options_in(list).contains(name); })) {
      ++megatron;
    }
    if (options_in("torchtitan@0.2.2").contains(plain)) ++titan;
  }
  if (titan > megatron) return "torchtitan";
  return 2 * megatron >= all && megatron > 0 ? "megatron" : "";
}

/// Where a launcher's words end and where the options of the training script begin.
struct ScriptPlace {
  std::size_t launcher_end = 0, options = 0;
};
/// Nothing if there is no script.
std::optional<ScriptPlace> script_place(const std::vector<ShellWord>& words) {
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (words[i].text.ends_with(".py")) return ScriptPlace{i, i + 1};
    const bool launcher_module = i + 1 < words.size() && words[i].text == "-m" &&
                                 !words[i + 1].text.starts_with("torch.distributed");
    if (launcher_module) return ScriptPlace{i, i + 2};
  }
  return std::nullopt;
}

bool starts_job(const std::vector<ShellWord>& words, std::string_view program) {
  return std::ranges::any_of(words, [&](const ShellWord& word) {
    return word.text == program || word.text.ends_with("/" + std::string{program});
  });
}

/// The options of one command; whether it trains.
bool add_command(const std::vector<ShellWord>& words, LaunchFile& file) {
  const bool slurm = starts_job(words, "srun") || starts_job(words, "sbatch");
  const bool torchrun = starts_job(words, "torchrun") || starts_job(words, "deepspeed") ||
                        starts_job(words, "torch.distributed.launch") ||
                        starts_job(words, "torch.distributed.run");
  constexpr std::array<std::string_view, 3> mpi_names{"mpirun", "mpiexec", "orterun"};
  const auto mpi = std::ranges::find_if(words, [&](const ShellWord& word) {
    const std::string_view name = std::string_view{word.text}.substr(word.text.rfind('/') + 1);
    return std::ranges::find(mpi_names, name) != mpi_names.end();
  });
  const auto script = script_place(words);
  const std::size_t whole = torchrun || slurm ? words.size() : 0;
  const auto [launcher_end, launched] = script.value_or(ScriptPlace{whole, whole});
  const std::string tool = tool_of_words(words, launched);
  if (tool.empty() && !slurm && !torchrun && mpi == words.end()) return false;
  if (mpi != words.end()) {
    const auto first = static_cast<std::size_t>(mpi - words.begin()) + 1;
    const std::size_t program = add_mpirun_words(words, first, file);
    if (torchrun && program < launcher_end)
      add_words(words, program, launcher_end, {"torchrun", '_', '-'}, file);
  } else if (slurm) {
    const auto inner = std::ranges::find_if(words, [](const ShellWord& word) {
      return word.text == "torchrun" || word.text.starts_with("python") || word.text == "bash";
    });
    const auto end =
        std::min<std::size_t>(launcher_end, static_cast<std::size_t>(inner - words.begin()));
    add_words(words, 0, end, {"slurm", '_', '-'}, file);
    if (torchrun) add_words(words, end, launcher_end, {"torchrun", '_', '-'}, file);
  } else if (torchrun) {
    add_words(words, 0, launcher_end, {"torchrun", '_', '-'}, file);
  }
  if (tool.empty()) return true;
  file.tool = tool;
  add_words(words, launched, words.size(), {tool, '-', tool == "megatron" ? '_' : '-'}, file);
  return true;
}

/// Hosts in Slurm's list: "node[01-16,20],login" has 18.
/// Errors  InputError for brackets that are not closed and ranges that run backwards
std::int64_t hosts_in(std::string_view list, const std::string& place) {
  const auto fail = [&] {
    throw InputError{place, fmt::format("expected hosts such as node[01-16], found \"{}\"",
                                        printable(list, 60))};
  };
  constexpr std::int64_t most = 1 << 24;
  std::int64_t all = 0;
  for (std::size_t at = 0; at < list.size();) {
    std::size_t end = at;
    std::int64_t hosts = 1;
    for (; end < list.size() && list[end] != ','; ++end) {
      if (list[end] != '[') continue;
      const std::size_t close = list.find(']', end);
      if (close == std::string_view::npos) fail();
      std::int64_t inside = 0;
      for (const std::string_view range : split(list.substr(end + 1, close - end - 1), ',')) {
        const std::size_t dash = range.find('-');
        const auto first = number_in<std::int64_t>(range.substr(0, dash));
        const auto last = dash == std::string_view::npos
                              ? first
                              : number_in<std::int64_t>(range.substr(dash + 1));
        if (!first || !last || *last < *first || *last - *first >= most) fail();
        inside += *last - *first + 1;
      }
      hosts *= inside;
      if (hosts > most) fail();
      end = close;
    }
    all += hosts;
    at = end + 1;
  }
  if (all > most) fail();
  return all;
}

/// Slurm's own configuration: nodes with GPUs, as `--nodes` and `--gres` would say them.
/// Source  slurm.conf(5): NodeName, Gres
LaunchFile of_slurm_configuration(std::string_view text, const std::string& path) {
  LaunchFile file{path, {}, {}};
  std::map<std::string, std::pair<std::int64_t, std::string>> kinds;  // by gres: nodes, first place
  int line_number = 0;
  for (std::string_view line : split(text, '\n')) {
    ++line_number;
    line = line.substr(0, line.find('#'));
    std::string hosts, gres;
    for (const std::string_view word : split(line, ' ')) {
      const std::size_t equals = word.find('=');
      std::string key{word.substr(0, equals)};
      for (char& each : key)
        each = static_cast<char>(std::tolower(static_cast<unsigned char>(each)));
      if (equals == std::string_view::npos) continue;
      if (key == "nodename") hosts = word.substr(equals + 1);
      if (key == "gres") gres = word.substr(equals + 1);
    }
    if (hosts.empty() || hosts == "DEFAULT" || gres.find("gpu") == std::string::npos) continue;
    const std::string place = fmt::format("{}:line {}", path, line_number);
    auto& kind = kinds[gres];
    kind.first += hosts_in(hosts, place);
    if (kind.second.empty()) kind.second = place;
  }
  if (kinds.empty()) throw InputError{path, "has no NodeName with Gres=gpu:..."};
  const auto largest =
      std::ranges::max_element(kinds, {}, [](const auto& each) { return each.second.first; });
  const auto& [gres, found] = *largest;
  file.options.push_back({"nodes", found.first, found.second, "slurm"});
  file.options.push_back({"gres", gres, found.second, "slurm"});
  for (const auto& [other, nodes] : kinds) {
    if (other == gres) continue;
    file.notes.push_back(
        fmt::format("{} nodes with {} are another cluster; the {} with {} are taken", nodes.first,
                    other, found.first, gres));
  }
  return file;
}

bool is_slurm_configuration(std::string_view text) {
  return text.starts_with("NodeName=") || text.find("\nNodeName=") != std::string_view::npos;
}

LaunchFile of_script(std::string_view text, const std::string& path) {
  const ShellScript script = read_shell(text, path);
  LaunchFile file{path, {}, {}};
  add_words(script.batch, 0, script.batch.size(), {"slurm", '_', '-'}, file);
  bool found = !script.batch.empty();
  int trainings = 0;
  for (const auto& command : script.commands) {
    const std::size_t before = file.options.size();
    found = add_command(command, file) || found;
    const bool trains = std::any_of(
        file.options.begin() + static_cast<std::ptrdiff_t>(before), file.options.end(),
        [&](const LaunchOption& each) { return each.tool == file.tool && !file.tool.empty(); });
    trainings += trains ? 1 : 0;
  }
  for (const auto& [name, word] : script.environment) {
    if (name.rfind("NCCL_", 0) == 0) file.environment[name] = word.shown();
  }
  file.notes = script.notes;
  if (trainings > 1) {
    file.notes.push_back(
        fmt::format("starts {} trainings; where they differ the last one holds: "
                    "import one at a time",
                    trainings));
  }
  if (!found && file.environment.empty()) {
    throw InputError{
        path,
        "has no command that trains; expected torchrun, srun, mpirun, deepspeed or python with "
        "options of Megatron-LM or torchtitan, #SBATCH lines or NCCL_ variables"};
  }
  return file;
}

Json json_document(std::string_view text, const std::string& path) {
  switch (format_of(text, path)) {
    case FileFormat::toml:
      return json_of_toml(text, path);
    case FileFormat::yaml:
      return json_of_yaml(text, path);
    default:
      return Document::parse(text, path).json();
  }
}

}  // namespace

bool is_launch_file(std::string_view text, const std::string& path) {
  switch (format_of(text, path)) {
    case FileFormat::json:
      try {
        const std::string_view tool =
            tool_of(Document::parse(without_byte_order_mark(text), path).json());
        return tool == "deepspeed" || tool == "gpt-neox" || tool == "k8s";
      } catch (const InputError&) {
        return false;
      }
    case FileFormat::shell:
      return is_slurm_configuration(text) || text.find("--") != std::string_view::npos ||
             text.find("NCCL_") != std::string_view::npos;
    default:
      return true;
  }
}

LaunchFile read_launch_file(std::string_view text, const std::string& path) {
  require_text(text, path);
  const std::string_view plain = without_byte_order_mark(text);
  if (is_slurm_configuration(plain)) return of_slurm_configuration(plain, path);
  if (format_of(plain, path) == FileFormat::shell) return of_script(plain, path);
  LaunchFile file = of_document(json_document(plain, path), path);
  // PyTorch's FSDP is configured in accelerate's file: its first line says which of the two it is.
  if (file.tool == "accelerate" && plain.starts_with("# fsdp@")) {
    file.tool = "fsdp";
    for (LaunchOption& each : file.options) each.tool = "fsdp";
  }
  return file;
}

}  // namespace orrery::scenarios
