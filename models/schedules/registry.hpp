#pragma once
// Named choices, listed in the open. A stranger's name is answered with what exists.

#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "sim/errors.hpp"

namespace orrery::models {

/// Strategies of one kind by name.
template <class T>
class Registry {
 public:
  explicit Registry(std::string kind) : kind_{std::move(kind)} {}

  void add(std::string name, T entry) {
    const bool added = entries_.emplace(std::move(name), std::move(entry)).second;
    ensure(added, "a name was registered twice");
  }
  bool has(std::string_view name) const { return entries_.find(name) != entries_.end(); }
  /// Errors: `unknown KIND 'x'; known: a b c` (InputError).
  const T& at(std::string_view name) const {
    const auto found = entries_.find(name);
    if (found == entries_.end()) {
      throw InputError{"unknown " + kind_ + " '" + std::string{name} + "'; known:" + known()};
    }
    return found->second;
  }
  /// All names, each after a blank.
  std::string known() const {
    std::string text;
    for (const auto& [name, entry] : entries_) text += " " + name;
    return text;
  }

 private:
  std::string kind_;
  std::map<std::string, T, std::less<>> entries_;
};

}  // namespace orrery::models
