#pragma once
// A JSON document that knows its own name, and a view of one value in it that knows its address,
// so that every mistake is reported as `file:/json/pointer: expected ..., found ...`.
// Limits: 64 MiB, 256 levels. Duplicate keys are refused; comments are not JSON.

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/errors.hpp"
#include "sim/quantity.hpp"
#include "sim/words.hpp"

namespace orrery {

/// Insertion-ordered: output lists members in the order in which they were added.
using Json = nlohmann::ordered_json;

/// One value of a document with its place. Cheap to copy; valid while its Document lives.
class Node {
 public:
  Node(const Json& value, const std::string& file, std::string pointer)
      : value_{&value}, file_{&file}, pointer_{std::move(pointer)} {}

  const Json& json() const { return *value_; }
  const std::string& pointer() const { return pointer_; }
  const std::string& file() const { return *file_; }
  /// `file:/pointer`.
  std::string place() const;

  /// A member that must be there. Errors: not an object, or `file:/pointer/key: missing`.
  Node operator[](std::string_view key) const;
  Node at(std::size_t index) const;
  /// A member that may be absent; null counts as absent.
  std::optional<Node> find(std::string_view key) const;
  bool has(std::string_view key) const { return find(key).has_value(); }

  bool is_object() const { return value_->is_object(); }
  bool is_array() const { return value_->is_array(); }
  bool is_string() const { return value_->is_string(); }
  bool is_number() const { return value_->is_number(); }
  /// Elements of an array (an error elsewhere).
  std::vector<Node> elements() const;
  /// Members of an object in the order written (an error elsewhere).
  std::vector<std::pair<std::string, Node>> members() const;

  /// Refuses members that are not listed, and names the nearest accepted one: a typo is an error.
  const Node& only(std::span<const std::string_view> keys) const;
  const Node& only(std::initializer_list<std::string_view> keys) const {
    return only(std::span{keys.begin(), keys.size()});
  }

  /// bool, std::int64_t, int, double, std::string, or any Quantity of sim/quantity.hpp.
  template <class T>
  T as() const;
  template <class T>
  T value_or(std::string_view key, T otherwise) const {
    const auto member = find(key);
    return member ? member->as<T>() : otherwise;
  }
  /// An integer within [low, high]: `expected an integer from 1 to 64, found 0`.
  std::int64_t integer(std::int64_t low, std::int64_t high) const;
  /// One of the given words: `expected one of "a", "b", found "c"`.
  std::size_t one_of(std::span<const std::string_view> words) const;
  std::size_t one_of(std::initializer_list<std::string_view> words) const {
    return one_of(std::span{words.begin(), words.size()});
  }
  /// The value of an enumeration by its word; errors as one_of.
  std::int64_t integer_or(std::string_view key, std::int64_t low, std::int64_t high,
                          std::int64_t otherwise) const {
    const auto member = find(key);
    return member ? member->integer(low, high) : otherwise;
  }
  template <class Enum, std::size_t n>
  Enum word_or(std::string_view key, const Words<Enum, n>& words, Enum otherwise) const {
    const auto member = find(key);
    return member ? member->word(words) : otherwise;
  }
  template <class Enum, std::size_t n>
  Enum word(const Words<Enum, n>& words) const {
    return words[one_of(texts(words))].value;
  }

  /// Throws InputError `place: expected EXPECTED, found VALUE` (the value shortened).
  [[noreturn]] void fail_expected(std::string_view expected) const;
  /// Throws InputError `place: PROBLEM`.
  [[noreturn]] void fail(std::string_view problem) const;

 private:
  const Json* value_;
  const std::string* file_;
  std::string pointer_;
};

/// Owns a parsed document and its name.
class Document {
 public:
  /// Errors: missing, unreadable, too large, truncated, binary, nested too deep, duplicate key.
  static Document load(const std::string& path);
  static Document parse(std::string_view text, std::string name);
  static Document from(Json json, std::string name);

  Node root() const { return Node{state_->json, state_->name, ""}; }
  const std::string& name() const { return state_->name; }
  const Json& json() const { return state_->json; }
  Json& json() { return state_->json; }

 private:
  struct State {
    Json json;
    std::string name;
  };
  std::unique_ptr<State> state_;
};

/// `value` as it appears in an error message: JSON on one line, at most 60 characters.
std::string shortened(const Json& value);

}  // namespace orrery
