#pragma once
// The words of an enumeration: one array that the reader, the printer, help and errors share.
//   inline constexpr Words<Colour, 2> colour_words{{{Colour::red, "red"}, {Colour::blue, "blue"}}};
// Each value stands next to its word, so that the order of the enumeration means nothing.

#include <array>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/errors.hpp"

namespace orrery {

template <class Enum>
struct Word {
  Enum value;
  std::string_view text;
};

template <class Enum, std::size_t n>
using Words = std::array<Word<Enum>, n>;

/// Errors  a value without a word: ContractError
template <class Enum, std::size_t n>
constexpr std::string_view word_of(const Words<Enum, n>& words, Enum value) {
  for (const Word<Enum>& each : words) {
    if (each.value == value) return each.text;
  }
  throw ContractError{"a value of an enumeration has no word"};
}

template <class Enum, std::size_t n>
constexpr std::optional<Enum> value_of(const Words<Enum, n>& words, std::string_view text) {
  for (const Word<Enum>& each : words) {
    if (each.text == text) return each.value;
  }
  return std::nullopt;
}

/// All words, in the order of the array.
template <class Enum, std::size_t n>
constexpr std::array<std::string_view, n> texts(const Words<Enum, n>& words) {
  std::array<std::string_view, n> all{};
  for (std::size_t i = 0; i < n; ++i) all[i] = words[i].text;
  return all;
}

/// "a b c": for `known: a b c`.
inline std::string listed(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& each : words) text += (text.empty() ? "" : " ") + each;
  return text;
}
template <class Enum, std::size_t n>
std::string listed(const Words<Enum, n>& words) {
  std::string text;
  for (const Word<Enum>& each : words) {
    if (!text.empty()) text += ' ';
    text += each.text;
  }
  return text;
}

/// A set of values of an enumeration with at most 32 values.
template <class Enum>
struct WordSet {
  std::uint32_t bits = 0;

  constexpr WordSet() = default;
  constexpr WordSet(std::initializer_list<Enum> values) {
    for (const Enum each : values) add(each);
  }
  constexpr void add(Enum value) { bits |= 1U << static_cast<unsigned>(value); }
  constexpr bool has(Enum value) const { return (bits >> static_cast<unsigned>(value) & 1U) != 0; }
  constexpr bool empty() const { return bits == 0; }
  friend constexpr bool operator==(WordSet, WordSet) = default;
};

}  // namespace orrery
