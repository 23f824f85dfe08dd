#pragma once
// Numbers of a list of operations: JSON numbers, or text that calculates one from named values.
//   sum      product {+|- product};   product  sign {*|/ sign};   sign  [-|+] sign | power
//   power    operand [** sign];       operand  number | name | name(sum, ...) | (sum)
// ** is done first and from the right, as in Python. Functions: ceil, floor, round, sqrt, log2,
// min, max, and grid(n, d, i): the i-th of d factors of n that are as equal as whole ones can be,
// the largest first.

#include <cstdint>
#include <map>
#include <string>

#include "sim/input/document.hpp"

namespace orrery::models {

/// Values by name.
class NamedValues {
 public:
  /// The members of an object, each a number or an expression of the others.
  /// taken    stand for members of the same name, whatever these say
  /// Errors   a value that depends on itself; what `number_of` refuses: InputError
  NamedValues(const std::optional<Node>& members, const std::map<std::string, double>& taken);

  void set(const std::string& name, double value) { values_[name] = value; }
  bool has(const std::string& name) const { return values_.contains(name); }
  double at(const std::string& name) const { return values_.at(name); }
  const std::map<std::string, double>& all() const { return values_; }

 private:
  std::map<std::string, double> values_;
};

/// A number, or the value of an expression.
/// Errors  `unknown name 'x'; known: a b`, a character that no expression has, a division by zero,
///         a value that is not finite: InputError at the node
double number_of(const Node& node, const NamedValues& values);
/// The same where it has to be whole, within [low, high]. A quotient that is whole but for rounding
/// is taken as whole.
std::int64_t whole_number_of(const Node& node, const NamedValues& values, std::int64_t low,
                             std::int64_t high);

}  // namespace orrery::models
