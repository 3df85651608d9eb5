#pragma once

namespace shoal {

// Sets options of the whole process that make transport of large messages faster. The allocator
// keeps freed blocks of up to 1 GiB, instead of giving them back to the kernel at every message.
// MemoryTrim gives memory back after a burst. Also switches off Abseil's search for lock cycles,
// which is on in Debian's build.
void TuneAllocatorForTransport();

}  // namespace shoal
