#pragma once
// A file read piece by piece and unpacked on the way where gzip packed it: for files that are too
// large to be held in memory.

#include <functional>
#include <memory>
#include <span>
#include <streambuf>
#include <string>

namespace orrery {

/// The next bytes of a file into a span, and how many; 0 at the end. Errors: as of `read_file`
using FilePieces = std::function<std::size_t(std::span<char>)>;
FilePieces pieces_of_file(const std::string& path);

/// What a file holds, as a stream that is read once from its beginning.
/// Errors  as of `read_file`; damaged or cut off; unpacked, larger than 16 GiB: InputError
std::unique_ptr<std::streambuf> unpacked_file(const std::string& path);

/// The first bytes of it, at most `most`, without reading further.
std::string first_bytes(const std::string& path, std::size_t most);

}  // namespace orrery
