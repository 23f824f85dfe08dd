#pragma once
// The encoding of the store's frames: numbers are little-endian, texts have their length before
// them.

#include <cstdint>
#include <string>
#include <string_view>

namespace orrery::executor {

enum class StoreVerb : std::uint8_t { set, first, find, get, add, erase, barrier, now, leave };
enum class StoreAnswer : std::uint8_t { done, absent, refused };

/// Appends numbers and texts to a frame.
class FrameWriter {
 public:
  FrameWriter& number(std::uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) frame_.push_back(static_cast<char>(value >> (8 * i)));
    return *this;
  }
  FrameWriter& text(std::string_view value) {
    number(value.size(), 4);
    frame_.append(value);
    return *this;
  }
  const std::string& bytes() const { return frame_; }
  /// The frame with its length before it.
  std::string framed() const { return FrameWriter{}.number(frame_.size(), 4).frame_ + frame_; }

 private:
  std::string frame_;
};

/// Reads a frame; past its end it returns zeros, and `whole` becomes false.
class FrameReader {
 public:
  explicit FrameReader(std::string_view frame) : rest_{frame} {}

  std::uint64_t number(int bytes) {
    std::uint64_t value = 0;
    if (rest_.size() < static_cast<std::size_t>(bytes)) return fail();
    for (int i = 0; i < bytes; ++i) {
      value |= static_cast<std::uint64_t>(static_cast<unsigned char>(rest_[i])) << (8 * i);
    }
    rest_.remove_prefix(static_cast<std::size_t>(bytes));
    return value;
  }
  std::string text() {
    const std::uint64_t size = number(4);
    if (size > rest_.size()) return fail(), std::string{};
    const std::string value{rest_.substr(0, size)};
    rest_.remove_prefix(size);
    return value;
  }
  bool whole() const { return whole_; }
  /// All was read, and nothing beyond the end.
  bool at_end() const { return whole_ && rest_.empty(); }

 private:
  std::uint64_t fail() {
    whole_ = false;
    rest_ = {};
    return 0;
  }
  std::string_view rest_;
  bool whole_ = true;
};

}  // namespace orrery::executor
