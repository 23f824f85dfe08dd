#pragma once
// Compresses text piece by piece as gzip does (RFC 1952), with zlib. Neither a name nor a time is
// in it: the same text gives the same bytes.

#include <functional>
#include <memory>
#include <string_view>

namespace orrery {

/// Calls `put` with compressed bytes as they come.
class GzipWriter {
 public:
  explicit GzipWriter(std::function<void(std::string_view)> put);
  ~GzipWriter();
  GzipWriter(const GzipWriter&) = delete;
  GzipWriter& operator=(const GzipWriter&) = delete;

  void write(std::string_view text);
  /// Puts what is left and the check sum; nothing may be written after it.
  void finish();

 private:
  struct Stream;
  void deflate_all(std::string_view text, bool last);

  std::function<void(std::string_view)> put_;
  std::unique_ptr<Stream> stream_;
};

}  // namespace orrery
