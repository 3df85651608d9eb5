#include "common/daemon/service_manager.h"

#include <gmock/gmock.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <string>
#include <vector>

#include "tests/common/base/temporary_directory.h"
#include "tests/fakes/fake_loop.h"

namespace shoal {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// The service manager's end of the socket, and the variables that it sets.
class ServiceManagerTest : public ::testing::Test {
 protected:
  void Listen(const std::string& name) {
    sockaddr_un address = {.sun_family = AF_UNIX};
    name.copy(address.sun_path, name.size());
    if (name.front() == '@') address.sun_path[0] = '\0';
    socket_ = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    ASSERT_EQ(bind(socket_, reinterpret_cast<const sockaddr*>(&address),
                   offsetof(sockaddr_un, sun_path) + name.size()),
              0);
    setenv("NOTIFY_SOCKET", name.c_str(), 1);
  }
  void TearDown() override {
    if (socket_ >= 0) close(socket_);
    for (const char* name : {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID"}) unsetenv(name);
  }
  // The datagrams that have come since.
  std::vector<std::string> Told() {
    std::vector<std::string> words;
    char buffer[256];
    ssize_t size;
    while ((size = recv(socket_, buffer, sizeof(buffer), 0)) >= 0) words.emplace_back(buffer, size);
    return words;
  }
  std::string AbstractName() const { return "@shoal-test-" + std::to_string(getpid()); }

  FakeLoop loop_;
  int socket_ = -1;
};

TEST_F(ServiceManagerTest, NothingIsToldWithoutOne) {
  EXPECT_TRUE(NotifyReady(&loop_).ok());
  EXPECT_TRUE(NotifyStopping().ok());
}

TEST_F(ServiceManagerTest, ReadyAndStoppingAreADatagramEach) {
  Listen(AbstractName());
  EXPECT_TRUE(NotifyReady(&loop_).ok());
  EXPECT_TRUE(NotifyStopping().ok());
  loop_.Advance(std::chrono::hours(1));
  EXPECT_THAT(Told(), ElementsAre("READY=1", "STOPPING=1"));
}

TEST_F(ServiceManagerTest, ASocketMayHaveAPath) {
  const TemporaryDirectory directory;
  const std::string path = directory / "notify";
  Listen(path);
  EXPECT_TRUE(NotifyStopping().ok());
  EXPECT_THAT(Told(), ElementsAre("STOPPING=1"));
  unlink(path.c_str());
  const absl::Status lost = NotifyStopping();
  EXPECT_THAT(std::string(lost.message()), HasSubstr(path));
}

TEST_F(ServiceManagerTest, TheLoopKeepsTheWatchdogContent) {
  setenv("WATCHDOG_USEC", "2000000", 1);
  setenv("WATCHDOG_PID", std::to_string(getpid()).c_str(), 1);
  Listen(AbstractName());
  ASSERT_TRUE(NotifyReady(&loop_).ok());
  EXPECT_THAT(Told(), ElementsAre("READY=1", "WATCHDOG=1"));
  loop_.Advance(std::chrono::milliseconds(999));
  EXPECT_THAT(Told(), IsEmpty());
  loop_.Advance(std::chrono::milliseconds(1001));
  EXPECT_THAT(Told(), ElementsAre("WATCHDOG=1", "WATCHDOG=1"));
}

TEST_F(ServiceManagerTest, TheWatchdogOfAnotherProcessIsNotOurs) {
  setenv("WATCHDOG_USEC", "2000000", 1);
  setenv("WATCHDOG_PID", "1", 1);
  Listen(AbstractName());
  ASSERT_TRUE(NotifyReady(&loop_).ok());
  loop_.Advance(std::chrono::seconds(10));
  EXPECT_THAT(Told(), ElementsAre("READY=1"));
}

TEST_F(ServiceManagerTest, ANameThatIsTooLongIsAnError) {
  setenv("NOTIFY_SOCKET", std::string(200, 'x').c_str(), 1);
  EXPECT_FALSE(NotifyReady(&loop_).ok());
}

}  // namespace
}  // namespace shoal
