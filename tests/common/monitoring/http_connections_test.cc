#include "common/monitoring/http_connections.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <deque>

namespace shoal {
namespace {

using State = HttpConnection::State;
using std::chrono::seconds;

constexpr seconds kRequestPatience{2};
constexpr seconds kAnswerPatience{30};

class HttpConnectionsTest : public ::testing::Test {
 protected:
  // Connections and their clients' ends.
  struct Pair {
    std::array<int, 2> fds;
    HttpConnection* connection;
    ~Pair() {
      close(fds[0]);
      close(fds[1]);
    }
    bool is_cut_off() const {
      char byte;
      return recv(fds[1], &byte, 1, MSG_DONTWAIT) == 0;
    }
  };
  const Pair& Add(const std::string& address, State state = State::kReading) {
    Pair& pair = pairs_.emplace_back();
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.fds.data()), 0);
    pair.connection = connections_.Add({.fd = pair.fds[0], .address = address}, now_);
    if (state == State::kAnswering) {
      connections_.BeginAnswer(pair.connection, now_);
    } else {
      pair.connection->state = state;
    }
    return pair;
  }
  void AddMany(size_t count, const std::string& address, State state = State::kReading) {
    for (size_t i = 0; i < count; ++i) Add(address, state);
  }
  size_t cut_off() const {
    size_t count = 0;
    for (const Pair& each : pairs_) count += each.is_cut_off() ? 1 : 0;
    return count;
  }

  const HttpConnections::Clock::time_point now_{};
  HttpConnections connections_{kRequestPatience, kAnswerPatience};
  std::deque<Pair> pairs_;
};

TEST_F(HttpConnectionsTest, ARequestAndAnAnswerHaveADeadline) {
  const Pair& reading = Add("a");
  const Pair& answering = Add("a", State::kAnswering);
  EXPECT_EQ(connections_.CutOffLate(now_), now_ + kRequestPatience);
  EXPECT_EQ(cut_off(), 0);
  EXPECT_EQ(connections_.CutOffLate(now_ + kRequestPatience), now_ + kAnswerPatience);
  EXPECT_TRUE(reading.is_cut_off());
  EXPECT_FALSE(answering.is_cut_off());
  EXPECT_EQ(connections_.CutOffLate(now_ + kAnswerPatience), std::nullopt);
  EXPECT_TRUE(answering.is_cut_off());
}

TEST_F(HttpConnectionsTest, APendingConnectionHasNone) {
  const Pair& pending = Add("a", State::kPending);
  EXPECT_EQ(connections_.CutOffLate(now_ + std::chrono::hours(1)), std::nullopt);
  EXPECT_FALSE(pending.is_cut_off());
}

TEST_F(HttpConnectionsTest, AtItsLimitAnAddressGivesUpItsOldest) {
  const Pair& other = Add("b");
  const Pair& pending = Add("a", State::kPending);
  const Pair& answering = Add("a", State::kAnswering);
  const Pair& reading = Add("a");
  AddMany(HttpConnections::kMaxOfAddress - 4, "a");
  connections_.MakeRoom("a");
  EXPECT_EQ(cut_off(), 0);
  Add("a");
  connections_.MakeRoom("a");
  EXPECT_EQ(cut_off(), 1);
  EXPECT_TRUE(reading.is_cut_off());
  // Those that are cut off but not removed yet do not count.
  connections_.MakeRoom("a");
  EXPECT_EQ(cut_off(), 1);
  EXPECT_FALSE(other.is_cut_off() || pending.is_cut_off() || answering.is_cut_off());
}

TEST_F(HttpConnectionsTest, AnswersAreCutOffWhereNothingElseHelps) {
  const Pair& pending = Add("a", State::kPending);
  AddMany(HttpConnections::kMaxOfAddress - 2, "a", State::kPending);
  const Pair& answering = Add("a", State::kAnswering);
  connections_.MakeRoom("a");
  EXPECT_TRUE(answering.is_cut_off());
  EXPECT_FALSE(pending.is_cut_off());
  Add("a", State::kPending);
  connections_.MakeRoom("b");
  EXPECT_EQ(cut_off(), 1);
  connections_.MakeRoom("a");
  EXPECT_EQ(cut_off(), 2);
  EXPECT_TRUE(pending.is_cut_off());
}

TEST_F(HttpConnectionsTest, AtTheLimitOfAllTheAddressWithTheMostGivesUpItsOldest) {
  const Pair& few = Add("few");
  const Pair& many = Add("many");
  AddMany(30, "many");
  AddMany(20, "some");
  AddMany(HttpConnections::kMax - 52, "few");
  connections_.MakeRoom("new");
  EXPECT_EQ(cut_off(), 1);
  EXPECT_TRUE(many.is_cut_off());
  EXPECT_FALSE(few.is_cut_off());
  connections_.Remove(many.connection);
  Add("new");
  connections_.MakeRoom("few");
  EXPECT_EQ(cut_off(), 2);
  EXPECT_FALSE(few.is_cut_off());
}

}  // namespace
}  // namespace shoal
