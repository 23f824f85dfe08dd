#include "sim/input/unpacked_file.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/errors.hpp"
#include "sim/input/gunzip.hpp"

namespace orrery {

namespace {

constexpr std::size_t most_unpacked = std::size_t{16} << 30;

class UnpackedBuffer : public std::streambuf {
 public:
  explicit UnpackedBuffer(const std::string& path) : path_{path}, next_{pieces_of_file(path)} {
    packed_size_ = next_(packed_);
    is_packed_ = is_gzip({packed_.data(), packed_size_});
    if (!is_packed_) return;
    constexpr int gzip_header = 16, window_bits = 15;
    ensure(inflateInit2(&state_, window_bits + gzip_header) == Z_OK, "zlib cannot begin to unpack");
  }
  ~UnpackedBuffer() override {
    if (is_packed_) inflateEnd(&state_);
  }
  UnpackedBuffer(const UnpackedBuffer&) = delete;
  UnpackedBuffer& operator=(const UnpackedBuffer&) = delete;

 protected:
  int_type underflow() override {
    const std::size_t size = is_packed_ ? unpack() : copy();
    if (size == 0) return traits_type::eof();
    read_ += size;
    if (read_ > most_unpacked) {
      throw InputError{path_, fmt::format("unpacked, larger than {} GiB", most_unpacked >> 30)};
    }
    setg(text_.data(), text_.data(), text_.data() + size);
    return traits_type::to_int_type(text_.front());
  }

 private:
  std::size_t copy() {
    if (packed_size_ > 0) {  // read by the constructor
      std::copy_n(packed_.begin(), packed_size_, text_.begin());
      return std::exchange(packed_size_, 0);
    }
    return next_(text_);
  }

  std::size_t unpack() {
    while (!ended_) {
      if (state_.avail_in == 0 && !refill()) {
        throw InputError{path_, "is damaged: gzip cannot unpack it to its end"};
      }
      state_.next_out = reinterpret_cast<Bytef*>(text_.data());
      state_.avail_out = static_cast<uInt>(text_.size());
      const int status = ::inflate(&state_, Z_NO_FLUSH);
      if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR) {
        throw InputError{path_, "is damaged: gzip cannot unpack it"};
      }
      if (status == Z_STREAM_END) begin_next_member();
      const std::size_t size = text_.size() - state_.avail_out;
      if (size > 0) return size;
    }
    return 0;
  }

  bool refill() {
    if (packed_size_ == 0) packed_size_ = next_(packed_);
    state_.next_in = reinterpret_cast<Bytef*>(packed_.data());
    state_.avail_in = static_cast<uInt>(std::exchange(packed_size_, 0));
    return state_.avail_in > 0;
  }

  /// After a member: another one, or the end; padding is passed over.
  void begin_next_member() {
    if (state_.avail_in == 0 && !refill()) {
      ended_ = true;
      return;
    }
    const std::string_view rest{reinterpret_cast<const char*>(state_.next_in), state_.avail_in};
    ended_ = rest.front() != '\x1f';
    if (!ended_) {
      const uInt left = state_.avail_in;
      Bytef* const at = state_.next_in;
      inflateReset(&state_);
      state_.next_in = at;
      state_.avail_in = left;
    }
  }

  std::string path_;
  FilePieces next_;
  std::array<char, 1 << 16> packed_{};
  std::vector<char> text_ = std::vector<char>(1 << 18);
  std::size_t packed_size_ = 0, read_ = 0;
  bool is_packed_ = false, ended_ = false;
  z_stream state_{};
};

}  // namespace

std::unique_ptr<std::streambuf> unpacked_file(const std::string& path) {
  return std::make_unique<UnpackedBuffer>(path);
}

std::string first_bytes(const std::string& path, std::size_t most) {
  const auto file = unpacked_file(path);
  std::string text(most, '\0');
  text.resize(static_cast<std::size_t>(
      file->sgetn(text.data(), static_cast<std::streamsize>(text.size()))));
  return text;
}

}  // namespace orrery
