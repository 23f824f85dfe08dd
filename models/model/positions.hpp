#pragma once
// How a model tells the tokens of a sequence apart.

#include <cstdint>

#include "sim/words.hpp"

namespace orrery::models {

enum class Positions : std::uint8_t { none, learned, rotary, alibi };
inline constexpr Words<Positions, 4> position_words{{{Positions::none, "none"},
                                                     {Positions::learned, "learned"},
                                                     {Positions::rotary, "rotary"},
                                                     {Positions::alibi, "alibi"}}};

}  // namespace orrery::models
