#pragma once
// Claims about training clusters, judged against bounds of physics and of dated prices. A claim is
// stated in a small vocabulary; what it leaves open is not guessed: the answer is `undecided`. A
// bound says what cannot be, never what is usual: a possible claim may still be false.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/input/document.hpp"
#include "sim/words.hpp"

namespace orrery::scenarios {

enum class Verdict : std::uint8_t { possible, implausible, impossible, undecided };
inline constexpr Words<Verdict, 4> verdict_words{{{Verdict::possible, "possible"},
                                                  {Verdict::implausible, "implausible"},
                                                  {Verdict::impossible, "impossible"},
                                                  {Verdict::undecided, "undecided"}}};

/// What a rule says of a claim.
struct Judgement {
  Verdict verdict = Verdict::undecided;
  std::string bound;    // with its unit: "12.5 GB/s"
  std::string formula;  // that gives it
  std::string source;
  std::string otherwise;  // the smallest change that would make it true; empty if it is possible
};

/// A claim's numbers: `value` (a number, a percentage, a quantity, or two of them as a range) and
/// the members of `subject` and `conditions`.
class Claim {
 public:
  explicit Claim(const Node& node);

  const std::string& id() const { return id_; }
  const std::string& quantity() const { return quantity_; }
  const std::string& text() const { return text_; }
  const std::optional<std::string>& expected() const { return expected_; }

  /// The value as a bare number ("65%" is 0.65, "175B" 1.75e11), or as a quantity.
  double number() const { return number_of(value_); }
  std::pair<double, double> range() const;
  const Node& value() const { return value_; }
  template <class Q>
  Q value() const {
    return value_.as<Q>();
  }

  /// A member of subject or conditions. Errors  missing: InputError
  Node needed(std::string_view key) const;
  std::optional<Node> given(std::string_view key) const;
  double number(std::string_view key) const { return number_of(needed(key)); }
  double number_or(std::string_view key, double otherwise) const;
  std::string word(std::string_view key) const { return needed(key).as<std::string>(); }
  /// Refuses members that the quantity does not have.
  void only(std::span<const std::string_view> keys) const;

  static double number_of(const Node& node);

 private:
  Node value_;
  std::optional<Node> subject_, conditions_;
  std::string id_, quantity_, text_;
  std::optional<std::string> expected_;
};

/// A quantity that claims can be about.
struct ClaimRule {
  std::string_view quantity;
  std::vector<std::string_view> members;  // of subject and conditions
  Judgement (*judge)(const Claim& claim);
  std::string_view about;  // for people
};
std::span<const ClaimRule> hardware_rules();
std::span<const ClaimRule> run_rules();
std::span<const ClaimRule> money_rules();

struct JudgedClaim {
  std::string id, quantity, text;
  Judgement judgement;
  std::optional<std::string> expected;
};

/// `{"claims": [...]}` or the array alone.
/// Errors  an unknown quantity, a missing or unknown member: InputError with file and pointer
std::vector<JudgedClaim> judge_claims(const Document& document);

Json to_json(const std::vector<JudgedClaim>& claims);
std::string text_of(const std::vector<JudgedClaim>& claims, int width, bool colour);
/// The vocabulary, a quantity a line.
std::string claim_vocabulary();

}  // namespace orrery::scenarios
