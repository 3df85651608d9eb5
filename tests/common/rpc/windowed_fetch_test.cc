#include "common/rpc/windowed_fetch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace shoal {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pointee;

class WindowedFetchTest : public testing::Test {
 protected:
  std::vector<std::string> TakeSent() { return std::exchange(sent_, {}); }
  const std::string* Receive(const std::string& name) {
    return fetch_.Receive([&](const std::string& piece) { return piece == name; });
  }

  std::vector<std::string> sent_;
  WindowedFetch<std::string> fetch_{
      {"a", "b", "c", "d"}, 2, [this](const std::string& piece) { sent_.push_back(piece); }};
};

TEST_F(WindowedFetchTest, EachReleaseRequestsTheNextPieceInOrder) {
  fetch_.RequestMore();
  EXPECT_THAT(TakeSent(), ElementsAre("a", "b"));
  EXPECT_THAT(Receive("b"), Pointee(std::string("b")));
  EXPECT_THAT(TakeSent(), IsEmpty()) << "a received piece is pending until its release";
  fetch_.Release();
  EXPECT_THAT(TakeSent(), ElementsAre("c"));
}

TEST_F(WindowedFetchTest, IsDoneWhenEveryPieceIsReleased) {
  EXPECT_FALSE(fetch_.done());
  fetch_.RequestMore();
  for (const char* const name : {"b", "a", "d", "c"}) {
    ASSERT_NE(Receive(name), nullptr) << name;
    EXPECT_FALSE(fetch_.done()) << name;
    fetch_.Release();
  }
  EXPECT_TRUE(fetch_.done());
  EXPECT_THAT(TakeSent(), ElementsAre("a", "b", "c", "d"));
}

TEST_F(WindowedFetchTest, ResendRequestsOnlyWhatHasNotArrived) {
  fetch_.RequestMore();
  ASSERT_NE(Receive("a"), nullptr);
  TakeSent();
  fetch_.Resend();
  EXPECT_THAT(TakeSent(), ElementsAre("b"));
}

TEST_F(WindowedFetchTest, IgnoresAPieceThatIsNotRequestedOrArrivesTwice) {
  EXPECT_EQ(Receive("a"), nullptr);
  fetch_.RequestMore();
  EXPECT_EQ(Receive("c"), nullptr);
  EXPECT_EQ(Receive("another"), nullptr);
  EXPECT_NE(Receive("a"), nullptr);
  EXPECT_EQ(Receive("a"), nullptr);
  fetch_.Release();
  EXPECT_EQ(Receive("a"), nullptr);
}

TEST(EmptyWindowedFetchTest, WithoutPiecesItIsDoneAtOnce) {
  WindowedFetch<int> fetch({}, 2, [](int) { FAIL() << "nothing to request"; });
  fetch.RequestMore();
  EXPECT_TRUE(fetch.done());
}

}  // namespace
}  // namespace shoal
