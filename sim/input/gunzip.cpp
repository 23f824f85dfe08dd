#include "sim/input/gunzip.hpp"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <array>

#include "sim/errors.hpp"

namespace orrery {

namespace {

struct Inflate {
  Inflate() {
    constexpr int gzip_header = 16, window_bits = 15;
    ensure(inflateInit2(&state, window_bits + gzip_header) == Z_OK, "zlib cannot begin to unpack");
  }
  ~Inflate() { inflateEnd(&state); }
  Inflate(const Inflate&) = delete;
  Inflate& operator=(const Inflate&) = delete;

  z_stream state{};
};

}  // namespace

bool is_gzip(std::string_view bytes) {
  return bytes.starts_with("\x1f\x8b");
}

std::string gunzipped(std::string_view bytes, const std::string& name, std::size_t limit) {
  constexpr std::size_t most_input = std::size_t{1} << 30;  // zlib counts in 32 bits
  Inflate inflate;
  std::string text;
  std::array<char, 65536> out;
  int status = Z_OK;
  while (!bytes.empty()) {
    // zlib's interface lacks a const; it does not write there.
    inflate.state.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(bytes.data()));
    const std::size_t given = std::min(bytes.size(), most_input);
    inflate.state.avail_in = static_cast<uInt>(given);
    do {
      inflate.state.next_out = reinterpret_cast<Bytef*>(out.data());
      inflate.state.avail_out = static_cast<uInt>(out.size());
      status = ::inflate(&inflate.state, Z_NO_FLUSH);
      if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR) {
        throw InputError{name, "is damaged: gzip cannot unpack it"};
      }
      text.append(out.data(), out.size() - inflate.state.avail_out);
      if (text.size() > limit) {
        throw InputError{name, fmt::format("unpacked, larger than {} MiB", limit >> 20)};
      }
    } while (status == Z_OK && inflate.state.avail_out == 0);
    bytes.remove_prefix(given - inflate.state.avail_in);
    if (status == Z_STREAM_END) {
      if (!is_gzip(bytes)) break;  // no further member; padding is passed over
      inflateReset(&inflate.state);
    } else if (status == Z_BUF_ERROR || inflate.state.avail_in > 0) {
      break;
    }
  }
  if (status != Z_STREAM_END)
    throw InputError{name, "is damaged: gzip cannot unpack it to its end"};
  return text;
}

}  // namespace orrery
