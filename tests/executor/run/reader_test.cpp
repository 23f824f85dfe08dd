// The reader of a rank: what it reads, how far ahead, and when a step hears of a failure.

#include "executor/run/reader.hpp"

#include <atomic>
#include <catch2/catch.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <stdexcept>

#include "executor/errors.hpp"

namespace orrery::executor {
namespace {

/// Token i of a sample is 100 step + 10 sample + i; counts what was asked for.
class CountedTokens final : public TokenSource {
 public:
  Time fill(std::int64_t step, std::int64_t sample, std::span<std::int64_t> to) const override {
    if (step == broken) throw std::runtime_error{"no such step"};
    std::iota(to.begin(), to.end(), 100 * step + 10 * sample);
    ++samples;
    return Time{1};
  }

  mutable std::atomic<int> samples{0};
  std::int64_t broken = -1;
};

const std::vector<std::int64_t> three_places{0, 1, 2};

BatchShape shape_of_two() {
  return {.samples = 2, .first = 4, .seq_len = 3, .places = three_places, .vocabulary = 1000};
}

/// Waits until so many samples were read, and a little for more.
int settled(const CountedTokens& tokens, int expected) {
  using namespace std::chrono_literals;
  for (int i = 0; i < 2000 && tokens.samples < expected; ++i) std::this_thread::sleep_for(1ms);
  std::this_thread::sleep_for(20ms);
  return tokens.samples;
}

}  // namespace

// Samples 4 and 5 of step 7 begin at 740 and 750; labels are the next tokens.
TEST_CASE("A batch is the tokens of its samples and then their labels, however it is read") {
  const std::vector<std::int64_t> expected{740, 741, 742, 750, 751, 752,
                                           741, 742, 743, 751, 752, 753};
  const CountedTokens tokens;
  for (const ReadAhead ahead : {ReadAhead{.batches = 0}, ReadAhead{.batches = 3},
                                ReadAhead{.batches = 0, .background = false}}) {
    Reader reader{tokens, shape_of_two(), ahead};
    const Batch& batch = reader.take(7, {});
    CHECK(batch.step == 7);
    CHECK(batch.values == expected);
    CHECK(batch.times.read == Time{2});
    CHECK(batch.times.wait > Time{});
    CHECK(reader.take(8, {}).values.front() == 840);
    CHECK(reader.take(3, {}).values.front() == 340);  // a resumed run goes on elsewhere
    CHECK(reader.take(3, {}).values.front() == 340);
  }
}

// The batch in use, those that wait, and one that is finished and stays with the reader: what the
// lane of a prediction has.
TEST_CASE("A reader is ahead by its prefetch depth and the batch that it holds") {
  for (const std::int64_t ahead : {0, 2, 5}) {
    const CountedTokens tokens;
    Reader reader{tokens, shape_of_two(), {.batches = ahead}};
    reader.take(0, {});
    const int all = static_cast<int>(2 * (1 + ahead + 1));
    CHECK(settled(tokens, all) == all);
    reader.take(1, {});
    CHECK(settled(tokens, all + 2) == all + 2);
  }
  const CountedTokens tokens;
  Reader reader{tokens, shape_of_two(), {.batches = 0, .background = false}};
  reader.take(0, {});
  CHECK(settled(tokens, 2) == 2);
}

TEST_CASE("A step that cannot be read fails when it is taken, and no step before it") {
  CountedTokens tokens;
  tokens.broken = 2;
  Reader reader{tokens, shape_of_two(), {.batches = 4}};
  CHECK(reader.take(0, {}).step == 0);
  CHECK(reader.take(1, {}).step == 1);
  CHECK_THROWS_WITH(reader.take(2, {}), "no such step");
  CHECK(reader.take(3, {}).values.front() == 340);
}

// "abc", "", "defgh" are a circle of eight bytes; a sample of three tokens and a label begins
// three bytes after the one before.
TEST_CASE("Text is read from its files, over their ends and around") {
  const auto folder = std::filesystem::temp_directory_path() / "orrery-reader-test";
  std::filesystem::create_directories(folder);
  std::vector<std::string> files;
  for (const char* text : {"abc", "", "defgh"}) {
    files.push_back((folder / std::to_string(files.size())).string());
    std::ofstream{files.back()} << text;
  }
  const auto tokens = text_tokens(files, 256, 2);
  std::vector<std::int64_t> sample(4);
  for (std::int64_t number = 0; number < 9; ++number) {
    CHECK(tokens->fill(number / 2, number % 2, sample) > Time{});
    for (std::size_t i = 0; i < 4; ++i) {
      CHECK(sample[i] == "abcdefgh"[(static_cast<std::size_t>(number) * 3 + i) % 8]);
    }
  }
  CHECK(tokens->digest() == text_tokens(files, 256, 1)->digest());
  // A file that is cut while it is read is an error of this machine, not other text.
  std::filesystem::resize_file(files[2], 2);
  CHECK_THROWS_WITH(tokens->fill(0, 1, sample), Catch::Contains("became shorter"));
  std::filesystem::remove_all(folder);
}

}  // namespace orrery::executor
