#include "common/rpc/shared_payloads.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "proto/shared_payload.pb.h"
#include "tests/common/base/temporary_directory.h"
#include "tests/fakes/test_seed.h"

namespace shoal {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr size_t kMegabyte = size_t{1} << 20;

Slice SliceOf(std::string bytes) {
  auto owner = std::make_shared<const std::string>(std::move(bytes));
  return {owner->data(), owner->size(), owner};
}

Message MessageOf(std::string payload) {
  return {.fields = "", .payload = {SliceOf(std::move(payload))}};
}

std::string Bytes(size_t size, unsigned seed) {
  std::minstd_rand random(seed + 1);
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

std::string PayloadOf(const Message& message) {
  std::string bytes(message.payload_bytes(), '\0');
  CopyPayload(message, 0, bytes.data(), bytes.size());
  return bytes;
}

class SharedPayloadsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    client_ = SharedPayloads::Create();
    ASSERT_NE(client_, nullptr);
    server_ = SharedPayloads::Open(client_->offer());
    ASSERT_NE(server_, nullptr);
    server_->BeginToPlace();
    client_->BeginToPlace();
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

  std::unique_ptr<SharedPayloads> client_;
  std::unique_ptr<SharedPayloads> server_;
};

TEST_F(SharedPayloadsTest, PayloadsPassBothWays) {
  for (unsigned i = 0; i < 3; ++i) {
    bool up = false;
    bool down = false;
    const Message request = Pass(*client_, *server_, Bytes(kMegabyte + i, i), &up);
    const Message reply = Pass(*server_, *client_, Bytes(kMegabyte - i, 7 + i), &down);
    EXPECT_TRUE(up && down);
    EXPECT_EQ(PayloadOf(request), Bytes(kMegabyte + i, i));
    EXPECT_EQ(PayloadOf(reply), Bytes(kMegabyte - i, 7 + i));
  }
}

TEST_F(SharedPayloadsTest, SlicesAreJoinedAndLetGo) {
  const auto owner = std::make_shared<const std::string>(Bytes(50000, 1));
  Message message{
      .fields = "",
      .payload = {{owner->data(), 20000, owner}, {owner->data() + 20000, 30000, owner}}};
  client_->Place(&message);
  EXPECT_EQ(owner.use_count(), 1);
  ASSERT_EQ(server_->Find(&message), absl::OkStatus());
  ASSERT_EQ(message.payload.size(), 1u);
  EXPECT_EQ(PayloadOf(message), *owner);
}

TEST_F(SharedPayloadsTest, WhatIsSmallStaysInItsMessage) {
  for (const size_t size : {0, 1, 1000}) {
    bool placed = true;
    EXPECT_EQ(PayloadOf(Pass(*client_, *server_, Bytes(size, 3), &placed)), Bytes(size, 3));
    EXPECT_FALSE(placed);
  }
}

TEST_F(SharedPayloadsTest, WhatFindsNoRoomStaysInItsMessageAndRoomComesBack) {
  std::vector<Message> held;
  constexpr unsigned kFit = kSharedHalfBytes / kMegabyte - 1;  // each has 64 bytes beside it
  for (unsigned i = 0; i < kFit; ++i) held.push_back(PassPlaced(Bytes(kMegabyte, i)));
  bool placed = true;
  EXPECT_EQ(PayloadOf(Pass(*client_, *server_, Bytes(kMegabyte, 99), &placed)),
            Bytes(kMegabyte, 99));
  EXPECT_FALSE(placed);

  held[7].payload.clear();
  const Message again = PassPlaced(Bytes(kMegabyte, 100));
  EXPECT_EQ(PayloadOf(again), Bytes(kMegabyte, 100));
  held.erase(held.begin() + 7);
  for (unsigned i = 0; i < held.size(); ++i) {
    ASSERT_EQ(PayloadOf(held[i]), Bytes(kMegabyte, i < 7 ? i : i + 1)) << i;
  }
}

TEST_F(SharedPayloadsTest, NothingIsPlacedBeforeItHasBegun) {
  const auto memory = SharedPayloads::Create();
  Message message = MessageOf(Bytes(kMegabyte, 1));
  memory->Place(&message);
  EXPECT_EQ(PayloadOf(message), Bytes(kMegabyte, 1));
}

// The limit of a file's size would not refuse it, but kill the process.
TEST_F(SharedPayloadsTest, WhereFilesMayNotBeSoLargeThereIsNone) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit low = before;
  low.rlim_cur = kMegabyte;
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &low), 0);
  EXPECT_EQ(SharedPayloads::Create(), nullptr);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
}

TEST_F(SharedPayloadsTest, LowRoomIsUsedFirstSoThatLittleMemoryIsTouched) {
  const char* const first = PassPlaced(Bytes(kMegabyte, 1)).payload.front().data;
  for (unsigned i = 0; i < 10; ++i) {
    EXPECT_EQ(PassPlaced(Bytes(kMegabyte, i)).payload.front().data, first);
  }
}

TEST_F(SharedPayloadsTest, APayloadOutlivesBothEnds) {
  const Message message = PassPlaced(Bytes(kMegabyte, 5));
  client_.reset();
  server_.reset();
  EXPECT_EQ(PayloadOf(message), Bytes(kMegabyte, 5));
}

TEST_F(SharedPayloadsTest, NothingIsOverwrittenThatSomebodyHolds) {
  std::mt19937_64 random(TestSeed());
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

TEST_F(SharedPayloadsTest, PlacesThatCannotBeAreRefused) {
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
    const absl::Status refused = server_->Find(&bad);
    EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(refused.message()), HasSubstr("cannot lie at"));
    EXPECT_THAT(bad.payload, IsEmpty());
  }
  Message twice = at(64, 1);
  twice.payload.push_back(SliceOf("here, too"));
  EXPECT_FALSE(server_->Find(&twice).ok());
}

TEST_F(SharedPayloadsTest, OnlyWhatWasOfferedIsOpened) {
  const std::vector<std::string> offer = absl::StrSplit(client_->offer(), '/');
  EXPECT_EQ(SharedPayloads::Open(absl::StrCat(offer[0], "/", offer[1], "/1")), nullptr);
  EXPECT_EQ(SharedPayloads::Open(absl::StrCat(offer[0], "/", offer[1])), nullptr);
  EXPECT_EQ(SharedPayloads::Open(absl::StrCat("4194305/", offer[1], "/", offer[2])), nullptr);
  for (const char* nonsense : {"", "//", "1/2/3/4", "../../etc/passwd/0/1", "a/b/c", "-1/-1/-1"}) {
    EXPECT_EQ(SharedPayloads::Open(nonsense), nullptr) << nonsense;
  }
  EXPECT_NE(SharedPayloads::Open(client_->offer()), nullptr);
  client_.reset();
  EXPECT_EQ(SharedPayloads::Open(absl::StrJoin(offer, "/")), nullptr);
}

// A file in memory of this name and size, with these seals, that says 0.
int MemoryFile(const char* name, off_t bytes, int seals) {
  const int file = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
  EXPECT_EQ(ftruncate(file, bytes), 0);
  EXPECT_EQ(fcntl(file, F_ADD_SEALS, seals), 0);
  return file;
}

std::string OfferOf(int file) { return absl::StrCat(getpid(), "/", file, "/", 0); }

TEST(SharedPayloadsFileTest, OtherFilesAreNotTaken) {
  constexpr char kName[] = "shoal-payloads";
  constexpr off_t kBytes = 4096 + 2 * kSharedHalfBytes;
  constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  const int right = MemoryFile(kName, kBytes, kSeals);
  EXPECT_NE(SharedPayloads::Open(OfferOf(right)), nullptr);
  // It could shrink under whoever has it mapped.
  const int unsealed = MemoryFile(kName, kBytes, F_SEAL_GROW);
  EXPECT_EQ(SharedPayloads::Open(OfferOf(unsealed)), nullptr);
  const int small = MemoryFile(kName, kBytes / 2, kSeals);
  EXPECT_EQ(SharedPayloads::Open(OfferOf(small)), nullptr);
  const int other = MemoryFile("other", kBytes, kSeals);
  EXPECT_EQ(SharedPayloads::Open(OfferOf(other)), nullptr);
  // To open one of these would not return, or take what is in it.
  const TemporaryDirectory directory;
  ASSERT_EQ(mkfifo((directory / "fifo").c_str(), 0600), 0);
  const int fifo = open((directory / "fifo").c_str(), O_RDWR | O_CLOEXEC);
  EXPECT_EQ(SharedPayloads::Open(OfferOf(fifo)), nullptr);
  for (const int file : {right, unsealed, small, other, fifo}) close(file);
}

}  // namespace
}  // namespace shoal
