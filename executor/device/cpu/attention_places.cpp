#include "executor/device/cpu/attention_places.hpp"

#include "sim/errors.hpp"

namespace orrery::executor::cpu {

namespace {

using models::SequencePart;

/// Appends the runs of consecutive places in places[first] to places[last - 1]; places[i] has row
/// `row` + i.
void add_runs(const std::vector<std::int64_t>& places, std::size_t first, std::size_t last,
              std::int64_t row, std::vector<PlaceRun>& runs) {
  for (std::size_t i = first; i < last; ++i) {
    const bool goes_on = i > first && places[i] == places[i - 1] + 1;
    if (!goes_on) runs.push_back({places[i], row + static_cast<std::int64_t>(i), 0, 0});
    ++runs.back().count;
  }
}

/// A map for whole sequences in order, each one document.
TokenMap whole_sequences(std::int64_t length) {
  TokenMap map;
  map.attended.emplace_back();
  for (std::int64_t i = 0; i < length; ++i) map.attended[0].push_back(i);
  map.begins.assign(static_cast<std::size_t>(length), 0);
  map.ends.assign(static_cast<std::size_t>(length), length);
  return map;
}

}  // namespace

AttentionPlaces::AttentionPlaces(const Kernel& kernel, bool apart)
    : of_{kernel.operation->attention()},
      part_{kernel.operation->sequence()},
      // Context parallelism cuts causal attention only.
      causal_{of_.causal || (apart && !of_.crosses)},
      whole_{kernel.place.tokens == nullptr ? whole_sequences(kernel.place.sequence) : TokenMap{}},
      map_{kernel.place.tokens == nullptr ? whole_ : *kernel.place.tokens},
      length_{std::ssize(map_.own())},
      batch_{kernel.reads[0].shape[1] / length_} {
  ensure(batch_ * length_ == kernel.reads[0].shape[1],
         "attention to a part of a sequence's tokens");
}

std::pair<std::size_t, std::size_t> AttentionPlaces::asking() const {
  const auto all = static_cast<std::size_t>(length_);
  switch (part_.queries) {
    case SequencePart::Queries::early:
      return {0, all / 2};
    case SequencePart::Queries::late:
      return {all / 2, all};
    default:
      return {0, all};
  }
}

std::vector<PlaceRun> AttentionPlaces::queries(std::int64_t b) const {
  std::vector<PlaceRun> runs;
  const auto [first, last] = asking();
  add_runs(map_.own(), first, last, b * length_, runs);
  return runs;
}

std::vector<PlaceRun> AttentionPlaces::keys(std::int64_t b) const {
  std::vector<PlaceRun> runs;
  if (of_.crosses) return {{0, b * of_.keys, of_.keys, 0}};
  if (part_.keys != SequencePart::Keys::gathered) {
    const std::vector<std::int64_t>& places =
        part_.keys == SequencePart::Keys::own ? map_.own() : map_.ahead(part_.ahead);
    add_runs(places, 0, places.size(), b * length_, runs);
    return runs;
  }
  for (std::size_t rank = 0; rank < map_.attended.size(); ++rank) {
    const std::vector<std::int64_t>& places = map_.attended[rank];
    const std::int64_t first = (static_cast<std::int64_t>(rank) * batch_ + b) * length_;
    add_runs(places, 0, places.size(), first, runs);
  }
  return runs;
}

std::vector<PlaceRun> AttentionPlaces::attended_by(const PlaceRun& queries,
                                                   const std::vector<PlaceRun>& keys,
                                                   std::int64_t& width) const {
  const std::int64_t first = first_seen(queries.place);
  const std::int64_t end = end_seen(queries.place + queries.count - 1);
  std::vector<PlaceRun> seen;
  width = 0;
  for (PlaceRun each : keys) {
    if (each.place >= end || each.place + each.count <= first) continue;
    each.column = width;
    width += each.count;
    seen.push_back(each);
  }
  return seen;
}

}  // namespace orrery::executor::cpu
