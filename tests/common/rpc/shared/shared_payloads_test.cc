#include "common/rpc/shared/shared_payloads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "proto/shared_payload.pb.h"
#include "tests/common/rpc/payload.h"
#include "tests/fakes/test_seed.h"

namespace shoal {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr size_t kMegabyte = size_t{1} << 20;

Message MessageOf(std::string payload) {
  return {.fields = "", .payload = {OwnedSlice(std::move(payload))}};
}

std::string RandomBytes(size_t size, unsigned seed) {
  std::minstd_rand random(seed + 1);
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

class SharedPayloadsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    client_ = SharedPayloads::Create();
    ASSERT_NE(client_, nullptr);
    server_ = SharedPayloads::Open(client_->offer(), room_);
    ASSERT_NE(server_, nullptr);
    server_->StartPlacing(server_->answer());
    client_->StartPlacing(server_->answer());
  }

  // What the other end gets of a payload; whether it lay in the memory is in `placed`.
  Message Pass(SharedPayloads& from, SharedPayloads& to, std::string payload, bool* placed) {
    Message message = MessageOf(std::move(payload));
    from.Place(&message);
    *placed = message.payload.empty();
    EXPECT_EQ(to.Find(&message), absl::OkStatus());
    return message;
  }
  Message PassPlaced(std::string payload) {
    bool placed = false;
    Message message = Pass(*client_, *server_, std::move(payload), &placed);
    EXPECT_TRUE(placed);
    return message;
  }

  const SharedMemory::Room room_ = std::make_shared<SharedMemoryRoom>(SharedMemoryRoom::Options());
  std::unique_ptr<SharedPayloads> client_;
  std::unique_ptr<SharedPayloads> server_;
};

TEST_F(SharedPayloadsTest, PayloadsPassBothWays) {
  for (unsigned i = 0; i < 3; ++i) {
    bool up = false;
    bool down = false;
    const Message request = Pass(*client_, *server_, RandomBytes(kMegabyte + i, i), &up);
    const Message reply = Pass(*server_, *client_, RandomBytes(kMegabyte - i, 7 + i), &down);
    EXPECT_TRUE(up && down);
    EXPECT_EQ(PayloadOf(request), RandomBytes(kMegabyte + i, i));
    EXPECT_EQ(PayloadOf(reply), RandomBytes(kMegabyte - i, 7 + i));
  }
}

TEST_F(SharedPayloadsTest, SlicesAreJoinedAndReleased) {
  const auto owner = std::make_shared<const std::string>(RandomBytes(50000, 1));
  Message message{
      .fields = "",
      .payload = {{owner->data(), 20000, owner}, {owner->data() + 20000, 30000, owner}}};
  client_->Place(&message);
  EXPECT_EQ(owner.use_count(), 1);
  ASSERT_EQ(server_->Find(&message), absl::OkStatus());
  ASSERT_EQ(message.payload.size(), 1u);
  EXPECT_EQ(PayloadOf(message), *owner);
}

TEST_F(SharedPayloadsTest, ASmallPayloadStaysInItsMessage) {
  for (const size_t size : {0, 1, 1000}) {
    bool placed = true;
    EXPECT_EQ(PayloadOf(Pass(*client_, *server_, RandomBytes(size, 3), &placed)),
              RandomBytes(size, 3));
    EXPECT_FALSE(placed);
  }
}

TEST_F(SharedPayloadsTest, APayloadWithoutRoomStaysInItsMessage) {
  std::vector<Message> held;
  constexpr unsigned kFit = kSharedHalfBytes / kMegabyte - 1;  // each has 64 bytes beside it
  for (unsigned i = 0; i < kFit; ++i) held.push_back(PassPlaced(RandomBytes(kMegabyte, i)));
  bool placed = true;
  EXPECT_EQ(PayloadOf(Pass(*client_, *server_, RandomBytes(kMegabyte, 99), &placed)),
            RandomBytes(kMegabyte, 99));
  EXPECT_FALSE(placed);

  held[7].payload.clear();
  const Message again = PassPlaced(RandomBytes(kMegabyte, 100));
  EXPECT_EQ(PayloadOf(again), RandomBytes(kMegabyte, 100));
  held.erase(held.begin() + 7);
  for (unsigned i = 0; i < held.size(); ++i) {
    ASSERT_EQ(PayloadOf(held[i]), RandomBytes(kMegabyte, i < 7 ? i : i + 1)) << i;
  }
}

TEST_F(SharedPayloadsTest, PlacesNothingBeforeStartPlacing) {
  const auto memory = SharedPayloads::Create();
  Message message = MessageOf(RandomBytes(kMegabyte, 1));
  memory->Place(&message);
  EXPECT_EQ(PayloadOf(message), RandomBytes(kMegabyte, 1));
}

TEST_F(SharedPayloadsTest, UsesLowPlacesFirst) {
  const char* const first = PassPlaced(RandomBytes(kMegabyte, 1)).payload.front().data;
  for (unsigned i = 0; i < 10; ++i) {
    EXPECT_EQ(PassPlaced(RandomBytes(kMegabyte, i)).payload.front().data, first);
  }
}

TEST_F(SharedPayloadsTest, APayloadOutlivesBothEnds) {
  const Message message = PassPlaced(RandomBytes(kMegabyte, 5));
  client_.reset();
  server_.reset();
  EXPECT_EQ(PayloadOf(message), RandomBytes(kMegabyte, 5));
}

TEST_F(SharedPayloadsTest, OverwritesNoPayloadThatIsHeld) {
  const uint64_t seed = TestSeed();
  SCOPED_TRACE(SeedText(seed));
  std::mt19937_64 random(seed);
  struct Held {
    Message message;
    std::string bytes;
  };
  std::vector<Held> held;
  size_t placed_count = 0;
  for (unsigned i = 0; i < 2000; ++i) {
    if (!held.empty() && random() % 2 == 0) {
      const size_t victim = random() % held.size();
      ASSERT_EQ(PayloadOf(held[victim].message), held[victim].bytes) << i;
      held.erase(held.begin() + static_cast<std::ptrdiff_t>(victim));
    }
    const size_t size = (size_t{16} << 10) + random() % (size_t{600} << 10);
    // Filled by one byte, of which there are enough to tell a neighbour's by.
    std::string bytes(size, static_cast<char>(random()));
    bool placed = false;
    Message message = Pass(*client_, *server_, bytes, &placed);
    placed_count += placed ? 1 : 0;
    held.push_back({std::move(message), std::move(bytes)});
    if (held.size() > 40) held.erase(held.begin());
  }
  for (const Held& each : held) ASSERT_EQ(PayloadOf(each.message), each.bytes);
  EXPECT_GT(placed_count, 1000u);
}

TEST_F(SharedPayloadsTest, InvalidPlacesAreRejected) {
  const auto at = [](uint64_t offset, uint64_t size) {
    proto::WithSharedPayload with;
    with.mutable_shared_payload()->set_offset(offset);
    with.mutable_shared_payload()->set_size(size);
    return Message{.fields = with.SerializeAsString(), .payload = {}};
  };
  constexpr uint64_t kHalf = kSharedHalfBytes;
  EXPECT_EQ(server_->Find(std::make_unique<Message>(at(64, kHalf - 64)).get()), absl::OkStatus());
  for (Message bad : {at(kHalf, 1), at(128, kHalf - 64), at(64, kHalf + 1), at(0, 1), at(65, 1),
                      at(UINT64_MAX - 63, 64), at(64, UINT64_MAX)}) {
    const absl::Status rejected = server_->Find(&bad);
    EXPECT_EQ(rejected.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(rejected.message()), HasSubstr("cannot lie at"));
    EXPECT_THAT(bad.payload, IsEmpty());
  }
  Message twice = at(64, 1);
  twice.payload.push_back(OwnedSlice("here, too"));
  EXPECT_FALSE(server_->Find(&twice).ok());
}

// Memory that a client lends, with bytes of its own, and an end of each side that has it.
class LentPayloadsTest : public ::testing::Test {
 protected:
  static constexpr size_t kBytes = 3 * kMegabyte;
  static constexpr size_t kMinBytes = size_t{16} << 10;  // smaller payloads are copied

  LentPayloadsTest() {
    lent_ = SharedMemory::Create(kBytes);
    const std::string bytes = RandomBytes(kBytes, 11);
    std::ranges::copy(bytes, lent_->data());
    client_ = SharedPayloads::Create(lent_);
    server_ = SharedPayloads::Open(client_->offer(), room_);
    Begin(server_->answer());
  }
  void Begin(const std::string& answer) {
    server_->StartPlacing(answer);
    client_->StartPlacing(answer);
  }
  // Of the memory, with an owner that is told of.
  Slice Lent(size_t offset, size_t size) { return {lent_->data() + offset, size, owner_}; }
  // As it is sent, once it is placed.
  Message Placed(std::vector<Slice> slices) {
    Message message{.fields = "", .payload = std::move(slices)};
    client_->Place(&message);
    EXPECT_THAT(message.payload, IsEmpty());
    return message;
  }
  Message Found(std::vector<Slice> slices) {
    Message message = Placed(std::move(slices));
    EXPECT_EQ(server_->Find(&message), absl::OkStatus());
    return message;
  }
  // That something was sent or has come.
  void HearSomething() {
    Message message;
    EXPECT_EQ(client_->Find(&message), absl::OkStatus());
  }

  const SharedMemory::Room room_ = std::make_shared<SharedMemoryRoom>(SharedMemoryRoom::Options());
  std::shared_ptr<SharedMemory> lent_;
  const std::shared_ptr<const int> owner_ = std::make_shared<int>();
  std::unique_ptr<SharedPayloads> client_;
  std::unique_ptr<SharedPayloads> server_;
};

TEST_F(LentPayloadsTest, AreReadInPlace) {
  const Message message = Found({Lent(kMegabyte, 30000), Lent(5, 70000)});
  EXPECT_EQ(PayloadOf(message),
            std::string(lent_->data() + kMegabyte, 30000) + std::string(lent_->data() + 5, 70000));
  // Not a copy.
  lent_->data()[5] ^= 1;
  EXPECT_EQ(PayloadOf(message)[30000], lent_->data()[5]);
}

TEST_F(LentPayloadsTest, AreKeptUntilTheReceiverReleasesThem) {
  Message message = Found({Lent(0, kMegabyte)});
  HearSomething();
  EXPECT_EQ(owner_.use_count(), 2);
  message.payload.clear();
  HearSomething();
  EXPECT_EQ(owner_.use_count(), 1);
}

TEST_F(LentPayloadsTest, TakeNoRoomOfTheHalf) {
  std::vector<Message> held;
  for (size_t i = 0; i < 3 * kSharedHalfBytes / kMegabyte; ++i)
    held.push_back(Found({Lent(kMegabyte, kMegabyte)}));
  for (const Message& message : held)
    ASSERT_EQ(PayloadOf(message), std::string(lent_->data() + kMegabyte, kMegabyte));
}

TEST_F(LentPayloadsTest, OthersAreCopied) {
  for (const std::vector<Slice>& slices :
       {std::vector{OwnedSlice(RandomBytes(kMegabyte, 3))},
        std::vector{Lent(0, 1000), OwnedSlice(RandomBytes(kMegabyte, 3))},
        std::vector<Slice>{{lent_->data() + kMegabyte, 2 * kMegabyte, nullptr}}}) {
    const std::string bytes = PayloadOf({.fields = "", .payload = slices});
    const Message message = Found(slices);
    const bool lent = slices.size() == 1 && slices[0].owner == nullptr;
    lent_->data()[0] ^= 1;
    lent_->data()[kBytes - 1] ^= 1;
    EXPECT_EQ(PayloadOf(message) != bytes, lent);
  }
}

TEST_F(LentPayloadsTest, AreCopiedUnlessTheServerHasOpenedTheMemory) {
  lent_ = SharedMemory::Create(kBytes);
  client_ = SharedPayloads::Create(lent_);
  // As of one that is gone.
  const std::vector<std::string> offers = absl::StrSplit(client_->offer(), ',');
  server_ = SharedPayloads::Open(offers[0] + ",1/2/3", room_);
  ASSERT_NE(server_, nullptr);
  Begin(server_->answer());
  const Message message = Found({Lent(0, kMegabyte)});
  lent_->data()[0] ^= 1;
  EXPECT_EQ(PayloadOf(message), std::string(kMegabyte, '\0'));
}

// Its sender may have gone on, with other values in that memory.
TEST_F(LentPayloadsTest, AreRevokedAtTheEndOfTheSender) {
  Message read = Found({Lent(0, kMegabyte)});
  Message unread = Placed({Lent(kMegabyte, kMegabyte)});
  client_.reset();
  EXPECT_EQ(owner_.use_count(), 1);
  const absl::Status status = server_->Find(&unread);
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(unread.payload, IsEmpty());
  EXPECT_EQ(PayloadOf(read), std::string(lent_->data(), kMegabyte));
}

TEST_F(LentPayloadsTest, InvalidPlacesAreRejected) {
  const auto at = [](std::vector<std::pair<uint64_t, uint64_t>> ranges) {
    proto::WithSharedPayload with;
    with.mutable_shared_payload()->set_offset(64);
    for (const auto& [offset, size] : ranges) {
      with.mutable_shared_payload()->add_lent()->set_offset(offset);
      with.mutable_shared_payload()->mutable_lent()->rbegin()->set_size(size);
    }
    return Message{.fields = with.SerializeAsString(), .payload = {}};
  };
  for (Message bad : {at({{0, kBytes + 1}}), at({{kBytes, 1}}), at({{0, 5}, {UINT64_MAX, 2}}),
                      at({{1, UINT64_MAX}}), at({{0, 0}}), at({{0, kBytes}, {0, 1}}),
                      at(std::vector(5000, std::pair<uint64_t, uint64_t>(0, 1)))}) {
    const absl::Status rejected = server_->Find(&bad);
    EXPECT_EQ(rejected.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(rejected.message()), HasSubstr("cannot lie at"));
  }
  // A server lends nothing, nor does every client, whatever the flag says.
  const auto plain = SharedPayloads::Create();
  const auto to_plain = SharedPayloads::Open(plain->offer(), room_);
  plain->StartPlacing(to_plain->answer());
  to_plain->StartPlacing(to_plain->answer());
  for (SharedPayloads* const sender : {plain.get(), to_plain.get()}) {
    Message copied = MessageOf(RandomBytes(kMegabyte, 1));
    sender->Place(&copied);
    EXPECT_THAT(copied.payload, IsEmpty());
  }
  for (const auto& range : {std::pair<uint64_t, uint64_t>(0, 5), {0, 0}}) {
    Message lent = at({range});
    EXPECT_EQ(plain->Find(&lent).code(), absl::StatusCode::kInvalidArgument);
    EXPECT_EQ(to_plain->Find(&lent).code(), absl::StatusCode::kInvalidArgument);
  }
  // Nor is anything lent where nothing was placed.
  Message nowhere = at({{0, 5}});
  EXPECT_EQ(server_->Find(&nowhere).code(), absl::StatusCode::kInvalidArgument);
  const Message placed = Placed({Lent(0, 5 * kMinBytes)});
  EXPECT_EQ(server_->Find(&nowhere), absl::OkStatus());
}

TEST_F(LentPayloadsTest, AreCopiedAboveTheMaxNumberOfPieces) {
  std::vector<Slice> slices;
  for (size_t i = 0; i < 10000; ++i) slices.push_back(Lent(i * 100, 50));
  const std::string bytes = PayloadOf({.fields = "", .payload = slices});
  const Message message = Found(slices);
  EXPECT_EQ(message.payload.size(), 1u);
  EXPECT_EQ(PayloadOf(message), bytes);
}

TEST_F(LentPayloadsTest, AMessageWithTooLongFieldsIsRejected) {
  Message message{.fields = std::string(2 * kMegabyte, 'a'), .payload = {}};
  EXPECT_EQ(server_->Find(&message).code(), absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace shoal
