#include "sim/input/document.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <limits>
#include <type_traits>

#include "sim/input/parse_json.hpp"
#include "sim/input/printable.hpp"
#include "sim/input/text.hpp"
#include "sim/input/units.hpp"

namespace orrery {
namespace {

constexpr std::size_t largest_document = std::size_t{64} << 20;

/// The whole number that a JSON number spells ("64", "1e6"), nothing for 1.5 or beyond 64 bits.
std::optional<std::int64_t> whole(const Json& value) {
  if (value.is_number_unsigned()) {
    const auto count = value.get<std::uint64_t>();
    if (count > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return {};
    return static_cast<std::int64_t>(count);
  }
  if (value.is_number_integer()) return value.get<std::int64_t>();
  if (!value.is_number_float()) return {};
  constexpr double exact = 0x1p53;  // a double holds every integer up to here exactly
  const auto number = value.get<double>();
  if (std::abs(number) > exact || number != std::floor(number)) return {};
  return static_cast<std::int64_t>(number);
}

}  // namespace

std::string shortened(const Json& value) {
  constexpr std::size_t longest = 60;
  if (value.is_string() && value.get_ref<const std::string&>().size() > 4 * longest) {
    const std::string& text = value.get_ref<const std::string&>();
    return '"' + printable(text, longest - 1);
  }
  return printable(value.dump(-1, ' ', false, Json::error_handler_t::replace), longest);
}

std::string Node::place() const {
  if (pointer_.empty()) return *file_;
  return *file_ + ":" + printable(pointer_, 200);
}

Node Node::operator[](std::string_view key) const {
  if (!is_object()) fail_expected("an object");
  const auto member = value_->find(std::string{key});
  if (member == value_->end()) Node{*value_, *file_, pointer_ + pointer_step(key)}.fail("missing");
  return Node{*member, *file_, pointer_ + pointer_step(key)};
}

Node Node::at(std::size_t index) const {
  if (!is_array()) fail_expected("an array");
  const std::string pointer = fmt::format("{}/{}", pointer_, index);
  if (index >= value_->size()) {
    Node{*value_, *file_, pointer}.fail(
        fmt::format("missing; the array has {} elements", value_->size()));
  }
  return Node{(*value_)[index], *file_, pointer};
}

std::optional<Node> Node::find(std::string_view key) const {
  if (!is_object()) fail_expected("an object");
  const auto member = value_->find(std::string{key});
  if (member == value_->end() || member->is_null()) return std::nullopt;
  return Node{*member, *file_, pointer_ + pointer_step(key)};
}

std::vector<Node> Node::elements() const {
  if (!is_array()) fail_expected("an array");
  std::vector<Node> all;
  all.reserve(value_->size());
  for (const Json& element : *value_) {
    all.emplace_back(element, *file_, fmt::format("{}/{}", pointer_, all.size()));
  }
  return all;
}

std::vector<std::pair<std::string, Node>> Node::members() const {
  if (!is_object()) fail_expected("an object");
  std::vector<std::pair<std::string, Node>> all;
  all.reserve(value_->size());
  for (const auto& [key, value] : value_->items()) {
    all.emplace_back(key, Node{value, *file_, pointer_ + pointer_step(key)});
    if (!is_printable(key)) all.back().second.fail("a key has control characters");
  }
  return all;
}

const Node& Node::only(std::span<const std::string_view> keys) const {
  if (!is_object()) fail_expected("an object");
  for (const auto& member : value_->items()) {
    if (std::ranges::find(keys, member.key()) != keys.end()) continue;
    const std::string_view meant = nearest(member.key(), {keys.begin(), keys.size()});
    Node{member.value(), *file_, pointer_ + pointer_step(member.key())}.fail(fmt::format(
        "unknown key;{} accepted: {}",
        meant.empty() ? "" : fmt::format(" did you mean '{}'?", meant), fmt::join(keys, ", ")));
  }
  return *this;
}

template <class T>
T Node::as() const {
  if constexpr (std::is_same_v<T, bool>) {
    if (!value_->is_boolean()) fail_expected("true or false");
    return value_->get<bool>();
  } else if constexpr (std::is_integral_v<T>) {
    if (!whole(*value_)) fail_expected("an integer");
    return static_cast<T>(integer(std::numeric_limits<T>::min(), std::numeric_limits<T>::max()));
  } else if constexpr (std::is_same_v<T, double>) {
    if (!value_->is_number()) fail_expected("a number");
    return value_->get<double>();
  } else if constexpr (std::is_same_v<T, std::string>) {
    if (!value_->is_string()) fail_expected("a string");
    const std::string& text = value_->get_ref<const std::string&>();
    if (!is_printable(text)) fail_expected("text without control characters");
    return text;
  } else {
    if (!value_->is_string()) fail_expected(expected_form<T>());
    const auto quantity = parse_quantity<T>(value_->get_ref<const std::string&>());
    if (!quantity) fail_expected(expected_form<T>());
    return *quantity;
  }
}

template bool Node::as<bool>() const;
template int Node::as<int>() const;
template std::int64_t Node::as<std::int64_t>() const;
template double Node::as<double>() const;
template std::string Node::as<std::string>() const;
template Time Node::as<Time>() const;
template Bytes Node::as<Bytes>() const;
template Flops Node::as<Flops>() const;
template Bandwidth Node::as<Bandwidth>() const;
template FlopRate Node::as<FlopRate>() const;
template Power Node::as<Power>() const;
template Energy Node::as<Energy>() const;
template Money Node::as<Money>() const;
template Price Node::as<Price>() const;
template Frequency Node::as<Frequency>() const;

std::int64_t Node::integer(std::int64_t low, std::int64_t high) const {
  const auto number = whole(*value_);
  if (number && *number >= low && *number <= high) return *number;
  const bool bounded_below = low > std::numeric_limits<std::int64_t>::min();
  const bool bounded_above = high < std::numeric_limits<std::int64_t>::max();
  if (!bounded_below && !bounded_above) fail_expected("an integer");
  if (!bounded_above) fail_expected(fmt::format("an integer of at least {}", low));
  fail_expected(fmt::format("an integer from {} to {}", low, high));
}

namespace {

/// The word that differs in case alone, or in '_' for '-'; empty: none.
std::string_view in_other_case(const Json& value, std::span<const std::string_view> words) {
  const auto plain = [](std::string_view word) {
    std::string text{word};
    for (char& each : text) {
      const auto byte = static_cast<unsigned char>(each);
      each = each == '_' ? '-' : static_cast<char>(std::tolower(byte));
    }
    return text;
  };
  const std::string found = plain(value.get_ref<const std::string&>());
  for (const std::string_view word : words) {
    if (plain(word) == found) return word;
  }
  return {};
}

}  // namespace

std::size_t Node::one_of(std::span<const std::string_view> words) const {
  if (value_->is_string()) {
    const std::string& text = value_->get_ref<const std::string&>();
    const auto found = std::ranges::find(words, text);
    if (found != words.end()) return static_cast<std::size_t>(found - words.begin());
  }
  const std::string expected = fmt::format("one of \"{}\"", fmt::join(words, "\", \""));
  const std::string_view meant = value_->is_string() ? in_other_case(*value_, words) : "";
  if (meant.empty()) fail_expected(expected);
  fail(fmt::format("expected {}, found {}; did you mean \"{}\"?", expected, shortened(*value_),
                   meant));
}

void Node::fail_expected(std::string_view expected) const {
  fail(fmt::format("expected {}, found {}", expected, shortened(*value_)));
}

void Node::fail(std::string_view problem) const {
  // A problem may quote text of the file: `printable` keeps it on one line.
  throw InputError{place(), printable(problem)};
}

Document Document::load(const std::string& path) {
  return parse(read_file(path, largest_document), path);
}

Document Document::parse(std::string_view text, std::string name) {
  name = printable(name);
  if (text.size() > largest_document) {
    throw InputError{name, fmt::format("larger than {} MiB", largest_document >> 20)};
  }
  Json json = parse_json(text, name);
  return from(std::move(json), std::move(name));
}

Document Document::from(Json json, std::string name) {
  Document document;
  document.state_ = std::make_unique<State>();
  document.state_->json = std::move(json);
  document.state_->name = std::move(name);
  return document;
}

}  // namespace orrery
