#pragma once
// Times decoding of a format's samples on one core: pictures by the libraries that orrery was built
// with, and text as the executor reads it. Leaves out resizing and other augmentation, and that
// several cores share a memory.

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "calibrate/harness/harness.hpp"

namespace orrery::calibrate {

/// Pixels of three bytes, row by row.
struct RgbPicture {
  int width = 0, height = 0;
  std::vector<std::uint8_t> rgb;

  std::size_t pixels() const {
    return static_cast<std::size_t>(width) * static_cast<std::size_t>(height);
  }
};

/// A picture whose amplitudes fall as 1 / frequency, as those of photographs do: noise of every
/// octave from the whole picture down to two pixels, all of them as strong, as an octave of a plane
/// has four times the frequencies of the one before.
/// Source  Field 1987, "Relations between the statistics of natural images and the response
///         properties of cortical cells": amplitude spectra fall as 1/f
RgbPicture synthetic_picture(int width, int height, std::uint64_t seed);

/// A library's way to write and read one format.
class ImageCodec {
 public:
  virtual ~ImageCodec() = default;
  virtual std::string format() const = 0;   // a row of models/data/formats.csv: "jpeg-q90"
  virtual std::string library() const = 0;  // with its version: "libjpeg-turbo 2.1.5"
  virtual bool lossless() const = 0;
  /// Errors  the library fails: std::runtime_error
  virtual std::vector<std::uint8_t> encode(const RgbPicture& picture) const = 0;
  virtual void decode(const std::vector<std::uint8_t>& bytes, RgbPicture& to) const = 0;
};

/// The codecs of the module that has them, and why there are none.
struct ImageCodecs {
  std::vector<std::unique_ptr<ImageCodec>> codecs;
  std::string absence;  // empty: there are some
};
ImageCodecs image_codecs();

/// Decodes a few pictures. Its part is CPU time, which other processes do not lengthen.
class DecodingSubject : public Subject {
 public:
  static constexpr int width = 500, height = 375, pictures = 4;

  DecodingSubject(const ImageCodec& codec, Clock& clock) : codec_{codec}, clock_{clock} {}

  std::string name() const override { return "decode " + codec_.format(); }
  const ImageCodec& codec() const { return codec_; }
  std::size_t parts() const override { return 1; }
  /// Mean size of an encoded picture, once prepared.
  double bytes() const { return bytes_; }
  /// Errors  the library fails, or pictures come back otherwise than they were:
  ///         RunFailure{local_failure}
  void prepare() override;
  bool run(std::vector<Time>& times) override;
  void finish() override;

 private:
  void encode_all();

  const ImageCodec& codec_;
  Clock& clock_;
  std::vector<std::vector<std::uint8_t>> encoded_;
  RgbPicture decoded_;
  double bytes_ = 0;
};

/// Makes batches of a text file as the executor's reader does; its part is what is not reading.
class TextDecodingSubject : public Subject {
 public:
  static constexpr std::int64_t samples = 16, sequence = 4096;

  explicit TextDecodingSubject(std::filesystem::path folder);

  std::string name() const override { return "decode text-bytes"; }
  std::size_t parts() const override { return 1; }
  void prepare() override;
  bool run(std::vector<Time>& times) override;
  void finish() override;

 private:
  struct Reading;
  struct EndReading {
    void operator()(Reading* reading) const;
  };

  std::filesystem::path file_;
  std::unique_ptr<Reading, EndReading> reading_;
};

}  // namespace orrery::calibrate
