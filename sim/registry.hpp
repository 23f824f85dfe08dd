#pragma once
// Entries by name. Looking up an unknown name is an error that lists the known names.

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/errors.hpp"
#include "sim/words.hpp"

namespace orrery {

/// Entries of one kind by name, in the order in which they were added.
template <class T>
class Registry {
 public:
  explicit Registry(std::string kind) : kind_{std::move(kind)} {}

  void add(std::string name, T entry) {
    ensure(!has(name), "a name was registered twice");
    entries_.emplace_back(std::move(name), std::move(entry));
  }
  bool has(std::string_view name) const { return find(name) != entries_.end(); }
  /// Errors: `unknown KIND 'x'; known: a b c` (InputError).
  const T& at(std::string_view name) const {
    const auto found = find(name);
    if (found == entries_.end()) {
      throw InputError{"unknown " + kind_ + " '" + std::string{name} +
                       "'; known: " + listed(names())};
    }
    return found->second;
  }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const auto& [name, entry] : entries_) all.push_back(name);
    return all;
  }
  auto begin() const { return entries_.begin(); }
  auto end() const { return entries_.end(); }

 private:
  auto find(std::string_view name) const {
    return std::ranges::find(entries_, name, &std::pair<std::string, T>::first);
  }

  std::string kind_;
  std::vector<std::pair<std::string, T>> entries_;
};

}  // namespace orrery
