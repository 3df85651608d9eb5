#include "common/rpc/message.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "common/rpc/message_wire.h"
#include "proto/cluster.pb.h"
#include "proto/parameter_server.pb.h"
#include "tests/common/rpc/payload.h"
#include "tests/fakes/test_seed.h"

namespace shoal {
namespace {

std::string JoinedBytes(const std::vector<Slice>& slices) {
  std::string bytes;
  for (const Slice& slice : slices) bytes.append(slice.data, slice.size);
  return bytes;
}

std::string OnTheWire(const Message& message) {
  return EncodeHead(message) + JoinedBytes(message.payload);
}

// The bytes cut into slices at random places, some of them empty.
std::vector<Slice> Cut(const std::string& bytes, std::mt19937_64* random) {
  std::vector<Slice> slices;
  for (size_t at = 0; at < bytes.size();) {
    const size_t size = std::min<size_t>((*random)() % 8, bytes.size() - at);
    slices.push_back(OwnedSlice(bytes.substr(at, size)));
    at += size;
  }
  return slices;
}

absl::StatusOr<Message> Decode(const std::string& bytes) {
  const std::vector<Slice> slices = {OwnedSlice(bytes)};
  return DecodeMessage(slices);
}

proto::ExchangeRequest Push() {
  proto::ExchangeRequest request;
  request.mutable_push()->set_timeline(0x8000000000000001);
  request.mutable_push()->set_step(300);
  request.mutable_push()->set_chunk(7);
  return request;
}

TEST(MessageTest, TheGeneratedClassReadsASentMessage) {
  const Message message =
      MakeMessage(Push(), {OwnedSlice("grad"), OwnedSlice(""), OwnedSlice("ient")});
  EXPECT_EQ(EncodedSize(message), OnTheWire(message).size());
  proto::ExchangeRequest request;
  ASSERT_TRUE(request.ParseFromString(OnTheWire(message)));
  EXPECT_EQ(request.payload(), "gradient");
  EXPECT_EQ(request.push().step(), 300u);
}

TEST(MessageTest, AMessageOfTheGeneratedClassIsRead) {
  std::mt19937_64 random(1);
  for (size_t size : {1u, 127u, 128u, 20000u}) {
    proto::ExchangeRequest request = Push();
    request.set_payload(std::string(size, 'p'));
    const std::vector<Slice> received = Cut(request.SerializeAsString(), &random);
    const absl::StatusOr<Message> message = DecodeMessage(received);
    ASSERT_TRUE(message.ok()) << message.status();
    EXPECT_EQ(JoinedBytes(message->payload), request.payload());
    proto::ExchangeRequest fields;
    ASSERT_TRUE(ParseMessage(*message, &fields));
    EXPECT_EQ(fields.push().step(), 300u);
    EXPECT_EQ(fields.payload(), "");
  }
}

TEST(MessageTest, EmptyPayloadIsNotSent) {
  const Message message = MakeMessage(Push(), {OwnedSlice("")});
  EXPECT_EQ(OnTheWire(message), Push().SerializeAsString());
  EXPECT_EQ(EncodedSize(message), message.fields.size());
  // But may be received.
  const absl::StatusOr<Message> received = Decode(message.fields + std::string("\x7a\x00", 2));
  ASSERT_TRUE(received.ok());
  EXPECT_EQ(received->payload_bytes(), 0u);
  EXPECT_EQ(received->fields, message.fields);
  EXPECT_TRUE(Decode("").ok());
}

TEST(MessageTest, ADecodedPayloadAliasesTheReceivedBytes) {
  const Message sent = MakeMessage(Push(), {OwnedSlice("gradient")});
  std::vector<Slice> received = {OwnedSlice(EncodeHead(sent)), OwnedSlice("gradient")};
  const std::weak_ptr<const void> owner = received[1].owner;
  const char* const data = received[1].data;
  absl::StatusOr<Message> message = DecodeMessage(received);
  ASSERT_TRUE(message.ok());
  ASSERT_EQ(message->payload.size(), 1u);
  EXPECT_EQ(message->payload[0].data, data);
  received.clear();
  EXPECT_FALSE(owner.expired());
  message->payload.clear();
  EXPECT_TRUE(owner.expired());
}

TEST(MessageTest, NumberInField15IsAFieldLikeOthers) {
  proto::StatusReply reply;
  reply.set_examples_per_second(1234.5);
  static_assert(proto::StatusReply::kExamplesPerSecondFieldNumber == 15);
  reply.set_run_dir("runs/mnist");
  const absl::StatusOr<Message> message = Decode(reply.SerializeAsString());
  ASSERT_TRUE(message.ok()) << message.status();
  proto::StatusReply read;
  ASSERT_TRUE(ParseMessage(*message, &read));
  EXPECT_EQ(read.examples_per_second(), 1234.5);
  EXPECT_EQ(read.run_dir(), "runs/mnist");
}

TEST(MessageTest, CopyPayloadCrossesSlices) {
  const Message message{"",
                        {OwnedSlice("01"), OwnedSlice(""), OwnedSlice("234"), OwnedSlice("56789")}};
  for (size_t offset = 0; offset <= 10; ++offset) {
    for (size_t size = 0; offset + size <= 10; ++size) {
      std::string copy(size, '?');
      CopyPayload(message, offset, copy.data(), size);
      EXPECT_EQ(copy, std::string("0123456789").substr(offset, size));
    }
  }
}

struct BadMessage {
  const char* name;
  std::string bytes;
  const char* error;
};

class BadMessageTest : public ::testing::TestWithParam<BadMessage> {};

TEST_P(BadMessageTest, IsRejected) {
  const absl::StatusOr<Message> message = Decode(GetParam().bytes);
  EXPECT_EQ(message.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(message.status().message()), ::testing::HasSubstr(GetParam().error));
}

INSTANTIATE_TEST_SUITE_P(
    All, BadMessageTest,
    ::testing::Values(
        BadMessage{"PayloadNotLast", std::string("\x7a\x01p\x08\x01", 5), "must be the last"},
        BadMessage{"PayloadTwice", std::string("\x7a\x01p\x7a\x01q", 6), "must be the last"},
        BadMessage{"PayloadTooLong", std::string("\x7a\x05p", 3), "5 bytes with 1"},
        BadMessage{"HugeLength", "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "bytes left"},
        BadMessage{"LengthOfMoreThan64Bits", "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f",
                   "length"},
        BadMessage{"LengthMissing", "\x7a", "length"},
        BadMessage{"UnfinishedNumber", "\x08\xff\xff", "unfinished number"},
        BadMessage{"FixedTooShort", "\x0d\x01\x02", "4 bytes with 2"},
        BadMessage{"FieldNumberZero", std::string("\x00\x01", 2), "field number"},
        BadMessage{"TagTooLong", "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "field number"},
        BadMessage{"Group", "\x0b\x0c", "wire type 3"},
        BadMessage{"NoWireType", "\x0f", "wire type 7"}),
    [](const auto& info) { return info.param.name; });

TEST(MessageDeathTest, CopyingBeyondThePayloadCrashes) {
  const Message message = MakeMessage(proto::ExchangeRequest());
  char copy[3] = {};
  EXPECT_DEATH(CopyPayload(message, 0, copy, sizeof(copy)), "the payload ends 3 bytes early");
}

// Whatever comes from the wire is decoded or rejected; what is decoded stands for the same bytes.
TEST(MessageTest, RandomBytesDoNoHarm) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedText(seed));
  std::mt19937_64 random(seed);
  proto::ExchangeRequest request = Push();
  request.set_payload("payload");
  const std::string valid = request.SerializeAsString();
  int decoded = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string bytes = valid;
    for (uint64_t flips = 1 + random() % 3; flips > 0; --flips) {
      bytes[random() % bytes.size()] = static_cast<char>(random());
    }
    bytes.resize(random() % (bytes.size() + 1));
    const std::vector<Slice> slices = Cut(bytes, &random);
    const absl::StatusOr<Message> message = DecodeMessage(slices);
    if (!message.ok()) continue;
    ++decoded;
    ASSERT_TRUE(bytes.starts_with(message->fields));
    ASSERT_TRUE(bytes.ends_with(JoinedBytes(message->payload)));
    proto::ExchangeRequest fields;
    ParseMessage(*message, &fields);
  }
  EXPECT_GT(decoded, 0);
}

}  // namespace
}  // namespace shoal
