// How a layout is cut into buckets and pieces, and which elements of the model they hold.

#include <algorithm>
#include <map>

#include "executor/layout/layout.hpp"
#include "sim/errors.hpp"

namespace orrery::executor {

const PlacedTensor* Layout::tied_table() const {
  if (!tied_ || tied_here()) return nullptr;
  for (const PlacedTensor& each : placed_) {
    if (each.tensor == *tied_) return &each;
  }
  return nullptr;
}

/// The number of elements of each of a chunk's reductions, in their order. Where gradients are
/// sharded, every micro-batch reduces the same buckets in the same order.
Layout::Reductions Layout::reductions_of(std::uint32_t chunk, models::MeshView view) const {
  Reductions found;
  std::map<std::uint32_t, std::size_t> so_far;   // reductions, by micro-batch
  std::map<std::uint32_t, std::size_t> by_unit;  // of a compressed bucket's first part
  for (const models::Instruction& each :
       program_.classes[static_cast<std::size_t>(stage_)].instructions) {
    if (each.op != models::Opcode::reduce_gradient || each.chunk != chunk) continue;
    const models::JointCollective& joint = program_.collectives[each.target];
    if (program_.units[joint.first_unit].view != view) continue;
    std::size_t& k = so_far[each.micro_batch];
    if (joint.part > 0) {  // a further part of a compressed bucket; other buckets may come between
      found.of_collective.emplace_back(each.target, by_unit.at(joint.first_unit));
      continue;
    }
    // HSDP: the same pieces are reduced once more, between copies.
    const bool goes_along =
        program_.role_of(joint.communicator) == models::CommunicatorRole::replica;
    if (!goes_along && k == found.elements.size()) found.elements.push_back(joint.elements);
    if (!goes_along) ++k;
    by_unit[joint.first_unit] = k - 1;
    found.of_collective.emplace_back(each.target, k - 1);
  }
  return found;
}

/// Cuts a chunk's gradients into buckets: each reduction takes as many of the next elements as it
/// holds, and a tied table is a bucket of its own. Padding shifts the tensors after it.
void Layout::cut_buckets(std::uint32_t chunk, std::size_t first_placed, models::MeshView view) {
  Reductions reductions = reductions_of(chunk, view);
  const std::vector<PlacedTensor> unpadded(
      placed_.begin() + static_cast<std::ptrdiff_t>(first_placed), placed_.end());
  std::int64_t from = unpadded.empty() ? elements_ : unpadded.front().offset, to = from;
  if (reductions.elements.empty()) reductions.elements.push_back(elements_ - from);
  const PlacedTensor* table = dense_.count > 1 ? tied_table() : nullptr;
  const std::int64_t table_begin = table == nullptr ? -1 : table->offset;
  const std::int64_t table_end = table == nullptr ? -1 : table->offset + table->elements();
  std::vector<std::pair<std::size_t, std::size_t>> ranges;
  for (const std::int64_t count : reductions.elements) {
    const std::int64_t end = from + count;
    ensure(end <= elements_, "a bucket holds more than the chunk's gradients");
    const std::size_t first_bucket = buckets_.size();
    while (from < end) {
      std::int64_t next = end;
      for (const std::int64_t edge : {table_begin, table_end}) {
        if (edge > from && edge < next) next = edge;
      }
      for (std::size_t i = 0; i < unpadded.size(); ++i) {
        const std::int64_t offset = unpadded[i].offset;
        if (from <= offset && offset < next) placed_[first_placed + i].offset = offset - from + to;
      }
      to += add_bucket(to, next - from, view);
      from = next;
    }
    ranges.emplace_back(first_bucket, buckets_.size());
  }
  ensure(from == elements_, "a gradient belongs to no bucket");
  for (const auto& [collective, k] : reductions.of_collective) reduced_[collective] = ranges.at(k);
  elements_ = to;
}

/// Appends a bucket and returns its number of elements, padding included.
std::int64_t Layout::add_bucket(std::int64_t first, std::int64_t count, models::MeshView view) {
  Bucket bucket{.first = first, .count = count};
  bucket.view = view;
  bucket.owners = view == models::MeshView::experts ? experts_ : dense_;
  bucket.piece = (count + bucket.owners.count - 1) / bucket.owners.count;
  bucket.padded = bucket.piece * bucket.owners.count;
  bucket.owned = owned_;
  owned_ += bucket.piece;
  buckets_.push_back(bucket);
  return bucket.padded;
}

std::pair<std::size_t, std::size_t> Layout::reduced(std::uint32_t collective) const {
  return reduced_.at(collective);
}

/// One bucket, or several where a tied table splits it.
std::pair<std::size_t, std::size_t> Layout::gathered(const models::JointCollective& joint) const {
  const models::Unit& unit = program_.units[joint.first_unit];
  const std::size_t first =
      bucket_at(begin_of(program_.kinds[unit.kinds.front()], unit.layer, unit.view));
  std::size_t last = first;
  for (std::int64_t held = 0; held < joint.elements; ++last) held += buckets_.at(last).count;
  return {first, last};
}

std::int64_t Layout::piece_of(const Bucket& bucket) const {
  return bucket.first + bucket.owners.index * bucket.piece;
}

std::size_t Layout::bucket_at(std::int64_t element) const {
  const auto after =
      std::upper_bound(buckets_.begin(), buckets_.end(), element,
                       [](std::int64_t at, const Bucket& bucket) { return at < bucket.first; });
  return static_cast<std::size_t>(after - buckets_.begin()) - 1;
}

std::vector<StateRun> Layout::runs_of(const PlacedTensor& here, const StateTensor& whole) {
  std::vector<StateRun> runs;
  for (std::int64_t row = 0; row < here.matrices * here.rows; ++row) {
    const std::int64_t in_matrix = here.first_row + row % here.rows;
    if (in_matrix >= here.matrix_rows) continue;  // padding of the vocabulary
    const std::int64_t global_row =
        (here.first_matrix + row / here.rows) * here.matrix_rows + in_matrix;
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

/// Cuts every tensor's runs to the pieces that this rank owns.
void Layout::list_runs() {
  std::vector<PlacedTensor> ordered = placed_;
  std::sort(ordered.begin(), ordered.end(),
            [](const PlacedTensor& a, const PlacedTensor& b) { return a.offset < b.offset; });
  for (const PlacedTensor& here : ordered) {
    const bool counts = here.counts && !here.copy;
    for (const StateRun& run : runs_of(here)) {
      for (const Bucket& bucket : buckets_) {
        const std::int64_t piece = piece_of(bucket);
        const std::int64_t first = std::max(run.local, piece);
        const std::int64_t last = std::min(run.local + run.count, piece + bucket.piece);
        if (first >= last) continue;
        runs_.push_back({run.tensor, run.offset + first - run.local, last - first,
                         bucket.owned + first - piece, here.writes && !here.copy});
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

void Layout::list_partial_sums() {
  const models::StateSharding& sharding = program_.sharding;
  const bool pieces = dense_.count > 1 && (sharding.gradients || sharding.parameters);
  for (const PlacedTensor& each : placed_) {
    if (!each.partial) continue;
    if (!pieces) {
      partial_sums_.push_back({each.offset, each.elements()});
      continue;
    }
    const Bucket& bucket = buckets_[bucket_at(each.offset)];
    const std::int64_t first = std::max(each.offset, piece_of(bucket));
    const std::int64_t last =
        std::min(each.offset + each.elements(), piece_of(bucket) + bucket.piece);
    if (first < last) partial_sums_.push_back({first, last - first});
  }
}

}  // namespace orrery::executor
