#include "common/rpc/grpc/call/write_budget.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "common/rpc/grpc/call/grpc_call.h"
#include "common/rpc/grpc/call/pending_reads.h"
#include "tests/fakes/fake_loop.h"

namespace shoal {
namespace {

constexpr Time kPatience = std::chrono::seconds(5);

// A call whose transport keeps what is written until it is told otherwise.
class HeldCall : public GrpcCall {
 public:
  HeldCall(WriteBudget* budget, PendingReads* reads)
      : GrpcCall({.max_message_bytes = 10000,
                  .max_queued_bytes = 10000,
                  .max_queued_messages = 100,
                  .budget = budget,
                  .reads = reads},
                 [](GrpcCall*) {}),
        stream_(MakeHandle("a reader")) {
    StartMessages();
  }
  // Has one message to send, made when it can be: of a byte, unless it is said otherwise.
  void WantToSend(Message message = {"", {{"a", 1, nullptr}}}) {
    stream_->SendFrom(SourceOf([message = std::move(message)] { return message; }));
  }
  // The transport has taken what was written, though it is not sent yet.
  void Take() {
    taken_.push_back(std::exchange(held_, {}));
    static_cast<CompletionTag*>(std::exchange(write_, nullptr))->Complete(true);
  }
  void Release() { held_.Clear(); }
  bool holds() const { return held_.Valid(); }

 private:
  void StartRead(grpc::ByteBuffer*, void*) override {}
  void StartWrite(const grpc::ByteBuffer& buffer, void* tag) override {
    held_ = buffer;
    write_ = tag;
  }
  void Cancel() override {}
  void StartEnd(const absl::Status&) override {}
  void OnReadsEnded() override {}
  void Finish(absl::Status) override {}
  void OnDropped() override {}
  void Fail(absl::Status) override {}

  grpc::ByteBuffer held_;
  std::vector<grpc::ByteBuffer> taken_;
  void* write_ = nullptr;
  const std::unique_ptr<Stream> stream_;
};

class WriteBudgetTest : public ::testing::Test {
 protected:
  FakeLoop loop_;
  PendingReads reads_;
  WriteBudget budget_{2, kPatience, &loop_};
};

TEST_F(WriteBudgetTest, ANewCallWaitsForItsTurnWhenTheBudgetIsSpent) {
  HeldCall first(&budget_, &reads_), second(&budget_, &reads_), third(&budget_, &reads_),
      fourth(&budget_, &reads_);
  for (HeldCall* call : {&first, &second, &third, &fourth}) call->WantToSend();
  EXPECT_TRUE(first.holds() && second.holds());
  EXPECT_FALSE(third.holds() || fourth.holds());
  first.Release();
  loop_.RunUntilIdle();
  EXPECT_TRUE(third.holds());
  EXPECT_FALSE(fourth.holds());
}

// As the rows of a cut are.
TEST_F(WriteBudgetTest, LargeFieldsCount) {
  HeldCall small(&budget_, &reads_), first(&budget_, &reads_), second(&budget_, &reads_);
  small.WantToSend({"small", {}});
  first.WantToSend({std::string(8192, 'a'), {}});
  second.WantToSend();
  EXPECT_TRUE(small.holds() && first.holds());
  EXPECT_FALSE(second.holds());
  first.Release();
  loop_.RunUntilIdle();
  EXPECT_TRUE(second.holds());
}

// Were they ended one at a time, who waits behind many of their kind would wait long.
TEST_F(WriteBudgetTest, BreaksAtMostAsManyHoldersAsCallsWait) {
  HeldCall first(&budget_, &reads_), second(&budget_, &reads_), third(&budget_, &reads_),
      fourth(&budget_, &reads_);
  first.WantToSend();
  second.WantToSend();
  loop_.Advance(2 * kPatience);
  EXPECT_TRUE(first.open() && second.open()) << "nobody waits";
  third.WantToSend();
  fourth.WantToSend();
  loop_.Advance(kPatience);
  EXPECT_FALSE(first.open() || second.open());
  EXPECT_TRUE(third.open() && fourth.open());
  first.Release();
  second.Release();
  loop_.RunUntilIdle();
  EXPECT_TRUE(third.holds() && fourth.holds());
}

TEST_F(WriteBudgetTest, BreaksAHolderOfTwoChargesForOneWaitingCall) {
  WriteBudget budget(3, kPatience, &loop_);
  HeldCall first(&budget, &reads_), second(&budget, &reads_), third(&budget, &reads_),
      fourth(&budget, &reads_);
  first.WantToSend();
  first.Take();
  for (HeldCall* call : {&first, &second, &third, &fourth}) call->WantToSend();
  EXPECT_TRUE(first.holds() && second.holds());
  EXPECT_FALSE(third.holds() || fourth.holds());
  loop_.Advance(kPatience);
  EXPECT_FALSE(first.open() || second.open());
  EXPECT_TRUE(third.open() && fourth.open());
}

TEST_F(WriteBudgetTest, BreaksNoSlowHolderIfNoCallWaits) {
  HeldCall first(&budget_, &reads_), second(&budget_, &reads_), third(&budget_, &reads_);
  for (HeldCall* call : {&first, &second, &third}) call->WantToSend();
  loop_.Advance(kPatience);
  EXPECT_FALSE(first.open());
  EXPECT_TRUE(second.open());
}

TEST_F(WriteBudgetTest, AStreamThatIsReadIsNotBroken) {
  HeldCall first(&budget_, &reads_), second(&budget_, &reads_), third(&budget_, &reads_);
  first.WantToSend();
  loop_.Advance(kPatience / 2);
  second.WantToSend();
  third.WantToSend();
  loop_.Advance(kPatience);
  EXPECT_FALSE(first.open());
  EXPECT_TRUE(second.open());
}

}  // namespace
}  // namespace shoal
