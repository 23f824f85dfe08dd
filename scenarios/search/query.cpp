#include "scenarios/search/query.hpp"

#include <fmt/format.h>

#include <charconv>

#include "hardware/catalogue.hpp"
#include "models/prediction/fit.hpp"
#include "scenarios/exchange/sections.hpp"
#include "scenarios/scenario/tokens.hpp"
#include "sim/input/text.hpp"

namespace orrery::scenarios {

namespace {

/// Applies `read` to a section given by the flag of its name.
template <class Read>
auto read_flag(Section section, const std::string& text, Read read) {
  const std::string flag = fmt::format("--{}", name(section));
  const Document document = Document::from(text, flag);
  const Expansion found = expanded(section, document.root(), "");
  return read(Node{found.json, found.origin ? found.origin->file : flag, ""});
}

}  // namespace

models::Model read_model_flag(const std::string& text) {
  return read_flag(Section::model, text, models::read_model);
}
hardware::Cluster read_cluster_flag(const std::string& text) {
  return read_flag(Section::cluster, text, hardware::read_cluster);
}
Json expanded_cluster(const std::string& text) {
  Json found;
  read_flag(Section::cluster, text, [&](const Node& node) {
    found = node.json();
    return 0;
  });
  return found;
}
models::Software read_software_flag(const std::string& text) {
  return read_flag(Section::software, text, models::read_software);
}

models::Precision read_precision_flag(const std::string& text) {
  const auto precision = value_of(models::precision_words, text);
  if (precision) return *precision;
  throw InputError{"--precision", fmt::format("expected one of {}, found '{}'",
                                              listed(models::precision_words), text)};
}

double read_headroom_flag(const std::optional<std::string>& text) {
  if (!text) return models::usual_headroom();
  const std::string_view form{*text};
  const std::string_view digits = form.substr(0, form.find_last_not_of("% ") + 1);
  double percent = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), percent);
  const bool number = error == std::errc{} && end == digits.data() + digits.size();
  if (!number || form.back() != '%' || !(percent >= 0 && percent <= 99)) {
    throw InputError{"--headroom",
                     fmt::format("expected a percentage from 0% to 99% such as 6%, found '{}'",
                                 printable(*text, 60))};
  }
  return percent / 100;
}

double read_gap_flag(const std::string& text) {
  const std::string_view form{text};
  const bool percentage = form.ends_with('%');
  const std::string_view digits = form.substr(0, form.find_last_not_of("% ") + 1);
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool number = error == std::errc{} && end == digits.data() + digits.size();
  const double share = percentage ? value / 100 : value;
  if (number && share >= 0 && share < 1) return share;
  throw InputError{"--gap", fmt::format("expected a share below 1 such as 2% or 0.02, found '{}'",
                                        printable(text, 60))};
}

double read_tokens_flag(const std::string& text) {
  if (const auto tokens = parse_tokens(text)) return *tokens;
  throw InputError{"--tokens", fmt::format("expected {}, found '{}'", tokens_form, text)};
}

std::string flag_of_pointer(const std::string& pointer) {
  if (pointer == "/plan/seq_len") return "--seq-len";
  if (pointer == "/plan/precision") return "--precision";
  return pointer.compare(0, 8, "/cluster") == 0 || pointer == "/plan/data" ? "--cluster"
                                                                           : "--model";
}

}  // namespace orrery::scenarios
