#include "sim/input/text.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <system_error>
#include <vector>

#include "sim/errors.hpp"
#include "sim/input/printable.hpp"
#include "sim/input/unpacked_file.hpp"
#include "sim/input/unreadable_file.hpp"

namespace orrery {

std::size_t character_length(std::string_view text) {
  const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return 1;
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return 0;
  for (std::size_t at = 1; at < length; ++at) {
    if ((byte(at) & 0xC0) != 0x80) return 0;
  }
  // Overlong forms, surrogates and what lies beyond U+10FFFF.
  if (first == 0xE0 && byte(1) < 0xA0) return 0;
  if (first == 0xED && byte(1) > 0x9F) return 0;
  if (first == 0xF0 && byte(1) < 0x90) return 0;
  if (first == 0xF4 && byte(1) > 0x8F) return 0;
  return length;
}

namespace {

/// Reads a file, or a pipe that has a writer. Refuses a device, which may never end, and a pipe
/// without a writer, which would never begin.
class InputFile {
 public:
  explicit InputFile(const std::string& path) : path_{path} {
    do {
      descriptor_ = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    } while (descriptor_ < 0 && errno == EINTR);
    if (descriptor_ < 0) refuse(errno);
    struct stat found {};
    if (::fstat(descriptor_, &found) != 0) refuse(errno);
    is_pipe_ = S_ISFIFO(found.st_mode);
    if (S_ISCHR(found.st_mode) || S_ISBLK(found.st_mode)) {
      ::close(descriptor_);
      throw InputError{printable(path_), "is a device; expected a file"};
    }
  }
  ~InputFile() { ::close(descriptor_); }
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  /// The next bytes; 0 at the end.
  std::size_t read(std::span<char> piece) {
    for (;;) {
      const ssize_t size = ::read(descriptor_, piece.data(), piece.size());
      if (size > 0) began_ = true;
      if (size > 0 || (size == 0 && (!is_pipe_ || began_))) return static_cast<std::size_t>(size);
      if (size == 0) {
        wait_for_writer();
      } else if (errno == EAGAIN) {
        wait_for_bytes();
      } else if (errno != EINTR) {
        refuse(errno);
      }
    }
  }

 private:
  [[noreturn]] void refuse(int reason) const {
    throw UnreadableFile{printable(path_), {reason, std::generic_category()}};
  }

  void wait_for_bytes() const {
    ::pollfd asked{descriptor_, POLLIN, 0};
    ::poll(&asked, 1, -1);
  }

  /// A shell may start the writer after us.
  void wait_for_writer() {
    if (waits_++ == most_waits) {
      throw InputError{printable(path_), "is a pipe without a writer; expected a file"};
    }
    ::poll(nullptr, 0, wait);
  }

  static constexpr int wait = 20, most_waits = 25;  // milliseconds, and how many of them

  std::string path_;
  int descriptor_ = -1;
  bool is_pipe_ = false;
  bool began_ = false;
  int waits_ = 0;
};

/// Number of typing slips (edit distance) between two words: insertions, deletions, substitutions
/// and swaps of neighbours.
/// Source  Damerau 1964, "A technique for computer detection and correction of spelling errors"
std::size_t slips(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> cost(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) {
    for (std::size_t j = 0; j <= b.size(); ++j) {
      if (i == 0 || j == 0) {
        cost[i][j] = i + j;
        continue;
      }
      const std::size_t differs = a[i - 1] == b[j - 1] ? 0 : 1;
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, cost[i - 1][j - 1] + differs});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
      }
    }
  }
  return cost[a.size()][b.size()];
}

}  // namespace

FilePieces pieces_of_file(const std::string& path) {
  return [file = std::make_shared<InputFile>(path)](std::span<char> piece) {
    return file->read(piece);
  };
}

std::string read_file(const std::string& path, std::size_t limit) {
  InputFile file{path};
  std::string bytes;
  std::array<char, 1 << 16> piece;
  while (const std::size_t read = file.read(piece)) {
    bytes.append(piece.data(), read);
    if (bytes.size() > limit) {
      throw InputError{printable(path), fmt::format("larger than {} MiB", limit >> 20)};
    }
  }
  return bytes;
}

void require_text(std::string_view bytes, const std::string& name) {
  if (bytes.starts_with("\xFF\xFE") || bytes.starts_with("\xFE\xFF")) {
    throw InputError{name, "is UTF-16; save it as UTF-8 (iconv -f UTF-16 -t UTF-8)"};
  }
  if (bytes.find('\0') != std::string_view::npos) throw InputError{name, "is binary, not text"};
  for (std::size_t at = 0; at < bytes.size();) {
    const std::size_t length = character_length(bytes.substr(at));
    if (length == 0) {
      throw InputError{fmt::format("{}:line {}", name, line_of(bytes, at)), "is not UTF-8"};
    }
    at += length;
  }
}

std::size_t line_of(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, offset);
  return 1 + static_cast<std::size_t>(std::ranges::count(before, '\n'));
}

namespace {

/// The code point of the UTF-8 character that is all of `text`.
std::uint32_t code_point(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  std::uint32_t code = first;
  if (text.size() > 1) code = first & (0x7FU >> text.size());
  for (const char next : text.substr(1)) code = code << 6U | (static_cast<unsigned>(next) & 0x3FU);
  return code;
}

/// Control characters, line and paragraph ends, and marks that change the direction of the text
/// after them: a terminal obeys them, so that a text could repaint the lines around it.
/// Source  Unicode 15: general categories Cc, Zl and Zp; property Bidi_Control
bool controls(std::uint32_t code) {
  const auto between = [&](std::uint32_t low, std::uint32_t high) {
    return code >= low && code <= high;
  };
  return code < 0x20 || between(0x7F, 0x9F) || code == 0x061C || between(0x200E, 0x200F) ||
         between(0x2028, 0x202E) || between(0x2066, 0x2069);
}

}  // namespace

bool is_printable(std::string_view text) {
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    if (length == 0 || controls(code_point(text.substr(0, length)))) return false;
    text.remove_prefix(length);
  }
  return true;
}

std::string printable(std::string_view text, std::size_t limit) {
  std::string shown;
  while (!text.empty()) {
    const std::size_t length = character_length(text);
    std::string next{text.substr(0, length)};
    if (length == 0) {
      next = "\xEF\xBF\xBD";  // U+FFFD in place of a stray byte
    } else if (const std::uint32_t code = code_point(next); controls(code)) {
      next = fmt::format("\\u{:04x}", code);
    }
    if (shown.size() + next.size() > limit) {
      // The dots that mark the cut replace the last whole characters.
      while (shown.size() + 3 > limit && !shown.empty()) {
        while ((static_cast<unsigned char>(shown.back()) & 0xC0) == 0x80) shown.pop_back();
        shown.pop_back();
      }
      return shown + "...";
    }
    shown += next;
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return shown;
}

std::string_view nearest(std::string_view word, std::span<const std::string_view> accepted) {
  constexpr std::size_t longest = 64;  // no key is longer; keeps hostile input cheap
  if (word.size() > longest) return {};
  std::string_view best;
  std::size_t fewest = std::max<std::size_t>(1, word.size() / 3) + 1;
  for (const std::string_view candidate : accepted) {
    const std::size_t count = slips(word, candidate);
    if (count < fewest && count < candidate.size()) {
      fewest = count;
      best = candidate;
    }
  }
  return best;
}

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blank = " \t\r\n";
  const std::size_t first = text.find_first_not_of(blank);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blank) - first + 1);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t end = std::min(text.find(separator, at), text.size());
    parts.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return parts;
}

void TextHash::add(std::string_view text) {
  add_word(text.size());
  for (std::size_t at = 0; at < text.size(); at += 8) {
    std::uint64_t word = 0;
    for (std::size_t i = at; i < std::min(at + 8, text.size()); ++i) {
      word |= std::uint64_t{static_cast<unsigned char>(text[i])} << (8 * (i - at));
    }
    add_word(word);
  }
}

std::string TextHash::text() const {
  return fmt::format("{:016x}", value_);
}

void TextHash::add_word(std::uint64_t word) {
  value_ = (value_ ^ word) * 0x100000001b3U;
  value_ ^= value_ >> 29;  // high bits of a word reach the low ones
}

}  // namespace orrery
