#include "scenarios/command/terminal/heap.hpp"

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
  constexpr int room = 64 << 20;  // address space only: a page is allocated when touched
  mallopt(M_TOP_PAD, room);
  mallopt(M_TRIM_THRESHOLD, 4 * room);
  // Instruction lists, of some 100 KB each, are on the heap, too: freed ones serve the next plan.
  mallopt(M_MMAP_THRESHOLD, 4 << 20);
  // Allocates more than a fresh heap holds (132 KiB), so that the heap grows now.
  std::array<void*, 4> blocks{};
  for (void*& block : blocks) block = std::malloc(64 << 10);
  const auto end = reinterpret_cast<std::uintptr_t>(sbrk(0));
  for (void* block : blocks) std::free(block);
  // The first part stays on small pages: a short command would touch a part of a huge page but
  // occupy all of it.
  const std::uintptr_t small = end - room + 2 * huge_page;
  const std::uintptr_t first = (small + huge_page - 1) / huge_page * huge_page;
  if (first < end) madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE);
}

#else

void prepare_heap() {}

#endif

}  // namespace orrery::scenarios
