#include "calibrate/bench/decoding.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "executor/errors.hpp"
#include "executor/module/module.hpp"
#include "executor/run/reader.hpp"
#include "sim/output/durable_file.hpp"

namespace orrery::calibrate {

namespace {

/// One step of SplitMix64 (Steele, Lea & Flood 2014), as a number from -1 to 1.
double even_noise(std::uint64_t state) {
  state += 0x9e37'79b9'7f4a'7c15;
  state = (state ^ (state >> 30)) * 0xbf58'476d'1ce4'e5b9;
  state = (state ^ (state >> 27)) * 0x94d0'49bb'1331'11eb;
  return static_cast<double>((state ^ (state >> 31)) >> 11) * 0x1p-52 - 1;
}

/// Noise on a grid of so many pixels, bilinear in between.
double smooth_noise(double x, double y, double cell, std::uint64_t seed) {
  const double gx = x / cell, gy = y / cell;
  const auto column = static_cast<std::uint64_t>(gx), row = static_cast<std::uint64_t>(gy);
  const double fx = gx - std::floor(gx), fy = gy - std::floor(gy);
  const auto at = [&](std::uint64_t dx, std::uint64_t dy) {
    return even_noise(seed * 0x2545'f491'4f6c'dd1d + ((row + dy) << 24) + column + dx);
  };
  const double above = at(0, 0) * (1 - fx) + at(1, 0) * fx;
  const double below = at(0, 1) * (1 - fx) + at(1, 1) * fx;
  return above * (1 - fy) + below * fy;
}

double peak_signal_to_noise(const RgbPicture& one, const RgbPicture& other) {
  double squares = 0;
  for (std::size_t i = 0; i < one.rgb.size(); ++i) {
    const double difference = static_cast<double>(one.rgb[i]) - static_cast<double>(other.rgb[i]);
    squares += difference * difference;
  }
  const double mean = squares / static_cast<double>(one.rgb.size());
  return mean > 0 ? 10 * std::log10(255.0 * 255 / mean) : HUGE_VAL;
}

[[noreturn]] void fail_decoding(const ImageCodec& codec, const char* what) {
  throw executor::RunFailure{executor::Exit::local_failure,
                             fmt::format("{} ({}): {}", codec.format(), codec.library(), what)};
}

}  // namespace

RgbPicture synthetic_picture(int width, int height, std::uint64_t seed) {
  RgbPicture picture{.width = width, .height = height, .rgb = {}};
  picture.rgb.resize(3 * picture.pixels());
  constexpr double of_colour = 0.3;  // channels share most of their light
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      double light[4] = {};
      constexpr double strength = 18;  // of every octave
      std::uint64_t octave = 0;
      for (double cell = width; cell >= 1; cell /= 2, ++octave) {
        for (std::uint64_t c = 0; c < 4; ++c) {
          light[c] += strength * smooth_noise(x, y, cell, seed * 64 + octave * 4 + c);
        }
      }
      const std::size_t pixel = 3 * (static_cast<std::size_t>(y) * static_cast<std::size_t>(width) +
                                     static_cast<std::size_t>(x));
      for (std::size_t c = 0; c < 3; ++c) {
        const double value = 128 + light[3] + of_colour * light[c];
        picture.rgb[pixel + c] = static_cast<std::uint8_t>(std::clamp(value, 0.0, 255.0));
      }
    }
  }
  return picture;
}

ImageCodecs image_codecs() {
  const executor::Module module =
      executor::load_module("liborrery_decoders.so", executor::Symbols::own);
  void* made = executor::exported(module, "orrery_image_codecs");
  ImageCodecs found;
  if (made == nullptr) {
    found.absence = module.why;
    return found;
  }
  reinterpret_cast<void (*)(std::vector<std::unique_ptr<ImageCodec>>&)>(made)(found.codecs);
  if (found.codecs.empty()) found.absence = "this orrery was built without libraries of images";
  return found;
}

void DecodingSubject::prepare() {
  try {
    encode_all();
  } catch (const std::runtime_error& error) {
    fail_decoding(codec_, error.what());
  }
}

namespace {

/// Made once: every codec gets the same.
const std::vector<RgbPicture>& timed_pictures() {
  static const std::vector<RgbPicture> made = [] {
    std::vector<RgbPicture> pictures;
    for (int i = 0; i < DecodingSubject::pictures; ++i) {
      pictures.push_back(synthetic_picture(DecodingSubject::width, DecodingSubject::height,
                                           static_cast<std::uint64_t>(i) + 1));
    }
    return pictures;
  }();
  return made;
}

}  // namespace

void DecodingSubject::encode_all() {
  constexpr double least_decibels = 20;
  encoded_.clear();
  bytes_ = 0;
  for (const RgbPicture& picture : timed_pictures()) {
    encoded_.push_back(codec_.encode(picture));
    bytes_ += static_cast<double>(encoded_.back().size()) / pictures;
    codec_.decode(encoded_.back(), decoded_);
    if (decoded_.rgb.size() != picture.rgb.size()) throw std::runtime_error{"another size"};
    const double decibels = peak_signal_to_noise(picture, decoded_);
    if (codec_.lossless() ? std::isfinite(decibels) : decibels < least_decibels) {
      throw std::runtime_error{"a picture came back otherwise than it was"};
    }
  }
}

bool DecodingSubject::run(std::vector<Time>& times) {
  const Time begin = clock_.busy();
  for (const std::vector<std::uint8_t>& each : encoded_) codec_.decode(each, decoded_);
  times[0] = clock_.busy() - begin;
  return true;
}

void DecodingSubject::finish() {
  encoded_ = {};
  decoded_ = {};
}

struct TextDecodingSubject::Reading {
  std::unique_ptr<executor::TokenSource> text;
  std::vector<std::int64_t> places;
  executor::Batch batch;
  std::int64_t step = 0;
};

void TextDecodingSubject::EndReading::operator()(Reading* reading) const {
  delete reading;
}

TextDecodingSubject::TextDecodingSubject(std::filesystem::path folder)
    : file_{std::move(folder) / fmt::format(".orrery-text-{}", ::getpid())} {}

void TextDecodingSubject::prepare() {
  std::string text(static_cast<std::size_t>(samples * sequence), ' ');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>('a' + i % 23);
  write_durably(file_.string(), text);
  reading_.reset(new Reading{.text = executor::text_tokens({file_.string()}, 256, samples),
                             .places = std::vector<std::int64_t>(sequence),
                             .batch = {}});
  std::iota(reading_->places.begin(), reading_->places.end(), 0);
}

bool TextDecodingSubject::run(std::vector<Time>& times) {
  const executor::BatchShape shape{
      .samples = samples, .seq_len = sequence, .places = reading_->places, .vocabulary = 256};
  executor::make_batch(*reading_->text, shape, reading_->step++, reading_->batch, {});
  times[0] = reading_->batch.times.decode;
  return true;
}

void TextDecodingSubject::finish() {
  reading_.reset();
  std::error_code ignored;  // a failed removal is not an error
  std::filesystem::remove(file_, ignored);
}

}  // namespace orrery::calibrate
