#include "scenarios/command/heap.hpp"

#include <cstdlib>  // says whether this is glibc

#ifdef __GLIBC__
#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#endif

namespace orrery::scenarios {

#ifdef __GLIBC__

void prepare_heap() {
  constexpr std::uintptr_t huge_page = std::uintptr_t{2} << 20;
  constexpr int room = 64 << 20;  // of addresses: memory is taken when it is touched
  mallopt(M_TOP_PAD, room);
  mallopt(M_TRIM_THRESHOLD, 4 * room);
  // More than a fresh heap holds (132 KiB), so that it grows now.
  std::array<void*, 4> blocks{};
  for (void*& block : blocks) block = std::malloc(64 << 10);
  const auto end = reinterpret_cast<std::uintptr_t>(sbrk(0));
  for (void* block : blocks) std::free(block);
  // A short command stays on small pages: of a huge one it would touch a part and hold the whole.
  const std::uintptr_t small = end - room + 2 * huge_page;
  const std::uintptr_t first = (small + huge_page - 1) / huge_page * huge_page;
  if (first < end) madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE);
}

#else

void prepare_heap() {}

#endif

}  // namespace orrery::scenarios
