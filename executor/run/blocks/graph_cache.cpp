#include "executor/run/blocks/graph_cache.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "executor/errors.hpp"
#include "executor/run/weights/random.hpp"
#include "sim/errors.hpp"

namespace orrery::executor {

GraphCache::GraphCache(const models::Program& program, Device& device)
    : program_{program}, graphs_{device.graphs()}, known_(program.blocks.size()) {
  for (std::size_t b = 0; b < program.blocks.size(); ++b) {
    const std::vector<models::Operation>& operations = program.blocks[b].operations;
    for (const models::GraphSegment& each : models::graph_segments(program, b)) {
      ensure(graphs_ != nullptr, "a plan with CUDA graphs on a device without");
      Known& known = known_[b].emplace_back(Known{each, {}, false});
      for (std::size_t i = each.first; i < each.end; ++i) {
        for (const auto* ids : {&operations[i].reads, &operations[i].writes}) {
          known.operands.insert(known.operands.end(), ids->begin(), ids->end());
        }
        known.reads_loss_scale =
            known.reads_loss_scale || operations[i].kind == models::OpKind::cross_entropy_backward;
      }
      std::sort(known.operands.begin(), known.operands.end());
      const auto end = std::unique(known.operands.begin(), known.operands.end());
      known.operands.erase(end, known.operands.end());
    }
  }
}

GraphCache::~GraphCache() {
  for (const auto& [key, use] : uses_) {
    if (use.captured) graphs_->release(use.graph);
  }
}

const GraphCache::Known* GraphCache::beginning(std::size_t block, std::size_t operation) const {
  for (const Known& each : known_[block]) {
    if (each.first == operation) return &each;
  }
  return nullptr;
}

std::size_t GraphCache::Hash::operator()(const Key& key) const {
  Fnv1a hash;  // of whole words
  hash.add(key.block);
  hash.add(key.first);
  for (const std::byte* each : key.operands) hash.add(reinterpret_cast<std::uintptr_t>(each) >> 4);
  return hash.value();
}

void GraphCache::run(std::size_t block, const Known& segment, const std::vector<View>& views,
                     double loss_scale, const std::function<void()>& kernels) {
  asked_.block = block;
  asked_.first = segment.first;
  asked_.loss_scale = segment.reads_loss_scale ? loss_scale : 0;
  asked_.operands.clear();
  for (const models::OperandId id : segment.operands) asked_.operands.push_back(views[id].data);
  const auto found = uses_.find(asked_);
  if (found == uses_.end()) {
    uses_.emplace(asked_, Use{});
    return kernels();
  }
  Use& use = found->second;
  if (!use.captured) use = {true, capture(block, kernels)};
  graphs_->launch(use.graph);
  ++counts_.launches;
}

Graph GraphCache::capture(std::size_t block, const std::function<void()>& kernels) {
  try {
    const Graph made = graphs_->capture(kernels);
    ++counts_.graphs;
    counts_.nodes += made.nodes;
    return made;
  } catch (const RunFailure& failure) {
    throw RunFailure{failure.code(), fmt::format("capturing '{}' as a CUDA graph: {}",
                                                 program_.blocks[block].name, failure.what())};
  }
}

}  // namespace orrery::executor
