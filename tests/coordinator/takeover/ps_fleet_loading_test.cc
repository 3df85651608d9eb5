#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "common/base/term.h"
#include "common/log/logging.h"
#include "coordinator/takeover/ps_fleet.h"
#include "tests/common/base/file_content.h"
#include "tests/coordinator/takeover/ps_fleet_fixture.h"

namespace shoal {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// Files of a directory that this process has open.
std::vector<std::string> OpenFilesIn(const std::string& directory) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code ignored;
    const std::string file = std::filesystem::read_symlink(entry.path(), ignored).string();
    if (file.starts_with(directory)) files.push_back(file);
  }
  return files;
}

// --- Loading -------------------------------------------------------------------------------------

TEST_F(PsFleetTest, WithoutACheckpointTheSeedIsLoaded) {
  Start();
  ClaimAllEmpty();
  EXPECT_EQ(fleet_->phase(), PsFleet::Phase::kLoading);
  for (int i = 0; i < kPsCount; ++i) {
    const proto::ControlRequest request = TakeLoad(i);
    EXPECT_EQ(request.term(), fleet_->term());
    EXPECT_EQ(request.load().incarnation(), uint64_t{10} + i) << "for the life that was heard";
    EXPECT_EQ(request.load().job(), "the job");
    EXPECT_EQ(request.load().ps_count(), uint32_t{kPsCount});
    EXPECT_EQ(request.load().checkpoint(), "");
  }
  AnswerLoaded(0, fleet_->term());
  AnswerLoaded(0, fleet_->term());
  AnswerLoaded(1, fleet_->term() - 1);  // of some other load
  EXPECT_THAT(TakeEvents(), IsEmpty()) << "not before all have answered";
  AnswerLoaded(1, fleet_->term());
  EXPECT_THAT(TakeEvents(), ElementsAre("opened"));
  EXPECT_EQ(opened_[0].timeline, fleet_->term());
  EXPECT_FALSE(opened_[0].adopted);
  EXPECT_EQ(opened_[0].base, 0u);
  EXPECT_EQ(fleet_->timeline(), fleet_->term());
}

TEST_F(PsFleetTest, LoadsTheNewestCheckpointWhereTheTimelinesDiffer) {
  WriteSmallCheckpoint(&store_, MakeTerm(1, 1), 60);
  const StoredCheckpoint newest = WriteSmallCheckpoint(&store_, MakeTerm(2, 1), 40);
  Start();
  SendHello(0);
  SendHello(1);
  AnswerClaim(0, {.timeline = MakeTerm(2, 1), .base = 44});
  AnswerClaim(1);  // it was started anew
  for (int i = 0; i < kPsCount; ++i) {
    EXPECT_EQ(TakeLoad(i).load().checkpoint(), newest.directory);
    AnswerLoaded(i, fleet_->term());
  }
  EXPECT_THAT(TakeEvents(), ElementsAre("opened"));
  EXPECT_EQ(opened_[0].timeline, MakeTerm(3, kCoordinator));
  EXPECT_EQ(opened_[0].base, 40u);
  EXPECT_EQ(opened_[0].checkpoint, newest.directory);
}

TEST_F(PsFleetTest, LoadsACheckpointWhereThePsAreInTwoTimelines) {
  const StoredCheckpoint newest = WriteSmallCheckpoint(&store_, MakeTerm(2, 1), 40);
  Start();
  SendHello(0);
  SendHello(1);
  AnswerClaim(0, {.timeline = MakeTerm(2, 1), .base = 44});
  AnswerClaim(1, {.timeline = MakeTerm(1, 1), .base = 44});
  EXPECT_THAT(TakeEvents(), IsEmpty());
  for (int i = 0; i < kPsCount; ++i) EXPECT_EQ(TakeLoad(i).load().checkpoint(), newest.directory);
}

// Or the next to be loaded would be that one again, and all since would be lost.
TEST_F(PsFleetTest, ATimelineIsAboveThatOfACheckpointWhichAnotherWroteMeanwhile) {
  Start();
  SendHello(0);
  SendHello(1);
  const StoredCheckpoint newest = WriteSmallCheckpoint(&store_, MakeTerm(1, kCoordinator + 1), 40);
  for (int i = 0; i < kPsCount; ++i) AnswerClaim(i);
  EXPECT_EQ(fleet_->phase(), PsFleet::Phase::kClaiming) << "under a new term";
  for (int i = 0; i < kPsCount; ++i) AnswerClaim(i);
  for (int i = 0; i < kPsCount; ++i) {
    EXPECT_EQ(TakeLoad(i).load().checkpoint(), newest.directory);
    AnswerLoaded(i, fleet_->term());
  }
  ASSERT_THAT(TakeEvents(), ElementsAre("opened"));
  EXPECT_EQ(opened_[0].timeline, MakeTerm(2, kCoordinator));
}

TEST_F(PsFleetTest, ATimelineOfAnotherNumberOfPsIsNotAdopted) {
  const StoredCheckpoint newest = WriteSmallCheckpoint(&store_, MakeTerm(2, 1), 40);
  Start();
  SendHello(0);
  SendHello(1);
  for (int i = 0; i < kPsCount; ++i) {
    AnswerClaim(i, {.timeline = MakeTerm(2, 1), .base = 44, .shard_map = 0x12121212});
  }
  EXPECT_THAT(TakeEvents(), IsEmpty());
  for (int i = 0; i < kPsCount; ++i) EXPECT_EQ(TakeLoad(i).load().checkpoint(), newest.directory);
}

TEST_F(PsFleetTest, ADamagedNewestCheckpointIsPassedOver) {
  const StoredCheckpoint older = WriteSmallCheckpoint(&store_, MakeTerm(1, 1), 20);
  const StoredCheckpoint newest = WriteSmallCheckpoint(&store_, MakeTerm(1, 1), 40);
  const std::string file = newest.directory + "/" + newest.manifest.files.back().name;
  std::string content = FileContent(file);
  content.back() ^= 1;
  WriteAll(file, content);
  Start();
  ClaimAllEmpty();
  EXPECT_EQ(TakeLoad(0).load().checkpoint(), older.directory);
}

TEST_F(PsFleetTest, WhereAllCheckpointsAreDamagedItDoesNotStartOverSilently) {
  const StoredCheckpoint only = WriteSmallCheckpoint(&store_, MakeTerm(1, 1), 40);
  WriteAll(only.directory + "/manifest.json", "{");
  Start();
  ClaimAllEmpty();
  EXPECT_THAT(TakeEvents(),
              ElementsAre(AllOf(HasSubstr("failed: "), HasSubstr(NameOf(only.directory)),
                                HasSubstr("--run_dir"))));
}

TEST_F(PsFleetTest, ACheckpointOfAnotherJobIsNotLoaded) {
  const StoredCheckpoint checkpoint = WriteSmallCheckpoint(&store_, MakeTerm(1, 1), 40);
  fingerprint_ = 0x12345678;
  job_text_ = R"({"name": "other"})";
  Start();  // and no ps has come
  EXPECT_THAT(TakeEvents(), ElementsAre(AllOf(HasSubstr(checkpoint.directory), HasSubstr("(small)"),
                                              HasSubstr(R"($.name: "small" there, "other" now)"),
                                              HasSubstr("--run_dir"))));
}

TEST_F(PsFleetTest, ADamagedJobOfTheNewestCheckpointIsNoOtherJob) {
  const StoredCheckpoint older = WriteSmallCheckpoint(&store_, MakeTerm(1, 1), 20);
  const StoredCheckpoint newest = WriteSmallCheckpoint(&store_, MakeTerm(1, 1), 40);
  WriteAll(newest.directory + "/job.json", R"({"name": "smalm"})");
  fingerprint_ = 0x12345678;
  job_text_ = R"({"name": "small", "epochs": 9})";
  Start();
  ClaimAllEmpty();
  for (int i = 0; i < kPsCount; ++i) AnswerLoaded(i, fleet_->term());
  EXPECT_THAT(TakeEvents(), ElementsAre("opened"));
  EXPECT_EQ(opened_[0].checkpoint, older.directory);
}

TEST_F(PsFleetTest, AJobThatTrainsLongerGoesOnFromItsEnd) {
  const StoredCheckpoint end = WriteSmallCheckpoint(&store_, MakeTerm(1, 1), 100);
  fingerprint_ = 0x12345678;
  job_text_ = R"({"name": "small", "epochs": 9})";
  Start();
  ClaimAllEmpty();
  for (int i = 0; i < kPsCount; ++i) AnswerLoaded(i, fleet_->term());
  EXPECT_THAT(TakeEvents(), ElementsAre("opened"));
  EXPECT_EQ(opened_[0].base, 100u);
  EXPECT_EQ(opened_[0].checkpoint, end.directory);
}

TEST_F(PsFleetTest, ABadCheckpointIsNotTriedAgainAndTheNextOlderOneIs) {
  const StoredCheckpoint older = WriteSmallCheckpoint(&store_, MakeTerm(1, 1), 20);
  const StoredCheckpoint newest = WriteSmallCheckpoint(&store_, MakeTerm(1, 1), 40);
  Start();
  ClaimAllEmpty();
  EXPECT_EQ(TakeLoad(0).load().checkpoint(), newest.directory);
  AnswerLoaded(1, fleet_->term());
  const uint64_t term = fleet_->term();
  AnswerLoadFailed(0, /*checkpoint_is_bad=*/true, "rotten");
  EXPECT_GT(fleet_->term(), term) << "a term opens at most one timeline";
  EXPECT_EQ(fleet_->phase(), PsFleet::Phase::kClaiming);
  AnswerClaim(0);
  AnswerClaim(1, {.timeline = term});
  EXPECT_EQ(TakeLoad(0).load().checkpoint(), older.directory);
  EXPECT_EQ(TakeLoad(1).load().checkpoint(), older.directory);
  EXPECT_THAT(TakeEvents(), IsEmpty()) << "no timeline was open, so none is over";
}

// A ps whose machine does not see the checkpoint cannot verify what it is sent.
TEST_F(PsFleetTest, ACheckpointThatChangesWhileItsRowsAreSentIsNotOpened) {
  const StoredCheckpoint older = WriteSmallCheckpoint(&store_, MakeTerm(1, 1), 20);
  const StoredCheckpoint newest = WriteSmallCheckpoint(&store_, MakeTerm(1, 1), 40);
  Start();
  ClaimAllEmpty();
  EXPECT_EQ(TakeLoad(0).load().checkpoint(), newest.directory);
  const std::string file = newest.directory + "/" + newest.manifest.files.front().name;
  std::string content = FileContent(file);
  content.back() ^= 1;
  WriteAll(file, content);
  EXPECT_EQ(WantRows(0).error(), "");
  for (int i = 0; i < kPsCount; ++i) AnswerLoaded(i, fleet_->term());
  EXPECT_EQ(fleet_->phase(), PsFleet::Phase::kClaiming);
  for (int i = 0; i < kPsCount; ++i) AnswerClaim(i);
  EXPECT_EQ(TakeLoad(0).load().checkpoint(), older.directory);
  EXPECT_THAT(TakeEvents(), IsEmpty());
}

TEST_F(PsFleetTest, ACheckpointThatIsStillWholeAfterItsRowsWereSentIsOpened) {
  const StoredCheckpoint newest = WriteSmallCheckpoint(&store_, MakeTerm(1, 1), 40);
  Start();
  ClaimAllEmpty();
  const std::string tensor = SmallVariables()[0].name;
  const proto::Rows rows = WantRows(0);
  ASSERT_EQ(rows.values().size(), sizeof(float));
  float value;
  std::memcpy(&value, rows.values().data(), sizeof value);
  EXPECT_EQ(value, SmallValue(tensor, 0, 40));
  EXPECT_THAT(OpenFilesIn(newest.directory), IsEmpty()) << "only while it reads";
  for (int i = 0; i < kPsCount; ++i) AnswerLoaded(i, fleet_->term());
  EXPECT_THAT(TakeEvents(), ElementsAre("opened"));
  EXPECT_EQ(opened_[0].checkpoint, newest.directory);
  EXPECT_THAT(OpenFilesIn(newest.directory), IsEmpty()) << "its room on disk could not be freed";
}

TEST_F(PsFleetTest, AllCheckpointsBadIsAFailure) {
  WriteSmallCheckpoint(&store_, MakeTerm(1, 1), 40);
  Start();
  ClaimAllEmpty();
  AnswerLoadFailed(0, true, "rotten");
  AnswerClaim(0);
  AnswerClaim(1);
  EXPECT_THAT(TakeEvents(), ElementsAre(AllOf(HasSubstr("failed: "), HasSubstr("is damaged"),
                                              HasSubstr("rotten"), HasSubstr("--run_dir"))));
}

TEST_F(PsFleetTest, ACheckpointThatAPsOnlyDidNotReadIsNotCalledDamaged) {
  const StoredCheckpoint only = WriteSmallCheckpoint(&store_, MakeTerm(1, 1), 40);
  Start();
  ClaimAllEmpty();
  AnswerLoadFailed(0, true, "the shard's disk fails", /*checkpoint_unread=*/true);
  AnswerClaim(0);
  AnswerClaim(1);
  EXPECT_THAT(TakeEvents(),
              ElementsAre(AllOf(HasSubstr("failed: "), HasSubstr(only.directory),
                                HasSubstr("the shard's disk fails"), Not(HasSubstr("damaged")))));
}

TEST_F(PsFleetTest, AJobThatAPsCannotLoadIsAFailure) {
  Start();
  ClaimAllEmpty();
  AnswerLoadFailed(1, /*checkpoint_is_bad=*/false, "no room for 3 TiB");
  EXPECT_THAT(TakeEvents(), ElementsAre(AllOf(HasSubstr("failed: "), HasSubstr("3 TiB"))));
}

// What a ps that was started again says to a Load for its former life.
TEST_F(PsFleetTest, ALoadForAnotherLifeStartsAllOver) {
  Start();
  ClaimAllEmpty();
  const uint64_t term = fleet_->term();
  proto::ControlReply reply;
  reply.mutable_load_failed()->set_term(term);
  reply.mutable_load_failed()->set_other_incarnation(true);
  ps(1).Send(reply);
  loop_.RunUntilIdle();
  EXPECT_THAT(TakeEvents(), IsEmpty());
  EXPECT_EQ(fleet_->phase(), PsFleet::Phase::kClaiming);
  EXPECT_GT(fleet_->term(), term);
}

TEST_F(PsFleetTest, ALoadThatIsNeverForThatLifeIsTriedMoreAndMoreRarely) {
  Start();
  SendHello(0);
  SendHello(1);
  const uint32_t first = TermNumber(fleet_->term());
  for (int i = 0; i < 1000; ++i) {
    for (int each = 0; each < kPsCount; ++each) {
      for (const proto::ControlRequest& request : ps(each).Take<proto::ControlRequest>()) {
        proto::ControlReply reply;
        if (request.has_claim()) reply.mutable_claimed()->set_promised_term(request.term());
        if (request.has_load()) {
          reply.mutable_load_failed()->set_term(request.term());
          reply.mutable_load_failed()->set_other_incarnation(true);
        }
        ps(each).Send(reply);
      }
    }
    loop_.Advance(milliseconds(10));
  }
  // 10 s: six pauses of up to a second in all, then one a second or two.
  EXPECT_GT(TermNumber(fleet_->term()), first + 5);
  EXPECT_LT(TermNumber(fleet_->term()), first + 30);
}

TEST_F(PsFleetTest, AClaimThatIsAlwaysOutbidIsTriedMoreAndMoreRarely) {
  Start();
  SendHello(0);
  const uint32_t first = TermNumber(fleet_->term());
  uint64_t rejected = 0;
  for (int i = 0; i < 1000; ++i) {
    if (fleet_->term() != rejected) {
      rejected = fleet_->term();
      RejectTerm(0, MakeTerm(TermNumber(rejected), 999));
    }
    loop_.Advance(milliseconds(10));
  }
  EXPECT_GT(TermNumber(fleet_->term()), first + 5);
  EXPECT_LT(TermNumber(fleet_->term()), first + 30);
}

TEST_F(PsFleetTest, AfterATimelineThatLastedTheNextClaimIsSentAtOnce) {
  Lead();
  fleet_->ClaimAgain("this one did not last");
  for (int i = 0; i < kPsCount; ++i) AnswerClaim(i);
  for (int i = 0; i < kPsCount; ++i) AnswerLoaded(i, fleet_->term());
  ASSERT_EQ(fleet_->phase(), PsFleet::Phase::kLeading);
  loop_.Advance(seconds(2));
  const uint64_t term = fleet_->term();
  fleet_->ClaimAgain("this one lasted");
  EXPECT_GT(fleet_->term(), term);
}

TEST_F(PsFleetTest, ALostStreamWhileLoadingGetsTheLoadAgain) {
  Start();
  ClaimAllEmpty();
  TakeLoad(0);
  ps(0).Close(absl::UnavailableError("reset"));
  loop_.Advance(seconds(1));
  SendHello(0, {.incarnation = 10, .promised = fleet_->term()});
  EXPECT_EQ(TakeLoad(0).term(), fleet_->term());
  AnswerLoaded(0, fleet_->term());
  AnswerLoaded(1, fleet_->term());
  EXPECT_THAT(TakeEvents(), ElementsAre("opened"));
}

TEST_F(PsFleetTest, APsStartedAnewWhileLoadingMeansAFreshTerm) {
  Start();
  ClaimAllEmpty();
  const uint64_t term = fleet_->term();
  AnswerLoaded(1, term);
  ps(0).Close(absl::UnavailableError("reset"));
  loop_.Advance(seconds(1));
  SendHello(0, {.incarnation = 77});
  EXPECT_GT(fleet_->term(), term);
  AnswerClaim(0);
  AnswerClaim(1, {.timeline = term});
  EXPECT_EQ(TakeLoad(0).load().incarnation(), 77u);
  EXPECT_EQ(TakeLoad(1).term(), fleet_->term());
}

// --- The store has the end already ---------------------------------------------------------------

TEST_F(PsFleetTest, AFinishedJobIsFoundWhileAPsIsSilent) {
  Start();
  SendHello(0);
  loop_.Advance(seconds(3));
  EXPECT_THAT(TakeEvents(), IsEmpty());
  WriteSmallCheckpoint(&store_, MakeTerm(1, 1), 60);
  loop_.Advance(seconds(1));
  EXPECT_THAT(TakeEvents(), IsEmpty()) << "not the end";
  WriteSmallCheckpoint(&store_, MakeTerm(1, 1), 100);  // of 100 steps
  loop_.Advance(seconds(1));
  EXPECT_THAT(TakeEvents(), ElementsAre("finished step-000000000100-1-00000001"));
}

TEST_F(PsFleetTest, AFinishedJobNeedsNoPs) {
  WriteSmallCheckpoint(&store_, MakeTerm(1, 1), 100);
  Start();
  EXPECT_THAT(TakeEvents(), ElementsAre("finished step-000000000100-1-00000001"));
}

// Its predecessor has ended the job after this one took over, and the workers have left.
TEST_F(PsFleetTest, AFinishedJobIsFoundInOfficeWhileNobodyTrains) {
  Lead();
  WriteSmallCheckpoint(&store_, MakeTerm(1, 1), 100);
  loop_.Advance(seconds(2));
  EXPECT_THAT(TakeEvents(), IsEmpty());
  nobody_trains_ = true;
  loop_.Advance(seconds(1));
  EXPECT_THAT(TakeEvents(), ElementsAre("finished step-000000000100-1-00000001"));
}

TEST_F(PsFleetTest, AnEndThatIsDamagedIsReadOnce) {
  const StoredCheckpoint end = WriteSmallCheckpoint(&store_, MakeTerm(1, 1), 100);
  for (const std::string& name : NamesIn(end.directory))
    if (name.ends_with(".safetensors")) WriteAll(end.directory + "/" + name, "damaged");
  files_.values_read = 0;
  testing::internal::CaptureStderr();
  Start();
  SendHello(0);
  loop_.Advance(seconds(1));
  const int read = files_.values_read;
  EXPECT_GT(read, 0);
  loop_.Advance(seconds(600));
  EXPECT_EQ(files_.values_read, read);
  FlushLog(std::chrono::minutes(1));
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr(end.directory));
  EXPECT_THAT(TakeEvents(), IsEmpty());
  WriteSmallCheckpoint(&store_, MakeTerm(2, 1), 100);
  loop_.Advance(seconds(1));
  EXPECT_THAT(TakeEvents(), ElementsAre("finished step-000000000100-2-00000001"));
}

TEST_F(PsFleetTest, AnEndOnADiskThatFailsIsReadAgainAfterAPause) {
  WriteSmallCheckpoint(&store_, MakeTerm(1, 1), 100);
  files_.broken = true;
  Start();
  loop_.Advance(seconds(1));
  files_.values_read = 0;
  loop_.Advance(seconds(5));
  EXPECT_EQ(files_.values_read, 0);
  files_.broken = false;
  auto events = TakeEvents();
  for (int second = 0; second < 60 && events.empty(); ++second) {
    loop_.Advance(seconds(1));
    events = TakeEvents();
  }
  EXPECT_THAT(events, ElementsAre("finished step-000000000100-1-00000001"));
}

}  // namespace
}  // namespace shoal
