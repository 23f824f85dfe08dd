#pragma once
// The CRC-32C checksum, by the processor's instruction where it is compiled for SSE 4.2.

#include <cstddef>
#include <cstdint>

namespace orrery::executor {

/// CRC-32C (Castagnoli, reflected polynomial 0x82f63b78) of bytes; `previous` is the checksum of
/// the bytes before them.
/// Source  RFC 3720, appendix B.4: the digits "123456789" give e3069283
std::uint32_t crc32c(const void* data, std::size_t size, std::uint32_t previous = 0);

}  // namespace orrery::executor
