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

/// Each reduction of the chunk takes the next of its gradients, as many as its bytes say. Padding
/// moves what lies after it.
void Layout::cut_buckets(std::uint32_t chunk, std::size_t first_placed) {
  // Where gradients are sharded, every micro-batch reduces the same buckets in the same order.
  std::vector<std::int64_t> cuts;
  std::map<std::uint32_t, std::size_t> reductions;  // of a micro-batch, so far
  std::vector<std::pair<std::uint32_t, std::size_t>> cut_of;
  const models::RankClass& ranks = program_.classes[static_cast<std::size_t>(stage_)];
  for (const models::Instruction& each : ranks.instructions) {
    if (each.op != models::Opcode::reduce_gradient || each.chunk != chunk) continue;
    const models::JointCollective& joint = program_.collectives[each.target];
    std::size_t& k = reductions[each.micro_batch];
    const bool goes_along = joint.part > 0;  // another part of the same compressed bucket
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
  const auto after =
      std::upper_bound(buckets_.begin(), buckets_.end(), element,
                       [](std::int64_t at, const Bucket& bucket) { return at < bucket.first; });
  return static_cast<std::size_t>(after - buckets_.begin()) - 1;
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
    const bool counts = here.first && !here.copy;
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

void Layout::list_partial_sums() {
  const bool pieces = shards_ > 1 && program_.sharding.gradients;
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
