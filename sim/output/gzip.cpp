#include "sim/output/gzip.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <utility>

#include "sim/errors.hpp"

namespace orrery {

struct GzipWriter::Stream {
  z_stream state{};
};

GzipWriter::GzipWriter(std::function<void(std::string_view)> put)
    : put_{std::move(put)}, stream_{std::make_unique<Stream>()} {
  constexpr int gzip_header = 16, window_bits = 15, memory_level = 8;
  const int status = deflateInit2(&stream_->state, Z_DEFAULT_COMPRESSION, Z_DEFLATED,
                                  window_bits + gzip_header, memory_level, Z_DEFAULT_STRATEGY);
  ensure(status == Z_OK, "zlib cannot begin to compress");
}

GzipWriter::~GzipWriter() {
  deflateEnd(&stream_->state);
}

void GzipWriter::write(std::string_view text) {
  constexpr std::size_t most = std::size_t{1} << 30;  // zlib counts in 32 bits
  for (; !text.empty(); text.remove_prefix(std::min(most, text.size()))) {
    deflate_all(text.substr(0, most), false);
  }
}

void GzipWriter::finish() {
  deflate_all({}, true);
}

void GzipWriter::deflate_all(std::string_view text, bool last) {
  z_stream& state = stream_->state;
  // zlib's interface lacks a const; it does not write there.
  state.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(text.data()));
  state.avail_in = static_cast<uInt>(text.size());
  std::array<char, 65536> out;
  do {
    state.next_out = reinterpret_cast<Bytef*>(out.data());
    state.avail_out = static_cast<uInt>(out.size());
    const int status = ::deflate(&state, last ? Z_FINISH : Z_NO_FLUSH);
    ensure(status != Z_STREAM_ERROR, "zlib cannot compress");
    put_({out.data(), out.size() - state.avail_out});
  } while (state.avail_out == 0);
}

}  // namespace orrery
