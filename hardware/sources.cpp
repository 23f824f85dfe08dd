#include "hardware/sources.hpp"

#include <cctype>
#include <optional>

#include "sim/input/units.hpp"

namespace orrery::hardware {

namespace {

template <class... Quantities>
bool spells_any(std::string_view text) {
  if (text.empty() || std::isalpha(static_cast<unsigned char>(text.front())) != 0) return false;
  return (parse_quantity<Quantities>(text).has_value() || ...);
}

bool is_number(const Json& value) {
  if (value.is_number()) return true;
  return value.is_string() && spells_any<Time, Bytes, Flops, Bandwidth, FlopRate, Power, Energy,
                                         Money, Price, Frequency>(value.get<std::string>());
}

/// Whether `pointer` is `prefix` or lies below it.
bool covers(std::string_view prefix, std::string_view pointer) {
  return pointer.substr(0, prefix.size()) == prefix &&
         (pointer.size() == prefix.size() || pointer[prefix.size()] == '/');
}

/// The source that this object's own map gives to a pointer; null if it gives none.
const Json* own_source(const Json& object, std::string_view pointer) {
  if (!object.is_object()) return nullptr;
  const auto sources = object.find("sources");
  if (sources == object.end() || !sources->is_object()) return nullptr;
  const Json* found = nullptr;
  std::size_t longest = 0;
  for (const auto& [prefix, source] : sources->items()) {
    if (source.is_string() && covers(prefix, pointer) && (!found || prefix.size() > longest)) {
      found = &source;
      longest = prefix.size();
    }
  }
  return found;
}

/// An object that contains a number.
struct Ancestor {
  const Json* object;
  std::size_t depth;  // length of its pointer
};

std::string nearest_source(const std::vector<Ancestor>& ancestors, std::string_view pointer) {
  for (auto ancestor = ancestors.rbegin(); ancestor != ancestors.rend(); ++ancestor) {
    const Json* source = own_source(*ancestor->object, pointer.substr(ancestor->depth));
    if (source) return source->get<std::string>();
  }
  return {};
}

/// An object whose map covers a number, and the number's pointer in it.
struct Covering {
  Json* object;
  std::string_view pointer;
};

/// The innermost object at or below `value` whose map covers `pointer`; nothing if none does.
std::optional<Covering> innermost(Json& value, std::string_view pointer) {
  if (!value.is_structured()) return std::nullopt;
  for (auto& [key, member] : value.items()) {
    const std::string step = "/" + key;
    if (key == "sources" || !covers(step, pointer)) continue;
    if (const auto found = innermost(member, pointer.substr(step.size()))) return found;
  }
  if (own_source(value, pointer) == nullptr) return std::nullopt;
  return Covering{&value, pointer};
}

void collect(const Json& value, const std::string& pointer, std::vector<Ancestor>& ancestors,
             std::vector<SourcedNumber>& numbers) {
  if (is_number(value)) {
    numbers.push_back({pointer, nearest_source(ancestors, pointer)});
    return;
  }
  if (!value.is_structured()) return;
  ancestors.push_back({&value, pointer.size()});
  for (const auto& [key, member] : value.items()) {
    if (key != "sources") collect(member, pointer + "/" + key, ancestors, numbers);
  }
  ancestors.pop_back();
}

}  // namespace

std::vector<SourcedNumber> sourced_numbers(const Json& value) {
  std::vector<SourcedNumber> numbers;
  std::vector<Ancestor> ancestors;
  collect(value, "", ancestors, numbers);
  return numbers;
}

int count_unconfirmed(const Json& value) {
  int count = 0;
  for (const auto& number : sourced_numbers(value)) count += number.source == unconfirmed_source;
  return count;
}

std::string source_of(const Json& object, std::string_view pointer) {
  const Json* source = own_source(object, pointer);
  return source ? source->get<std::string>() : std::string{};
}

void set_source(Json& root, std::string_view pointer, std::string_view source) {
  const Covering covering = innermost(root, pointer).value_or(Covering{&root, pointer});
  (*covering.object)["sources"][std::string{covering.pointer}] = source;
}

void mark_given(Json& root, const std::string& pointer, const Json& value) {
  for (const SourcedNumber& number : sourced_numbers(value)) {
    const std::string at = pointer + number.pointer;
    if (number.source.empty() && innermost(root, at)) set_source(root, at, given_source);
  }
}

}  // namespace orrery::hardware
