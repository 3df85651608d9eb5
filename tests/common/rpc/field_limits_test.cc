#include "common/rpc/field_limits.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "proto/coordinator.pb.h"
#include "proto/parameter_server.pb.h"

namespace shoal {
namespace {

std::string SenderName() { return "ps 3 at host:2222"; }

TEST(FieldLimitsTest, MessagesOfARepeatedFieldAreCounted) {
  proto::ControlReply reply;
  for (int i = 0; i < 5; ++i) reply.mutable_written()->add_ranges()->set_file("f");
  const Message message = MakeMessage(reply);
  for (const uint64_t max : {4, 5}) {
    const std::vector<FieldLimit> limits = {{.kind = 7, .field = 2, .max = max}};
    proto::ControlReply parsed;
    const absl::Status status = ParseWithin(limits, message, SenderName, &parsed);
    if (max < 5) {
      EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
      EXPECT_EQ(parsed.written().ranges_size(), 0) << "nothing is parsed";
    } else {
      EXPECT_TRUE(status.ok()) << status;
      EXPECT_EQ(parsed.written().ranges_size(), 5);
    }
  }
}

TEST(FieldLimitsTest, NumbersCountInEachEncoding) {
  proto::ControlReply reply;
  for (const uint64_t step : {uint64_t{1}, uint64_t{300}, UINT64_MAX})
    reply.mutable_claimed()->add_applied_after_base(step);
  Message message = MakeMessage(reply);
  // The same record once more, which a parse adds up.
  message.fields += message.fields;
  // A Claimed with one number that is not packed: field 5, a varint.
  message.fields += std::string("\x12\x02\x28\x07", 4);
  proto::ControlReply parsed;
  ASSERT_TRUE(ParseMessage(message, &parsed));
  EXPECT_EQ(parsed.claimed().applied_after_base_size(), 7);
  for (const uint64_t max : {6, 7}) {
    const std::vector<FieldLimit> limits = {{.kind = 2, .field = 5, .max = max, .packed = true}};
    EXPECT_EQ(ParseWithin(limits, message, SenderName, &parsed).ok(), max == 7);
  }
}

TEST(FieldLimitsTest, OtherFieldsHaveNoLimit) {
  proto::WorkerReport report;
  for (int i = 0; i < 100; ++i) report.mutable_steps_done()->add_steps();
  const std::vector<FieldLimit> limits = {{.kind = 1, .field = 9, .max = 2, .packed = true}};
  proto::WorkerReport parsed;
  EXPECT_TRUE(ParseWithin(limits, MakeMessage(report), SenderName, &parsed).ok());
}

TEST(FieldLimitsTest, GarbageDoesNotParse) {
  const std::vector<FieldLimit> limits = {{.kind = 7, .field = 2, .max = 0}};
  for (const std::string& fields :
       {std::string("\xff\xff\xff"), std::string("\x3a\x7f\x01"), std::string("\x3a")}) {
    proto::ControlReply parsed;
    EXPECT_EQ(ParseWithin(limits, {.fields = fields, .payload = {}}, SenderName, &parsed).code(),
              absl::StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace shoal
