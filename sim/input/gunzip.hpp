#pragma once
// Unpacks a file that gzip has packed, with zlib.

#include <cstddef>
#include <string>
#include <string_view>

namespace orrery {

bool is_gzip(std::string_view bytes);

/// The text of a gzip file in memory, of at most `limit` bytes, so that a small file cannot fill
/// the memory; all members of one that has several. Errors  damaged or cut off, larger than the
/// limit: InputError of `name`
std::string gunzipped(std::string_view bytes, const std::string& name, std::size_t limit);

}  // namespace orrery
