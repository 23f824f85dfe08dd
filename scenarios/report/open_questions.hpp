#pragma once
// For a software stack that no run was fitted to: the switches of its profile (facts about its
// source code) that would change the predicted step most if set the other way. For a plan that
// states a choice made to shorten the step: the plainer choice, where that takes no longer.

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/prediction/prediction.hpp"

namespace orrery::scenarios {

/// A switch of a profile, and how to set it the other way on a generation of GPUs.
struct ProfileSwitch {
  const char* question;
  void (*other_way)(models::Software&, const std::string& generation);
  /// Is it set in a profile? Of attention: is the kernel unfused?
  bool (*is_set)(const models::Software&, const std::string& generation);
};
std::span<const ProfileSwitch> profile_switches();

/// Are a profile's numbers not fitted to runs of its own stack?
bool stands_in(const models::Software& software);

/// Relative change of the step with a switch set the other way; nullopt where the plan does not run
/// so, or the GPU has no such kernel.
std::optional<double> change_of(const ProfileSwitch& one, models::Question question, Time step);

struct OpenQuestion {
  std::string question;  // "attention kernel"
  double change = 0;     // relative, of the step with the switch the other way
};

/// The two that change the step most, by half a percent or more, largest first. Empty for a stack
/// that has runs of its own, which show how accurate it is.
std::vector<OpenQuestion> open_questions(const models::Question& question, Time step);

/// bf16 instead of fewer bits, or a schedule that does not split backward, where the step takes no
/// longer with it.
struct PlainerChoice {
  std::string choice;  // "precision=bf16"
  Time step{};         // with it
  /// What the plan takes beyond the plainer one, longest first, and what it takes less; products
  /// and attention are one part, as their peaks differ between formats. Parts below a hundredth of
  /// the largest are left out.
  std::vector<models::WaterfallPart> parts;
  std::string reason;  // of the longest part, where it is known; else empty
};
std::vector<PlainerChoice> plainer_choices(const models::Question& question,
                                           const models::Prediction& prediction);
/// "not faster than precision=bf16, which takes 1.67 s: +76.0 ms memory-bound kernels, ..."
std::string words_of(const PlainerChoice& plainer);

}  // namespace orrery::scenarios
