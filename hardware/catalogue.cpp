#include "hardware/catalogue.hpp"

#include "hardware/cluster/expand.hpp"
#include "sim/input/text.hpp"

namespace orrery::hardware {

namespace {

Json entry_of(EntryKind kind, std::string_view name) {
  const Json* entry = find_entry(kind, name);
  if (!entry) throw InputError{unknown_entry(kind, name)};
  return *entry;
}

/// `NODE x COUNT`: nothing if the text is not of that form.
struct NodesByCount {
  std::string_view node;
  std::int64_t count = 1;  // as typed: who reads the cluster says how many there may be
};
std::optional<NodesByCount> nodes_by_count(std::string_view text) {
  const std::size_t times = text.rfind(" x ");
  if (times == std::string_view::npos) return std::nullopt;
  const auto count = number_in<std::int64_t>(text.substr(times + 3));
  return count ? std::optional{NodesByCount{text.substr(0, times), *count}} : std::nullopt;
}

Json expanded(const Json& cluster, std::string_view name) {
  const std::string place{name};
  return expand_cluster(Node{cluster, place, ""});
}

}  // namespace

std::vector<std::string> Catalogue::gpus() {
  return entry_names(EntryKind::gpu);
}
std::vector<std::string> Catalogue::nodes() {
  return entry_names(EntryKind::node);
}
std::vector<std::string> Catalogue::clusters() {
  return entry_names(EntryKind::cluster);
}

Json Catalogue::gpu(std::string_view name) {
  return entry_of(EntryKind::gpu, name);
}

Json Catalogue::node(std::string_view name) {
  const Json entry = entry_of(EntryKind::node, name);
  const std::string place{name};
  Json assumptions = Json::array();
  return expand_node(Node{entry, place, ""}, assumptions);
}

Json Catalogue::cluster(std::string_view name) {
  if (const Json* entry = find_entry(EntryKind::cluster, name)) return expanded(*entry, name);
  NodesByCount parts{name};
  if (const auto counted = nodes_by_count(name)) parts = *counted;
  if (!find_entry(EntryKind::node, parts.node)) {
    if (parts.node.size() < name.size())
      throw InputError{unknown_entry(EntryKind::node, parts.node)};
    throw InputError{unknown_entry(EntryKind::cluster, name) + "; or NODE x COUNT (dgx-h100 x 64)"};
  }
  const std::string title = std::string{parts.node} + " x " + std::to_string(parts.count);
  const Json cluster{{"name", title}, {"node", parts.node}, {"nodes", parts.count}};
  return expanded(cluster, title);
}

Cluster named_cluster(std::string_view name) {
  const Document document = Document::from(Catalogue::cluster(name), std::string{name});
  return read_cluster(document.root());
}

Gpu named_gpu(std::string_view name) {
  const Document document = Document::from(Catalogue::gpu(name), std::string{name});
  return read_gpu(document.root());
}

}  // namespace orrery::hardware
