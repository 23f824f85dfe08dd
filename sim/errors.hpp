#pragma once
// Exception types: a mistake in the user's input, an output that cannot be written, a bug of ours.
// A plan that does not fit in memory is a result, not an exception.

#include <cstddef>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

namespace orrery {

/// `line` with every word cut to 200 bytes: longer words are quoted user data, whose beginning is
/// enough to identify it.
inline std::string with_short_words(const std::string& line) {
  constexpr std::size_t longest = 200;
  std::string kept;
  std::size_t length = 0;  // of the current word
  for (const char letter : line) {
    length = letter == ' ' ? 0 : length + 1;
    const bool inside_character = (static_cast<unsigned char>(letter) & 0xC0U) == 0x80;
    if (length == longest + 1 && inside_character) --length;  // never cuts inside a UTF-8 character
    if (length <= longest) kept += letter;
    if (length == longest + 1) kept += "...";
  }
  return kept;
}

/// The user's mistake. `what()` is one line: place, what was expected, what was found.
class InputError : public std::runtime_error {
 public:
  explicit InputError(const std::string& line) : std::runtime_error{with_short_words(line)} {}

  /// `place` is `file:/json/pointer`, `file:line 3` or the name of a flag.
  InputError(const std::string& place, const std::string& problem)
      : std::runtime_error{with_short_words(place) + ": " + with_short_words(problem)},
        place_{with_short_words(place).size()} {}

  /// The place named by the line, empty if it names none; `problem` is the rest.
  std::string_view place() const { return std::string_view{what()}.substr(0, place_); }
  std::string_view problem() const {
    return std::string_view{what()}.substr(place_ > 0 ? place_ + 2 : 0);
  }

 private:
  std::size_t place_ = 0;  // its length
};

/// An output that cannot be written: `PATH: cannot be written: No space left on device`.
class OutputError : public std::runtime_error {
 public:
  OutputError(const std::string& path, std::error_code reason)
      : std::runtime_error(path + ": cannot be written: " + reason.message()), path_{path.size()} {}
  /// reason  as in errno
  OutputError(const std::string& path, int reason)
      : OutputError{path, std::error_code{reason, std::generic_category()}} {}

  std::string_view path() const { return std::string_view{what()}.substr(0, path_); }
  std::string_view problem() const { return std::string_view{what()}.substr(path_ + 2); }

 private:
  std::size_t path_;  // its length
};

/// A bug in this program: a broken contract between its parts, checked in release builds too.
class ContractError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

/// Throws ContractError with the text `broken` unless `promise` holds.
inline void ensure(bool promise, const char* broken) {
  if (!promise) throw ContractError{broken};
}

}  // namespace orrery
