#include "sim/input/error_fields.hpp"

#include <algorithm>
#include <string_view>

#include "sim/input/text.hpp"

namespace orrery {
namespace {

/// Fills `found` and `accepted`.
void split_problem(std::string_view problem, ErrorFields& fields) {
  constexpr std::string_view expected = "expected ", found = ", found ";
  if (problem.substr(0, expected.size()) == expected) {
    problem.remove_prefix(expected.size());
    const std::size_t at = problem.find(found);
    fields.accepted = problem.substr(0, at);
    if (at != std::string_view::npos) fields.found = problem.substr(at + found.size());
    return;
  }
  for (const std::string_view list : {"accepted:", "known:"}) {
    const std::size_t at = problem.find(list);
    if (at == std::string_view::npos) continue;
    fields.accepted = trimmed(problem.substr(at + list.size()));
    problem = trimmed(problem.substr(0, at));
    if (!problem.empty() && problem.back() == ';') problem.remove_suffix(1);
    break;
  }
  fields.found = problem;
}

/// Fills `file` and `pointer`.
void split_place(std::string_view place, ErrorFields& fields) {
  std::size_t file = place.size(), pointer = place.size();
  for (const std::string_view mark : {":/", ":line ", " /"}) {
    const bool of_flag = mark.front() == ' ';  // --set /plan/tensor
    if (of_flag && place.substr(0, 2) != "--") continue;
    if (const std::size_t at = place.find(mark); at < file) {
      file = at;
      pointer = at + 1;
    }
  }
  fields.file = place.substr(0, file);
  fields.pointer = place.substr(pointer);
}

}  // namespace

ErrorFields split_error(const InputError& error) {
  ErrorFields fields;
  split_place(error.place(), fields);
  split_problem(error.problem(), fields);
  return fields;
}

}  // namespace orrery
