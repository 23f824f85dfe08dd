// JPEG 2000 by OpenJPEG, whose files are read and written through callbacks.

#ifdef ORRERY_OPENJPEG

#include <openjpeg.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "calibrate/bench/decoding.hpp"
#include "calibrate/decoders/failure.hpp"

namespace orrery::calibrate {

namespace {

using ImagePointer = std::unique_ptr<opj_image_t, decltype(&opj_image_destroy)>;
using CodecPointer = std::unique_ptr<opj_codec_t, decltype(&opj_destroy_codec)>;
using StreamPointer = std::unique_ptr<opj_stream_t, decltype(&opj_stream_destroy)>;

/// A file in memory.
struct MemoryFile {
  std::vector<std::uint8_t>* bytes = nullptr;
  std::size_t at = 0;
};

OPJ_SIZE_T read_memory(void* to, OPJ_SIZE_T size, void* data) {
  auto& file = *static_cast<MemoryFile*>(data);
  if (file.at >= file.bytes->size()) return static_cast<OPJ_SIZE_T>(-1);
  const std::size_t count = std::min<std::size_t>(size, file.bytes->size() - file.at);
  std::memcpy(to, file.bytes->data() + file.at, count);
  file.at += count;
  return count;
}

OPJ_SIZE_T write_memory(void* from, OPJ_SIZE_T size, void* data) {
  auto& file = *static_cast<MemoryFile*>(data);
  if (file.at + size > file.bytes->size()) file.bytes->resize(file.at + size);
  std::memcpy(file.bytes->data() + file.at, from, size);
  file.at += size;
  return size;
}

OPJ_OFF_T skip_memory(OPJ_OFF_T count, void* data) {
  static_cast<MemoryFile*>(data)->at += static_cast<std::size_t>(count);
  return count;
}

OPJ_BOOL seek_memory(OPJ_OFF_T to, void* data) {
  static_cast<MemoryFile*>(data)->at = static_cast<std::size_t>(to);
  return OPJ_TRUE;
}

StreamPointer stream_of(MemoryFile& file, bool reads) {
  StreamPointer stream{opj_stream_create(std::size_t{1} << 16, reads ? OPJ_TRUE : OPJ_FALSE),
                       &opj_stream_destroy};
  opj_stream_set_user_data(stream.get(), &file, nullptr);
  opj_stream_set_user_data_length(stream.get(), file.bytes->size());
  opj_stream_set_read_function(stream.get(), read_memory);
  opj_stream_set_write_function(stream.get(), write_memory);
  opj_stream_set_skip_function(stream.get(), skip_memory);
  opj_stream_set_seek_function(stream.get(), seek_memory);
  return stream;
}

class Jpeg2000Codec final : public ImageCodec {
 public:
  /// ratio  of the pixels' bytes to the file's; 0: lossless
  explicit Jpeg2000Codec(int ratio) : ratio_{ratio} {}

  std::string format() const override {
    return lossless() ? "jpeg2000-lossless" : "jpeg2000-" + std::to_string(ratio_) + "to1";
  }
  std::string library() const override { return std::string{"OpenJPEG "} + opj_version(); }
  bool lossless() const override { return ratio_ == 0; }

  std::vector<std::uint8_t> encode(const RgbPicture& picture) const override {
    const ImagePointer image = planes_of(picture);
    opj_cparameters_t parameters;
    opj_set_default_encoder_parameters(&parameters);
    parameters.tcp_numlayers = 1;
    parameters.tcp_rates[0] = static_cast<float>(ratio_);
    parameters.cp_disto_alloc = 1;
    parameters.irreversible = lossless() ? 0 : 1;
    parameters.tcp_mct = 1;
    const CodecPointer codec{opj_create_compress(OPJ_CODEC_J2K), &opj_destroy_codec};
    std::vector<std::uint8_t> made;
    MemoryFile file{&made};
    const StreamPointer stream = stream_of(file, false);
    const bool written = opj_setup_encoder(codec.get(), &parameters, image.get()) &&
                         opj_start_compress(codec.get(), image.get(), stream.get()) &&
                         opj_encode(codec.get(), stream.get()) &&
                         opj_end_compress(codec.get(), stream.get());
    if (!written) fail_codec("OpenJPEG", "cannot encode");
    return made;
  }

  void decode(const std::vector<std::uint8_t>& bytes, RgbPicture& to) const override {
    opj_dparameters_t parameters;
    opj_set_default_decoder_parameters(&parameters);
    const CodecPointer codec{opj_create_decompress(OPJ_CODEC_J2K), &opj_destroy_codec};
    MemoryFile file{const_cast<std::vector<std::uint8_t>*>(&bytes)};
    const StreamPointer stream = stream_of(file, true);
    opj_image_t* read = nullptr;
    const bool begun = opj_setup_decoder(codec.get(), &parameters) &&
                       opj_read_header(stream.get(), codec.get(), &read);
    const ImagePointer image{read, &opj_image_destroy};
    const bool decoded = begun && opj_decode(codec.get(), stream.get(), image.get()) &&
                         opj_end_decompress(codec.get(), stream.get());
    if (!decoded || image->numcomps != 3) fail_codec("OpenJPEG", "cannot decode");
    to.width = static_cast<int>(image->comps[0].w);
    to.height = static_cast<int>(image->comps[0].h);
    to.rgb.resize(3 * to.pixels());
    for (std::size_t c = 0; c < 3; ++c) {
      for (std::size_t i = 0; i < to.pixels(); ++i) {
        to.rgb[3 * i + c] = static_cast<std::uint8_t>(std::clamp(image->comps[c].data[i], 0, 255));
      }
    }
  }

 private:
  static ImagePointer planes_of(const RgbPicture& picture) {
    opj_image_cmptparm_t planes[3]{};
    for (opj_image_cmptparm_t& each : planes) {
      each.dx = each.dy = 1;
      each.w = static_cast<OPJ_UINT32>(picture.width);
      each.h = static_cast<OPJ_UINT32>(picture.height);
      each.prec = 8;
    }
    ImagePointer image{opj_image_create(3, planes, OPJ_CLRSPC_SRGB), &opj_image_destroy};
    if (!image) fail_codec("OpenJPEG", "has no room for an image");
    image->x1 = static_cast<OPJ_UINT32>(picture.width);
    image->y1 = static_cast<OPJ_UINT32>(picture.height);
    for (std::size_t c = 0; c < 3; ++c) {
      for (std::size_t i = 0; i < picture.pixels(); ++i) {
        image->comps[c].data[i] = picture.rgb[3 * i + c];
      }
    }
    return image;
  }

  int ratio_;
};

}  // namespace

void add_jpeg2000(std::vector<std::unique_ptr<ImageCodec>>& codecs);
void add_jpeg2000(std::vector<std::unique_ptr<ImageCodec>>& codecs) {
  for (const int ratio : {10, 20, 0}) codecs.push_back(std::make_unique<Jpeg2000Codec>(ratio));
}

}  // namespace orrery::calibrate

#endif
