#pragma once

namespace shoal {

// Settings of the whole process that make transport of large messages faster: the allocator keeps
// freed blocks of up to 1 GiB instead of giving them back to the kernel at every message, and
// Abseil's search for lock cycles, on in Debian's build, is switched off. MemoryTrim gives back
// what a burst has left.
void TuneAllocatorForTransport();

}  // namespace shoal
