#pragma once

namespace shoal {

// From here on, an uncaught allocation failure, or a thread that cannot start, ends the process
// with a message and exit code 78 instead of a crash, on any thread. A restart would not bring more
// memory. Other uncaught exceptions end it as before. Call once, from main(), after logging has
// started.
void ExitWhenOutOfMemory();

}  // namespace shoal
