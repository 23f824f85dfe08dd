#pragma once
// Heap settings for a process that lives for milliseconds.

namespace orrery::scenarios {

/// Lets the heap grow in one piece of huge pages where the system has them (Linux with glibc):
/// the instruction lists of a large step are megabytes, and 1500 first touches of small pages cost
/// as much as a third of the step's evaluation. Changes no result; does nothing elsewhere.
void prepare_heap();

}  // namespace orrery::scenarios
