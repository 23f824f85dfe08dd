#pragma once
// Names that a user probably meant, for errors about unknown ones.

#include <string>
#include <string_view>
#include <vector>

namespace orrery::scenarios {

/// A cluster as Orrery writes it for `32 x dgx-h100`, `dgx-h100x4`, `h100 x 32` (so many GPUs);
/// empty: nothing is near.
std::string cluster_meant(std::string_view text);
/// A model of the catalogue for `Llama-3-8b`, `llama-3.3-70b`; empty: nothing is near.
std::string model_meant(std::string_view text);
/// The known name nearest to a word, whatever its case and separators; empty: none.
std::string nearest_name(std::string_view word, const std::vector<std::string>& known);

/// "unknown model 'x' (did you mean 'y'?)"; without a suggestion, the first part alone.
std::string unknown_with_suggestion(std::string_view kind, std::string_view word,
                                    const std::string& meant);
/// An error "unknown ... 'x'; known: ..." with the suggestion before the semicolon.
std::string with_suggestion(const std::string& error, const std::string& meant);
/// An error that lists known names, with the nearest to the unknown one; others as they are.
std::string suggested(const std::string& error);
/// An error that lists more names than one line shows, with how many they are in their place.
std::string without_long_list(const std::string& error);

}  // namespace orrery::scenarios
