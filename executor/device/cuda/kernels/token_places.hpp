#pragma once
// A rank's map of tokens (device/token_map.hpp) where kernels read it.

#include <cstdint>
#include <vector>

#include "executor/device/token_map.hpp"

namespace orrery::executor::cuda {

/// Arrays in the device's memory, one behind the other; none where tokens stand in order.
struct TokenPlaces {
  const std::int64_t* positions = nullptr;  // of the rank's tokens of a sequence
  const std::int64_t* begins = nullptr;     // by place: of its document
  const std::int64_t* ends = nullptr;
  const std::int64_t* attended = nullptr;  // `length` places of each rank of the context group
  std::int64_t length = 0, ranks = 1, index = 0;
  bool one_document = true;  // ... that attention has whole and in order
};

/// All numbers of a map, as they lie there.
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

/// The same, where those numbers lie.
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
