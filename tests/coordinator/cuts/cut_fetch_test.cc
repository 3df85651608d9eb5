#include "coordinator/cuts/cut_fetch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <utility>

#include "common/checkpoint/checkpoint_store.h"
#include "tests/common/base/temporary_directory.h"
#include "tests/coordinator/cuts/small_cut.h"
#include "tests/fakes/fake_loop.h"

namespace shoal {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr uint64_t kCutTimeline = 77;
constexpr uint64_t kStep = 40;

// The ps are played by the test, their rows those of SmallValue.
class CutFetchTest : public testing::Test {
 protected:
  CutFetchTest() {
    directory_ = *store_.CreateDirectory(kStep, kCutTimeline);
    EXPECT_TRUE(CreateCheckpointFiles(layout_, directory_, store_.files()).ok());
  }
  void Fetch(int ps) {
    ps_ = ps;
    sent_.clear();
    done_.reset();
    fetch_ = std::make_unique<CutFetch>(
        CutFetch::Options{.loop = &loop_,
                          .files = store_.files(),
                          .layout = &layout_,
                          .variables = &variables_,
                          .shard_map = &shard_map_,
                          .slots = SmallSlots(),
                          .ps = ps,
                          .directory = directory_,
                          .cut_step = kStep,
                          .send =
                              [this](const proto::ControlRequest& request) {
                                ASSERT_TRUE(request.has_read_cut());
                                sent_.push_back(request.read_cut());
                              },
                          .done =
                              [this](absl::StatusOr<std::vector<WrittenPart>> parts) {
                                EXPECT_FALSE(done_.has_value()) << "it ends once";
                                done_ = std::move(parts);
                                fetch_.reset();
                              }});
    loop_.RunUntilIdle();
  }
  proto::CutRows RowsFor(const proto::ReadCut& read) const {
    return SmallCutRows(shard_map_, ps_, read);
  }
  void Answer(const proto::CutRows& rows) {
    fetch_->OnRows(rows);
    loop_.RunUntilIdle();
  }
  // Answers all questions until it has ended; returns how many there were.
  int AnswerAll() {
    int answered = 0;
    while (fetch_ != nullptr && !sent_.empty()) {
      const proto::ReadCut read = sent_.front();
      sent_.erase(sent_.begin());
      Answer(RowsFor(read));
      ++answered;
    }
    return answered;
  }

  TemporaryDirectory root_;
  CheckpointStore store_{root_.path()};
  const CheckpointLayout layout_ = SmallLayout();
  const std::vector<Variable> variables_ = SmallVariables();
  const ShardMap shard_map_ = SmallShardMap();
  std::string directory_;
  FakeLoop loop_;
  int ps_ = 0;
  std::vector<proto::ReadCut> sent_;
  std::optional<absl::StatusOr<std::vector<WrittenPart>>> done_;
  std::unique_ptr<CutFetch> fetch_;
};

TEST_F(CutFetchTest, PartsOfAllPsMakeAWholeCheckpoint) {
  std::vector<WrittenPart> parts;
  for (int ps = 0; ps < shard_map_.ps_count(); ++ps) {
    Fetch(ps);
    EXPECT_GT(AnswerAll(), 2);
    ASSERT_TRUE(done_.has_value());
    ASSERT_TRUE(done_->ok()) << done_->status();
    parts.insert(parts.end(), (*done_)->begin(), (*done_)->end());
  }
  const auto stored =
      store_.Commit(directory_, layout_, parts, SmallTexts(), SmallManifest(kCutTimeline, kStep));
  ASSERT_TRUE(stored.ok()) << stored.status();
  EXPECT_TRUE(store_.Verify(*stored).ok());
  auto reader = CheckpointReader::Open(stored->directory, store_.files());
  ASSERT_TRUE(reader.ok());
  for (const auto& [name, place] : layout_.places) {
    std::vector<float> values(place.entry.size / sizeof(float));
    ASSERT_TRUE((*reader)->ReadBytes(name, 0, values.data(), place.entry.size).ok());
    for (size_t i = 0; i < values.size(); ++i) {
      EXPECT_EQ(values[i], SmallValue(name, i, kStep)) << name << " " << i;
    }
  }
}

TEST_F(CutFetchTest, OnlyTwoPartsAreOnTheirWay) {
  loop_.set_hold_offloads(true);
  Fetch(0);
  ASSERT_THAT(sent_, SizeIs(2));
  Answer(RowsFor(sent_[0]));
  Answer(RowsFor(sent_[1]));
  EXPECT_THAT(sent_, SizeIs(2)) << "what is being written counts, or a slow disk fills the memory";
  ASSERT_TRUE(loop_.RunOneOffloaded());
  EXPECT_THAT(sent_, SizeIs(3));
}

TEST_F(CutFetchTest, ANewStreamIsAskedForWhatHasNotCome) {
  Fetch(0);
  Answer(RowsFor(sent_[0]));
  const std::vector<proto::ReadCut> before = std::exchange(sent_, {});
  fetch_->Resend();
  ASSERT_THAT(sent_, SizeIs(2));
  EXPECT_EQ(std::pair(sent_[0].chunk(), sent_[0].part()),
            std::pair(before[1].chunk(), before[1].part()));
  // The answer to the first question comes all the same, then the one to the second.
  const proto::CutRows rows = RowsFor(sent_[0]);
  Answer(rows);
  Answer(rows);
  sent_.erase(sent_.begin());
  AnswerAll();
  ASSERT_TRUE(done_.has_value());
  EXPECT_TRUE(done_->ok()) << "written once, so that no byte is written by two: "
                           << done_->status();
}

TEST_F(CutFetchTest, RowsThatWereNotAskedForAreDropped) {
  Fetch(0);
  proto::CutRows rows = RowsFor(sent_[0]);
  rows.set_chunk(1000000);
  Answer(rows);
  rows = RowsFor(sent_[0]);
  rows.set_part(99);
  Answer(rows);
  EXPECT_FALSE(done_.has_value());
  EXPECT_THAT(sent_, SizeIs(2));
}

TEST_F(CutFetchTest, APsThatHasEndedTheCutEndsTheFetch) {
  Fetch(0);
  proto::CutRows rows = RowsFor(sent_[0]);
  rows.clear_values();
  Answer(rows);
  ASSERT_TRUE(done_.has_value());
  EXPECT_THAT(done_->status().message(), HasSubstr("ended the cut"));
}

TEST_F(CutFetchTest, AChunkOfAnotherSizeEndsTheFetch) {
  Fetch(0);
  proto::CutRows rows = RowsFor(sent_[0]);
  rows.mutable_values()->append("1234");
  Answer(rows);
  ASSERT_TRUE(done_.has_value());
  EXPECT_THAT(done_->status().message(), HasSubstr("bytes of chunk 0"));
}

TEST_F(CutFetchTest, AFileThatCannotBeWrittenEndsTheFetch) {
  for (const std::string& name : NamesIn(directory_)) {
    ASSERT_TRUE(store_.files()->RemoveFile(directory_ + "/" + name).ok());
  }
  Fetch(0);
  AnswerAll();
  ASSERT_TRUE(done_.has_value());
  EXPECT_THAT(done_->status().message(), HasSubstr(directory_));
}

TEST_F(CutFetchTest, MayBeDestroyedWhileRowsAreWritten) {
  loop_.set_hold_offloads(true);
  Fetch(0);
  Answer(RowsFor(sent_[0]));
  fetch_.reset();
  loop_.set_hold_offloads(false);
  sent_.clear();
  loop_.RunUntilIdle();
  EXPECT_FALSE(done_.has_value());
  EXPECT_THAT(sent_, IsEmpty());
}

}  // namespace
}  // namespace shoal
