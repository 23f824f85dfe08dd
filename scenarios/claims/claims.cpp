#include "scenarios/claims/claims.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "scenarios/report/style.hpp"
#include "scenarios/scenario/tokens.hpp"
#include "sim/input/text.hpp"

namespace orrery::scenarios {

namespace {

std::optional<double> percentage(std::string_view text) {
  text = trimmed(text);
  if (!text.ends_with('%')) return std::nullopt;
  const std::string_view digits = trimmed(text.substr(0, text.size() - 1));
  double value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  const bool number = error == std::errc{} && end == digits.data() + digits.size();
  return number ? std::optional{value / 100} : std::nullopt;
}

std::vector<const ClaimRule*> all_rules() {
  std::vector<const ClaimRule*> all;
  for (const auto& rules : {hardware_rules(), run_rules(), money_rules()}) {
    for (const ClaimRule& each : rules) all.push_back(&each);
  }
  return all;
}

const ClaimRule& rule_of(const Claim& claim, const Node& node) {
  const std::vector<const ClaimRule*> rules = all_rules();
  const auto found = std::ranges::find(rules, claim.quantity(),
                                       [](const ClaimRule* each) { return each->quantity; });
  if (found != rules.end()) return **found;
  std::string known;
  for (const ClaimRule* each : rules) known += fmt::format(", {}", each->quantity);
  node["quantity"].fail(fmt::format("unknown quantity '{}'; known: {}",
                                    printable(claim.quantity(), 40), known.substr(2)));
}

}  // namespace

Claim::Claim(const Node& node) : value_{node["value"]} {
  node.only(
      {"id", "text", "quantity", "value", "unit", "subject", "conditions", "expected", "source"});
  quantity_ = node["quantity"].as<std::string>();
  id_ = node.value_or<std::string>("id", quantity_);
  text_ = node.value_or<std::string>("text", "");
  subject_ = node.find("subject");
  conditions_ = node.find("conditions");
  if (const auto expected = node.find("expected")) {
    expected->word(verdict_words);
    expected_ = expected->as<std::string>();
  }
}

double Claim::number_of(const Node& node) {
  if (node.is_number()) return node.as<double>();
  const std::string text = node.as<std::string>();
  if (const auto share = percentage(text)) return *share;
  if (const auto count = parse_tokens(text)) return *count;
  node.fail_expected("a number such as 8, \"65%\" or \"175B\"");
}

std::pair<double, double> Claim::range() const {
  if (!value_.is_array()) return {number(), number()};
  const std::vector<Node> ends = value_.elements();
  if (ends.size() != 2) value_.fail_expected("two numbers");
  return std::minmax(number_of(ends[0]), number_of(ends[1]));
}

std::optional<Node> Claim::given(std::string_view key) const {
  for (const auto* part : {&subject_, &conditions_}) {
    if (!*part) continue;
    if (auto found = (*part)->find(key)) return found;
  }
  return std::nullopt;
}

Node Claim::needed(std::string_view key) const {
  if (const auto found = given(key)) return *found;
  value_.fail(
      fmt::format("a claim of '{}' needs '{}' in its subject or conditions", quantity_, key));
}

double Claim::number_or(std::string_view key, double otherwise) const {
  const auto found = given(key);
  return found ? number_of(*found) : otherwise;
}

void Claim::only(std::span<const std::string_view> keys) const {
  if (subject_) subject_->only(keys);
  if (conditions_) conditions_->only(keys);
}

std::vector<JudgedClaim> judge_claims(const Document& document) {
  const Node root = document.root();
  const Node claims = root.is_array() ? root : root["claims"];
  if (root.is_object()) root.only({"claims", "notes", "source"});
  std::vector<JudgedClaim> judged;
  if (claims.elements().empty()) claims.fail_expected("at least one claim");
  for (const Node& each : claims.elements()) {
    const Claim claim{each};
    const ClaimRule& rule = rule_of(claim, each);
    claim.only(rule.members);
    Judgement judgement = rule.judge(claim);
    if (judgement.verdict == Verdict::possible) judgement.otherwise.clear();
    judged.push_back({.id = claim.id(),
                      .quantity = claim.quantity(),
                      .text = claim.text(),
                      .judgement = std::move(judgement),
                      .expected = claim.expected()});
  }
  return judged;
}

Json to_json(const std::vector<JudgedClaim>& claims) {
  Json list = Json::array();
  for (const JudgedClaim& each : claims) {
    Json one{{"id", each.id},
             {"quantity", each.quantity},
             {"verdict", word_of(verdict_words, each.judgement.verdict)},
             {"bound", each.judgement.bound},
             {"formula", each.judgement.formula},
             {"source", each.judgement.source},
             {"otherwise", each.judgement.otherwise}};
    if (each.expected) one["expected"] = *each.expected;
    list.push_back(std::move(one));
  }
  return {{"command", "check"}, {"claims", std::move(list)}};
}

std::string text_of(const std::vector<JudgedClaim>& claims, int width, bool colour) {
  std::string text;
  std::size_t counts[verdict_words.size()] = {};
  std::size_t expected = 0, agreeing = 0;
  for (const JudgedClaim& each : claims) {
    const Verdict verdict = each.judgement.verdict;
    ++counts[static_cast<std::size_t>(verdict)];
    const Tone tone = verdict == Verdict::impossible ? Tone::bad
                      : verdict == Verdict::possible ? Tone::good
                                                     : Tone::loss;
    const std::string word{word_of(verdict_words, verdict)};
    text += fmt::format("{}  {}  {}\n", toned(fmt::format("{:<12}", word), tone, colour), each.id,
                        each.text.empty() ? each.quantity : each.text);
    const auto add = [&](std::string_view label, const std::string& words) {
      if (words.empty()) return;
      constexpr std::size_t indent = 14;
      for (const std::string& line :
           wrapped(fmt::format("{}{}", label, words), static_cast<std::size_t>(width) - indent)) {
        text += std::string(indent, ' ') + line + "\n";
      }
    };
    add("bound: ", fmt::format("{}, by {}", each.judgement.bound, each.judgement.formula));
    add("source: ", each.judgement.source);
    add("true if: ", each.judgement.otherwise);
    if (each.expected) {
      ++expected;
      agreeing += *each.expected == word ? 1 : 0;
      if (*each.expected != word) add("", "expected " + *each.expected);
    }
  }
  text += "\n";
  for (const auto& [verdict, word] : verdict_words) {
    text += fmt::format("{} {}  ", counts[static_cast<std::size_t>(verdict)], word);
  }
  if (expected > 0) text += fmt::format("· {} of {} as expected", agreeing, expected);
  return text + "\n";
}

std::string claim_vocabulary() {
  std::string text;
  for (const ClaimRule* each : all_rules()) {
    std::string members;
    for (const std::string_view member : each->members) members += fmt::format(" {}", member);
    text += fmt::format("  {:<26}{}\n  {:<26}  with{}\n", each->quantity, each->about, "", members);
  }
  return text;
}

}  // namespace orrery::scenarios
