#include "executor/layout.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "models/lowering/lower.hpp"
#include "sim/errors.hpp"

namespace orrery::executor {

namespace {

using models::Operand;
using models::Program;

enum class TensorCut : std::uint8_t { whole, rows, columns, vocabulary_rows, vocabulary };

/// How a parameter is cut over the tensor group: column layers by outputs, row layers by inputs,
/// tables of the vocabulary by its rows.
TensorCut cut_of(std::string_view operand) {
  if (operand == "embedding.weight" || operand == "head.weight") return TensorCut::vocabulary_rows;
  if (operand == "head.bias") return TensorCut::vocabulary;
  const std::string_view layer = operand.substr(0, operand.find('.'));
  if (layer == "qkv" || layer == "up") return TensorCut::columns;
  if (operand == "projection.weight" || operand == "down.weight") return TensorCut::rows;
  return TensorCut::whole;
}

std::string key_of(std::int64_t layer, const std::string& operand) {
  return layer < 0 ? operand : fmt::format("layer{}.{}", layer, operand);
}

/// A column-cut weight's columns lie in groups, each cut by itself: queries, keys and values; gate
/// and up.
std::vector<std::int64_t> column_groups(const models::Model& model, std::string_view operand) {
  if (operand.substr(0, 3) == "qkv") {
    const std::int64_t d = model.head_dim;
    return {model.heads * d, model.kv_heads * d, model.kv_heads * d};
  }
  if (model.gated_mlp) return {model.ffn_hidden, model.ffn_hidden};
  return {model.ffn_hidden};
}

bool marked_addend(const models::Block& backward, const std::string& operand) {
  const auto gradient = backward.find(operand + ".grad");
  return gradient && backward.operands[*gradient].tensor_addend;
}

}  // namespace

Layout::Layout(const Program& program, std::int64_t rank)
    : program_{program},
      stage_{program.mesh.stage_of(rank)},
      data_{program.mesh.data_of(rank)},
      tensor_{program.mesh.tensor_of(rank)},
      shards_{program.plan.zero == models::Zero::none ? 1 : program.plan.data} {
  name_tensors();
  for (std::int64_t v = 0; v < program.plan.virtual_stages; ++v) {
    place_chunk(static_cast<std::uint32_t>(v * program.plan.pipeline + stage_));
  }
  list_runs();
  list_addends();
}

/// Is it the embedding's table under another name, on the same stage?
bool Layout::alias(std::uint32_t block, const std::string& operand) const {
  return block == models::head_forward && operand == "head.weight" &&
         program_.model.tied_embeddings && program_.plan.pipeline == 1;
}

std::uint32_t Layout::tensor_named(std::uint32_t block, std::int64_t layer,
                                   const Operand& operand) {
  const bool tied = block == models::head_forward && operand.name == "head.weight" &&
                    program_.model.tied_embeddings;
  const std::string name = tied ? "embedding.weight" : key_of(layer, operand.name);
  const auto [known, fresh] =
      numbers_.try_emplace(name, static_cast<std::uint32_t>(tensors_.size()));
  if (!fresh) return known->second;
  const PlacedTensor here = cut(block, operand);
  const std::int64_t t = program_.plan.tensor;
  StateTensor tensor{name, here.rows, here.columns};
  switch (cut_of(operand.name)) {
    case TensorCut::rows:
      tensor.rows *= t;
      break;
    case TensorCut::columns:
      tensor.columns *= t;
      break;
    case TensorCut::vocabulary_rows:
      tensor.rows = program_.model.vocab;
      break;
    case TensorCut::vocabulary:
      tensor.columns = program_.model.vocab;
      break;
    case TensorCut::whole:
      break;
  }
  tensors_.push_back(std::move(tensor));
  return known->second;
}

/// In the order of the model, the same on every rank.
void Layout::name_tensors() {
  const auto name_block = [this](std::uint32_t block, std::int64_t layer) {
    for (const Operand& each : program_.blocks[block].operands) {
      if (each.role == models::Role::parameter) tensor_named(block, layer, each);
    }
  };
  name_block(models::embedding_forward, -1);
  for (std::int64_t layer = 0; layer < program_.model.layers; ++layer) {
    name_block(models::layer_forward, layer);
  }
  name_block(models::head_forward, -1);
}

PlacedTensor Layout::cut(std::uint32_t block, const Operand& operand) const {
  const models::Model& model = program_.model;
  const std::int64_t t = program_.plan.tensor;
  PlacedTensor here;
  here.rows = operand.shape[1];
  here.columns = operand.shape[2];
  // The head's weight lies as the table that it may be tied to.
  if (operand.name == "head.weight") std::swap(here.rows, here.columns);
  here.parts = {{0, 0, here.columns}};
  switch (cut_of(operand.name)) {
    case TensorCut::rows:
      here.first_row = tensor_ * here.rows;
      break;
    case TensorCut::columns: {
      here.parts.clear();
      std::int64_t local = 0, global = 0;
      for (const std::int64_t group : column_groups(model, operand.name)) {
        const std::int64_t share = group / t;
        here.parts.push_back({local, global + tensor_ * share, share});
        local += share;
        global += group;
      }
      ensure(local == here.columns, "a column-cut parameter has columns of no group");
      break;
    }
    case TensorCut::vocabulary_rows:
      here.first_row = tensor_ * here.rows;
      break;
    case TensorCut::vocabulary: {
      const std::int64_t first = tensor_ * here.columns;
      const std::int64_t real = std::clamp<std::int64_t>(model.vocab - first, 0, here.columns);
      here.parts = {{0, first, real}};
      break;
    }
    case TensorCut::whole:
      here.replicated = t > 1;
      break;
  }
  here.addend = marked_addend(program_.blocks[block + 1], operand.name);
  here.copy =
      block == models::head_forward && operand.name == "head.weight" && model.tied_embeddings;
  return here;
}

void Layout::place_block(std::uint32_t block, std::int64_t layer) {
  for (const Operand& each : program_.blocks[block].operands) {
    if (each.role != models::Role::parameter || alias(block, each.name)) continue;
    PlacedTensor here = cut(block, each);
    here.tensor = tensor_named(block, layer, each);
    here.offset = elements_;
    elements_ += here.elements();
    offsets_[key_of(layer, each.name)] = here.offset;
    placed_.push_back(std::move(here));
  }
}

/// Head, layers down, embedding: as backward goes. Where a tied embedding and its head are gathered
/// as one (ZeRO-3), the head stands beside the embedding.
void Layout::place_chunk(std::uint32_t chunk) {
  const std::size_t first = placed_.size();
  std::vector<models::Invocation> runs = program_.phases[models::backward_phase(chunk)].invocations;
  const bool one_unit = program_.plan.zero == models::Zero::three && program_.plan.data > 1 &&
                        program_.model.tied_embeddings && program_.plan.pipeline == 1;
  if (one_unit) {
    std::stable_partition(runs.begin(), runs.end(), [](const models::Invocation& run) {
      return run.block == models::layer_backward;
    });
  }
  for (const models::Invocation& run : runs) {
    for (std::int64_t i = 0; i < run.count; ++i) {
      place_block(run.block - 1, run.first_layer < 0 ? -1 : run.first_layer - i);
    }
  }
  cut_buckets(chunk, first);
}

const PlacedTensor* Layout::tied_table() const {
  if (!program_.model.tied_embeddings || program_.plan.pipeline == 1) return nullptr;
  for (const PlacedTensor& each : placed_) {
    if (tensors_[each.tensor].name == "embedding.weight") return &each;
  }
  return nullptr;
}

/// Each reduction of the chunk takes the next of its gradients, as many as its bytes say. Padding
/// moves what lies behind.
void Layout::cut_buckets(std::uint32_t chunk, std::size_t first_placed) {
  // Under ZeRO-2 and 3 every micro-batch reduces the same buckets in the same order.
  std::vector<std::int64_t> cuts;
  std::map<std::uint32_t, std::size_t> reductions;  // of a micro-batch, so far
  std::vector<std::pair<std::uint32_t, std::size_t>> cut_of;
  const models::RankClass& ranks = program_.classes[static_cast<std::size_t>(stage_)];
  for (const models::Instruction& each : ranks.instructions) {
    if (each.op != models::Opcode::reduce_gradient || each.chunk != chunk) continue;
    const models::JointCollective& joint = program_.collectives[each.target];
    std::size_t& k = reductions[each.micro_batch];
    const bool goes_along = joint.elements == 0;  // places of a compressed bucket's values
    if (!goes_along && k == cuts.size()) cuts.push_back(joint.elements);
    if (!goes_along) ++k;
    cut_of.emplace_back(each.target, k - 1);
  }
  const std::int64_t begin =
      first_placed < placed_.size() ? placed_[first_placed].offset : elements_;
  if (cuts.empty()) cuts.push_back(elements_ - begin);
  std::vector<std::pair<std::size_t, std::size_t>> ranges;

  const PlacedTensor* table = sharded() ? tied_table() : nullptr;
  const std::int64_t table_offset = table == nullptr ? -1 : table->offset;
  const std::int64_t table_end = table == nullptr ? -1 : table->offset + table->elements();
  std::vector<PlacedTensor> moved(placed_.begin() + static_cast<std::ptrdiff_t>(first_placed),
                                  placed_.end());
  std::int64_t from = begin, to = begin;  // before padding, and with it
  for (const std::int64_t count : cuts) {
    const std::int64_t end = from + count;
    ensure(end <= elements_, "a bucket holds more than the chunk's gradients");
    const std::size_t first_bucket = buckets_.size();
    while (from < end) {
      std::int64_t next = end;
      for (const std::int64_t edge : {table_offset, table_end}) {
        if (edge > from && edge < next) next = edge;
      }
      Bucket bucket{.chunk = chunk, .first = to, .count = next - from};
      bucket.piece = (bucket.count + shards_ - 1) / shards_;
      bucket.padded = bucket.piece * shards_;
      bucket.owned = owned_;
      owned_ += bucket.piece;
      for (std::size_t i = 0; i < moved.size(); ++i) {
        PlacedTensor& old = moved[i];
        if (old.offset < from || old.offset >= next) continue;
        placed_[first_placed + i].offset = old.offset - from + to;
      }
      to += bucket.padded;
      from = next;
      buckets_.push_back(bucket);
    }
    ranges.emplace_back(first_bucket, buckets_.size());
  }
  ensure(from == elements_, "a gradient belongs to no bucket");
  for (const auto& [collective, k] : cut_of) reduced_[collective] = ranges.at(k);
  for (auto& [name, offset] : offsets_) {
    for (std::size_t i = 0; i < moved.size(); ++i) {
      if (moved[i].offset != offset || offset < begin) continue;
      offset = placed_[first_placed + i].offset;
      break;
    }
  }
  elements_ = to;
}

std::pair<std::size_t, std::size_t> Layout::reduced(std::uint32_t collective) const {
  return reduced_.at(collective);
}

std::int64_t Layout::piece_of(const Bucket& bucket) const {
  return bucket.first + (sharded() ? data_ * bucket.piece : 0);
}

std::size_t Layout::bucket_at(std::int64_t element) const {
  const auto behind =
      std::upper_bound(buckets_.begin(), buckets_.end(), element,
                       [](std::int64_t at, const Bucket& bucket) { return at < bucket.first; });
  return static_cast<std::size_t>(behind - buckets_.begin()) - 1;
}

std::int64_t Layout::offset(std::uint32_t forward_block, std::int64_t layer,
                            const std::string& operand) const {
  return offsets_.at(alias(forward_block, operand) ? "embedding.weight" : key_of(layer, operand));
}

std::vector<StateRun> Layout::runs_of(const PlacedTensor& here) const {
  const StateTensor& whole = tensors_[here.tensor];
  std::vector<StateRun> runs;
  for (std::int64_t row = 0; row < here.rows; ++row) {
    const std::int64_t global_row = here.first_row + row;
    if (global_row >= whole.rows) break;  // padding of the vocabulary
    for (const ColumnPart& part : here.parts) {
      const StateRun run{here.tensor, global_row * whole.columns + part.global, part.count,
                         here.offset + row * here.columns + part.local, false};
      StateRun* last = runs.empty() ? nullptr : &runs.back();
      const bool joins = last != nullptr && last->offset + last->count == run.offset &&
                         last->local + last->count == run.local;
      if (joins) {
        last->count += run.count;
      } else if (run.count > 0) {
        runs.push_back(run);
      }
    }
  }
  return runs;
}

/// Cuts every tensor's runs at the pieces of this rank.
void Layout::list_runs() {
  std::vector<PlacedTensor> ordered = placed_;
  std::sort(ordered.begin(), ordered.end(),
            [](const PlacedTensor& a, const PlacedTensor& b) { return a.offset < b.offset; });
  for (const PlacedTensor& here : ordered) {
    const bool first_of_tensor_group = !here.replicated || tensor_ == 0;
    const bool counts = first_of_tensor_group && !here.copy;
    const bool single = shards_ > 1 || data_ == 0;
    for (const StateRun& run : runs_of(here)) {
      for (const Bucket& bucket : buckets_) {
        const std::int64_t piece = piece_of(bucket);
        const std::int64_t first = std::max(run.local, piece);
        const std::int64_t last = std::min(run.local + run.count, piece + bucket.piece);
        if (first >= last) continue;
        runs_.push_back({run.tensor, run.offset + first - run.local, last - first,
                         bucket.owned + first - piece, counts && single});
        if (!counts) continue;
        const bool joins =
            !counted_.empty() && counted_.back().first + counted_.back().count == first;
        if (joins) {
          counted_.back().count += last - first;
        } else {
          counted_.push_back({first, last - first});
        }
      }
    }
  }
}

void Layout::list_addends() {
  const bool pieces = shards_ > 1 && program_.plan.zero != models::Zero::one;
  for (const PlacedTensor& each : placed_) {
    if (!each.addend) continue;
    if (!pieces) {
      addends_.push_back({each.offset, each.elements()});
      continue;
    }
    const Bucket& bucket = buckets_[bucket_at(each.offset)];
    const std::int64_t first = std::max(each.offset, piece_of(bucket));
    const std::int64_t last =
        std::min(each.offset + each.elements(), piece_of(bucket) + bucket.piece);
    if (first < last) addends_.push_back({first, last - first});
  }
}

}  // namespace orrery::executor
