#include "models/model/expression.hpp"

#include <fmt/format.h>

#include <cctype>
#include <charconv>
#include <cmath>
#include <functional>
#include <set>
#include <vector>

namespace orrery::models {

namespace {

/// Looks a name up; nullopt: there is none.
using Lookup = std::function<std::optional<double>(const std::string&)>;

/// The i-th of d factors of n, as equal as whole factors can be, the largest first.
double grid_factor(std::int64_t n, std::int64_t d, std::int64_t i) {
  std::vector<std::int64_t> best;
  double least = 0;
  const std::function<void(std::vector<std::int64_t>&, std::int64_t)> split =
      [&](std::vector<std::int64_t>& factors, std::int64_t left) {
        if (std::ssize(factors) + 1 == d) {
          if (!factors.empty() && left > factors.back()) return;
          factors.push_back(left);
          double surface = 0;
          for (const std::int64_t each : factors) surface += static_cast<double>(each);
          if (best.empty() || surface < least) {
            best = factors;
            least = surface;
          }
          factors.pop_back();
          return;
        }
        for (std::int64_t each = 1; each <= left; ++each) {
          if (left % each != 0 || (!factors.empty() && each > factors.back())) continue;
          factors.push_back(each);
          split(factors, left / each);
          factors.pop_back();
        }
      };
  std::vector<std::int64_t> none;
  split(none, n);
  return static_cast<double>(best.at(static_cast<std::size_t>(i)));
}

/// Evaluates one text by recursive descent.
class Calculation {
 public:
  Calculation(const Node& node, const std::string& text, const Lookup& lookup)
      : node_{node}, text_{text}, lookup_{lookup} {}

  double run() {
    const double value = sum();
    skip();
    if (at_ < text_.size()) refuse(fmt::format("does not expect '{}'", text_.substr(at_, 1)));
    if (!std::isfinite(value)) refuse("is not a finite number");
    return value;
  }

 private:
  static constexpr int deepest = 64;

  [[noreturn]] void refuse(const std::string& problem) const {
    node_.fail(fmt::format("expression '{}' {}", text_, problem));
  }
  void skip() {
    while (at_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[at_])) != 0) ++at_;
  }
  bool takes(std::string_view sign) {
    skip();
    if (text_.compare(at_, sign.size(), sign) != 0) return false;
    if (sign == "*" && text_.compare(at_, 2, "**") == 0) return false;
    at_ += sign.size();
    return true;
  }

  double sum() {
    if (++depth_ > deepest) refuse("is nested too deep");
    double value = product();
    for (;;) {
      if (takes("+")) {
        value += product();
      } else if (takes("-")) {
        value -= product();
      } else {
        --depth_;
        return value;
      }
    }
  }
  double product() {
    double value = sign();
    for (;;) {
      if (takes("*")) {
        value *= sign();
      } else if (takes("/")) {
        const double by = sign();
        if (by == 0) refuse("divides by zero");
        value /= by;
      } else {
        return value;
      }
    }
  }
  double sign() {
    if (++depth_ > deepest) refuse("is nested too deep");
    const bool negative = takes("-");
    if (!negative && !takes("+")) {
      --depth_;
      return power();
    }
    const double value = sign();
    --depth_;
    return negative ? -value : value;
  }
  double power() {
    const double base = operand();
    return takes("**") ? std::pow(base, sign()) : base;
  }

  double operand() {
    skip();
    if (takes("(")) {
      const double value = sum();
      if (!takes(")")) refuse("lacks a ')'");
      return value;
    }
    if (at_ == text_.size()) refuse("ends where a number or a name is expected");
    const auto first = static_cast<unsigned char>(text_[at_]);
    if (std::isdigit(first) != 0 || first == '.') return literal();
    if (std::isalpha(first) == 0 && first != '_') {
      refuse(fmt::format("does not expect '{}'", text_.substr(at_, 1)));
    }
    const std::size_t begin = at_;
    while (at_ < text_.size() &&
           (std::isalnum(static_cast<unsigned char>(text_[at_])) != 0 || text_[at_] == '_')) {
      ++at_;
    }
    const std::string name = text_.substr(begin, at_ - begin);
    if (takes("(")) return function(name);
    const std::optional<double> value = lookup_(name);
    if (!value) refuse(fmt::format("has an unknown name '{}'", name));
    return *value;
  }

  double literal() {
    double value = 0;
    const char* const begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), value);
    if (error != std::errc{}) refuse("has a number out of range");
    at_ += static_cast<std::size_t>(end - begin);
    return value;
  }

  double function(const std::string& name) {
    std::vector<double> given;
    do {
      given.push_back(sum());
    } while (takes(","));
    if (!takes(")")) refuse("lacks a ')'");
    const auto needs = [&](std::size_t count) {
      if (given.size() == count) return;
      refuse(fmt::format("gives {} {} arguments; it takes {}", name, given.size(), count));
    };
    if (name == "min" || name == "max") {
      double value = given.front();
      for (const double each : given) {
        value = name == "min" ? std::min(value, each) : std::max(value, each);
      }
      return value;
    }
    if (name == "grid") {
      needs(3);
      const auto n = std::llround(given[0]), d = std::llround(given[1]), i = std::llround(given[2]);
      if (n < 1 || n > (1 << 20) || d < 1 || d > 4 || i < 0 || i >= d) {
        refuse("needs grid(n, d, i) with n from 1 to 2^20, d from 1 to 4 and i from 0 to d - 1");
      }
      return grid_factor(n, d, i);
    }
    constexpr std::pair<std::string_view, double (*)(double)> known[] = {
        {"ceil", [](double x) { return std::ceil(x); }},
        {"floor", [](double x) { return std::floor(x); }},
        {"round", [](double x) { return std::nearbyint(x); }},
        {"sqrt", [](double x) { return std::sqrt(x); }},
        {"log2", [](double x) { return std::log2(x); }}};
    for (const auto& [word, call] : known) {
      if (word != name) continue;
      needs(1);
      return call(given.front());
    }
    refuse(fmt::format(
        "has an unknown function '{}'; known: ceil floor grid log2 max min round sqrt", name));
  }

  const Node& node_;
  const std::string& text_;
  const Lookup& lookup_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

constexpr std::size_t longest_expression = 1000;

double value_of(const Node& node, const Lookup& lookup) {
  if (node.is_number()) {
    const double value = node.as<double>();
    if (!std::isfinite(value)) node.fail_expected("a finite number");
    return value;
  }
  if (!node.is_string()) node.fail_expected("a number or an expression");
  const auto text = node.as<std::string>();
  if (text.size() > longest_expression) node.fail("an expression of more than 1000 characters");
  return Calculation{node, text, lookup}.run();
}

std::string names_of(const std::map<std::string, double>& values) {
  std::string all;
  for (const auto& [name, value] : values) all += " " + name;
  return all;
}

}  // namespace

NamedValues::NamedValues(const std::optional<Node>& members,
                         const std::map<std::string, double>& taken)
    : values_{taken} {
  if (!members) return;
  std::map<std::string, Node> open;
  for (auto& [name, node] : members->members()) {
    if (!values_.contains(name)) open.emplace(name, node);
  }
  std::set<std::string> asked;
  std::function<double(const std::string&, const Node&)> settle = [&](const std::string& name,
                                                                      const Node& node) -> double {
    if (!asked.insert(name).second) node.fail(fmt::format("'{}' depends on itself", name));
    const double value = value_of(node, [&](const std::string& other) -> std::optional<double> {
      const auto known = values_.find(other);
      if (known != values_.end()) return known->second;
      const auto later = open.find(other);
      if (later == open.end()) return std::nullopt;
      return settle(other, later->second);
    });
    values_[name] = value;
    return value;
  };
  for (const auto& [name, node] : open) {
    if (!values_.contains(name)) settle(name, node);
  }
}

double number_of(const Node& node, const NamedValues& values) {
  try {
    return value_of(node, [&](const std::string& name) -> std::optional<double> {
      return values.has(name) ? std::optional{values.at(name)} : std::nullopt;
    });
  } catch (const InputError& error) {
    if (error.problem().find("unknown name") == std::string_view::npos) throw;
    throw InputError{std::string{error.place()},
                     fmt::format("{}; known:{}", error.problem(), names_of(values.all()))};
  }
}

std::int64_t whole_number_of(const Node& node, const NamedValues& values, std::int64_t low,
                             std::int64_t high) {
  const double value = number_of(node, values);
  const double whole = std::nearbyint(value);
  constexpr double rounding = 1e-9;
  const bool fits = std::abs(value - whole) <= rounding * std::max(1.0, std::abs(value)) &&
                    whole >= static_cast<double>(low) && whole <= static_cast<double>(high);
  if (!fits) {
    node.fail(fmt::format("expected a whole number from {} to {}, found {}{}", low, high,
                          node.is_string() ? node.as<std::string>() + " = " : "",
                          fmt::format("{:.10g}", value)));
  }
  return static_cast<std::int64_t>(whole);
}

}  // namespace orrery::models
