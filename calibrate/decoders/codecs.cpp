// The module of image codecs: one for each format whose library was there when orrery was built.
// Loaded by calibrate/bench/decoding.cpp alone, so that nothing else needs the libraries.

#include <csetjmp>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "calibrate/bench/decoding.hpp"
#include "calibrate/decoders/failure.hpp"

#ifdef ORRERY_JPEG
#include <cstdio>
// after cstdio, whose FILE it uses
#include <jpeglib.h>
#endif
#ifdef ORRERY_WEBP
#include <webp/decode.h>
#include <webp/encode.h>
#endif
#ifdef ORRERY_PNG
#include <png.h>
#endif

namespace orrery::calibrate {

namespace {

[[maybe_unused]] void make_room(RgbPicture& picture, int width, int height) {
  picture.width = width;
  picture.height = height;
  picture.rgb.resize(3 * picture.pixels());
}

#ifdef ORRERY_JPEG

class JpegCodec final : public ImageCodec {
 public:
  explicit JpegCodec(int quality) : quality_{quality} {}

  std::string format() const override { return "jpeg-q" + std::to_string(quality_); }
  std::string library() const override {
#ifdef LIBJPEG_TURBO_VERSION
    return "libjpeg-turbo " ORRERY_JPEG;
#else
    return "libjpeg";
#endif
  }
  bool lossless() const override {
    return false;
  }

  /// Chroma of half the width and height, as the library and Pillow have it by default.
  std::vector<std::uint8_t> encode(const RgbPicture& picture) const override {
    jpeg_compress_struct state{};
    const std::unique_ptr<jpeg_compress_struct, void (*)(j_compress_ptr)> ended{
        &state, jpeg_destroy_compress};
    JpegErrors errors;
    state.err = failing(errors);
    std::vector<std::uint8_t> made(most_bytes(picture));
    unsigned char* bytes = made.data();
    auto size = static_cast<unsigned long>(made.size());
    if (setjmp(errors.back) != 0) fail_codec("libjpeg", errors.text);
    jpeg_create_compress(&state);
    jpeg_mem_dest(&state, &bytes, &size);
    state.image_width = static_cast<JDIMENSION>(picture.width);
    state.image_height = static_cast<JDIMENSION>(picture.height);
    state.input_components = 3;
    state.in_color_space = JCS_RGB;
    jpeg_set_defaults(&state);
    jpeg_set_quality(&state, quality_, TRUE);
    jpeg_start_compress(&state, TRUE);
    while (state.next_scanline < state.image_height) {
      auto* row = const_cast<JSAMPLE*>(picture.rgb.data()) +
                  std::size_t{3} * state.next_scanline * state.image_width;
      jpeg_write_scanlines(&state, &row, 1);
    }
    jpeg_finish_compress(&state);
    if (bytes == made.data()) {
      made.resize(size);
    } else {  // the library made room of its own
      made.assign(bytes, bytes + size);
      std::free(bytes);
    }
    return made;
  }

  void decode(const std::vector<std::uint8_t>& bytes, RgbPicture& to) const override {
    jpeg_decompress_struct state{};
    const std::unique_ptr<jpeg_decompress_struct, void (*)(j_decompress_ptr)> ended{
        &state, jpeg_destroy_decompress};
    JpegErrors errors;
    state.err = failing(errors);
    if (setjmp(errors.back) != 0) fail_codec("libjpeg", errors.text);
    jpeg_create_decompress(&state);
    jpeg_mem_src(&state, bytes.data(), static_cast<unsigned long>(bytes.size()));
    jpeg_read_header(&state, TRUE);
    jpeg_start_decompress(&state);
    make_room(to, static_cast<int>(state.output_width), static_cast<int>(state.output_height));
    while (state.output_scanline < state.output_height) {
      JSAMPLE* row = to.rgb.data() + std::size_t{3} * state.output_scanline * state.output_width;
      jpeg_read_scanlines(&state, &row, 1);
    }
    jpeg_finish_decompress(&state);
  }

 private:
  struct JpegErrors {
    jpeg_error_mgr manager{};  // first: the library knows its address alone
    std::jmp_buf back{};
    char text[JMSG_LENGTH_MAX]{};
  };
  /// Bytes that no picture exceeds with chroma of half the width and height: the library need not
  /// make room that a failure would leave behind. Source  tjBufSize of libjpeg-turbo
  static std::size_t most_bytes(const RgbPicture& picture) {
    const auto padded = [](int side) { return (static_cast<std::size_t>(side) + 15) / 16 * 16; };
    return padded(picture.width) * padded(picture.height) * 3 + 2048;
  }
  /// The library's own handler ends the process; C code cannot be unwound.
  static jpeg_error_mgr* failing(JpegErrors& errors) {
    jpeg_error_mgr* made = jpeg_std_error(&errors.manager);
    made->error_exit = [](j_common_ptr state) {
      auto* failed = reinterpret_cast<JpegErrors*>(state->err);
      state->err->format_message(state, failed->text);
      std::longjmp(failed->back, 1);
    };
    return made;
  }

  int quality_;
};

#endif
#ifdef ORRERY_WEBP

class WebpCodec final : public ImageCodec {
 public:
  /// quality  0: lossless
  explicit WebpCodec(int quality) : quality_{quality} {}

  std::string format() const override {
    return lossless() ? "webp-lossless" : "webp-q" + std::to_string(quality_);
  }
  std::string library() const override { return "libwebp " ORRERY_WEBP; }
  bool lossless() const override { return quality_ == 0; }

  std::vector<std::uint8_t> encode(const RgbPicture& picture) const override {
    const int stride = 3 * picture.width;
    std::uint8_t* bytes = nullptr;
    const std::size_t size = lossless()
                                 ? WebPEncodeLosslessRGB(picture.rgb.data(), picture.width,
                                                         picture.height, stride, &bytes)
                                 : WebPEncodeRGB(picture.rgb.data(), picture.width, picture.height,
                                                 stride, static_cast<float>(quality_), &bytes);
    if (size == 0) fail_codec("libwebp", "cannot encode");
    std::vector<std::uint8_t> made(bytes, bytes + size);
    WebPFree(bytes);
    return made;
  }

  void decode(const std::vector<std::uint8_t>& bytes, RgbPicture& to) const override {
    int width = 0, height = 0;
    if (WebPGetInfo(bytes.data(), bytes.size(), &width, &height) == 0) {
      fail_codec("libwebp", "cannot read a header");
    }
    make_room(to, width, height);
    const auto* made =
        WebPDecodeRGBInto(bytes.data(), bytes.size(), to.rgb.data(), to.rgb.size(), 3 * width);
    if (made == nullptr) fail_codec("libwebp", "cannot decode");
  }

 private:
  int quality_;
};

#endif
#ifdef ORRERY_PNG

class PngCodec final : public ImageCodec {
 public:
  std::string format() const override { return "png"; }
  std::string library() const override { return "libpng " PNG_LIBPNG_VER_STRING; }
  bool lossless() const override { return true; }

  std::vector<std::uint8_t> encode(const RgbPicture& picture) const override {
    png_image image = header();
    image.width = static_cast<png_uint_32>(picture.width);
    image.height = static_cast<png_uint_32>(picture.height);
    image.format = PNG_FORMAT_RGB;
    png_alloc_size_t size = 0;
    if (png_image_write_to_memory(&image, nullptr, &size, 0, picture.rgb.data(), 0, nullptr) == 0) {
      fail_codec("libpng", image.message);
    }
    std::vector<std::uint8_t> made(size);
    if (png_image_write_to_memory(&image, made.data(), &size, 0, picture.rgb.data(), 0, nullptr) ==
        0) {
      fail_codec("libpng", image.message);
    }
    made.resize(size);
    return made;
  }

  void decode(const std::vector<std::uint8_t>& bytes, RgbPicture& to) const override {
    png_image image = header();
    const std::unique_ptr<png_image, void (*)(png_imagep)> ended{&image, png_image_free};
    if (png_image_begin_read_from_memory(&image, bytes.data(), bytes.size()) == 0) {
      fail_codec("libpng", image.message);
    }
    image.format = PNG_FORMAT_RGB;
    make_room(to, static_cast<int>(image.width), static_cast<int>(image.height));
    if (png_image_finish_read(&image, nullptr, to.rgb.data(), 0, nullptr) == 0) {
      fail_codec("libpng", image.message);
    }
  }

 private:
  static png_image header() {
    png_image image{};
    image.version = PNG_IMAGE_VERSION;
    return image;
  }
};

#endif

}  // namespace

#ifdef ORRERY_OPENJPEG
void add_jpeg2000(std::vector<std::unique_ptr<ImageCodec>>& codecs);  // jpeg2000.cpp
#endif

}  // namespace orrery::calibrate

using orrery::calibrate::ImageCodec;

extern "C" __attribute__((visibility("default"))) void orrery_image_codecs(
    [[maybe_unused]] std::vector<std::unique_ptr<ImageCodec>>& codecs) {
  using namespace orrery::calibrate;
#ifdef ORRERY_JPEG
  for (const int quality : {90, 75}) codecs.push_back(std::make_unique<JpegCodec>(quality));
#endif
#ifdef ORRERY_WEBP
  for (const int quality : {90, 75, 0}) codecs.push_back(std::make_unique<WebpCodec>(quality));
#endif
#ifdef ORRERY_PNG
  codecs.push_back(std::make_unique<PngCodec>());
#endif
#ifdef ORRERY_OPENJPEG
  add_jpeg2000(codecs);
#endif
}
