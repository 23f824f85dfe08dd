#include "hardware/cluster/recognise.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <tuple>
#include <vector>

#include "hardware/catalogue.hpp"

namespace orrery::hardware {

namespace {

/// Lower-case words: "A100-SXM4-80GB" is a100, sxm, 80gb.
std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words(1);
  for (const char letter : name) {
    if (letter == ' ' || letter == '-') {
      words.emplace_back();
    } else {
      words.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    }
  }
  for (std::string& word : words) {
    if (word.rfind("sxm", 0) == 0) word = "sxm";
  }
  return words;
}

bool holds(const std::vector<std::string>& words, std::string_view word) {
  return std::ranges::find(words, word) != words.end();
}

/// The form factor of a board, empty if its name does not state it.
std::string form_of(const std::vector<std::string>& words) {
  for (const char* form : {"sxm", "pcie", "nvl"}) {
    if (holds(words, form)) return form;
  }
  return {};
}

/// True for a word that names a variant of a model: "80gb", "500w".
bool is_size(const std::string& word) {
  const bool unit = word.size() > 1 && (word.back() == 'w' || word.substr(word.size() - 2) == "gb");
  return unit && std::isdigit(static_cast<unsigned char>(word.front())) != 0;
}

bool same_model(const std::vector<std::string>& entry, const std::vector<std::string>& reported) {
  return std::ranges::all_of(entry, [&](const std::string& word) {
    return is_size(word) || word == form_of(entry) || holds(reported, word);
  });
}

}  // namespace

std::optional<std::string> recognised_gpu(std::string_view reported, Bytes memory) {
  const std::vector<std::string> words = words_of(reported);
  const std::string form = form_of(words).empty() ? "sxm" : form_of(words);
  using Distance = std::tuple<bool, std::int64_t>;
  std::optional<std::pair<Distance, std::string>> best;
  for (const std::string& name : Catalogue::gpus()) {
    const std::vector<std::string> entry = words_of(name);
    if (!same_model(entry, words)) continue;
    const std::string own = form_of(entry);
    const std::int64_t off = std::llabs(named_gpu(name).memory.count() - memory.count());
    const Distance distance{!own.empty() && own != form, off};
    if (!best || distance < best->first) best = {distance, name};
  }
  if (!best) return std::nullopt;
  return best->second;
}

std::optional<std::string> node_with(std::string_view gpu) {
  std::optional<std::string> found;
  const auto rank = [](const std::string& node) {
    return node.rfind("hgx-", 0) == 0 ? 0 : node.rfind("dgx-", 0) == 0 ? 1 : 2;
  };
  for (const std::string& name : Catalogue::nodes()) {
    const Json node = Catalogue::node(name);
    if (node.at("gpu").at("name") != gpu) continue;
    if (!found || rank(name) < rank(*found)) found = name;
  }
  return found;
}

}  // namespace orrery::hardware
