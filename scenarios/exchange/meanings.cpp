#include "scenarios/exchange/meanings.hpp"

#include <algorithm>
#include <mutex>

#include "scenarios/embedded.hpp"
#include "sim/errors.hpp"
#include "sim/input/csv.hpp"
#include "sim/input/text.hpp"

namespace orrery::scenarios {

namespace {

Table exchange_table(std::string_view folder, std::string_view name) {
  const std::string path =
      "scenarios/exchange/" + std::string{folder} + "/" + std::string{name} + ".csv";
  for (const EmbeddedFile& file : embedded_files()) {
    if (file.path == path) return Table::parse(file.text, path);
  }
  throw ContractError{path + " is not embedded"};
}

std::vector<std::string> words_between(std::string_view text, char separator) {
  std::vector<std::string> parts;
  if (text.empty()) return parts;
  for (const std::string_view part : split(text, separator)) parts.emplace_back(part);
  return parts;
}

Meaning read_meaning(const Row& row) {
  constexpr std::pair<std::string_view, Meaning::Way> ways[] = {
      {"", Meaning::Way::both}, {"in", Meaning::Way::in}, {"out", Meaning::Way::out}};
  Meaning made{.option = std::string{row.text("option")},
               .value = std::string{row.text("value")},
               .field = std::string{row.text("field")},
               .means = words_between(row.text("means"), '|'),
               .needs = words_between(row.text("needs"), ' '),
               .tools = words_between(row.text("tools"), ' ')};
  const auto* way =
      std::ranges::find(ways, row.text("way"), [](const auto& each) { return each.first; });
  if (way == std::end(ways)) row.fail_expected("way", "in, out or nothing");
  made.way = way->second;
  return made;
}

std::vector<Meaning> read_meanings(const LaunchTool& tool) {
  const Table table = exchange_table("meanings", tool.table);
  std::vector<Meaning> rows;
  for (std::size_t i = 0; i < table.size(); ++i) {
    Meaning row = read_meaning(table[i]);
    if (row.is_for(tool.name)) rows.push_back(std::move(row));
  }
  return rows;
}

std::map<std::string, ListedOption, std::less<>> read_options(std::string_view list) {
  const Table table = exchange_table("options", list);
  std::map<std::string, ListedOption, std::less<>> options;
  for (std::size_t i = 0; i < table.size(); ++i) {
    const Row row = table[i];
    const auto text = [&](std::string_view column) { return std::string{row.text(column)}; };
    options.emplace(text("option"), ListedOption{text("option"), text("affects"), text("default"),
                                                 text("meaning")});
  }
  return options;
}

/// The value of a key, computed once; safe between threads.
template <class Value, class Make>
const Value& kept(std::string_view key, const Make& make) {
  static std::mutex guard;
  static std::map<std::string, Value, std::less<>> known;
  const std::lock_guard lock{guard};
  const auto found = known.find(key);
  if (found != known.end()) return found->second;
  return known.emplace(std::string{key}, make()).first->second;
}

}  // namespace

bool Meaning::is_for(std::string_view tool) const {
  return tools.empty() || std::ranges::any_of(tools, [&](std::string_view each) {
           return each.substr(0, each.find('@')) == tool;
         });
}

bool Meaning::is_of_version(std::string_view list) const {
  return tools.empty() || std::ranges::any_of(tools, [&](std::string_view each) {
           return each.find('@') == std::string_view::npos || each == list;
         });
}

bool Meaning::states(std::string_view text) const {
  return std::ranges::any_of(means,
                             [&](const std::string& each) { return each == "*" || each == text; });
}

std::span<const LaunchTool> launch_tools() {
  static const std::vector<LaunchTool> tools{
      {"megatron", "megatron", {"megatron@0.20", "megatron@2022-12"}, "megatron-core"},
      {"megatron-bridge",
       "megatron",
       {"megatron-bridge@0.7"},
       "megatron-bridge",
       false,
       "mixed_precision comm_overlap train model ddp optimizer dist"},
      {"nemo",
       "megatron",
       {"nemo@2", "nemo@1", "megatron-bridge@0.7", "megatron@0.20"},
       "nemo",
       false},
      {"primus", "megatron", {"primus@2026-08", "megatron@0.20"}, "megatron-core", false, "", true},
      {"primus-titan", "torchtitan", {"primus@2026-08", "torchtitan@0.2.2"}, "torchtitan", false},
      {"deepspeed", "deepspeed", {"deepspeed@0.19.8"}, "deepspeed"},
      {"torchtitan", "torchtitan", {"torchtitan@0.2.2"}, "torchtitan"},
      {"accelerate", "accelerate", {"accelerate@1.15.0"}, "huggingface"},
      {"fsdp", "accelerate", {"accelerate@1.15.0"}, "pytorch-fsdp"},
      {"axolotl", "axolotl", {"axolotl@0.19.0"}, "huggingface"},
      {"maxtext", "maxtext", {"maxtext@2026-08"}, "maxtext"},
      {"gpt-neox", "gpt-neox", {"gpt-neox@2026-05", "deepspeed@0.19.8"}, "megatron-deepspeed"},
      {"slurm", "launcher", {"slurm@22.05"}},
      {"torchrun", "launcher", {"torchrun@2.15.0"}},
      {"mpirun", "launcher", {"mpirun@4.1.4"}},
      {"k8s", "launcher", {"k8s@1.9.4"}},
      {"skypilot", "launcher", {"skypilot@0.14.1"}}};
  return tools;
}

const LaunchTool& launch_tool(std::string_view name) {
  for (const LaunchTool& each : launch_tools()) {
    if (each.name == name) return each;
  }
  throw ContractError{"no launch tool '" + std::string{name} + "'"};
}

const std::vector<Meaning>& meanings_of(const LaunchTool& tool) {
  return kept<std::vector<Meaning>>(tool.name, [&] { return read_meanings(tool); });
}

const std::map<std::string, ListedOption, std::less<>>& options_in(std::string_view list) {
  return kept<std::map<std::string, ListedOption, std::less<>>>(list,
                                                                [&] { return read_options(list); });
}

}  // namespace orrery::scenarios
