#include "common/rpc/admission/stream_admission.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/fakes/fake_loop.h"

namespace shoal {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Two streams may be open. No connection is known.
class StreamAdmissionTest : public ::testing::Test {
 protected:
  absl::Status Admit(uint64_t stream, bool always = false) {
    return admission_.Admit({.number = stream, .always = always},
                            [this](uint64_t displaced, const absl::Status& reason) {
                              EXPECT_EQ(reason.code(), absl::StatusCode::kResourceExhausted);
                              displaced_.push_back(displaced);
                            });
  }
  void SetTalks(uint64_t stream, bool talks) { admission_.SetTalks(stream, 0, talks); }
  void Remove(uint64_t stream) { admission_.Remove(stream, 0); }

  FakeLoop loop_;
  ClientConnections connections_{{.max_connections = 10, .max_streams = 10}};
  std::vector<std::string> warnings_;
  std::vector<uint64_t> displaced_;
  StreamAdmission admission_{
      {.loop = &loop_,
       .connections = &connections_,
       .address = "ps:2222",
       .max_streams = 2,
       .max_streams_per_client = 5,
       .warn = [this](const std::string& warning) { warnings_.push_back(warning); }}};
};

TEST_F(StreamAdmissionTest, TheOldestSilentStreamGivesWay) {
  EXPECT_TRUE(Admit(1).ok());
  EXPECT_TRUE(Admit(2).ok());
  EXPECT_THAT(displaced_, IsEmpty());
  EXPECT_TRUE(Admit(3).ok());
  EXPECT_TRUE(Admit(4).ok());
  EXPECT_THAT(displaced_, ElementsAre(1, 2));
}

TEST_F(StreamAdmissionTest, ATalkingStreamKeepsItsPlace) {
  EXPECT_TRUE(Admit(1).ok());
  SetTalks(1, true);
  EXPECT_TRUE(Admit(2).ok());
  EXPECT_TRUE(Admit(3).ok());
  EXPECT_THAT(displaced_, ElementsAre(2));
  SetTalks(3, true);
  const absl::Status rejected = Admit(4);
  EXPECT_EQ(rejected.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(rejected.message()), HasSubstr("ps:2222"));
  EXPECT_THAT(displaced_, ElementsAre(2));
}

TEST_F(StreamAdmissionTest, AStreamThatNoLongerTalksGivesWay) {
  for (const uint64_t stream : {1, 2}) {
    EXPECT_TRUE(Admit(stream).ok());
    SetTalks(stream, true);
  }
  SetTalks(2, false);
  EXPECT_TRUE(Admit(3).ok());
  EXPECT_THAT(displaced_, ElementsAre(2));
}

TEST_F(StreamAdmissionTest, AStreamThatEndsFreesItsPlace) {
  EXPECT_TRUE(Admit(1).ok());
  EXPECT_TRUE(Admit(2).ok());
  Remove(1);
  EXPECT_TRUE(Admit(3).ok());
  EXPECT_THAT(displaced_, IsEmpty());
}

TEST_F(StreamAdmissionTest, ARejectedStreamTakesAPlaceUntilItEnds) {
  for (const uint64_t stream : {1, 2}) {
    EXPECT_TRUE(Admit(stream).ok());
    SetTalks(stream, true);
  }
  EXPECT_FALSE(Admit(3).ok());
  SetTalks(2, false);
  Remove(2);
  EXPECT_TRUE(Admit(4).ok());
  EXPECT_THAT(displaced_, ElementsAre(3));
}

TEST_F(StreamAdmissionTest, AStreamThatIsAlwaysAdmittedIgnoresTheMax) {
  for (const uint64_t stream : {1, 2}) {
    EXPECT_TRUE(Admit(stream).ok());
    SetTalks(stream, true);
  }
  EXPECT_TRUE(Admit(3, /*always=*/true).ok());
  EXPECT_THAT(displaced_, IsEmpty());
}

TEST_F(StreamAdmissionTest, WarnsOnceAMinuteThatStreamsGiveWay) {
  for (uint64_t stream = 1; stream <= 5; ++stream) EXPECT_TRUE(Admit(stream).ok());
  EXPECT_EQ(warnings_.size(), 1u);
  loop_.Advance(std::chrono::minutes(1));
  EXPECT_TRUE(Admit(6).ok());
  EXPECT_EQ(warnings_.size(), 2u);
}

}  // namespace
}  // namespace shoal
