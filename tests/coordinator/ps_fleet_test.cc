#include "coordinator/ps_fleet.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/base/term.h"
#include "common/daemon/version.h"
#include "tests/common/base/temporary_directory.h"
#include "tests/common/checkpoint/small_checkpoint.h"
#include "tests/fakes/fake_loop.h"
#include "tests/fakes/fake_network.h"

namespace shoal {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr uint32_t kCoordinator = 50;  // its id; also decides the pause between two claims
constexpr int kPsCount = 2;
constexpr uint32_t kShardMap = 0x5a5a5a5a;

uint32_t JobFingerprint() { return SmallManifest(0, 0).job_fingerprint; }

class PsFleetTest : public testing::Test {
 protected:
  void Start() {
    fleet_ = std::make_unique<PsFleet>(PsFleet::Options{
        .loop = &loop_,
        .network = &network_,
        .store = &store_,
        .addresses = {"ps-0:1", "ps-1:1"},
        .job_text = "the job",
        .job_fingerprint = fingerprint_,
        .shard_map_fingerprint = kShardMap,
        .coordinator_id = kCoordinator,
        .on_opened =
            [this](const PsFleet::Opened& opened) {
              opened_.push_back(opened);
              events_.push_back("opened");
            },
        .on_over =
            [this](const std::string& why) { events_.push_back(absl::StrCat("over: ", why)); },
        .on_job_finished =
            [this](const StoredCheckpoint& checkpoint) {
              events_.push_back(absl::StrCat("finished ", NameOf(checkpoint.directory)));
            },
        .nobody_trains = [this] { return nobody_trains_; },
        .on_reply =
            [this](int ps, const proto::ControlReply& reply) {
              events_.push_back(absl::StrCat("reply ", ps, " ", reply.kind_case()));
            },
        .on_reconnected = [this](int ps) { events_.push_back(absl::StrCat("reconnected ", ps)); },
        .on_failed =
            [this](const absl::Status& status) {
              events_.push_back(absl::StrCat("failed: ", std::string(status.message())));
            }});
    fleet_->Start();
    loop_.RunUntilIdle();
  }

  static std::string NameOf(const std::string& directory) {
    return directory.substr(directory.rfind('/') + 1);
  }
  static std::string AddressOf(int ps) { return absl::StrCat("ps-", ps, ":1"); }
  FarEnd& ps(int index) { return network_.Newest(AddressOf(index)); }

  struct Hello {
    uint64_t incarnation = 1;
    uint64_t promised = 0;
    std::optional<uint32_t> index;
    std::string version = kVersion;
  };
  void SayHello(int index, const Hello& hello) {
    proto::ControlReply reply;
    reply.mutable_hello()->set_incarnation(hello.incarnation);
    reply.mutable_hello()->set_promised_term(hello.promised);
    reply.mutable_hello()->set_index(hello.index.value_or(index));
    reply.mutable_hello()->set_version(hello.version);
    ps(index).Send(reply);
    loop_.RunUntilIdle();
  }
  void SayHello(int index) { SayHello(index, Hello()); }
  struct Applied {
    uint64_t timeline = 0;
    uint64_t base = 0;
    std::vector<uint64_t> after_base = {};
    uint32_t job = JobFingerprint();
    uint32_t shard_map = kShardMap;
  };
  // The answer to the newest claim.
  void AnswerClaim(int index, const Applied& applied) {
    uint64_t term = 0;
    for (const proto::ControlRequest& request : ps(index).Take<proto::ControlRequest>()) {
      if (request.has_claim()) term = request.term();
    }
    EXPECT_NE(term, 0u) << "ps " << index << " was not claimed";
    proto::ControlReply reply;
    proto::Claimed* claimed = reply.mutable_claimed();
    claimed->set_promised_term(term);
    claimed->set_timeline(applied.timeline);
    claimed->set_job_fingerprint(applied.timeline == 0 ? 0 : applied.job);
    claimed->set_shard_map_fingerprint(applied.timeline == 0 ? 0 : applied.shard_map);
    claimed->set_base(applied.base);
    for (const uint64_t step : applied.after_base) claimed->add_applied_after_base(step);
    ps(index).Send(reply);
    loop_.RunUntilIdle();
  }
  void AnswerClaim(int index) { AnswerClaim(index, Applied()); }
  void RefuseTerm(int index, uint64_t promised) {
    proto::ControlReply reply;
    reply.mutable_term_refused()->set_promised_term(promised);
    ps(index).Send(reply);
    loop_.RunUntilIdle();
  }
  // The Load that was sent to a ps, which must be the only one.
  proto::ControlRequest TakeLoad(int index) {
    std::vector<proto::ControlRequest> loads;
    for (const proto::ControlRequest& request : ps(index).Take<proto::ControlRequest>()) {
      if (request.has_load()) loads.push_back(request);
    }
    EXPECT_EQ(loads.size(), 1u) << "ps " << index;
    return loads.empty() ? proto::ControlRequest() : loads[0];
  }
  // What a ps gets that asks for the first element of the first variable.
  proto::Rows WantRows(int index) {
    ps(index).Take<proto::ControlRequest>();
    proto::ControlReply reply;
    reply.mutable_rows_wanted()->set_term(fleet_->term());
    reply.mutable_rows_wanted()->set_tensor(SmallVariables()[0].name);
    reply.mutable_rows_wanted()->set_size_bytes(sizeof(float));
    ps(index).Send(reply);
    loop_.RunUntilIdle();
    const auto requests = ps(index).Take<proto::ControlRequest>();
    EXPECT_EQ(requests.size(), 1u);
    return requests.empty() ? proto::Rows() : requests[0].rows();
  }
  void AnswerLoaded(int index, uint64_t timeline) {
    proto::ControlReply reply;
    reply.mutable_loaded()->set_timeline(timeline);
    ps(index).Send(reply);
    loop_.RunUntilIdle();
  }
  void AnswerLoadFailed(int index, bool checkpoint_is_bad, const std::string& reason) {
    proto::ControlReply reply;
    reply.mutable_load_failed()->set_term(fleet_->term());
    reply.mutable_load_failed()->set_reason(reason);
    reply.mutable_load_failed()->set_checkpoint_is_bad(checkpoint_is_bad);
    ps(index).Send(reply);
    loop_.RunUntilIdle();
  }
  // All ps are empty and answer; the fleet sends Loads.
  void ClaimAllEmpty() {
    for (int i = 0; i < kPsCount; ++i) SayHello(i, {.incarnation = uint64_t{10} + i});
    for (int i = 0; i < kPsCount; ++i) AnswerClaim(i);
  }
  // In office, in a timeline that was loaded.
  void Lead() {
    Start();
    ClaimAllEmpty();
    for (int i = 0; i < kPsCount; ++i) AnswerLoaded(i, fleet_->term());
    ASSERT_EQ(fleet_->phase(), PsFleet::Phase::kLeading);
    for (int i = 0; i < kPsCount; ++i) ps(i).Take<proto::ControlRequest>();
    TakeEvents();
  }
  std::vector<std::string> TakeEvents() { return std::exchange(events_, {}); }

  TemporaryDirectory directory_;
  CheckpointStore store_{directory_.path()};
  uint32_t fingerprint_ = JobFingerprint();
  bool nobody_trains_ = false;
  FakeLoop loop_;
  FakeNetwork network_{&loop_};
  std::vector<std::string> events_;
  std::vector<PsFleet::Opened> opened_;
  std::unique_ptr<PsFleet> fleet_;
};

// --- Claiming ------------------------------------------------------------------------------------

TEST_F(PsFleetTest, ClaimsEveryPsUnderOneFreshTerm) {
  Start();
  EXPECT_EQ(fleet_->term(), MakeTerm(1, kCoordinator));
  SayHello(0);
  SayHello(1);
  for (int i = 0; i < kPsCount; ++i) {
    const auto requests = ps(i).Take<proto::ControlRequest>();
    ASSERT_EQ(requests.size(), 1u);
    EXPECT_TRUE(requests[0].has_claim());
    EXPECT_EQ(requests[0].claim().version(), kVersion);
    EXPECT_EQ(requests[0].term(), MakeTerm(1, kCoordinator));
  }
  EXPECT_EQ(fleet_->phase(), PsFleet::Phase::kClaiming);
  EXPECT_THAT(TakeEvents(), IsEmpty());
}

TEST_F(PsFleetTest, ItsTermIsAboveEveryStoredTimeline) {
  WriteSmallCheckpoint(&store_, MakeTerm(7, 999), 20);
  WriteSmallCheckpoint(&store_, MakeTerm(3, 1), 40);
  Start();
  EXPECT_EQ(fleet_->term(), MakeTerm(8, kCoordinator));
}

TEST_F(PsFleetTest, WaitsForEveryPs) {
  Start();
  SayHello(0);
  AnswerClaim(0);
  loop_.Advance(seconds(30));
  EXPECT_EQ(fleet_->phase(), PsFleet::Phase::kClaiming);
  EXPECT_THAT(TakeEvents(), IsEmpty());
}

TEST_F(PsFleetTest, ItsWaitingLinesNameThePs) {
  Start();
  SayHello(0);
  loop_.Advance(seconds(4));
  EXPECT_THAT(fleet_->Waiting(),
              ElementsAre("ps 0 at ps-0:1: has not answered the claim since 4 s",
                          "ps 1 at ps-1:1: not reachable since 4 s (connecting)"));
  ps(1).Close(absl::UnavailableError("connection refused"));
  loop_.RunUntilIdle();
  AnswerClaim(0);
  EXPECT_THAT(fleet_->Waiting(),
              ElementsAre("ps 1 at ps-1:1: not reachable since 4 s (connection refused)"));
  loop_.Advance(seconds(2));
  SayHello(1);
  loop_.set_hold_offloads(true);
  AnswerClaim(1);
  EXPECT_THAT(fleet_->Waiting(), ElementsAre("verifying checkpoints since 0 s"));
  loop_.set_hold_offloads(false);
  loop_.Advance(seconds(3));
  AnswerLoaded(0, fleet_->term());
  EXPECT_THAT(fleet_->Waiting(), ElementsAre("ps 1 at ps-1:1: loading its variables since 3 s"));
  AnswerLoaded(1, fleet_->term());
  EXPECT_THAT(fleet_->Waiting(), IsEmpty());
}

TEST_F(PsFleetTest, OutbidWhileClaimingItTakesAHigherTerm) {
  Start();
  SayHello(0);
  SayHello(1);
  RefuseTerm(0, MakeTerm(6, 999));
  RefuseTerm(1, MakeTerm(4, 999));
  EXPECT_EQ(fleet_->term(), MakeTerm(1, kCoordinator)) << "after a pause";
  loop_.Advance(milliseconds(20 + kCoordinator));
  EXPECT_EQ(fleet_->term(), MakeTerm(7, kCoordinator));
  AnswerClaim(0);
  AnswerClaim(1);
  EXPECT_EQ(fleet_->phase(), PsFleet::Phase::kLoading);
  EXPECT_THAT(TakeEvents(), IsEmpty());
}

TEST_F(PsFleetTest, AHelloThatHasPromisedMoreIsOutbidToo) {
  Start();
  SayHello(0, {.promised = MakeTerm(9, 1)});
  loop_.Advance(seconds(1));
  EXPECT_EQ(fleet_->term(), MakeTerm(10, kCoordinator));
}

TEST_F(PsFleetTest, ARefusalOfAnOlderClaimOfItsOwnIsNoNews) {
  Start();
  SayHello(0);
  RefuseTerm(0, MakeTerm(5, 1));
  loop_.Advance(seconds(1));
  const uint64_t term = fleet_->term();
  RefuseTerm(0, MakeTerm(5, 1));
  RefuseTerm(0, term);
  loop_.Advance(seconds(1));
  EXPECT_EQ(fleet_->term(), term);
}

// Between a refusal and the next claim a ps may be started anew and accept the old claim: it is
// void.
TEST_F(PsFleetTest, AnOutbidClaimDoesNotCountAnyMore) {
  Start();
  SayHello(0);
  SayHello(1);
  AnswerClaim(1);
  RefuseTerm(0, MakeTerm(6, 999));
  AnswerClaim(0);  // of the term that was refused
  EXPECT_EQ(fleet_->phase(), PsFleet::Phase::kClaiming);
  loop_.Advance(seconds(1));
  EXPECT_EQ(fleet_->term(), MakeTerm(7, kCoordinator));
  AnswerClaim(0);
  AnswerClaim(1);
  EXPECT_EQ(fleet_->phase(), PsFleet::Phase::kLoading);
}

TEST_F(PsFleetTest, AnAnswerToAnEarlierTermDoesNotCount) {
  Start();
  SayHello(0);
  SayHello(1);
  proto::ControlReply stale;
  stale.mutable_claimed()->set_promised_term(fleet_->term());
  RefuseTerm(0, MakeTerm(6, 999));
  loop_.Advance(seconds(1));
  AnswerClaim(0);
  ps(1).Send(stale);
  loop_.RunUntilIdle();
  EXPECT_EQ(fleet_->phase(), PsFleet::Phase::kClaiming);
}

TEST_F(PsFleetTest, AProcessOfAnotherIndexIsAMistakeInTheClusterSpec) {
  Start();
  SayHello(1, {.index = 0});
  EXPECT_THAT(TakeEvents(),
              ElementsAre(AllOf(HasSubstr("failed: the process at ps-1:1 says it is ps 0"),
                                HasSubstr("has ps 1 there"))));
  loop_.Advance(seconds(10));
  EXPECT_EQ(network_.opened().size(), size_t{kPsCount}) << "it gives up";
}

TEST_F(PsFleetTest, AnotherVersionIsNamed) {
  Start();
  SayHello(1, {.version = "9.8.7"});
  EXPECT_THAT(TakeEvents(), ElementsAre(AllOf(HasSubstr("ps 1 at ps-1:1"), HasSubstr("9.8.7"),
                                              HasSubstr(kVersion))));
}

// --- Adopting ------------------------------------------------------------------------------------

TEST_F(PsFleetTest, AdoptsTheTimelineThatAllAreIn) {
  const uint64_t timeline = MakeTerm(3, 9);
  WriteSmallCheckpoint(&store_, timeline, 40);
  Start();
  SayHello(0);
  SayHello(1);
  AnswerClaim(0, {.timeline = timeline, .base = 50, .after_base = {52, 53, 57}});
  AnswerClaim(1, {.timeline = timeline, .base = 53, .after_base = {54, 57, 60}});
  EXPECT_THAT(TakeEvents(), ElementsAre("opened"));
  EXPECT_EQ(fleet_->phase(), PsFleet::Phase::kLeading);
  EXPECT_EQ(fleet_->timeline(), timeline);
  const PsFleet::Opened& opened = opened_[0];
  EXPECT_EQ(opened.timeline, timeline);
  EXPECT_TRUE(opened.adopted);
  EXPECT_EQ(opened.base, 50u);
  EXPECT_THAT(opened.done_after_base, ElementsAre(52, 57)) << "what is applied on both";
  EXPECT_EQ(opened.checkpoint, "");
  EXPECT_THAT(ps(0).Take<proto::ControlRequest>(), IsEmpty()) << "nothing is loaded";
}

// One that holds nothing trainable says that it has everything; nonsense costs neither time nor
// memory.
TEST_F(PsFleetTest, AdoptsAPsThatHasNothingToApply) {
  Start();
  SayHello(0);
  SayHello(1);
  AnswerClaim(0, {.timeline = 5, .base = 0, .after_base = {UINT64_MAX}});
  AnswerClaim(1, {.timeline = 5, .base = UINT64_MAX, .after_base = {}});
  EXPECT_THAT(TakeEvents(), ElementsAre("opened"));
  EXPECT_EQ(opened_[0].base, 0u);
  EXPECT_THAT(opened_[0].done_after_base, IsEmpty());
}

TEST_F(PsFleetTest, APsOfAnotherJobIsRefusedWithBothFingerprints) {
  Start();
  SayHello(0);
  SayHello(1);
  AnswerClaim(0);
  AnswerClaim(1, {.timeline = 5, .job = 0xabcdef01});
  EXPECT_THAT(TakeEvents(),
              ElementsAre(AllOf(HasSubstr("ps 1 at ps-1:1"), HasSubstr("another job"),
                                HasSubstr("abcdef01"), HasSubstr(ChecksumText(JobFingerprint())))));
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
  SayHello(0);
  SayHello(1);
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

TEST_F(PsFleetTest, ATimelineOfAnotherNumberOfPsIsNotAdopted) {
  const StoredCheckpoint newest = WriteSmallCheckpoint(&store_, MakeTerm(2, 1), 40);
  Start();
  SayHello(0);
  SayHello(1);
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
  std::string content = ReadAll(file);
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
              ElementsAre(AllOf(HasSubstr("failed: no checkpoint of this job can be read"),
                                HasSubstr(NameOf(only.directory)), HasSubstr("--run_dir"))));
}

TEST_F(PsFleetTest, ACheckpointOfAnotherJobIsNotLoaded) {
  const StoredCheckpoint checkpoint = WriteSmallCheckpoint(&store_, MakeTerm(1, 1), 40);
  fingerprint_ = 0x12345678;
  Start();
  ClaimAllEmpty();
  EXPECT_THAT(TakeEvents(), ElementsAre(AllOf(HasSubstr(checkpoint.directory),
                                              HasSubstr("is a checkpoint of another job (small)"),
                                              HasSubstr("--run_dir"))));
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
  std::string content = ReadAll(file);
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
  for (int i = 0; i < kPsCount; ++i) AnswerLoaded(i, fleet_->term());
  EXPECT_THAT(TakeEvents(), ElementsAre("opened"));
  EXPECT_EQ(opened_[0].checkpoint, newest.directory);
}

TEST_F(PsFleetTest, AllCheckpointsBadIsAFailure) {
  WriteSmallCheckpoint(&store_, MakeTerm(1, 1), 40);
  Start();
  ClaimAllEmpty();
  AnswerLoadFailed(0, true, "rotten");
  AnswerClaim(0);
  AnswerClaim(1);
  EXPECT_THAT(TakeEvents(),
              ElementsAre(HasSubstr("failed: no checkpoint of this job can be read")));
}

TEST_F(PsFleetTest, AJobThatAPsCannotLoadIsAFailure) {
  Start();
  ClaimAllEmpty();
  AnswerLoadFailed(1, /*checkpoint_is_bad=*/false, "no room for 3 TiB");
  EXPECT_THAT(TakeEvents(), ElementsAre("failed: a ps cannot load the job: no room for 3 TiB"));
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

TEST_F(PsFleetTest, ALostStreamWhileLoadingGetsTheLoadAgain) {
  Start();
  ClaimAllEmpty();
  TakeLoad(0);
  ps(0).Close(absl::UnavailableError("reset"));
  loop_.Advance(seconds(1));
  SayHello(0, {.incarnation = 10, .promised = fleet_->term()});
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
  SayHello(0, {.incarnation = 77});
  EXPECT_GT(fleet_->term(), term);
  AnswerClaim(0);
  AnswerClaim(1, {.timeline = term});
  EXPECT_EQ(TakeLoad(0).load().incarnation(), 77u);
  EXPECT_EQ(TakeLoad(1).term(), fleet_->term());
}

// --- The store has the end already ---------------------------------------------------------------

TEST_F(PsFleetTest, AFinishedJobIsFoundWhileAPsIsSilent) {
  Start();
  SayHello(0);
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

// --- In office -----------------------------------------------------------------------------------

TEST_F(PsFleetTest, ProbesEverySecond) {
  Lead();
  loop_.Advance(milliseconds(3500));
  for (int i = 0; i < kPsCount; ++i) {
    const auto probes = ps(i).Take<proto::ControlRequest>();
    EXPECT_EQ(probes.size(), 3u);
    for (const proto::ControlRequest& probe : probes) EXPECT_EQ(probe.term(), fleet_->term());
  }
}

TEST_F(PsFleetTest, AProbesAnswerKeepsTheNumbersFresh) {
  Lead();
  loop_.Advance(seconds(1));
  AnswerClaim(1, {.timeline = fleet_->timeline(), .base = 12});
  EXPECT_EQ(fleet_->peer(1).claimed->base(), 12u);
  EXPECT_THAT(TakeEvents(), IsEmpty());
}

TEST_F(PsFleetTest, FencedOffByANewerTermItFails) {
  Lead();
  RefuseTerm(1, MakeTerm(8, 0xbad));
  const auto events = TakeEvents();
  ASSERT_EQ(events.size(), 1u);
  EXPECT_THAT(events[0],
              AllOf(HasSubstr("failed: fenced off by term " + TermText(MakeTerm(8, 0xbad))),
                    HasSubstr(TermText(fleet_->term()))));
  loop_.Advance(seconds(5));
  EXPECT_EQ(network_.opened().size(), size_t{kPsCount}) << "it leaves the ps alone";
  EXPECT_TRUE(ps(0).gone());
}

TEST_F(PsFleetTest, FencedOffByAHelloItFailsToo) {
  Lead();
  ps(0).Close(absl::UnavailableError("reset"));
  loop_.Advance(seconds(1));
  SayHello(0, {.incarnation = 10, .promised = MakeTerm(8, 1)});
  EXPECT_THAT(TakeEvents(), ElementsAre(HasSubstr("failed: fenced off")));
}

TEST_F(PsFleetTest, APsThatComesBackWithItsVariablesIsNoLoss) {
  Lead();
  ps(0).Close(absl::UnavailableError("reset"));
  loop_.Advance(seconds(1));
  SayHello(0, {.incarnation = 10, .promised = fleet_->term()});
  EXPECT_THAT(TakeEvents(), ElementsAre("reconnected 0"));
  AnswerClaim(0, {.timeline = fleet_->timeline(), .base = 3});
  EXPECT_THAT(TakeEvents(), IsEmpty());
  EXPECT_EQ(fleet_->phase(), PsFleet::Phase::kLeading);
}

TEST_F(PsFleetTest, APsStartedAnewStartsAllOverUnderAFreshTerm) {
  Lead();
  const StoredCheckpoint checkpoint = WriteSmallCheckpoint(&store_, fleet_->timeline(), 40);
  const uint64_t timeline = fleet_->timeline();
  ps(1).Close(absl::UnavailableError("reset"));
  loop_.Advance(seconds(1));
  ps(0).Take<proto::ControlRequest>();
  SayHello(1, {.incarnation = 99});
  EXPECT_THAT(TakeEvents(), ElementsAre("over: ps 1 was started again and has lost its variables"));
  EXPECT_EQ(fleet_->timeline(), 0u);
  AnswerClaim(0, {.timeline = timeline, .base = 55});
  AnswerClaim(1);
  for (int i = 0; i < kPsCount; ++i) {
    EXPECT_EQ(TakeLoad(i).load().checkpoint(), checkpoint.directory);
    AnswerLoaded(i, fleet_->term());
  }
  EXPECT_THAT(TakeEvents(), ElementsAre("opened"));
  EXPECT_GT(opened_.back().timeline, timeline);
  EXPECT_EQ(opened_.back().base, 40u);
}

TEST_F(PsFleetTest, AnUnexpectedTimelineStartsAllOverToo) {
  Lead();
  loop_.Advance(seconds(1));
  AnswerClaim(0, {.timeline = 0});
  EXPECT_THAT(TakeEvents(), ElementsAre(HasSubstr("over: ps 0 is in timeline ")));
  EXPECT_EQ(fleet_->phase(), PsFleet::Phase::kClaiming);
}

TEST_F(PsFleetTest, SendsWithItsTermAndPassesAnswersOn) {
  Lead();
  proto::ControlRequest request;
  request.mutable_fence()->set_cut_step(5);
  fleet_->Broadcast(request);
  fleet_->Send(1, request);
  EXPECT_EQ(ps(0).Take<proto::ControlRequest>().size(), 1u);
  const auto sent = ps(1).Take<proto::ControlRequest>();
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_EQ(sent[1].term(), fleet_->term());
  EXPECT_EQ(sent[1].fence().cut_step(), 5u);
  proto::ControlReply reply;
  reply.mutable_fence_accepted()->set_cut_step(5);
  ps(1).Send(reply);
  loop_.RunUntilIdle();
  EXPECT_THAT(TakeEvents(), ElementsAre("reply 1 5"));
}

TEST_F(PsFleetTest, AFreshTermInOfficeKeepsTheTimeline) {
  Lead();
  const uint64_t timeline = fleet_->timeline(), term = fleet_->term();
  fleet_->RenewTerm();
  EXPECT_GT(fleet_->term(), term);
  EXPECT_EQ(fleet_->timeline(), timeline);
  for (int i = 0; i < kPsCount; ++i) AnswerClaim(i, {.timeline = timeline, .base = 7});
  RefuseTerm(0, fleet_->term());  // the answer to something sent under the former one
  EXPECT_THAT(TakeEvents(), IsEmpty());
  EXPECT_EQ(fleet_->phase(), PsFleet::Phase::kLeading);
  // The next timeline has a term of its own again.
  loop_.Advance(seconds(1));
  const uint64_t renewed = fleet_->term();
  AnswerClaim(0);
  EXPECT_GT(fleet_->term(), renewed);
}

TEST_F(PsFleetTest, NothingHappensAfterClose) {
  Lead();
  fleet_->Close();
  loop_.Advance(seconds(10));
  EXPECT_EQ(network_.opened().size(), size_t{kPsCount});
  EXPECT_TRUE(ps(0).gone());
  EXPECT_THAT(TakeEvents(), IsEmpty());
}

TEST_F(PsFleetTest, MayBeDestroyedWhileTheStoreIsRead) {
  loop_.set_hold_offloads(true);
  Start();
  fleet_.reset();
  loop_.set_hold_offloads(false);
  loop_.Advance(seconds(10));
  EXPECT_THAT(network_.opened(), IsEmpty());
}

}  // namespace
}  // namespace shoal
