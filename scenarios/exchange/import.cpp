#include "scenarios/exchange/import.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <filesystem>
#include <set>

#include "hardware/catalogue.hpp"
#include "hardware/node_import/node_import.hpp"
#include "models/model/model_file.hpp"
#include "models/plan/fields.hpp"
#include "models/software/software.hpp"
#include "scenarios/exchange/facts.hpp"
#include "scenarios/exchange/meanings.hpp"
#include "scenarios/exchange/sections.hpp"
#include "sim/input/text.hpp"

namespace orrery::scenarios {

namespace {

constexpr std::size_t most_launch_bytes = std::size_t{4} << 20;

/// A scalar as the tables write it; a list's elements joined by colons.
std::string option_text(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (value.is_array()) {
    std::string text;
    for (const Json& each : value) text += (text.empty() ? "" : ":") + option_text(each);
    return text;
  }
  return value.dump();
}

/// Says nothing: null, an empty text, and of options other than switches 'none' in Python's words.
bool says_nothing(const Json& value) {
  return value.is_null() || (value.is_string() && (value == "" || value == "None")) ||
         (value.is_structured() && value.empty());
}

/// The statements of all files, collected option by option.
class LaunchReader {
 public:
  LaunchReader(const std::vector<LaunchFile>& files, ImportedLaunch& result) : result_{result} {
    for (const LaunchFile& file : files) {
      if (!file.tool.empty()) {
        tool_ = &launch_tool(file.tool);
        result_.tool = file.tool;
      }
    }
    for (const LaunchFile& file : files) {
      for (const LaunchOption& option : file.options) {
        note_set(option);
        if (option.tool == "torchrun") facts.set("cluster.torchrun", "true");
      }
    }
    for (const LaunchFile& file : files) {
      for (const LaunchOption& option : file.options) add(option);
      for (const std::string& note : file.notes) result_.notes.push_back(file.file + ": " + note);
      for (const auto& [name, value] : file.environment) add_environment(name, value, file);
    }
    if (tool_ != nullptr && tool_->complete) add_defaults();
  }

  Facts facts;

 private:
  const LaunchTool& tool_of(const LaunchOption& option) const { return launch_tool(option.tool); }

  /// The name in the tool's table that an option has; empty: none.
  static std::string key_in_table(const LaunchOption& option, const LaunchTool& tool) {
    const auto& rows = meanings_of(tool);
    const auto has = [&](std::string_view name) {
      return std::ranges::any_of(rows, [&](const Meaning& row) {
        return row.way != Meaning::Way::out && row.option == name;
      });
    };
    return std::string{tool.complete ? (has(option.option) ? std::string_view{option.option} : "")
                                     : known_suffix(option.option, has)};
  }

  /// Remembers what is set, for the rows that need it.
  void note_set(const LaunchOption& option) {
    if (option.tool.empty()) return;
    const std::string key = key_in_table(option, tool_of(option));
    const std::string text = option.value.is_null() ? "true" : option_text(option.value);
    if (key.empty() || text == "false" || text == "None") return;
    set_.insert(key);
    set_.insert(key + "=" + text);
    if (!option.value.is_array()) return;
    for (const Json& each : option.value) set_.insert(key + "=" + option_text(each));
  }

  bool has_what_it_needs(const Meaning& row) const {
    return row.needs.empty() || std::ranges::any_of(row.needs, [&](const std::string& each) {
             return set_.contains(each);
           });
  }

  void keep(const LaunchOption& option, ImportedOption::Use use, std::string says) {
    const std::string value = !option.unknown.empty()  ? option.unknown
                              : option.value.is_null() ? std::string{}
                                                       : option_text(option.value);
    result_.options.push_back(
        {option.option, printable(value, 80), option.place, use, std::move(says)});
  }

  void add(const LaunchOption& option) {
    const LaunchTool& tool = tool_of(option);
    const std::string key = key_in_table(option, tool);
    if (key.empty()) return unmapped(option, tool);
    if (!option.unknown.empty() && is_switch(key, tool) && on_command_line(option)) {
      // What follows a switch is no value of it: `--bf16 ${EXTRA}`.
      LaunchOption alone = option;
      alone.value = nullptr;
      alone.unknown.clear();
      result_.notes.push_back(
          fmt::format("{}: {} is not known here", option.place, printable(option.unknown, 60)));
      return mapped(alone, key, tool);
    }
    if (!option.unknown.empty()) return unknown(option, key, tool);
    if (option.value.is_string() && option.value == "auto" && !has_value(key, tool, "auto")) {
      for (const Meaning& row : meanings_of(tool)) {
        if (row.option == key) open_.insert(row.field);
      }
      return keep(option, ImportedOption::Use::used, "auto: left to the plan");
    }
    if (const std::string_view what = wrong_number(option, key, tool); !what.empty()) {
      throw InputError{option.place,
                       fmt::format("{}: expected {}, found '{}'", written_name(option), what,
                                   printable(option_text(option.value), 40))};
    }
    mapped(option, key, tool);
  }

  /// What a variable holds that is not set here decides nothing, not even that the tool's default
  /// holds: the fields are left to the plan, and that is said.
  void unknown(const LaunchOption& option, const std::string& key, const LaunchTool& tool) {
    const std::string value = printable(option.unknown, 60);
    keep(option, ImportedOption::Use::not_understood, fmt::format("{} is not known here", value));
    std::string fields;
    for (const Meaning& row : meanings_of(tool)) {
      const bool other = row.field.starts_with("cluster.") || row.field.starts_with("run.");
      if (row.option != key || row.way == Meaning::Way::out || other) continue;
      if (!open_.insert(row.field).second) continue;
      fields += (fields.empty() ? "" : ", ") + shown_field(row.field);
    }
    if (fields.empty()) return;
    result_.notes.push_back(fmt::format(
        "{}: {} is not known here, which {} needs: {} is left open; set the variable or "
        "state it",
        option.place, value, written_name(option), fields));
  }

  /// The option as its file has it: "--num-layers" in a script.
  static std::string written_name(const LaunchOption& option) {
    std::string name = option.option;
    if (!on_command_line(option)) return name;
    std::ranges::replace(name, '_', '-');
    return "--" + name;
  }

  /// What an option's value had to be that says a number of a plan or a model; empty: it is.
  static std::string_view wrong_number(const LaunchOption& option, const std::string& key,
                                       const LaunchTool& tool) {
    if (option.value.is_structured() || option.value.is_boolean() || says_nothing(option.value)) {
      return {};
    }
    const std::string text = option_text(option.value);
    if (has_value(key, tool, text)) return {};
    const auto number = orrery::number_in<double>(text);
    for (const Meaning& row : meanings_of(tool)) {
      const bool reads = row.option == key && row.way != Meaning::Way::out && row.value == "*";
      if (!reads || !is_number(row.field)) continue;
      if (!number) return "a number";
      if (*number != std::floor(*number) && !may_be_broken(row.field)) return "a whole number";
    }
    return {};
  }

  /// Facts that only a number says.
  static bool is_number(std::string_view fact) {
    if (fact.starts_with("model.")) {
      constexpr std::array<std::string_view, 4> words{"model.name", "model.family", "model.size",
                                                      "model.ffn_rule"};
      return std::ranges::find(words, fact) == words.end();
    }
    const auto& fields = models::plan_fields();
    const auto row = std::ranges::find(fields, fact, &models::PlanField::key);
    return row != fields.end() && row->value.kind == models::PlanValue::Kind::count &&
           row->other_values.empty();
  }

  static bool may_be_broken(std::string_view fact) {
    constexpr std::array<std::string_view, 4> shares{"model.norm_epsilon", "model.rotary_base",
                                                     "model.rotary_share", "model.ffn_expansion"};
    return std::ranges::find(shares, fact) != shares.end();
  }

  static bool has_value(const std::string& key, const LaunchTool& tool, std::string_view value) {
    return std::ranges::any_of(meanings_of(tool), [&](const Meaning& row) {
      return row.option == key && row.value == value;
    });
  }

  /// Whether the option is a switch: its rows are about true and false.
  static bool is_switch(const std::string& key, const LaunchTool& tool) {
    return has_value(key, tool, "true");
  }

  void mapped(const LaunchOption& option, const std::string& key, const LaunchTool& tool) {
    const bool switched = is_switch(key, tool);
    if (option.value.is_null() && !option.place.empty() && !(switched && on_command_line(option))) {
      return keep(option, ImportedOption::Use::used, "not set: as without it");
    }
    if (!option.value.is_null() && says_nothing(option.value)) {
      return keep(option, ImportedOption::Use::used, "not set: as without it");
    }
    std::vector<std::string> texts;
    if (option.value.is_array() && !has_value(key, tool, "*")) {
      for (const Json& each : option.value) texts.push_back(option_text(each));
    } else {
      texts.push_back(option.value.is_null() ? "true" : option_text(option.value));
    }
    std::string says;
    bool known = false;
    std::map<std::string, std::string> lists;
    for (const std::string& text : texts) {
      const std::string lower = text == "True" ? "true" : text == "False" ? "false" : text;
      known = state(key, lower, tool, texts.size() > 1, lists, says) || known;
    }
    for (const auto& [field, list] : lists) facts.set(field, list);
    note_contradictions(option, key, tool);
    if (known && says.empty()) {
      return keep(option, ImportedOption::Use::without_effect,
                  "not looked at here: " + unmet(key, tool));
    }
    if (known) return keep(option, ImportedOption::Use::used, says);
    const bool off = texts.size() == 1 && (texts[0] == "false" || texts[0] == "False");
    if (off) return keep(option, ImportedOption::Use::used, "off");
    keep(option, ImportedOption::Use::not_understood,
         fmt::format("no value of a plan says '{}'", printable(option_text(option.value), 40)));
  }

  /// "needs distributed_type=FSDP".
  static std::string unmet(const std::string& key, const LaunchTool& tool) {
    for (const Meaning& row : meanings_of(tool)) {
      if (row.option == key && row.way != Meaning::Way::out && !row.needs.empty())
        return fmt::format("needs {}", fmt::join(row.needs, " or "));
    }
    return "says nothing";
  }

  /// Launcher and script may say other sizes of the same cluster; the later one counts.
  void note_contradictions(const LaunchOption& option, const std::string& key,
                           const LaunchTool& tool) {
    for (const Meaning& row : meanings_of(tool)) {
      if (row.option != key || row.way == Meaning::Way::out) continue;
      if (row.field.rfind("cluster.", 0) != 0) continue;
      const auto value = facts.integer(row.field);
      if (!value) continue;
      SizeStatement made{*value, fmt::format("{} ({})", option.option, option.place)};
      const auto [before, added] = sizes_.emplace(row.field, made);
      if (!added && before->second.value != *value) {
        result_.notes.push_back(fmt::format("{} {} by {}, {} by {}: the latter counts",
                                            before->second.value, shown_field(row.field),
                                            before->second.said_by, *value, made.said_by));
      }
      before->second = made;
    }
  }

  /// Options of scripts are written without a value where they are switches.
  static bool on_command_line(const LaunchOption& option) {
    return option.place.find(":line ") != std::string::npos;
  }

  /// Applies the rows about one value; whether there are any.
  bool state(const std::string& key, const std::string& text, const LaunchTool& tool, bool listed,
             std::map<std::string, std::string>& lists, std::string& says) {
    bool known = false;
    for (const Meaning& row : meanings_of(tool)) {
      if (row.option != key || row.way == Meaning::Way::out) continue;
      if (row.value != "*" && row.value != text) continue;
      known = true;
      if (!has_what_it_needs(row)) continue;
      std::vector<std::string> values = row.means;
      for (std::string& each : values) {
        if (each == "*") each = text;
      }
      if (row.field.rfind("x.", 0) == 0) {
        multiply(row.field, text);
      } else if (listed || (row.value != "*" && is_list_field(row.field))) {
        std::string& list = lists[row.field];
        list += (list.empty() ? "" : ":") + values[0];
      } else {
        facts.narrow(row.field, values);
      }
      says += fmt::format("{}{} {}", says.empty() ? "" : ", ", shown_field(row.field), values[0]);
    }
    return known;
  }

  static bool is_list_field(std::string_view field) {
    return field == "recompute_modules" || field == "lora_targets";
  }

  static std::string shown_field(const std::string& field) {
    std::string shown = field.rfind("x.", 0) == 0 ? field.substr(2) : field;
    std::ranges::replace(shown, '.', ' ');
    return shown;
  }

  void multiply(const std::string& field, const std::string& text) {
    const auto factor = orrery::number_in<std::int64_t>(text);
    if (!factor) return;
    const std::int64_t known = facts.integer_or(field, 1);
    const bool open = *factor < 0 || known < 0;  // what is left over
    facts.set(field, std::to_string(open ? -1 : std::min<std::int64_t>(known * *factor, 1 << 30)));
  }

  /// An option that states no field: known to be without effect, or not understood.
  void unmapped(const LaunchOption& option, const LaunchTool& tool) {
    using Use = ImportedOption::Use;
    const ListedOption* listed = nullptr;
    for (const std::string_view list : tool.lists) {
      const auto& known = options_in(list);
      const auto has = [&](std::string_view name) { return known.contains(name); };
      std::string_view name = known_suffix(option.option, has);
      if (name.empty()) name = known_prefix(option.option, has);
      if (!name.empty()) listed = &known.find(name)->second;
      if (listed != nullptr) break;
    }
    if (listed == nullptr)
      return keep(option, Use::not_understood, fmt::format("{} has no such option", tool.name));
    if (listed->affects == "none")
      return keep(option, Use::without_effect, "without effect on time and memory");
    const std::string text = option.value.is_null() ? "" : option_text(option.value);
    const bool off =
        text == "false" || text == "0" || text == "0.0" || text == "None" || text == "0:0";
    const bool usual =
        text == listed->unset || (says_nothing(option.value) && !on_command_line(option));
    if (off || usual) return keep(option, Use::without_effect, off ? "off" : "the tool's default");
    keep(option, Use::not_understood,
         fmt::format("{}{}no field says it", listed->meaning, listed->meaning.empty() ? "" : ": "));
  }

  /// The listed section of an option below it: `optimizer.params` of `optimizer.params.lr`.
  template <class Has>
  static std::string_view known_prefix(std::string_view option, const Has& has) {
    while (!has(option)) {
      const std::size_t dot = option.rfind('.');
      if (dot == std::string_view::npos) return {};
      option = option.substr(0, dot);
    }
    return option;
  }

  /// NCCL's variables: those that its tuner reads are fields of /collectives, those that choose
  /// NICs change the cluster.
  void add_environment(const std::string& name, const std::string& value, const LaunchFile& file) {
    constexpr std::array<std::string_view, 4> tuned{"NCCL_ALGO", "NCCL_PROTO", "NCCL_MAX_NCHANNELS",
                                                    "NCCL_MAX_CTAS"};
    ImportedOption option{name, printable(value, 80), file.file, ImportedOption::Use::used, ""};
    if (std::ranges::find(tuned, name) != tuned.end()) {
      result_.collectives[name] = value;
      option.says = "collectives " + name;
    } else if (name == "NCCL_IB_DISABLE" || name == "NCCL_NET") {
      const bool sockets = name == "NCCL_NET" ? value == "Socket" : value == "1";
      result_.sockets = result_.sockets || sockets;
      option.says = sockets ? "network TCP through the host" : "network as it is";
    } else if (name == "NCCL_IB_HCA" || name == "NCCL_SOCKET_IFNAME") {
      choose_nics(value, option, file);
    } else if (name == "NCCL_TOPO_FILE") {
      read_topology(value, option, file);
    } else if (is_harmless(name)) {
      option.use = ImportedOption::Use::without_effect;
      option.says = "without effect on time and memory";
    } else {
      option.use = ImportedOption::Use::not_understood;
      option.says = "may change what NCCL does: no field says it";
    }
    result_.options.push_back(std::move(option));
  }

  /// Variables of logs, errors and addresses.
  /// Source  NVIDIA, NCCL 2.28 documentation, environment variables
  static bool is_harmless(std::string_view name) {
    constexpr std::array<std::string_view, 35> names{"NCCL_DEBUG",
                                                     "NCCL_DEBUG_SUBSYS",
                                                     "NCCL_DEBUG_FILE",
                                                     "NCCL_DEBUG_TIMESTAMP_FORMAT",
                                                     "NCCL_DEBUG_TIMESTAMP_LEVELS",
                                                     "NCCL_ASYNC_ERROR_HANDLING",
                                                     "NCCL_BLOCKING_WAIT",
                                                     "NCCL_COMM_ID",
                                                     "NCCL_OOB_NET_ENABLE",
                                                     "NCCL_OOB_NET_IFNAME",
                                                     "NCCL_UID_STAGGER_RATE",
                                                     "NCCL_UID_STAGGER_THRESHOLD",
                                                     "NCCL_HOSTID",
                                                     "NCCL_SOCKET_FAMILY",
                                                     "NCCL_SOCKET_RETRY_CNT",
                                                     "NCCL_SOCKET_RETRY_SLEEP_MSEC",
                                                     "NCCL_IB_TIMEOUT",
                                                     "NCCL_IB_RETRY_CNT",
                                                     "NCCL_IB_GID_INDEX",
                                                     "NCCL_IB_ADDR_FAMILY",
                                                     "NCCL_IB_ADDR_RANGE",
                                                     "NCCL_IB_ROCE_VERSION_NUM",
                                                     "NCCL_IB_SL",
                                                     "NCCL_IB_TC",
                                                     "NCCL_IB_FIFO_TC",
                                                     "NCCL_IB_RETURN_ASYNC_EVENTS",
                                                     "NCCL_IB_WARN_RAIL_LOCAL",
                                                     "NCCL_CHECK_POINTERS",
                                                     "NCCL_CHECKS_DISABLE",
                                                     "NCCL_IGNORE_DISABLED_P2P",
                                                     "NCCL_TOPO_DUMP_FILE",
                                                     "NCCL_GRAPH_DUMP_FILE",
                                                     "NCCL_CONF_FILE",
                                                     "NCCL_SET_THREAD_NAME",
                                                     "NCCL_RAS_ENABLE"};
    return std::ranges::find(names, name) != names.end();
  }

  /// The topology file that NCCL reads instead of detecting the machine: by its path, or next to
  /// the script.
  void read_topology(const std::string& value, ImportedOption& option, const LaunchFile& file) {
    const std::filesystem::path folder = std::filesystem::path{file.file}.parent_path();
    const std::filesystem::path given{value};
    std::error_code unreadable;
    for (const auto& path : {given, folder / given, folder / given.filename()}) {
      if (!std::filesystem::is_regular_file(path, unreadable)) continue;
      const std::string name = path.string();
      result_.topology = hardware::imported_node(read_file(name, most_launch_bytes), name).json;
      option.says =
          fmt::format("cluster node of {} GPUs and {} NICs", result_.topology["gpus"].get<int>(),
                      result_.topology["nics"].get<int>());
      return;
    }
    option.use = ImportedOption::Use::not_understood;
    option.says =
        fmt::format("{} is not there; a copy next to the script is read", printable(value, 60));
  }

  /// A list of NICs: `=mlx5_0:1,mlx5_1`; `mlx5` alone means all whose names begin so, `^mlx5_3` all
  /// but that one.
  /// Source  NVIDIA, NCCL documentation, environment variables: NCCL_IB_HCA, NCCL_SOCKET_IFNAME
  void choose_nics(const std::string& value, ImportedOption& option, const LaunchFile& file) {
    const bool of_sockets = option.option == "NCCL_SOCKET_IFNAME";
    const auto disabled = file.environment.find("NCCL_IB_DISABLE");
    const bool sockets = disabled != file.environment.end() && disabled->second == "1";
    if (of_sockets != sockets) {
      option.use = ImportedOption::Use::without_effect;
      option.says = of_sockets ? "ranks meet over it; data goes over InfiniBand or RoCE"
                               : "InfiniBand is switched off";
      return;
    }
    std::string_view text = value;
    const bool without = text.starts_with('^');
    if (without) text.remove_prefix(1);
    if (text.starts_with('=')) text.remove_prefix(1);
    std::set<std::string, std::less<>> names;
    bool all_of_a_kind = false;
    for (std::string_view each : split(text, ',')) {
      each = each.substr(0, each.find(':'));
      if (each.empty()) continue;
      names.insert(std::string{each});
      const bool driver = each == "mlx5" || each == "mlx4";  // before "_0" of a NIC
      all_of_a_kind = all_of_a_kind || driver || each.back() < '0' || each.back() > '9';
    }
    if (without || all_of_a_kind || names.empty()) {
      option.use =
          without ? ImportedOption::Use::not_understood : ImportedOption::Use::without_effect;
      option.says = without ? "which NICs are left is not known here: --set /cluster/node/nics=N"
                            : "all of that kind";
      return;
    }
    result_.nics = std::ssize(names);
    option.says = fmt::format("cluster NICs of a node {}", names.size());
  }

  /// What the tool does where an option is not written.
  void add_defaults() {
    for (const Meaning& row : meanings_of(*tool_)) {
      if (row.option != "-" || row.way == Meaning::Way::out || facts.has(row.field)) continue;
      if (row.means.empty() || open_.contains(row.field) || !has_what_it_needs(row)) continue;
      facts.narrow(row.field, row.means);
    }
    if (tool_->name == "megatron") facts.set("accumulates_once", "true");
  }

  struct SizeStatement {
    std::int64_t value = 0;
    std::string said_by;  // "nodes (job.sh:line 3)"
  };

  ImportedLaunch& result_;
  std::map<std::string, SizeStatement> sizes_;  // of the cluster, by field
  const LaunchTool* tool_ = nullptr;
  std::set<std::string, std::less<>> set_;   // options that are set, and OPTION=VALUE
  std::set<std::string, std::less<>> open_;  // fields that the file leaves to others
};

std::optional<std::int64_t> stated_nodes(const Facts& facts) {
  if (facts.has("cluster.workers") || facts.has("cluster.masters")) {
    return facts.integer_or("cluster.workers", 0) + facts.integer_or("cluster.masters", 0);
  }
  return facts.integer("cluster.nodes");
}

/// GPUs of a node in Slurm's gres, "gpu:8", "gpu:h100:8", or SkyPilot's accelerators, "H100:8".
std::optional<std::int64_t> gpus_of_node(const Facts& facts) {
  if (const auto stated = facts.integer("cluster.gpus_per_node")) return stated;
  const std::string text = facts.text("cluster.gres") + facts.text("cluster.gpus_per_node");
  const std::size_t colon = text.rfind(':');
  if (colon == std::string::npos) return std::nullopt;
  return orrery::number_in<std::int64_t>(std::string_view{text}.substr(colon + 1));
}

/// NICs, their rate and which GPU each is near, as NCCL_TOPO_FILE says them. What joins GPUs stays
/// the cluster's: a provider's file leaves it out.
bool apply_topology(Json& cluster, const hardware::Cluster& read, ImportedLaunch& result) {
  if (result.topology.is_null()) return false;
  if (result.topology["gpus"] != read.node.gpus) {
    result.notes.push_back(
        fmt::format("NCCL_TOPO_FILE describes {} GPUs, {} has {} a node: not "
                    "applied",
                    result.topology["gpus"].get<int>(), read.node.name, read.node.gpus));
    return false;
  }
  if (result.topology["nics"] == 0) {
    result.notes.emplace_back("NCCL_TOPO_FILE names no NIC: those of the cluster stay");
    return false;
  }
  Json& node = cluster["node"];
  node.erase("gpu_nics");
  for (const char* key : {"nics", "nic_bandwidth", "gpu_nics"}) {
    if (!result.topology.contains(key)) continue;
    node[key] = result.topology[key];
    node["sources"][std::string{"/"} + key] = "NCCL_TOPO_FILE";
  }
  return true;
}

/// What NCCL's environment changes of a named cluster.
void apply_network(Json cluster, const hardware::Cluster& read, ImportedLaunch& result) {
  const bool topology = apply_topology(cluster, read, result);
  const std::int64_t all = topology ? cluster["node"]["nics"].get<std::int64_t>() : read.node.nics;
  const bool fewer = result.nics && *result.nics < all;
  if (result.nics && !fewer && *result.nics > all) {
    result.notes.push_back(fmt::format("NCCL_IB_HCA names {} NICs, {} has {} a node", *result.nics,
                                       read.node.name, all));
  }
  if (!topology && !fewer && !result.sockets) return;
  if (fewer) {
    cluster["node"]["nics"] = *result.nics;
    cluster["node"].erase("gpu_nics");  // which of them is nearest is not known
  }
  if (result.sockets && read.nodes > 1) {
    // Of the fabric its links stay; what its class of latency says is that of the new class.
    Json& fabric = cluster["fabric"];
    for (const char* key : {"latency", "class_latency", "network", "half_size", "half_size_growth",
                            "growth", "efficiency", "gather_efficiency"}) {
      fabric.erase(key);
      if (fabric.contains("sources")) fabric["sources"].erase(std::string{"/"} + key);
    }
    fabric["latency_class"] = "ethernet";
    const Document written = Document::from(cluster, "--cluster");
    cluster = expanded(Section::cluster, written.root(), "").json;
  }
  result.cluster = std::move(cluster);
}

/// Hosts of mpirun: "node1:8,node2:8", or the lines of a file, "node1 slots=8".
struct HostList {
  std::set<std::string, std::less<>> hosts;
  std::int64_t slots = 0;    // of all
  bool states_slots = true;  // each
};

HostList hosts_of_list(std::string_view text) {
  HostList found;
  for (const std::string_view each : split(text, ',')) {
    const std::size_t colon = each.find(':');
    if (trimmed(each).empty()) continue;
    found.hosts.insert(std::string{trimmed(each.substr(0, colon))});
    const auto slots = colon == std::string_view::npos
                           ? std::nullopt
                           : orrery::number_in<std::int64_t>(each.substr(colon + 1));
    found.states_slots = found.states_slots && slots.has_value();
    found.slots += std::clamp<std::int64_t>(slots.value_or(0), 0, 1 << 20);
  }
  return found;
}

HostList hosts_of_file(const std::string& path) {
  std::string list;
  const std::string text = read_file(path, most_launch_bytes);
  for (std::string_view line : split(text, '\n')) {
    line = trimmed(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    const std::size_t slots = line.find("slots=");
    std::string host{line.substr(0, line.find_first_of(" \t"))};
    if (slots != std::string_view::npos) {
      std::string_view count = line.substr(slots + 6);
      count = count.substr(0, count.find_first_of(" \t"));
      host = host.substr(0, host.find(':')) + ":" + std::string{count};
    }
    list += (list.empty() ? "" : ",") + host;
  }
  return hosts_of_list(list);
}

/// Nodes and processes of a node as mpirun's hosts and mapping say them.
void settle_hosts(Facts& facts, ImportedLaunch& result) {
  std::optional<HostList> hosts;
  if (facts.has("cluster.hosts")) hosts = hosts_of_list(facts.text("cluster.hosts"));
  if (facts.has("cluster.hostfile")) {
    const std::string name = facts.text("cluster.hostfile");
    const std::filesystem::path folder =
        result.files.empty() ? "" : std::filesystem::path{result.files[0]}.parent_path();
    const std::string path = from_folder(folder.string(), name);
    std::error_code unreadable;
    if (std::filesystem::is_regular_file(path, unreadable)) {
      hosts = hosts_of_file(path);
    } else {
      result.notes.push_back(fmt::format(
          "{} is not there: the number of nodes is what else says it", printable(name, 80)));
    }
  }
  if (hosts && !hosts->hosts.empty()) {
    const std::int64_t count = std::ssize(hosts->hosts);
    if (const auto stated = facts.integer("cluster.nodes"); stated && *stated != count) {
      result.notes.push_back(
          fmt::format("{} nodes are stated, and {} hosts: the hosts count", *stated, count));
    }
    facts.set("cluster.nodes", std::to_string(count));
    if (hosts->states_slots && hosts->slots % count == 0 && !facts.has("cluster.tasks_per_node")) {
      facts.set("cluster.tasks_per_node", std::to_string(hosts->slots / count));
    }
  }
  const std::string map = facts.text("cluster.map");
  if (map.starts_with("ppr:") && map.find(":node") != std::string::npos) {
    const auto each = orrery::number_in<std::int64_t>(map.substr(4, map.find(':', 4) - 4));
    if (each && *each > 0) facts.set("cluster.tasks_per_node", std::to_string(*each));
  } else if (map == "node") {
    result.notes.emplace_back(
        "map-by node: ranks go round the nodes; a plan's ranks fill one node after another");
  }
}

/// All processes over those of one node, as Slurm allocates nodes that nobody states.
std::optional<std::int64_t> nodes_of_tasks(const Facts& facts) {
  const auto all = facts.integer("cluster.tasks"), each = facts.integer("cluster.tasks_per_node");
  if (!all || !each || *all < 1 || *each < 1 || *all % *each != 0) return std::nullopt;
  return *all / *each;
}

/// Nodes, GPUs of a node and GPUs in all, where several statements agree; else a note and the
/// number of processes that are started.
void settle_sizes(const Facts& facts, ImportedLaunch& result) {
  result.nodes = stated_nodes(facts);
  if (!result.nodes) result.nodes = nodes_of_tasks(facts);
  auto per_node = gpus_of_node(facts);
  // Each task drives a GPU, but for a node's only one, which starts or is the process of all.
  const bool one_a_node =
      facts.integer("cluster.tasks_per_node") == 1 ||
      (result.nodes.has_value() && facts.integer("cluster.tasks") == result.nodes);
  const bool launches = facts.has("cluster.torchrun") || (one_a_node && per_node.value_or(1) > 1);
  const auto each = launches ? std::nullopt : facts.integer("cluster.tasks_per_node");
  if (each && *each > 0 && per_node && *each != *per_node) {
    const std::string what = *each < *per_node
                                 ? fmt::format("{} GPUs of each do nothing", *per_node - *each)
                                 : "several share a GPU; the plan has one on each";
    result.notes.push_back(
        fmt::format("{} GPUs and {} processes a node: {}", *per_node, *each, what));
    per_node = std::min(*each, *per_node);
  }
  if (!per_node) per_node = each;
  constexpr std::int64_t most = 1 << 24;
  if (result.nodes.value_or(0) > most || per_node.value_or(0) > most) {
    throw InputError{fmt::format("{} nodes of {} GPUs: expected at most {} of each",
                                 result.nodes.value_or(1), per_node.value_or(1), most)};
  }
  if (result.nodes && per_node) result.gpus = *result.nodes * *per_node;
  auto started = launches ? std::nullopt : facts.integer("cluster.tasks");
  if (!started) started = facts.integer("cluster.gpus");
  if (!started || *started < 1) return;
  if (result.gpus && *result.gpus != *started) {
    result.notes.push_back(
        fmt::format("{} nodes of {} GPUs are {}, and {} processes are started: "
                    "those count",
                    *result.nodes, *per_node, *result.gpus, *started));
    if (*per_node > 0 && *started % *per_node == 0) result.nodes = *started / *per_node;
  }
  result.gpus = *started;
  if (!result.nodes && per_node && *per_node > 0 && *started % *per_node == 0) {
    result.nodes = *started / *per_node;
  }
}

void settle_cluster(Facts& facts, const LaunchRequest& request, ImportedLaunch& result) {
  settle_hosts(facts, result);
  settle_sizes(facts, result);
  const auto launched = result.gpus;
  if (request.gpus) result.gpus = request.gpus;
  if (!request.cluster && (result.nics || result.sockets || !result.topology.is_null())) {
    result.notes.emplace_back("NCCL's choice of NICs is applied once --cluster names the cluster");
  }
  if (!request.cluster) return;
  std::string name = *request.cluster;
  const std::vector<std::string> nodes = hardware::Catalogue::nodes();
  const bool one_node = std::ranges::find(nodes, name) != nodes.end();
  if (one_node && result.nodes) name += fmt::format(" x {}", *result.nodes);
  const Document written = Document::from(name, "--cluster");
  const Json expanded_cluster = expanded(Section::cluster, written.root(), "").json;
  const Document cluster = Document::from(expanded_cluster, "--cluster");
  const hardware::Cluster read = hardware::read_cluster(cluster.root());
  if (launched && *launched != read.gpus()) {
    result.notes.push_back(
        fmt::format("the files start {} processes, --cluster {} has {} GPUs: "
                    "the plan is for those",
                    *launched, printable(name, 60), read.gpus()));
  }
  result.gpus = read.gpus();
  result.cluster = name;
  apply_network(expanded_cluster, read, result);
}

std::optional<models::Model> read_imported_model(const Json& model) {
  if (model.is_null()) return std::nullopt;
  const Document written = Document::from(model, "--model");
  const Json config = expanded(Section::model, written.root(), "").json;
  return models::read_model(Document::from(config, "model").root());
}

/// The format in which a shipped profile reduces gradients.
std::string usual_gradient(std::string_view profile) {
  const Document written = Document::from(models::software_profile(profile), std::string{profile});
  return std::string{hardware::name(models::read_software(written.root()).gradient)};
}

double bytes_of_gradient(const Facts& facts, const LaunchTool* tool) {
  std::string format = facts.text("software.gradient");
  if (format.empty() && tool != nullptr && !tool->software.empty()) {
    format = usual_gradient(tool->software);
  }
  return format == "bf16" || format == "fp16" ? 2 : 4;
}

Json profile_for(const Facts& facts, const LaunchTool& tool) {
  if (tool.software.empty()) return nullptr;
  const std::string name{tool.software}, gradient = facts.text("software.gradient");
  if (gradient.empty() || usual_gradient(name) == gradient) return name;
  Json own = models::software_profile(name);
  own["gradient"] = gradient;
  return own;
}

/// Files that a file names (`deepspeed: zero3.json`), where they exist.
std::vector<LaunchFile> with_named_files(std::vector<LaunchFile> files) {
  for (std::size_t i = 0; i < files.size() && files.size() < 16; ++i) {
    const std::string folder = std::filesystem::path{files[i].file}.parent_path().string();
    std::vector<std::string> named;
    for (const LaunchOption& option : files[i].options) {
      const std::string_view name = option.option;
      const bool names_file = name == "deepspeed" || name.ends_with("deepspeed_config_file") ||
                              name == "deepspeed_config";
      if (names_file && option.value.is_string()) named.push_back(option.value.get<std::string>());
    }
    for (const std::string& name : named) {
      const std::string path = from_folder(folder, name);
      std::error_code unreadable;
      if (!std::filesystem::is_regular_file(path, unreadable)) {
        files[i].notes.push_back(
            fmt::format("{} is not there; what it states is left out", printable(name, 80)));
        continue;
      }
      LaunchFile inner = read_launch_file(read_file(path, most_launch_bytes), path);
      const std::string tool = files[i].tool;
      files.push_back(std::move(inner));
      files.back().tool = tool;
    }
  }
  return files;
}

/// Intervals of evaluations and checkpoints, in steps; null: none is stated.
Json run_of(const Facts& facts, std::vector<std::string>& notes) {
  Json run;
  if (const auto steps = facts.integer("run.save_steps"); steps && *steps > 0) {
    run["checkpoint"] = {{"every_steps", *steps}};
  }
  const auto every = facts.integer("run.evaluation_steps");
  const auto batches = facts.integer("run.evaluation_iterations");
  if (!every || *every <= 0 || batches == 0) return run;
  if (batches && *batches > 0) {
    run["evaluation"] = {{"every_steps", *every}, {"iterations", *batches}};
  } else {
    notes.push_back(
        fmt::format("evaluation every {} steps over a whole set: how long it takes is "
                    "not stated; /run/evaluation left out",
                    *every));
  }
  return run;
}

}  // namespace

ImportedLaunch import_launch(const std::vector<LaunchFile>& given, const LaunchRequest& request) {
  const std::vector<LaunchFile> files = with_named_files(given);
  ImportedLaunch result;
  for (const LaunchFile& file : files) result.files.push_back(file.file);
  LaunchReader importer{files, result};
  Facts& facts = importer.facts;
  settle_cluster(facts, request, result);
  result.model = request.model ? Json(*request.model) : model_of(facts, result.notes);
  const std::optional<models::Model> read =
      request.known_model ? std::nullopt : read_imported_model(result.model);
  const models::Model* model = request.known_model ? request.known_model : read ? &*read : nullptr;
  const LaunchTool* tool = result.tool.empty() ? nullptr : &launch_tool(result.tool);
  if (tool != nullptr) result.software = profile_for(facts, *tool);
  const FactBasis basis{.model = model,
                        .gpus = result.gpus.value_or(0),
                        .gradient_bytes = bytes_of_gradient(facts, tool)};
  result.plan = plan_of(facts, basis, result.notes);
  result.run = run_of(facts, result.notes);
  return result;
}

ImportedLaunch import_launch(const LaunchRequest& request) {
  std::vector<LaunchFile> files;
  for (const std::string& path : request.files) {
    files.push_back(read_launch_file(read_file(path, most_launch_bytes), path));
  }
  return import_launch(files, request);
}

Json ImportedLaunch::scenario() const {
  Json scenario = Json::object();
  if (!model.is_null()) scenario["model"] = model;
  if (!cluster.is_null()) scenario["cluster"] = cluster;
  scenario["plan"] = plan;
  if (!software.is_null()) scenario["software"] = software;
  if (!collectives.is_null()) scenario["collectives"] = collectives;
  if (!run.is_null()) scenario["run"] = run;
  return scenario;
}

}  // namespace orrery::scenarios
