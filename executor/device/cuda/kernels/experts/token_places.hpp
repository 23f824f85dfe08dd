#pragma once
// A rank's token map (device/token_map.hpp) in the GPU's memory, where kernels read it.

#include <cstdint>
#include <vector>

#include "executor/device/token_map.hpp"

namespace orrery::executor::cuda {

/// Arrays in the device's memory, one after another; null where tokens are whole sequences in
/// order.
struct TokenPlaces {
  const std::int64_t* positions = nullptr;  // of the rank's tokens of a sequence
  const std::int64_t* begins = nullptr;     // by place: its document is [begin, end)
  const std::int64_t* ends = nullptr;
  const std::int64_t* attended = nullptr;  // `length` places of each rank of the context group
  std::int64_t length = 0, ranks = 1, index = 0;
  bool one_document = true;  // attention has whole sequences in order, each one document
};

/// All numbers of a map, in the order of those arrays.
inline std::vector<std::int64_t> numbers_of(const TokenMap& map) {
  std::vector<std::int64_t> numbers = map.positions;
  const auto append = [&](const std::vector<std::int64_t>& more) {
    numbers.insert(numbers.end(), more.begin(), more.end());
  };
  append(map.begins);
  append(map.ends);
  for (const std::vector<std::int64_t>& each : map.attended) append(each);
  return numbers;
}

/// The arrays of a map whose numbers have been copied to `numbers`.
inline TokenPlaces places_at(const TokenMap& map, const std::int64_t* numbers) {
  TokenPlaces places;
  places.positions = numbers;
  places.begins = places.positions + map.positions.size();
  places.ends = places.begins + map.sequence();
  places.attended = places.ends + map.sequence();
  places.length = static_cast<std::int64_t>(map.own().size());
  places.ranks = static_cast<std::int64_t>(map.attended.size());
  places.index = static_cast<std::int64_t>(map.index);
  places.one_document = map.one_document();
  return places;
}

}  // namespace orrery::executor::cuda
