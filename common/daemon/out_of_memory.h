#pragma once

namespace shoal {

// From here on an allocation that fails where nobody can go on without it, or a thread that cannot
// be started, ends the process with a message and exit code 78, from whatever thread, instead of a
// crash: starting again does not bring the memory. Other exceptions that nobody catches end it as
// before. Once, from main(), when logging has been started.
void ExitWhenOutOfMemory();

}  // namespace shoal
