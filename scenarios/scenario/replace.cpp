#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "hardware/cluster/expand.hpp"
#include "hardware/cluster/fabric_shape.hpp"
#include "hardware/prices/rental.hpp"
#include "hardware/sources.hpp"
#include "scenarios/exchange/sections.hpp"
#include "scenarios/scenario/scenario.hpp"
#include "scenarios/scenario/unpriced.hpp"
#include "sim/input/text.hpp"
#include "sim/input/units.hpp"

namespace orrery::scenarios {

namespace {

/// Steps of a JSON pointer (RFC 6901), unescaped.
std::vector<std::string> steps_of(std::string_view pointer) {
  std::vector<std::string> steps;
  while (!pointer.empty()) {
    pointer.remove_prefix(1);
    const std::size_t slash = std::min(pointer.find('/'), pointer.size());
    std::string step;
    for (std::size_t i = 0; i < slash; ++i) {
      const bool escaped = pointer[i] == '~' && i + 1 < slash;
      if (escaped && pointer[i + 1] == '1')
        step += '/', ++i;
      else if (escaped && pointer[i + 1] == '0')
        step += '~', ++i;
      else
        step += pointer[i];
    }
    steps.push_back(std::move(step));
    pointer.remove_prefix(slash);
  }
  return steps;
}

std::optional<std::size_t> index_of(const std::string& step) {
  std::size_t index = 0;
  const auto [end, error] = std::from_chars(step.data(), step.data() + step.size(), index);
  if (error != std::errc{} || end != step.data() + step.size()) return std::nullopt;
  return index;
}

/// The member or element that a step names; null if there is none.
Json* member_of(Json& value, const std::string& step) {
  if (value.is_object()) {
    const auto member = value.find(step);
    return member == value.end() ? nullptr : &*member;
  }
  const auto index = value.is_array() ? index_of(step) : std::nullopt;
  return index && *index < value.size() ? &value[*index] : nullptr;
}

/// `/plan has: tensor pipeline ...`
std::string contents(const Json& value, std::string_view pointer) {
  std::string text = fmt::format("{} ", pointer.empty() ? "the scenario" : pointer);
  if (value.is_array()) return text + fmt::format("has {} elements", value.size());
  if (!value.is_object()) return text + "is " + shortened(value);
  text += "has:";
  for (const auto& [key, member] : value.items()) text += " " + key;
  return text;
}

[[noreturn]] void refuse(std::string_view pointer, std::string_view problem) {
  throw InputError{printable(fmt::format("--set {}: {}", pointer, problem))};
}

/// A member that may be absent, or a word for one of its own members, as an object.
Json* grown(Json& root, const std::string& step, Json* found) {
  const bool optional = step == "collectives" || step == "run" || step == "data";
  if (optional && !found) return &(root[step] = Json::object());
  if (step != "network" || (found && !found->is_string())) return found;
  Json object = Json::object();
  if (found) object["mode"] = *found;
  return &(root[step] = std::move(object));
}

/// The value at a pointer; null if there is none.
const Json* value_at(Json& root, const std::string& pointer) {
  Json* at = &root;
  for (const std::string& step : steps_of(pointer)) {
    if (at != nullptr) at = member_of(*at, step);
  }
  return at;
}

/// Replaces the value at one pointer.
void put(Json& root, const std::string& pointer, const Json& value) {
  Json* at = &root;
  std::string walked;
  const std::vector<std::string> steps = steps_of(pointer);
  for (std::size_t i = 0; i + 1 < steps.size(); ++i) {
    Json* next = member_of(*at, steps[i]);
    if (i == 0) next = grown(root, steps[i], next);
    // Every part of a run and of its data may be absent; their readers refuse unknown ones.
    if (!next && (steps[0] == "run" || steps[0] == "data") && at->is_object()) {
      next = &((*at)[steps[i]] = Json::object());
    }
    if (!next) refuse(pointer, "no such value; " + contents(*at, walked));
    walked += "/" + steps[i];
    at = next;
  }
  Json* target = member_of(*at, steps.back());
  if (target) {
    *target = value;
    return;
  }
  // An optional member may be new; the section's reader refuses unknown ones.
  if (!at->is_object()) refuse(pointer, "no such value; " + contents(*at, walked));
  (*at)[steps.back()] = value;
}

/// Replaces the value at one pointer. The source of the old one is not that of the new one.
void put_given(Json& root, const std::string& pointer, const Json& value) {
  if (pointer.empty() || pointer[0] != '/') {
    refuse(pointer, "expected a JSON pointer such as /plan/tensor");
  }
  const Json* before = value_at(root, pointer);
  const bool same = before != nullptr && *before == value;
  put(root, pointer, value);
  if (same) return;
  std::string unescaped;
  for (const std::string& step : steps_of(pointer)) unescaped += "/" + step;
  hardware::mark_given(root, unescaped, value);
}

/// A model's reader ignores keys that it does not know, so a new key is checked here.
void refuse_unused_model_key(const Json& model, const std::string& pointer, const Json& before) {
  constexpr std::string_view head = "/model/";
  const std::string key = pointer.substr(std::min(head.size(), pointer.size()));
  if (before.contains(key) || key.find('/') != std::string::npos) return;
  const std::vector<std::string> ignored =
      models::read_model(Node{model, pointer, ""}).ignored_keys;
  if (std::ranges::find(ignored, key) == ignored.end()) return;
  refuse(pointer, "no such value; " + contents(before, "/model"));
}

/// Erases what a change invalidates: the published figure, and the note on a default that was
/// replaced.
void drop_what_changed(Json& scenario, Section section, const std::string& pointer) {
  if (section != Section::software) scenario.erase("published");
  const auto noted = scenario.find("assumptions");
  if (pointer != "/software" || noted == scenario.end()) return;
  noted->erase(std::remove_if(noted->begin(), noted->end(),
                              [](const Json& each) {
                                return each.is_string() && each.get_ref<const std::string&>().rfind(
                                                               "/software:", 0) == 0;
                              }),
               noted->end());
}

/// Adds an assumption, once, if a change is to a number that no price depends on.
void note_unpriced(Json& scenario, const std::string& pointer) {
  const auto reason = why_unpriced(pointer);
  if (!reason) return;
  Json& assumptions = scenario["assumptions"];
  const std::string note = fmt::format("{}: not priced: {}", pointer, *reason);
  if (std::find(assumptions.begin(), assumptions.end(), Json(note)) == assumptions.end()) {
    assumptions.push_back(note);
  }
}

/// The name that a cluster was given by its number of nodes, "dgx-h100 x 8", with the new number.
void rename_after_nodes(Json& cluster, const Json& before, const Json& nodes) {
  const auto name = cluster.find("name");
  if (name == cluster.end() || !name->is_string() || !nodes.is_number_integer()) return;
  const std::string text = name->get<std::string>();
  const std::string ending = fmt::format(" x {}", before.dump());
  if (!text.ends_with(ending)) return;
  *name = text.substr(0, text.size() - ending.size()) + fmt::format(" x {}", nodes.dump());
}

/// Drops counts that describe the fabric's earlier kind, unless these changes state them.
void drop_other_shapes(Json& cluster, const std::vector<std::pair<std::string, Json>>& changes) {
  std::vector<std::string> stated;
  for (const auto& [pointer, value] : changes) {
    const std::vector<std::string> steps = steps_of(pointer);
    if (steps.size() > 2 && steps[0] == "cluster" && steps[1] == "fabric") {
      stated.push_back(steps[2]);
    }
  }
  Json& fabric = cluster["fabric"];
  const auto dropped = hardware::drop_other_shapes(fabric, fabric["kind"], stated);
  if (dropped.empty()) return;
  cluster["assumptions"].push_back(fmt::format("fabric: {} of the earlier kind {} dropped",
                                               fmt::join(dropped, ", "),
                                               dropped.size() == 1 ? "was" : "were"));
}

bool touches(const std::string& pointer, const std::string& section) {
  return pointer == "/" + section || pointer.rfind("/" + section + "/", 0) == 0;
}

/// Where the value of a pointer has its place. Errors  a value that an expanded cluster has no
/// place for
std::string place_of(const std::string& pointer) {
  constexpr std::string_view cluster = "/cluster";
  if (!touches(pointer, "cluster")) return pointer;
  const std::string_view inside = std::string_view{pointer}.substr(cluster.size());
  if (inside == "/node/nic") refuse(pointer, "the rate of a NIC is /cluster/fabric/bandwidth");
  return std::string{cluster}.append(hardware::place_in_expanded(inside));
}

/// A node with another number of its GPUs has as much of the host's power for each of them.
void scale_host_power(Json& cluster, const Json& gpus) {
  const auto found = cluster.find("node");
  if (found == cluster.end() || !found->is_object() || !gpus.is_number_integer()) return;
  Json& node = *found;
  if (!node.contains("host_power") || !node.contains("gpus")) return;
  if (!node["gpus"].is_number_integer() || node["gpus"] == gpus) return;
  const auto before = node["gpus"].get<double>(), after = gpus.get<double>();
  if (before <= 0 || after <= 0) return;
  const Power power = Node{node, "--set", "/cluster/node"}["host_power"].as<Power>();
  const std::string scaled = fmt::format("{:.6g} W", power.count() * after / before);
  node["host_power"] = scaled;
  hardware::set_source(node, "/host_power",
                       fmt::format("as much for each GPU as {:.0f} of them have", before));
  cluster["assumptions"].push_back(
      fmt::format("host_power of {:.0f} GPUs stated; {} assumed, as much for each of {:.0f}",
                  before, scaled, after));
}

/// Drops from the expanded cluster what depends on the value at a pointer, before it changes: a
/// listed price is for a number of nodes of one type, a fabric's constants are of its class. A name
/// that counts the nodes follows `value`.
void drop_what_depends(Json& cluster, const std::string& pointer, const Json& value) {
  constexpr std::array<std::string_view, 4> priced{"/cluster/nodes", "/cluster/node",
                                                   "/cluster/node/gpu", "/cluster/node/name"};
  if (std::ranges::find(priced, pointer) != priced.end()) hardware::drop_listed_price(cluster);
  if (pointer == "/cluster/nodes" && cluster.contains("nodes")) {
    rename_after_nodes(cluster, cluster["nodes"], value);
  }
  if (pointer == "/cluster/fabric/latency_class" && cluster.contains("fabric")) {
    hardware::drop_latency_class(cluster["fabric"]);
  }
}

bool states_host_power(const std::vector<std::pair<std::string, Json>>& changes) {
  return std::ranges::any_of(
      changes, [](const auto& each) { return each.first == "/cluster/node/host_power"; });
}

/// The first change of the number of nodes, their GPUs or a degree; none if /plan/data is changed
/// as well.
std::optional<std::string> change_of_ranks(
    const std::vector<std::pair<std::string, Json>>& changes) {
  constexpr std::string_view counts[] = {"/cluster/nodes", "/cluster/node", "/cluster/node/gpus",
                                         "/plan/tensor",   "/plan/context", "/plan/pipeline"};
  std::optional<std::string> first;
  for (const auto& [pointer, value] : changes) {
    if (pointer == "/plan" || pointer == "/plan/data") return std::nullopt;
    if (!first && std::ranges::find(counts, pointer) != std::end(counts)) first = pointer;
  }
  return first;
}

}  // namespace

Scenario Scenario::replace(const std::vector<std::pair<std::string, Json>>& changes) const {
  return with_values(changes).with_derived_data(changes);
}

Scenario Scenario::with_derived_data(
    const std::vector<std::pair<std::string, Json>>& changes) const {
  Scenario derived = *this;
  if (const auto counted = change_of_ranks(changes)) derived.derive_refused_data(*counted);
  return derived;
}

Scenario Scenario::with_values(const std::vector<std::pair<std::string, Json>>& changes) const {
  Scenario changed = *this;
  for (const auto& [pointer, value] : changes) {
    const Json& before = json_.at("model");
    drop_what_depends(changed.json_["cluster"], pointer, value);
    if (pointer == "/cluster/node/gpus" && !states_host_power(changes)) {
      scale_host_power(changed.json_["cluster"], value);
    }
    put_given(changed.json_, place_of(pointer), value);
    if (pointer == "/cluster/fabric/kind") drop_other_shapes(changed.json_["cluster"], changes);
    note_unpriced(changed.json_, pointer);
    for (const Section section : all_sections) {
      const std::string key = scenarios::name(section);
      if (!touches(pointer, key)) continue;
      if (section == Section::cluster) changed.cluster_.reset();
      Json& written = changed.json_[key];
      written = expanded(section, Node{written, "--set", "/" + key}, "").json;
      // The rest of a section stays where it was written.
      const auto origin = changed.origins_.find(key);
      if (pointer == "/" + key) {
        changed.origins_.erase(key);
      } else if (origin != changed.origins_.end()) {
        origin->second.changed.push_back(pointer);
      }
      drop_what_changed(changed.json_, section, pointer);
      if (section == Section::model && pointer != "/model") {
        refuse_unused_model_key(written, pointer, before);
      }
    }
  }
  Node{changed.json_, file_, ""}.only({"name", "model", "cluster", "plan", "software", "tokens",
                                       "published", "notes", "assumptions", "network", "placement",
                                       "perturbations", "jobs", "collectives", "run", "data"});
  return changed;
}

std::pair<std::string, Json> parse_change(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos || text.empty() || text[0] != '/') {
    throw InputError{"--set",
                     fmt::format("expected POINTER=VALUE, found '{}'", printable(text, 60))};
  }
  const std::string pointer{text.substr(0, equals)};
  const std::string_view value = text.substr(equals + 1);
  const bool structured =
      !value.empty() && std::string_view{"{[\""}.find(value[0]) != std::string_view::npos;
  try {
    return {pointer, Document::parse(value, "--set " + pointer).json()};
  } catch (const InputError&) {
    if (structured) throw;
  }
  return {pointer, std::string{value}};
}

}  // namespace orrery::scenarios
