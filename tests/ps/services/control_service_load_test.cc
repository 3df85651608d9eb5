// Loads: rule 3 of the protocol.
#include <gmock/gmock.h>

#include <cerrno>
#include <filesystem>
#include <memory>
#include <string>

#include "common/checkpoint/manifest.h"
#include "common/files/durable_file.h"
#include "tests/common/base/temporary_directory.h"
#include "tests/fakes/passing_file_system.h"
#include "tests/ps/parameter_server_fixture.h"

namespace shoal {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::Gt;
using testing::HasSubstr;

class ControlServiceLoadTest : public ParameterServerTest {};

// A disk that fails to read the files of checkpoints.
class FailingCheckpointDisk : public PassingFileSystem {
 public:
  absl::StatusOr<std::unique_ptr<File>> Open(const std::string& path, Mode mode) override {
    if (path.find("/checkpoints/") != std::string::npos) return FileError(EIO, "read", path);
    return PassingFileSystem::Open(path, mode);
  }
};

TEST_F(ControlServiceLoadTest, ALoadForAnotherIncarnationIsRejected) {
  Client control = ConnectCoordinator(kTerm);
  proto::ControlRequest load = Load(kTerm, job_.ResolvedText());
  load.mutable_load()->set_incarnation(kIncarnation + 1);
  const proto::ControlReply reply = Ask(control, load);
  EXPECT_EQ(reply.load_failed().term(), kTerm);
  EXPECT_FALSE(reply.load_failed().checkpoint_is_bad());
  EXPECT_TRUE(reply.load_failed().other_incarnation());
  EXPECT_THAT(reply.load_failed().reason(), HasSubstr("incarnation"));
  EXPECT_EQ(server_->timeline(), 0u);
}

TEST_F(ControlServiceLoadTest, RepeatedLoadIsAnsweredAndChangesNothing) {
  Client control = ConnectControl();
  LoadJob(control, kTerm);
  Client worker = ConnectWorker();
  PushStep(worker, kTerm, 0);
  const std::vector<float> values = Values(worker, kTerm, 0);
  EXPECT_EQ(Ask(control, Load(kTerm, job_.ResolvedText())).loaded().timeline(), kTerm);
  EXPECT_EQ(Values(worker, kTerm, 0), values);
}

TEST_F(ControlServiceLoadTest, ARepeatedLoadIsAnsweredOnceOnTheLastStream) {
  Client first = ConnectCoordinator(kTerm);
  Client second = ConnectCoordinator(kTerm);
  SendOnly(first, Load(kTerm, job_.ResolvedText()));
  SendOnly(second, Load(kTerm, job_.ResolvedText()));
  EXPECT_EQ(server_->timeline(), 0u);
  EXPECT_TRUE(loop_->RunOneOffloaded());
  EXPECT_FALSE(loop_->RunOneOffloaded()) << "read twice";
  EXPECT_TRUE(first.quiet());
  EXPECT_EQ(second.Take<proto::ControlReply>().loaded().timeline(), kTerm);
  EXPECT_EQ(server_->timeline(), kTerm);
}

TEST_F(ControlServiceLoadTest, NewerLoadSupersedesTheOneBeingRead) {
  Client control = ConnectCoordinator(kTerm);
  SendOnly(control, Load(kTerm, job_.ResolvedText()));
  ClaimWith(control, kTerm + 1);
  SendOnly(control, Load(kTerm + 1, job_.ResolvedText()));
  loop_->RunUntilIdle();
  EXPECT_EQ(control.Take<proto::ControlReply>().loaded().timeline(), kTerm + 1);
  EXPECT_TRUE(control.quiet());
  EXPECT_EQ(server_->timeline(), kTerm + 1);
}

// A Load carries a job, whose text may have many megabytes.
TEST_F(ControlServiceLoadTest, DuringALoadOnlyTheNewestOneWaits) {
  Client control = ConnectControl();
  loop_->set_hold_offloads(true);
  for (uint64_t i = 0; i < 40; ++i) {
    ClaimWith(control, kTerm + i);
    SendOnly(control, Load(kTerm + i, job_.ResolvedText()));
  }
  EXPECT_TRUE(loop_->RunOneOffloaded());
  EXPECT_TRUE(loop_->RunOneOffloaded());
  EXPECT_FALSE(loop_->RunOneOffloaded());
  EXPECT_EQ(control.Take<proto::ControlReply>().loaded().timeline(), kTerm + 39);
  EXPECT_TRUE(control.quiet());
}

TEST_F(ControlServiceLoadTest, ClaimDuringALoadEndsIt) {
  Client old = ConnectCoordinator(kTerm);
  Client next = ConnectControl();
  SendOnly(old, Load(kTerm, job_.ResolvedText()));
  SendOnly(next, Claim(kTerm + 1));
  EXPECT_EQ(next.Take<proto::ControlReply>().claimed().timeline(), 0u);
  loop_->RunUntilIdle();
  EXPECT_EQ(old.Take<proto::ControlReply>().term_rejected().promised_term(), kTerm + 1);
  EXPECT_EQ(server_->timeline(), 0u);
}

TEST_F(ControlServiceLoadTest, OwnProbeDuringALoadDoesNotEndIt) {
  Client control = ConnectCoordinator(kTerm);
  SendOnly(control, Load(kTerm, job_.ResolvedText()));
  SendOnly(control, Claim(kTerm));
  EXPECT_EQ(control.Take<proto::ControlReply>().claimed().timeline(), 0u);
  loop_->RunUntilIdle();
  EXPECT_EQ(control.Take<proto::ControlReply>().loaded().timeline(), kTerm);
}

TEST_F(ControlServiceLoadTest, AFailedLoadLeavesThePsEmptyAndSaysWhy) {
  Client control = ConnectControl();
  LoadJob(control, kTerm);
  struct Case {
    proto::ControlRequest load;
    std::string reason;
    bool checkpoint_is_bad;
  };
  Job no_model = job_;
  no_model.model_json = R"({"class_name": "Nothing"})";
  const std::string job = job_.ResolvedText();
  const TemporaryDirectory run;
  const std::string damaged = run / "checkpoints/step-1";
  std::filesystem::create_directories(damaged);
  ASSERT_TRUE(WriteNewFile(damaged + "/" + kManifestName, "{").ok());
  for (const auto& [load, reason, checkpoint_is_bad] :
       {Case{Load(kTerm + 1, "not JSON"), "the job", false},
        Case{Load(kTerm + 2, no_model.ResolvedText()), "Nothing", false},
        Case{Load(kTerm + 3, job, "", 0), "ps_count 0", false},
        Case{Load(kTerm + 4, job, "", 4'000'000'000), "ps_count 4000000000", false},
        Case{Load(kTerm + 5, job, damaged), "is damaged", true}}) {
    ClaimWith(control, load.term());
    const proto::LoadFailed failed = Ask(control, load).load_failed();
    EXPECT_EQ(failed.term(), load.term());
    EXPECT_THAT(failed.reason(), HasSubstr(reason));
    EXPECT_EQ(failed.checkpoint_is_bad(), checkpoint_is_bad) << reason;
    EXPECT_FALSE(failed.checkpoint_unread()) << reason;
    EXPECT_EQ(server_->timeline(), 0u);
  }
  ClaimWith(control, kTerm + 6);
  EXPECT_EQ(Ask(control, Load(kTerm + 6, job)).loaded().timeline(), kTerm + 6);
}

TEST_F(ControlServiceLoadTest, ACheckpointThatTheDiskFailsToReadMayBeWhole) {
  FailingCheckpointDisk disk;
  files_ = &disk;
  Restart();
  Client control = ConnectCoordinator(kTerm);
  const TemporaryDirectory run;
  const std::string checkpoint = run / "checkpoints/step-1";
  const proto::LoadFailed failed =
      Ask(control, Load(kTerm, job_.ResolvedText(), checkpoint)).load_failed();
  EXPECT_TRUE(failed.checkpoint_is_bad());
  EXPECT_TRUE(failed.checkpoint_unread());
  EXPECT_THAT(failed.reason(), HasSubstr(checkpoint));
  server_.reset();  // it uses the disk
}

// A path that is too long is dropped, and the directory then counts as not named.
TEST_F(ControlServiceLoadTest, WithoutARunDirectoryOnlyCheckpointsAreLoaded) {
  Client control = ConnectControl();
  uint64_t term = kTerm;
  for (const std::string& run_directory : {std::string(), "/" + std::string(5000, 'x')}) {
    for (const std::string directory :
         {"/runs/ada/step-1", "/runs/ada/checkpoints/../step-1", "runs/ada/checkpoints/step-1"}) {
      proto::ControlRequest claim = Claim(++term);
      claim.mutable_claim()->mutable_claimant()->set_run_directory(run_directory);
      EXPECT_TRUE(Ask(control, claim).has_claimed());
      const proto::ControlReply reply = Ask(control, Load(term, job_.ResolvedText(), directory));
      EXPECT_EQ(reply.load_failed().term(), term) << directory;
      EXPECT_FALSE(reply.load_failed().checkpoint_is_bad());
      EXPECT_TRUE(server_->CheckReady().ok()) << "it is loading";
    }
  }
}

TEST_F(ControlServiceLoadTest, AJobThatDoesNotFitIsRejectedBeforeMemoryIsTaken) {
  memory_ = {.bytes = 1000, .text = "this machine has 1000 B"};
  Restart();
  Client control = ConnectCoordinator(kTerm);
  const proto::LoadFailed failed = Ask(control, Load(kTerm, job_.ResolvedText())).load_failed();
  EXPECT_FALSE(failed.checkpoint_is_bad());
  EXPECT_THAT(failed.reason(), AllOf(HasSubstr("ps 0"), HasSubstr("1000 B")));
  EXPECT_EQ(server_->timeline(), 0u);
}

TEST_F(ControlServiceLoadTest, ALoadThatOpensATimelineTellsItsMemoryNeeds) {
  Client control = ConnectControl();
  LoadJob(control, kTerm);
  EXPECT_THAT(memory_needs_, ElementsAre(Gt(0u)));
  ClaimWith(control, kTerm + 1);
  EXPECT_TRUE(Ask(control, Load(kTerm + 1, "not JSON")).has_load_failed());
  EXPECT_THAT(memory_needs_, ElementsAre(Gt(0u)));
  LoadJob(control, kTerm + 2);
  EXPECT_THAT(memory_needs_, ElementsAre(Gt(0u), Gt(0u)));
}

TEST_F(ControlServiceLoadTest, ThePsMayEndDuringALoad) {
  Client control = ConnectCoordinator(kTerm);
  SendOnly(control, Load(kTerm, job_.ResolvedText()));
  server_.reset();
  EXPECT_TRUE(control.received->destroyed);
  loop_->RunUntilIdle();
}

TEST_F(ControlServiceLoadTest, ALoadCountsAfterItsStreamIsGone) {
  Client control = ConnectCoordinator(kTerm);
  SendOnly(control, Load(kTerm, job_.ResolvedText()));
  control.callbacks.on_closed(absl::UnavailableError("gone"));
  loop_->RunUntilIdle();
  EXPECT_EQ(server_->timeline(), kTerm);
  Client again = ConnectCoordinator(kTerm);
  EXPECT_EQ(Ask(again, Load(kTerm, job_.ResolvedText())).loaded().timeline(), kTerm);
}

}  // namespace
}  // namespace shoal
