#include "scenarios/exchange/suggestion.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>
#include <utility>

#include "hardware/catalogue.hpp"
#include "models/model/model.hpp"
#include "scenarios/exchange/facts.hpp"
#include "sim/input/text.hpp"

namespace orrery::scenarios {

namespace {

std::string joined_letters(std::string_view text) {
  std::string letters;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte)) letters += static_cast<char>(std::tolower(byte));
  }
  return letters;
}

/// A name and a count, written in either order: "32 x dgx-h100", "dgx-h100x4", "dgx-h100 * 4",
/// "32 H100".
std::optional<std::pair<std::string, std::int64_t>> counted_name(std::string_view text) {
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != 'x' && text[at] != 'X' && text[at] != '*') continue;
    if (at > 0 && text[at - 1] == '-') continue;  // inside a name
    const std::string_view left = trimmed(text.substr(0, at)), right = trimmed(text.substr(at + 1));
    if (const auto count = orrery::number_in<std::int64_t>(right); count && !left.empty()) {
      return std::pair{std::string{left}, *count};
    }
    if (const auto count = orrery::number_in<std::int64_t>(left); count && !right.empty()) {
      return std::pair{std::string{right}, *count};
    }
  }
  const std::size_t space = text.find(' ');
  if (space == std::string_view::npos) return std::nullopt;
  const auto count = orrery::number_in<std::int64_t>(text.substr(0, space));
  const std::string_view name = trimmed(text.substr(space));
  return count && !name.empty() ? std::optional{std::pair{std::string{name}, *count}}
                                : std::nullopt;
}

/// The node that has a GPU by this name; of several, the shortest name.
std::string node_of_gpu(std::string_view gpu) {
  const std::string wanted = joined_letters(gpu);
  if (wanted.size() < 3 || wanted.find_first_of("0123456789") == std::string::npos) return {};
  std::string best;
  for (const std::string& node : hardware::Catalogue::nodes()) {
    const bool named = joined_letters(node).find(wanted) != std::string::npos;
    const bool reference = node.rfind("dgx-", 0) == 0;  // the vendor's own before others
    if (!named || (!best.empty() && (!reference || best.rfind("dgx-", 0) == 0))) continue;
    best = node;
  }
  return best;
}

bool known_node(const std::string& name) {
  const std::vector<std::string> nodes = hardware::Catalogue::nodes();
  return std::ranges::find(nodes, name) != nodes.end();
}

}  // namespace

std::string nearest_name(std::string_view word, const std::vector<std::string>& known) {
  const std::string letters = joined_letters(word);
  for (const std::string& each : known) {
    if (!letters.empty() && joined_letters(each) == letters) return each;
  }
  std::string lower{word};
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  const std::string* begun = nullptr;  // the shortest name that begins with the word
  for (const std::string& each : known) {
    const bool begins = (lower.size() > 2 && each.rfind(lower, 0) == 0) ||
                        (letters.size() > 4 && joined_letters(each).rfind(letters, 0) == 0);
    if (begins && (begun == nullptr || each.size() < begun->size())) begun = &each;
  }
  if (begun != nullptr) return *begun;
  const std::vector<std::string_view> views{known.begin(), known.end()};
  return std::string{nearest(lower, views)};
}

std::string model_meant(std::string_view text) {
  const std::string same = catalogue_model(text);
  return same.empty() ? nearest_name(text.substr(text.rfind('/') + 1), models::model_names())
                      : same;
}

std::string cluster_meant(std::string_view text) {
  const auto counted = counted_name(text);
  if (!counted) {
    std::vector<std::string> known = hardware::Catalogue::clusters();
    for (std::string& each : hardware::Catalogue::nodes()) known.push_back(std::move(each));
    const std::string near = nearest_name(text, known);
    return near.empty() ? node_of_gpu(text) : near;
  }
  const auto& [name, count] = *counted;
  if (count < 1) return {};
  if (known_node(name)) return fmt::format("{} x {}", name, count);
  const std::string near = nearest_name(name, hardware::Catalogue::nodes());
  if (!near.empty() && joined_letters(near) == joined_letters(name)) {
    return fmt::format("{} x {}", near, count);
  }
  const std::string node = node_of_gpu(name);
  if (node.empty()) return near.empty() ? near : fmt::format("{} x {}", near, count);
  const std::int64_t gpus = hardware::named_cluster(node).node.gpus;
  return fmt::format("{} x {}", node, std::max<std::int64_t>(1, (count + gpus - 1) / gpus));
}

std::string unknown_with_suggestion(std::string_view kind, std::string_view word,
                                    const std::string& meant) {
  const std::string text = fmt::format("unknown {} '{}'", kind, word);
  return meant.empty() ? text : fmt::format("{} (did you mean '{}'?)", text, meant);
}

std::string with_suggestion(const std::string& error, const std::string& meant) {
  const std::size_t end = error.find("; known:");
  if (meant.empty() || end == std::string::npos) return error;
  return fmt::format("{} (did you mean '{}'?){}", error.substr(0, end), meant, error.substr(end));
}

std::string suggested(const std::string& error) {
  constexpr std::string_view list = "; known:";
  const std::size_t known = error.find(list), unknown = error.find("unknown ");
  if (known == std::string::npos || unknown == std::string::npos) return error;
  const std::size_t begin = error.find('\'', unknown);
  if (begin > known || known == 0 || error[known - 1] != '\'') return error;
  const std::string word = error.substr(begin + 1, known - begin - 2);
  std::vector<std::string> names;
  for (const std::string_view name :
       split(std::string_view{error}.substr(known + list.size()), ' ')) {
    const std::size_t end = name.find_first_of(",;");
    if (!name.empty()) names.emplace_back(name.substr(0, end));
  }
  return with_suggestion(error, nearest_name(word, names));
}

std::string without_long_list(const std::string& error) {
  constexpr std::string_view list = "; known: ";
  constexpr std::size_t longest = 2000;  // characters of a list
  const std::size_t known = error.find(list);
  if (known == std::string::npos || error.size() - known < longest) return error;
  const auto names =
      std::ranges::count(error.begin() + static_cast<std::ptrdiff_t>(known + list.size()),
                         error.end(), ' ') +
      1;
  return fmt::format("{}; {} are known, which --json lists", error.substr(0, known), names);
}

}  // namespace orrery::scenarios
