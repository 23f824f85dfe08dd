#pragma once
// The shipped GPUs, nodes, fabrics, clusters and prices, and how a cluster file is read. Every
// number in the catalogue carries a source (hardware/sources.hpp); numbers with the source
// `unconfirmed` are counted. File format: hardware/catalogue/README.md.

#include <string>
#include <string_view>
#include <vector>

#include "hardware/cluster/cluster.hpp"
#include "sim/input/document.hpp"

namespace orrery::hardware {

/// The shipped catalogue; read-only and without state, so any number of callers may share it.
class Catalogue {
 public:
  static std::vector<std::string> gpus();
  static std::vector<std::string> nodes();
  static std::vector<std::string> clusters();

  /// JSON of an entry by name or alias, with all names in it expanded: pointers always resolve.
  /// Errors: `unknown GPU 'x'; known: ...`.
  static Json gpu(std::string_view name);
  static Json node(std::string_view name);
  /// A cluster name ("selene"), a node type ("dgx-h100": one of it), or `NODE x COUNT`
  /// ("dgx-h100 x 64") over the node's usual fabric.
  static Json cluster(std::string_view name);
};

/// Expands names inside a user's cluster JSON (a string, or an object whose `node`, `node.gpu`,
/// `node.scale_up` or `fabric` may be names or `{"like": NAME, ...}`) into one self-contained
/// object. Parts that are already expanded stay unchanged.
Json expand_cluster(const Node& cluster);

/// Reads an expanded cluster. Unknown keys, missing units and impossible values are InputErrors.
/// A GPU without measured curves gets the fallback curves of its generation, listed in
/// `Cluster::assumptions`.
Cluster read_cluster(const Node& cluster);
Gpu read_gpu(const Node& gpu);

/// Shorthands for code and tests: an entry, expanded and read.
Cluster named_cluster(std::string_view name);
Gpu named_gpu(std::string_view name);

}  // namespace orrery::hardware
