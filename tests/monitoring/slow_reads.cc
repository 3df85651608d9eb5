// Loaded into a worker by LD_PRELOAD: while the file that SLOW_READS names exists, each read at an
// offset takes as long as on a disk that has too much to do. The worker reads examples so where
// their file is too large to be copied.

#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>

namespace {

ssize_t SlowRead(int file, void* buffer, size_t size, off_t offset) {
  const char* gate = std::getenv("SLOW_READS");
  if (gate != nullptr && access(gate, F_OK) == 0) {
    const timespec two_milliseconds = {.tv_sec = 0, .tv_nsec = 2'000'000};
    nanosleep(&two_milliseconds, nullptr);
  }
  return syscall(SYS_pread64, file, buffer, size, offset);
}

}  // namespace

extern "C" {

ssize_t pread(int file, void* buffer, size_t size, off_t offset) {
  return SlowRead(file, buffer, size, offset);
}
ssize_t pread64(int file, void* buffer, size_t size, off_t offset) {
  return SlowRead(file, buffer, size, offset);
}
// What the two become with _FORTIFY_SOURCE.
ssize_t __pread_chk(int file, void* buffer, size_t size, off_t offset, size_t) {
  return SlowRead(file, buffer, size, offset);
}
ssize_t __pread64_chk(int file, void* buffer, size_t size, off_t offset, size_t) {
  return SlowRead(file, buffer, size, offset);
}

}  // extern "C"
