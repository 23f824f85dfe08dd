#include "executor/crc32c.hpp"

#include <array>
#include <cstring>

namespace orrery::executor {

namespace {

#if defined(__SSE4_2__)

std::uint32_t crc_update(std::uint32_t crc, const unsigned char* at, std::size_t size) {
  std::uint64_t wide = crc;
  for (; size >= 8; at += 8, size -= 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, at, sizeof word);
    wide = __builtin_ia32_crc32di(wide, word);
  }
  crc = static_cast<std::uint32_t>(wide);
  for (; size > 0; ++at, --size) crc = __builtin_ia32_crc32qi(crc, *at);
  return crc;
}

#else

constexpr std::array<std::uint32_t, 256> crc_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1U ? 0x82f63b78U : 0U);
    table[byte] = crc;
  }
  return table;
}

std::uint32_t crc_update(std::uint32_t crc, const unsigned char* at, std::size_t size) {
  static constexpr auto table = crc_table();
  for (; size > 0; ++at, --size) crc = crc >> 8 ^ table[(crc ^ *at) & 0xffU];
  return crc;
}

#endif

}  // namespace

std::uint32_t crc32c(const void* data, std::size_t size, std::uint32_t previous) {
  return ~crc_update(~previous, static_cast<const unsigned char*>(data), size);
}

}  // namespace orrery::executor
