#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <utility>

#include "executor/crc32c.hpp"
#include "executor/errors.hpp"
#include "executor/run/settings.hpp"
#include "executor/run/weights/random.hpp"
#include "sim/errors.hpp"
#include "sim/input/text.hpp"

namespace orrery::executor {

namespace {

class SyntheticTokens final : public TokenSource {
 public:
  SyntheticTokens(std::uint64_t seed, std::int64_t vocab) : seed_{seed}, vocab_{vocab} {}

  std::string digest() const override { return "synthetic"; }

  Time fill(std::int64_t step, std::int64_t sample, std::span<std::int64_t> tokens) const override {
    const RandomStream random{seed_, stream_number("tokens of step " + std::to_string(step))};
    const std::uint64_t first = static_cast<std::uint64_t>(sample) << 24;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      tokens[i] =
          static_cast<std::int64_t>(random.bits(first + i) % static_cast<std::uint64_t>(vocab_));
    }
    return {};
  }

 private:
  std::uint64_t seed_;
  std::int64_t vocab_;
};

/// Limit of the bytes of one pipe, because every rank holds them in memory.
constexpr std::size_t most_piped = std::size_t{4} << 30;

/// A file that is read where it is asked for, or what came out of a pipe.
class TextPiece {
 public:
  explicit TextPiece(const std::string& path) : path_{path} {
    struct stat found {};
    const bool regular = ::stat(path.c_str(), &found) == 0 && S_ISREG(found.st_mode);
    file_ = regular ? ::open(path.c_str(), O_RDONLY | O_CLOEXEC) : -1;
    if (file_ < 0) {
      held_ = read_file(path, most_piped);
      size_ = held_.size();
    } else {
      size_ = static_cast<std::size_t>(found.st_size);
    }
  }
  ~TextPiece() {
    if (file_ >= 0) ::close(file_);
  }
  TextPiece(TextPiece&& other) noexcept
      : path_{std::move(other.path_)},
        held_{std::move(other.held_)},
        file_{std::exchange(other.file_, -1)},
        size_{other.size_} {}
  TextPiece& operator=(TextPiece&&) = delete;

  std::size_t size() const { return size_; }

  /// Reads bytes that are all there. Errors  RunFailure{local_failure}: it has changed
  void read(std::size_t at, std::span<unsigned char> to) const {
    if (file_ < 0) {
      std::memcpy(to.data(), held_.data() + at, to.size());
      return;
    }
    while (!to.empty()) {
      const ssize_t found = ::pread(file_, to.data(), to.size(), static_cast<off_t>(at));
      if (found < 0 && errno == EINTR) continue;
      if (found <= 0) {
        throw RunFailure{Exit::local_failure,
                         fmt::format("{}: {}", printable(path_),
                                     found < 0 ? std::strerror(errno) : "became shorter")};
      }
      to = to.subspan(static_cast<std::size_t>(found));
      at += static_cast<std::size_t>(found);
    }
  }

 private:
  std::string path_, held_;
  int file_ = -1;
  std::size_t size_ = 0;
};

class TextTokens final : public TokenSource {
 public:
  TextTokens(const std::vector<std::string>& files, std::int64_t global_batch)
      : global_batch_{global_batch} {
    for (const std::string& path : files) {
      pieces_.emplace_back(path);
      begins_.push_back(size_);
      size_ += pieces_.back().size();
    }
    if (size_ == 0) {
      std::string all;
      for (const std::string& path : files) all += (all.empty() ? "" : ", ") + path;
      throw InputError{all, "expected text to train on, found no bytes"};
    }
  }

  Time fill(std::int64_t step, std::int64_t sample, std::span<std::int64_t> tokens) const override {
    using Clock = std::chrono::steady_clock;
    // The last token of a sample, which is only a label, is the first of the next one.
    const std::size_t stride = tokens.size() > 1 ? tokens.size() - 1 : 1;
    const auto number = static_cast<std::size_t>(step * global_batch_ + sample);
    std::array<unsigned char, 4096> bytes;
    Clock::duration reading{};
    for (std::size_t i = 0; i < tokens.size();) {
      const std::span<unsigned char> part{bytes.data(), std::min(bytes.size(), tokens.size() - i)};
      const Clock::time_point begin = Clock::now();
      read((number * stride + i) % size_, part);
      reading += Clock::now() - begin;
      for (const unsigned char each : part) tokens[i++] = each;
    }
    return from_seconds(std::chrono::duration<double>(reading).count());
  }

  std::string digest() const override {
    std::vector<unsigned char> block(std::size_t{1} << 20);
    std::uint32_t sum = 0;
    for (const TextPiece& each : pieces_) {
      for (std::size_t at = 0; at < each.size();) {
        const std::span<unsigned char> part{block.data(), std::min(block.size(), each.size() - at)};
        each.read(at, part);
        sum = crc32c(part.data(), part.size(), sum);
        at += part.size();
      }
    }
    return fmt::format("crc32c {:08x} of {} bytes", sum, size_);
  }

 private:
  /// Bytes from one place on, over the ends of files and from the beginning again.
  void read(std::size_t at, std::span<unsigned char> to) const {
    while (!to.empty()) {
      const auto after = std::ranges::upper_bound(begins_, at);
      const auto i = static_cast<std::size_t>(after - begins_.begin()) - 1;
      const std::size_t here = at - begins_[i];
      const std::size_t count = std::min(to.size(), pieces_[i].size() - here);
      pieces_[i].read(here, to.first(count));
      to = to.subspan(count);
      at = (at + count) % size_;
    }
  }

  std::vector<TextPiece> pieces_;
  std::vector<std::size_t> begins_;
  std::size_t size_ = 0;
  std::int64_t global_batch_;
};

}  // namespace

std::unique_ptr<TokenSource> synthetic_tokens(std::uint64_t seed, std::int64_t vocab) {
  return std::make_unique<SyntheticTokens>(seed, vocab);
}

std::unique_ptr<TokenSource> text_tokens(const std::vector<std::string>& files, std::int64_t vocab,
                                         std::int64_t global_batch) {
  if (vocab < 256) {
    throw InputError{"--data", "text bytes need a vocabulary of at least 256, the model has " +
                                   std::to_string(vocab)};
  }
  return std::make_unique<TextTokens>(files, global_batch);
}

}  // namespace orrery::executor
