#include "scenarios/exchange/writers.hpp"

#include <fmt/format.h>
#include <yaml-cpp/yaml.h>

#include <toml++/toml.h>
#include <algorithm>
#include <cctype>
#include <sstream>

#include "scenarios/exchange/shell.hpp"
#include "sim/input/text.hpp"

namespace orrery::scenarios {

namespace {

void emit_yaml(YAML::Emitter& out, const Json& value) {
  if (value.is_object()) {
    out << YAML::BeginMap;
    for (const auto& [key, member] : value.items()) {
      const bool plain = std::ranges::all_of(
          key, [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '.' || c == '/'; });
      out << YAML::Key;
      if (!plain) out << YAML::DoubleQuoted;
      out << key << YAML::Value;
      emit_yaml(out, member);
    }
    out << YAML::EndMap;
  } else if (value.is_array()) {
    out << YAML::BeginSeq;
    for (const Json& each : value) emit_yaml(out, each);
    out << YAML::EndSeq;
  } else if (value.is_string()) {
    out << YAML::DoubleQuoted << value.get<std::string>();
  } else {
    out << value.dump();  // a number, true, false or null
  }
}

void insert_toml(toml::table& table, const std::string& key, const Json& value);

toml::array toml_list(const Json& list) {
  toml::array array;
  for (const Json& each : list) {
    if (each.is_boolean())
      array.push_back(each.get<bool>());
    else if (each.is_number_integer())
      array.push_back(each.get<std::int64_t>());
    else if (each.is_number())
      array.push_back(each.get<double>());
    else
      array.push_back(each.is_string() ? each.get<std::string>() : each.dump());
  }
  return array;
}

toml::table toml_table(const Json& object) {
  toml::table table;
  for (const auto& [key, value] : object.items()) insert_toml(table, key, value);
  return table;
}

void insert_toml(toml::table& table, const std::string& key, const Json& value) {
  if (value.is_object())
    table.insert(key, toml_table(value));
  else if (value.is_array())
    table.insert(key, toml_list(value));
  else if (value.is_boolean())
    table.insert(key, value.get<bool>());
  else if (value.is_number_integer())
    table.insert(key, value.get<std::int64_t>());
  else if (value.is_number())
    table.insert(key, value.get<double>());
  else
    table.insert(key, value.is_string() ? value.get<std::string>() : value.dump());
}

std::string word_of_value(const Json& value) {
  return shell_quoted(value.is_string() ? value.get<std::string>() : value.dump());
}

/// Options as the elements of a bash array, some to a line.
std::string option_array(const char* name, const std::vector<WrittenOption>& options) {
  std::string text = fmt::format("{}=(", name), line = "\n ";
  for (const WrittenOption& each : options) {
    if (each.value.is_boolean() && !each.value.get<bool>()) continue;
    std::string flag = each.option;
    std::ranges::replace(flag, '_', '-');
    std::string words = " --" + flag;
    if (each.value.is_array()) {
      for (const Json& value : each.value) words += " " + word_of_value(value);
    } else if (!each.value.is_boolean()) {
      words += " " + word_of_value(each.value);
    }
    if (line.size() + words.size() > 98) {
      text += line;
      line = "\n ";
    }
    line += words;
  }
  return text + line + "\n)\n";
}

std::string exports(const LaunchJob& job) {
  std::string text;
  for (const auto& [name, value] : job.environment) {
    text += fmt::format("export {}={}\n", name, shell_quoted(value));
  }
  return text;
}

std::string command_line(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& each : words) text += " " + shell_quoted(each);
  return text;
}

/// How every node joins: the first one's address comes from the launcher.
std::string torchrun_head(const LaunchJob& job) {
  return fmt::format(
      "torchrun --nnodes \"${{NNODES:-{}}}\" --nproc-per-node {} --node-rank \"${{NODE_RANK:-0}}\" "
      "\\\n"
      "  --rdzv-backend c10d --rdzv-endpoint "
      "\"${{MASTER_ADDR:-localhost}}:${{MASTER_PORT:-29500}}\"",
      job.nodes, job.gpus_per_node);
}

/// `accelerate launch` on every node, whose rank and the first one's address are these words.
std::string accelerate_head(std::string_view file, std::string_view rank,
                            std::string_view address) {
  return fmt::format(
      "accelerate launch --config_file {} --machine_rank \"{}\" --main_process_ip \"{}\" "
      "--main_process_port \"${{MASTER_PORT:-29500}}\"",
      file, rank, address);
}

constexpr const char* script_head = "#!/usr/bin/env bash\n";

Json replica(const LaunchJob& job, std::int64_t count) {
  Json environment = Json::array();
  for (const auto& [name, value] : job.environment) {
    environment.push_back({{"name", name}, {"value", value}});
  }
  Json command = Json::array({"torchrun"});
  if (!job.script.empty())
    command = Json::array({"bash", job.script});
  else
    for (const std::string& each : job.command) command.push_back(each);
  const std::string gpus = std::to_string(job.gpus_per_node);
  Json container{{"name", "pytorch"},
                 {"image", "IMAGE"},
                 {"command", command},
                 {"resources", {{"limits", {{"nvidia.com/gpu", gpus}}}}},
                 {"volumeMounts", Json::array({{{"name", "shm"}, {"mountPath", "/dev/shm"}}})}};
  if (!environment.empty()) container["env"] = environment;
  // A pod's /dev/shm has 64 MiB unless a volume in memory is mounted there.
  const Json volumes = Json::array({{{"name", "shm"}, {"emptyDir", {{"medium", "Memory"}}}}});
  return {
      {"replicas", count},
      {"restartPolicy", "OnFailure"},
      {"template", {{"spec", {{"containers", Json::array({container})}, {"volumes", volumes}}}}}};
}

}  // namespace

std::string comment_lines(const std::vector<std::string>& comments) {
  std::string text;
  for (std::string each : comments) {
    for (char& c : each) {
      if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
    }
    text += "# " + each + "\n";
  }
  return text;
}

Json nested_options(const std::vector<WrittenOption>& options) {
  Json document = Json::object();
  for (const WrittenOption& each : options) {
    Json* at = &document;
    const auto parts = split(each.option, '.');
    for (std::size_t i = 0; i + 1 < parts.size(); ++i) at = &(*at)[std::string{parts[i]}];
    (*at)[std::string{parts.back()}] = each.value;
  }
  return document;
}

std::string yaml_text(const Json& document, const std::vector<std::string>& comments) {
  YAML::Emitter out;
  emit_yaml(out, document);
  return comment_lines(comments) + out.c_str() + "\n";
}

std::string toml_text(const Json& document, const std::vector<std::string>& comments) {
  std::ostringstream out;
  // Multi-line strings of toml++ 3.3 lose a line break at their beginning, literal ones hold
  // control characters that it does not read.
  const toml::table table = toml_table(document);
  out << toml::toml_formatter{
      table, toml::toml_formatter::default_flags & ~(toml::format_flags::allow_multi_line_strings |
                                                     toml::format_flags::allow_literal_strings)};
  return comment_lines(comments) + out.str() + "\n";
}

std::string megatron_script(const std::vector<WrittenOption>& model,
                            const std::vector<WrittenOption>& plan, const LaunchJob& job) {
  std::string text =
      script_head + comment_lines(job.comments) + "set -euo pipefail\n" + exports(job);
  text += option_array("MODEL", model) + option_array("PLAN", plan);
  return text + torchrun_head(job) +
         " \\\n  pretrain_gpt.py \"${MODEL[@]}\" \"${PLAN[@]}\" \"$@\"  # data, tokenizer, "
         "schedule\n";
}

std::string torchrun_script(const LaunchJob& job) {
  const std::string head = job.accelerate_file.empty()
                               ? torchrun_head(job)
                               : accelerate_head(shell_quoted(job.accelerate_file),
                                                 "${NODE_RANK:-0}", "${MASTER_ADDR:-localhost}");
  const std::string start = job.script.empty()
                                ? head + " \\\n " + command_line(job.command) + " \"$@\"\n"
                                : "bash " + shell_quoted(job.script) + " \"$@\"\n";
  return script_head + comment_lines(job.comments) + "set -euo pipefail\n" + exports(job) + start;
}

std::string slurm_script(const LaunchJob& job) {
  std::string text = script_head;
  text += fmt::format(
      "#SBATCH --job-name={}\n#SBATCH --nodes={}\n#SBATCH --ntasks-per-node=1\n"
      "#SBATCH --gpus-per-node={}\n#SBATCH --exclusive\n",
      plain_name(job.name, false), job.nodes, job.gpus_per_node);
  text += comment_lines(job.comments) + "set -euo pipefail\n" + exports(job);
  text +=
      "MASTER_ADDR=$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n 1)\n"
      "export MASTER_ADDR MASTER_PORT=29500 NNODES=\"$SLURM_NNODES\"\n";
  if (!job.script.empty()) {
    return text + "srun bash -c 'NODE_RANK=$SLURM_NODEID exec bash \"$0\" \"$@\"' " +
           shell_quoted(job.script) + " \"$@\"\n";
  }
  if (!job.accelerate_file.empty()) {
    return text + "srun bash -c 'exec " +
           accelerate_head("\"$0\"", "$SLURM_NODEID", "$MASTER_ADDR") + " \"$@\"' \\\n  " +
           shell_quoted(job.accelerate_file) + command_line(job.command) + " \"$@\"\n";
  }
  text += fmt::format(
      "srun torchrun --nnodes {} --nproc-per-node {} --rdzv-backend c10d \\\n"
      "  --rdzv-endpoint \"$MASTER_ADDR:$MASTER_PORT\" \\\n ",
      job.nodes, job.gpus_per_node);
  return text + command_line(job.command) + " \"$@\"\n";
}

std::string pytorch_job(const LaunchJob& job) {
  Json replicas{{"Master", replica(job, 1)}};
  if (job.nodes > 1) replicas["Worker"] = replica(job, job.nodes - 1);
  const Json document{{"apiVersion", "kubeflow.org/v1"},
                      {"kind", "PyTorchJob"},
                      {"metadata", {{"name", plain_name(job.name, true)}}},
                      {"spec",
                       {{"nprocPerNode", std::to_string(job.gpus_per_node)},
                        {"runPolicy", {{"cleanPodPolicy", "Running"}}},
                        {"pytorchReplicaSpecs", replicas}}}};
  std::vector<std::string> comments = job.comments;
  comments.emplace_back("IMAGE is to be replaced by the container with the tool.");
  return yaml_text(document, comments);
}

/// Source  SkyPilot, "Distributed Multi-Node Jobs": SKYPILOT_NODE_IPS, _NODE_RANK, _NUM_NODES
std::string skypilot_task(const LaunchJob& job) {
  Json resources{{"accelerators", fmt::format("{}:{}", job.accelerator, job.gpus_per_node)}};
  if (job.nodes > 1) resources["network_tier"] = "best";
  Json document{
      {"name", plain_name(job.name, true)}, {"num_nodes", job.nodes}, {"resources", resources}};
  for (const auto& [name, value] : job.environment) document["envs"][name] = value;
  LaunchJob script = job;
  script.environment.clear();
  script.comments.clear();
  std::string lines =
      "export MASTER_ADDR=$(echo \"$SKYPILOT_NODE_IPS\" | head -n 1)\n"
      "export NNODES=\"$SKYPILOT_NUM_NODES\" NODE_RANK=\"$SKYPILOT_NODE_RANK\"\n" +
      torchrun_script(script).substr(std::string_view{script_head}.size());
  std::string run = "run: |\n";
  for (const std::string_view line :
       split(std::string_view{lines}.substr(0, lines.size() - 1), '\n'))
    run += fmt::format("  {}\n", line);
  return yaml_text(document, job.comments) + run;
}

std::string plain_name(std::string_view text, bool lower) {
  std::string name;
  for (const char c : text) {
    const bool kept_character =
        c > 0 && (std::isalnum(static_cast<unsigned char>(c)) || (c == '.' && !lower));
    const char plain = kept_character ? c : '-';
    name += lower ? static_cast<char>(std::tolower(static_cast<unsigned char>(plain))) : plain;
  }
  name = name.substr(0, 50);
  while (!name.empty() && (name.back() == '-' || name.back() == '.')) name.pop_back();
  while (!name.empty() && (name.front() == '-' || name.front() == '.')) name.erase(0, 1);
  const bool needs_letter =
      name.empty() || (lower && !std::isalpha(static_cast<unsigned char>(name[0])));
  return needs_letter ? "job-" + name + (name.empty() ? "1" : "") : name;
}

}  // namespace orrery::scenarios
