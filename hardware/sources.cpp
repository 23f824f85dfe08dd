#include "hardware/sources.hpp"

#include <cctype>

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

}  // namespace orrery::hardware
