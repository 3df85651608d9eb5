#include "common/daemon/process/out_of_memory.h"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <exception>
#include <new>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "common/daemon/process/exit_code.h"
#include "common/log/logging.h"
#include "common/memory/memory_limit.h"

namespace shoal {
namespace {

// Reserved memory, released for the last log message.
constexpr size_t kReserveBytes = 1 << 20;
constexpr int kPatienceSeconds = 2;
std::atomic<char*> reserve = nullptr;  // the first thread that ends releases it
std::terminate_handler otherwise = nullptr;

[[noreturn]] void ExitFor(const char* what) {
  delete[] reserve.exchange(nullptr);
  // If the allocation failed inside the log, its lock is held and LogError() would wait forever.
  std::signal(SIGALRM, [](int) { _exit(kExitBadConfiguration); });
  alarm(kPatienceSeconds);
  try {
    LogError(std::string(OutOfMemory(what).message()),
             {{"exit_code", absl::StrCat(kExitBadConfiguration)}});
    FlushLog(std::chrono::seconds(kPatienceSeconds));
  } catch (...) {  // no memory even for the message
    constexpr char kLastWords[] = "out of memory\n";
    (void)!write(STDERR_FILENO, kLastWords, sizeof(kLastWords) - 1);
  }
  _exit(kExitBadConfiguration);
}

void ExitWhenItWasMemory() {
  try {
    if (const std::exception_ptr exception = std::current_exception()) {
      std::rethrow_exception(exception);
    }
  } catch (const std::bad_alloc&) {
    ExitFor("the current work");
  } catch (const std::system_error& error) {
    if (error.code() == std::errc::resource_unavailable_try_again) {
      ExitFor("another thread, or no more threads are allowed (ulimit -u)");
    }
  } catch (...) {
  }
  if (otherwise != nullptr) otherwise();
}

}  // namespace

void ExitWhenOutOfMemory() {
  delete[] reserve.exchange(new char[kReserveBytes]());
  otherwise = std::set_terminate(ExitWhenItWasMemory);
}

}  // namespace shoal
