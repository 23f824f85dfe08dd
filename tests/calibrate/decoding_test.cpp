// Decoding that calibrate times: pictures come back as they were, and rates are of what was asked.

#include "calibrate/bench/decoding.hpp"

#include <catch2/catch.hpp>
#include <cmath>
#include <set>

#include "executor/errors.hpp"
#include "models/data/data_lane.hpp"

namespace orrery::calibrate {
namespace {

/// Stores pixels as they are, or spoils one of them.
class RawCodec final : public ImageCodec {
 public:
  explicit RawCodec(bool spoils) : spoils_{spoils} {}

  std::string format() const override { return "raw-rgb"; }
  std::string library() const override { return "test"; }
  bool lossless() const override { return true; }
  std::vector<std::uint8_t> encode(const RgbPicture& picture) const override { return picture.rgb; }
  void decode(const std::vector<std::uint8_t>& bytes, RgbPicture& to) const override {
    to = {.width = DecodingSubject::width, .height = DecodingSubject::height, .rgb = bytes};
    if (spoils_) to.rgb[77] ^= 1U;
  }

 private:
  bool spoils_;
};

double amplitude(const RgbPicture& picture, int period) {
  double real = 0, imaginary = 0;
  const double tau = 2 * 3.14159265358979323846;
  for (int y = 0; y < picture.height; ++y) {
    for (int x = 0; x < picture.width; ++x) {
      const double light = picture.rgb[3 * static_cast<std::size_t>(y * picture.width + x)];
      real += light * std::cos(tau * x / period);
      imaginary += light * std::sin(tau * x / period);
    }
  }
  return std::hypot(real, imaginary);
}

}  // namespace

TEST_CASE("Pictures that are decoded are compared with what they were") {
  const auto clock = machine_clock();
  const RawCodec good{false}, bad{true};
  DecodingSubject subject{good, *clock};
  subject.prepare();
  CHECK(subject.bytes() == 3 * 500 * 375);
  std::vector<Time> times(1);
  CHECK(subject.run(times));
  CHECK(times[0] > Time{});
  DecodingSubject spoilt{bad, *clock};
  CHECK_THROWS_WITH(spoilt.prepare(),
                    Catch::Contains("raw-rgb (test): a picture came back otherwise than it was"));
}

TEST_CASE("A synthetic picture has less of what is finer, and is the same for a seed") {
  const RgbPicture picture = synthetic_picture(256, 64, 3);
  CHECK(picture.rgb == synthetic_picture(256, 64, 3).rgb);
  CHECK(picture.rgb != synthetic_picture(256, 64, 4).rgb);
  double coarse = 0, fine = 0;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    coarse += amplitude(synthetic_picture(256, 64, seed), 128);
    fine += amplitude(synthetic_picture(256, 64, seed), 4);
  }
  CHECK(coarse > 3 * fine);
}

TEST_CASE("Every codec that orrery was built with decodes what it encodes") {
  const auto clock = machine_clock();
  const ImageCodecs found = image_codecs();
  CHECK(found.codecs.empty() == !found.absence.empty());
  std::set<std::string> formats;
  for (const auto& codec : found.codecs) {
    INFO(codec->format());
    CHECK(models::data_format(codec->format()).kind == "image");
    formats.insert(codec->format());
    DecodingSubject subject{*codec, *clock};
    subject.prepare();
    CHECK(subject.bytes() > 1000);
    CHECK(subject.bytes() < 3 * 500 * 375);
    std::vector<std::uint8_t> broken{1, 2, 3};
    RgbPicture picture;
    CHECK_THROWS(codec->decode(broken, picture));
    subject.finish();
  }
  CHECK(formats.size() == found.codecs.size());
}

TEST_CASE("Text is decoded as the executor's reader does, and its file is removed") {
  const auto folder = std::filesystem::temp_directory_path() / "orrery-decoding-test";
  std::filesystem::create_directories(folder);
  TextDecodingSubject text{folder};
  text.prepare();
  CHECK(!std::filesystem::is_empty(folder));
  std::vector<Time> times(1);
  CHECK(text.run(times));
  CHECK(times[0] > Time{});
  text.finish();
  CHECK(std::filesystem::is_empty(folder));
  std::filesystem::remove_all(folder);
}

}  // namespace orrery::calibrate
