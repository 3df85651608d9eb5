#include "cli/coordinator_calls/cluster_call.h"

#include <gtest/gtest.h>

#include "proto/cluster.pb.h"

namespace shoal {
namespace {

TEST(ParseReplyTest, TextOfAPeerIsSafeToShow) {
  proto::StatusReply sent;
  sent.set_phase("training");
  sent.add_waiting("a worker\nE ps-0 all is lost");
  sent.add_tasks()->set_detail("\x1b[2J");
  sent.mutable_tasks(0)->set_address(std::string(1 << 20, 'x'));
  sent.mutable_last_checkpoint()->set_last_error("Größe\r");
  proto::StatusReply shown;
  ASSERT_TRUE(ParseReply(MakeMessage(sent), &shown));
  EXPECT_EQ(shown.phase(), "training");
  EXPECT_EQ(shown.waiting(0), "a worker\\nE ps-0 all is lost");
  EXPECT_EQ(shown.tasks(0).detail(), "\\x1b[2J");
  EXPECT_LT(shown.tasks(0).address().size(), 5000);
  EXPECT_EQ(shown.last_checkpoint().last_error(), "Größe\\r");
}

TEST(ParseReplyTest, AnswersOfAnotherTypeAreNone) {
  proto::StatusReply shown;
  EXPECT_FALSE(ParseReply({.fields = "\xff\xff"}, &shown));
}

}  // namespace
}  // namespace shoal
