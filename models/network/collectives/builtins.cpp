// The table of collective algorithms. No macros, no static initialisers.

#include "models/network/collectives/collective.hpp"
#include "models/network/collectives/terms.hpp"

namespace orrery::models {

namespace {

using enum Collective;

Registry<CollectiveAlgorithm> all_algorithms() {
  Registry<CollectiveAlgorithm> known{"collective algorithm"};
  // Before "tree", so that it wins where both are equally fast.
  known.add("nvls_tree", {.times = collectives::nvls_tree,
                          .operations = {all_reduce},
                          .pattern = TrafficPattern::tree,
                          .nccl = "NVLSTree",
                          .paper = "NCCL, src/graph/tuning.cc"});
  known.add("tree", {.times = collectives::tree,
                     .operations = {all_reduce},
                     .pattern = TrafficPattern::tree,
                     .nccl = "Tree",
                     .paper = "Sanders, Speck & Traeff 2009, \"Two-tree algorithms for full "
                              "bandwidth broadcast, reduction and scan\""});
  known.add("ring",
            {.times = collectives::ring,
             .operations = {all_reduce, all_gather, reduce_scatter, broadcast, reduce},
             .pattern = TrafficPattern::ring,
             .nccl = "Ring",
             .paper = "Patarasuk & Yuan 2009, \"Bandwidth optimal all-reduce algorithms\""});
  known.add("nvls", {.times = collectives::nvls,
                     .operations = {all_reduce},
                     .pattern = TrafficPattern::none,
                     .nccl = "NVLS",
                     .paper = "Klenk et al. 2020, \"An in-network architecture for accelerating "
                              "shared-memory multiprocessor collectives\""});
  known.add("collnet", {.times = collectives::collnet,
                        .operations = {all_reduce},
                        .pattern = TrafficPattern::tree,
                        .nccl = "CollNet",
                        .paper = "Graham et al. 2016, \"Scalable hierarchical aggregation protocol "
                                 "(SHArP)\""});
  known.add("pat", {.times = collectives::pat,
                    .operations = {all_gather, reduce_scatter},
                    .pattern = TrafficPattern::tree,
                    .use = AlgorithmUse::named,
                    .nccl = "PAT",
                    .paper = "Jeaugey 2025, \"PAT: a new algorithm for all-gather and "
                             "reduce-scatter operations at scale\", arXiv 2506.20252"});
  known.add("hierarchical", {.times = collectives::hierarchical,
                             .operations = {all_reduce, all_gather, reduce_scatter},
                             .pattern = TrafficPattern::ring,
                             .use = AlgorithmUse::named,
                             .paper = "Mikami et al. 2018, \"Massively distributed SGD\", "
                                      "arXiv 1811.05233"});
  known.add("pairwise", {.times = collectives::pairwise,
                         .operations = {all_to_all, all_to_all_v},
                         .pattern = TrafficPattern::all_pairs,
                         .paper = "Thakur, Rabenseifner & Gropp 2005, \"Optimization of "
                                  "collective communication operations in MPICH\""});
  known.add("hierarchical_all_to_all",
            {.times = collectives::hierarchical_all_to_all,
             .operations = {all_to_all},
             .pattern = TrafficPattern::all_pairs,
             .use = AlgorithmUse::named,
             .paper = "Hwang et al. 2022, \"Tutel: adaptive mixture-of-experts at scale\", "
                      "arXiv 2206.03382"});
  known.add("deduplicating",
            {.times = collectives::deduplicating,
             .operations = {all_to_all},
             .pattern = TrafficPattern::all_pairs,
             .use = AlgorithmUse::named,
             .paper = "Zhao et al. 2025, \"Insights into DeepSeek-V3\", arXiv 2505.09343"});
  known.add("rooted", {.times = collectives::rooted,
                       .operations = {gather, scatter},
                       .pattern = TrafficPattern::star,
                       .paper = "nccl-tests, src/gather.cu and src/scatter.cu"});
  known.add("direct", {.times = collectives::direct,
                       .operations = {send_receive},
                       .pattern = TrafficPattern::pair,
                       .paper = "one message"});
  return known;
}

}  // namespace

const Registry<CollectiveAlgorithm>& builtin_algorithms() {
  static const Registry<CollectiveAlgorithm> known = all_algorithms();
  return known;
}

}  // namespace orrery::models
