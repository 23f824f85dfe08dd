#pragma once
// Helpers for reading a user's text: the bytes of a file within a limit, a check that they are
// text, one-line quotation for error messages, the accepted word nearest to a typo, parts and
// numbers.

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace orrery {

/// The bytes of a file, or of a pipe that has a writer. Errors: `path: cannot be read:
/// REASON`, `path: larger than N MiB`, `path: is a device; expected a file`.
std::string read_file(const std::string& path, std::size_t limit);

/// Refuses what is not UTF-8 text: `name: is binary, not text`, `name:line 3: is not UTF-8`.
void require_text(std::string_view bytes, const std::string& name);

/// Bytes of the UTF-8 character that begins `text`, which is not empty; 0 if none does.
/// Source  Unicode 15, table 3-7; RFC 3629, section 4
std::size_t character_length(std::string_view text);

/// Line of a byte, from 1.
std::size_t line_of(std::string_view text, std::size_t offset);

/// `text` without control characters (written \u000a), at most `limit` bytes, whole characters.
std::string printable(std::string_view text, std::size_t limit = std::string_view::npos);

/// The accepted word nearest to `word`, within a few typing slips (a third of its length); empty if
/// there is none.
std::string_view nearest(std::string_view word, std::span<const std::string_view> accepted);

/// Without blank space at both ends.
std::string_view trimmed(std::string_view text);

/// The parts between separators: one more than there are separators.
std::vector<std::string_view> split(std::string_view text, char separator);

/// The number that the whole text spells, if it does.
template <class T>
std::optional<T> number_in(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool whole = error == std::errc{} && end == text.data() + text.size();
  return whole ? std::optional{value} : std::nullopt;
}

/// A hash of texts one after the other.
/// Source  Fowler, Noll & Vo, FNV-1a, 64 bits; here over words of 8 bytes, the last one padded
class TextHash {
 public:
  void add(std::string_view text);
  std::string text() const;  // 16 hexadecimal digits

 private:
  void add_word(std::uint64_t word);
  std::uint64_t value_ = 0xcbf29ce484222325U;
};

}  // namespace orrery
