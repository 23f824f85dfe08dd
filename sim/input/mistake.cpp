#include "sim/input/mistake.hpp"

#include <algorithm>
#include <string_view>

#include "sim/input/text.hpp"

namespace orrery {
namespace {

/// Fills `found` and `accepted`.
void split_problem(std::string_view problem, Mistake& mistake) {
  constexpr std::string_view expected = "expected ", found = ", found ";
  if (problem.substr(0, expected.size()) == expected) {
    problem.remove_prefix(expected.size());
    const std::size_t at = problem.find(found);
    mistake.accepted = problem.substr(0, at);
    if (at != std::string_view::npos) mistake.found = problem.substr(at + found.size());
    return;
  }
  for (const std::string_view list : {"accepted:", "known:"}) {
    const std::size_t at = problem.find(list);
    if (at == std::string_view::npos) continue;
    mistake.accepted = trimmed(problem.substr(at + list.size()));
    problem = trimmed(problem.substr(0, at));
    if (!problem.empty() && problem.back() == ';') problem.remove_suffix(1);
    break;
  }
  mistake.found = problem;
}

/// Fills `file` and `pointer`.
void split_place(std::string_view place, Mistake& mistake) {
  std::size_t file = place.size(), pointer = place.size();
  for (const std::string_view mark : {":/", ":line ", " /"}) {
    const bool of_flag = mark.front() == ' ';  // --set /plan/tensor
    if (of_flag && place.substr(0, 2) != "--") continue;
    if (const std::size_t at = place.find(mark); at < file) {
      file = at;
      pointer = at + 1;
    }
  }
  mistake.file = place.substr(0, file);
  mistake.pointer = place.substr(pointer);
}

}  // namespace

Mistake mistake_of(const InputError& error) {
  Mistake mistake;
  split_place(error.place(), mistake);
  split_problem(error.problem(), mistake);
  return mistake;
}

}  // namespace orrery
