#include <fmt/format.h>

#include <string>

#include "executor/crc32c.hpp"
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

  void fill(std::int64_t step, std::int64_t sample, std::span<std::int64_t> tokens) const override {
    const RandomStream random{seed_, stream_number("tokens of step " + std::to_string(step))};
    const std::uint64_t first = static_cast<std::uint64_t>(sample) << 24;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      tokens[i] =
          static_cast<std::int64_t>(random.bits(first + i) % static_cast<std::uint64_t>(vocab_));
    }
  }

 private:
  std::uint64_t seed_;
  std::int64_t vocab_;
};

/// Limit of the bytes of text that one run trains on, because every rank holds them in memory.
constexpr std::size_t most_text = std::size_t{4} << 30;

class TextTokens final : public TokenSource {
 public:
  TextTokens(const std::vector<std::string>& files, std::int64_t global_batch)
      : global_batch_{global_batch} {
    for (const std::string& path : files) text_ += read_file(path, most_text - text_.size());
    if (text_.empty()) {
      std::string all;
      for (const std::string& path : files) all += (all.empty() ? "" : ", ") + path;
      throw InputError{all, "expected text to train on, found no bytes"};
    }
  }

  void fill(std::int64_t step, std::int64_t sample, std::span<std::int64_t> tokens) const override {
    // The last token of a sample, which is only a label, is the first of the next one.
    const std::size_t stride = tokens.size() > 1 ? tokens.size() - 1 : 1;
    const auto number = static_cast<std::size_t>(step * global_batch_ + sample);
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      tokens[i] = static_cast<unsigned char>(text_[(number * stride + i) % text_.size()]);
    }
  }

  std::string digest() const override {
    return fmt::format("crc32c {:08x} of {} bytes", crc32c(text_.data(), text_.size()),
                       text_.size());
  }

 private:
  std::string text_;
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
