#include "common/daemon/process/out_of_memory.h"

#include <gtest/gtest.h>

#include <new>
#include <stdexcept>
#include <system_error>
#include <thread>

namespace shoal {
namespace {

// A death test forks: what is thrown is thrown on a thread, from where nobody catches it.
template <typename Exception>
void ThrowOnAThread(const Exception& exception) {
  ExitWhenOutOfMemory();
  std::thread([&] { throw exception; }).join();
}

TEST(OutOfMemoryTest, AnAllocationThatFailsEndsTheProcessWithAMessage) {
  EXPECT_EXIT(ThrowOnAThread(std::bad_alloc()), testing::ExitedWithCode(78),
              "current work.*GiB.*exit_code=78");
}

TEST(OutOfMemoryTest, AThreadThatCannotStartEndsTheProcess) {
  EXPECT_EXIT(ThrowOnAThread(std::system_error(
                  std::make_error_code(std::errc::resource_unavailable_try_again))),
              testing::ExitedWithCode(78), "ulimit -u.*exit_code=78");
}

TEST(OutOfMemoryTest, OtherExceptionsEndItAsBefore) {
  EXPECT_EXIT(ThrowOnAThread(std::runtime_error("something else")),
              testing::KilledBySignal(SIGABRT), "something else");
}

}  // namespace
}  // namespace shoal
