// Rules 6 and 7 of the protocol: fences, cuts, and what is written of them.
#include <gmock/gmock.h>

#include <filesystem>

#include "common/checkpoint/checkpoint_store.h"
#include "tests/common/base/temporary_directory.h"
#include "tests/ps/parameter_server_fixture.h"

namespace shoal {
namespace {

using testing::HasSubstr;

class ParameterServerCutTest : public ParameterServerTest {
 protected:
  ParameterServerCutTest() {
    control_ = ConnectControl();
    LoadJob(control_, kTerm);
    worker_ = ConnectWorker();
  }

  CheckpointLayout Layout() const { return LayOutCheckpoint(JobVariables(job_), {}); }
  // A directory with the files laid out.
  std::string Prepare(uint64_t cut_step, uint64_t term = kTerm) {
    const std::string directory = PrepareEmpty(cut_step, term);
    EXPECT_TRUE(CreateCheckpointFiles(Layout(), directory).ok());
    return directory;
  }
  // The same, without the files.
  std::string PrepareEmpty(uint64_t cut_step, uint64_t term = kTerm) {
    const std::string directory = *checkpoints().CreateDirectory(cut_step, term);
    EXPECT_TRUE(WriteNewFile(directory + "/" + kMarker, "").ok());
    return directory;
  }
  CheckpointStore& checkpoints() {
    if (!checkpoints_) checkpoints_.emplace(root_ / "checkpoints");
    return *checkpoints_;
  }
  // Returns the answer to the fence, which must be a rejection that changes nothing.
  proto::FenceRejected Rejected(const proto::ControlRequest& fence) {
    SendOnly(control_, fence);
    const proto::ControlReply reply = TakeControl();
    EXPECT_TRUE(reply.has_fence_rejected()) << reply.DebugString();
    EXPECT_EQ(reply.fence_rejected().term(), fence.term());
    EXPECT_EQ(reply.fence_rejected().cut_step(), fence.fence().cut_step());
    EXPECT_NE(reply.fence_rejected().reason(), "");
    EXPECT_TRUE(control_.quiet());
    return reply.fence_rejected();
  }
  // What is written of a fence that is accepted, of a cut that is ready.
  proto::Written WrittenOf(const proto::ControlRequest& fence) {
    Accepted(fence);
    EXPECT_TRUE(TakeControl().has_cut_ready());
    loop_->RunUntilIdle();
    return TakeControl().written();
  }
  proto::ControlReply TakeControl() { return control_.Take<proto::ControlReply>(); }
  // Sends a Fence and expects that it is accepted.
  void Accepted(const proto::ControlRequest& fence) {
    SendOnly(control_, fence);
    EXPECT_EQ(TakeControl().fence_accepted().cut_step(), fence.fence().cut_step());
  }

  const TemporaryDirectory root_;
  std::optional<CheckpointStore> checkpoints_;
  Client control_;
  Client worker_;
};

TEST_F(ParameterServerCutTest, FenceOfAnotherTimelineIsIgnored) {
  SendOnly(control_, Fence(kTerm, kTerm + 1, 5));
  SendOnly(control_, Fence(kTerm, 0, 5));
  EXPECT_TRUE(control_.quiet());
}

TEST_F(ParameterServerCutTest, ALateFenceIsRejectedWithTheHighestStep) {
  Push(worker_, kTerm, 7, 1);
  const proto::FenceRejected rejected = Ask(control_, Fence(kTerm, kTerm, 7)).fence_rejected();
  EXPECT_EQ(rejected.cut_step(), 7u);
  EXPECT_EQ(rejected.highest_step(), 7u);
  EXPECT_THAT(rejected.reason(), HasSubstr("step 7"));
  Accepted(Fence(kTerm, kTerm, 8));
}

// A coordinator fences the same step again under a fresh term: by the term it tells the answers
// apart.
TEST_F(ParameterServerCutTest, AnswersNameTheTermOfTheirFence) {
  constexpr uint64_t kNext = kTerm + (uint64_t{1} << 32);
  Push(worker_, kTerm, 7, 1);
  EXPECT_EQ(Ask(control_, Fence(kTerm, kTerm, 7)).fence_rejected().term(), kTerm);
  SendOnly(control_, Fence(kTerm, kTerm, 8, Prepare(8)));
  EXPECT_EQ(TakeControl().fence_accepted().term(), kTerm);
  EXPECT_EQ(Ask(control_, Claim(kNext)).claimed().promised_term(), kNext);
  EXPECT_EQ(Ask(control_, Fence(kNext, kTerm, 7)).fence_rejected().term(), kNext);
  const proto::ControlRequest fence = Fence(kNext, kTerm, 8, Prepare(8, kNext), /*hold=*/true);
  for (const uint64_t step : {0, 1, 2, 3, 4, 5, 6}) PushStep(worker_, kTerm, step);
  SendOnly(control_, fence);
  EXPECT_EQ(TakeControl().fence_accepted().term(), kNext);
  for (uint32_t chunk = 0; chunk < 4; ++chunk) Push(worker_, kTerm, 7, chunk);
  EXPECT_EQ(TakeControl().cut_ready().term(), kNext);
  loop_->RunUntilIdle();
  EXPECT_EQ(TakeControl().written().term(), kNext);
}

TEST_F(ParameterServerCutTest, HeldCutIsServedUntilItsRelease) {
  Accepted(Fence(kTerm, kTerm, 1, "", /*hold=*/true));
  EXPECT_EQ(Ask(worker_, Pull(kTerm, 0, 1, 1)).rejection().timeline(), kTerm) << "not ready";
  PushStep(worker_, kTerm, 1);
  EXPECT_TRUE(control_.quiet());
  PushStep(worker_, kTerm, 0);
  EXPECT_EQ(TakeControl().cut_ready().cut_step(), 1u);
  const std::vector<float> cut = Values(worker_, kTerm, 0, 1);
  EXPECT_NE(cut, Values(worker_, kTerm, 0));
  PushStep(worker_, kTerm, 2);
  EXPECT_EQ(Values(worker_, kTerm, 0, 1), cut);
  EXPECT_THAT(Ask(worker_, Pull(kTerm, 0, 1, 2)).rejection().reason(), HasSubstr("step 2"));
  SendOnly(control_, Release(kTerm, 2));
  EXPECT_EQ(Values(worker_, kTerm, 0, 1), cut);
  SendOnly(control_, Release(kTerm, 1));
  EXPECT_TRUE(Ask(worker_, Pull(kTerm, 0, 1, 1)).has_rejection());
  EXPECT_TRUE(control_.quiet());
}

TEST_F(ParameterServerCutTest, ReleaseBeforeTheCutIsReadyEndsIt) {
  Accepted(Fence(kTerm, kTerm, 1, "", /*hold=*/true));
  SendOnly(control_, Release(kTerm, 1));
  PushStep(worker_, kTerm, 0);
  EXPECT_TRUE(control_.quiet());
}

TEST_F(ParameterServerCutTest, AReleaseOfAnotherTermReleasesNothing) {
  PushStep(worker_, kTerm, 0);
  Accepted(Fence(kTerm, kTerm, 1, "", /*hold=*/true));
  EXPECT_TRUE(TakeControl().has_cut_ready());
  const std::vector<float> cut = Values(worker_, kTerm, 0, 1);
  ClaimWith(control_, kTerm + 1);
  SendOnly(control_, Release(kTerm + 1, 1));
  EXPECT_EQ(Values(worker_, kTerm, 0, 1), cut);
}

TEST_F(ParameterServerCutTest, WrittenRangesMakeACheckpoint) {
  PushStep(worker_, kTerm, 0);
  const std::string directory = Prepare(2);
  Accepted(Fence(kTerm, kTerm, 2, directory));
  PushStep(worker_, kTerm, 2);
  PushStep(worker_, kTerm, 1);
  EXPECT_EQ(TakeControl().cut_ready().cut_step(), 2u);
  // Pushes go on while it is written.
  PushStep(worker_, kTerm, 3);
  EXPECT_TRUE(loop_->RunOneOffloaded());
  PushStep(worker_, kTerm, 4);
  EXPECT_TRUE(control_.quiet());
  loop_->RunUntilIdle();
  const proto::Written written = TakeControl().written();
  EXPECT_EQ(written.cut_step(), 2u);
  EXPECT_EQ(written.error(), "");
  std::vector<WrittenPart> parts;
  for (const proto::WrittenRange& range : written.ranges()) {
    parts.push_back({range.file(), range.offset_bytes(), range.size_bytes(), range.crc32c()});
  }
  Manifest manifest;
  manifest.timeline = kTerm;
  manifest.cut_step = 2;
  manifest.shard_map = "{}";
  const auto committed = checkpoints().Commit(directory, Layout(), parts, {}, manifest);
  ASSERT_TRUE(committed.ok()) << committed.status();
  EXPECT_TRUE(Ask(worker_, Pull(kTerm, 0, 1, 2)).has_rejection()) << "its copies are dropped";

  // Loaded under a fresh term it has the steps below 2 and no other.
  const uint64_t next = kTerm + (uint64_t{1} << 32);
  ClaimWith(control_, next);
  const proto::ControlReply loaded = Ask(control_, Load(next, job_.ResolvedText(), directory));
  ASSERT_EQ(loaded.loaded().timeline(), next) << loaded.DebugString();
  const std::vector<float> restored = Values(worker_, next, 0);
  EXPECT_EQ(Ask(control_, Claim(next)).claimed().base(), 2u);
  LoadJob(control_, next + 1);
  PushStep(worker_, next + 1, 0);
  PushStep(worker_, next + 1, 1);
  EXPECT_EQ(Values(worker_, next + 1, 0), restored);
}

TEST_F(ParameterServerCutTest, RepeatedFenceGetsItsAnswersAgainOnTheNewStream) {
  const proto::ControlRequest fence = Fence(kTerm, kTerm, 1, Prepare(1), /*hold=*/true);
  Accepted(fence);
  control_ = ConnectCoordinator(kTerm);
  Accepted(fence);
  EXPECT_TRUE(control_.quiet());
  PushStep(worker_, kTerm, 0);
  EXPECT_TRUE(TakeControl().has_cut_ready()) << "answered where it was asked last";
  Accepted(fence);
  EXPECT_TRUE(TakeControl().has_cut_ready());
  loop_->RunUntilIdle();
  const proto::Written written = TakeControl().written();
  EXPECT_GT(written.ranges_size(), 0);
  PushStep(worker_, kTerm, 1);
  Accepted(fence);
  EXPECT_TRUE(TakeControl().has_cut_ready());
  EXPECT_EQ(TakeControl().written().SerializeAsString(), written.SerializeAsString());
  EXPECT_TRUE(control_.quiet());
  EXPECT_FALSE(loop_->RunOneOffloaded()) << "written again";
}

TEST_F(ParameterServerCutTest, NewerFenceReplacesACutThatIsBeingWritten) {
  Accepted(Fence(kTerm, kTerm, 0, Prepare(0)));
  EXPECT_TRUE(TakeControl().has_cut_ready());
  loop_->RunOneOffloaded();
  PushStep(worker_, kTerm, 0);
  Accepted(Fence(kTerm, kTerm, 2, Prepare(2)));
  PushStep(worker_, kTerm, 1);
  EXPECT_EQ(TakeControl().cut_ready().cut_step(), 2u);
  loop_->RunUntilIdle();
  EXPECT_EQ(TakeControl().written().cut_step(), 2u);
  EXPECT_TRUE(control_.quiet());
}

TEST_F(ParameterServerCutTest, AnOlderFenceIsRejectedAsSuperseded) {
  Accepted(Fence(kTerm, kTerm, 3, "", true));
  EXPECT_TRUE(Rejected(Fence(kTerm, kTerm, 2, "", true)).superseded());
  EXPECT_TRUE(Rejected(Fence(kTerm, kTerm, 3, Prepare(3), true)).superseded())
      << "into another directory";
  // A lower cut of a higher term is newer.
  Ask(control_, Claim(kTerm + 1));
  Accepted(Fence(kTerm + 1, kTerm, 2, "", true));
  PushStep(worker_, kTerm, 0);
  PushStep(worker_, kTerm, 1);
  EXPECT_EQ(TakeControl().cut_ready().cut_step(), 2u);
}

TEST_F(ParameterServerCutTest, ClaimLeavesTheCutAlone) {
  Accepted(Fence(kTerm, kTerm, 1, "", true));
  Ask(control_, Claim(kTerm + 1));
  PushStep(worker_, kTerm, 0);
  EXPECT_TRUE(TakeControl().has_cut_ready());
}

TEST_F(ParameterServerCutTest, LoadEndsTheCutAlsoWhileItIsWritten) {
  Accepted(Fence(kTerm, kTerm, 0, Prepare(0)));
  EXPECT_TRUE(TakeControl().has_cut_ready());
  ClaimWith(control_, kTerm + 1);
  EXPECT_EQ(Ask(control_, Load(kTerm + 1, job_.ResolvedText())).loaded().timeline(), kTerm + 1);
  EXPECT_TRUE(control_.quiet());
  EXPECT_TRUE(Ask(worker_, Pull(kTerm + 1, 0, 1, 1)).has_rejection());
}

TEST_F(ParameterServerCutTest, AFailedWriteIsReportedAndPushesGoOn) {
  const std::string directory = PrepareEmpty(0);
  const proto::Written written = WrittenOf(Fence(kTerm, kTerm, 0, directory));
  EXPECT_THAT(written.error(), HasSubstr(directory + "/model-"));
  EXPECT_EQ(written.ranges_size(), 0);
  PushStep(worker_, kTerm, 0);
  Accepted(Fence(kTerm, kTerm, 1, Prepare(1)));
  loop_->RunUntilIdle();
  EXPECT_TRUE(TakeControl().has_cut_ready());
  EXPECT_EQ(TakeControl().written().error(), "");
}

// It would be newer than every cut of its term.
TEST_F(ParameterServerCutTest, AnImplausibleStepIsRejectedAndChangesNothing) {
  for (const uint64_t step : {UINT64_MAX, UINT64_MAX / 2, (uint64_t{1} << 32) + 1}) {
    EXPECT_FALSE(Rejected(Fence(kTerm, kTerm, step)).superseded()) << step;
  }
  Accepted(Fence(kTerm, kTerm, uint64_t{1} << 32));
  ClaimWith(control_, kTerm + 1);
  Accepted(Fence(kTerm + 1, kTerm, 1));
}

TEST_F(ParameterServerCutTest, AReplacedCutIsReportedToItsCoordinator) {
  Accepted(Fence(kTerm, kTerm, 2));
  Client second = ConnectCoordinator(kTerm);
  SendOnly(second, Fence(kTerm, kTerm, 9));
  EXPECT_TRUE(second.Take<proto::ControlReply>().has_fence_accepted());
  const proto::FenceRejected rejected = TakeControl().fence_rejected();
  EXPECT_EQ(rejected.cut_step(), 2u);
  EXPECT_EQ(rejected.term(), kTerm);
  EXPECT_TRUE(rejected.superseded());
  ClaimWith(control_, kTerm + 1);
  Accepted(Fence(kTerm + 1, kTerm, 2));
}

TEST_F(ParameterServerCutTest, AnImplausibleDirectoryIsRejected) {
  const std::string root = root_ / "checkpoints", name = "/step-000000000000-1-00000005";
  for (const std::string& directory :
       {root_.path(), root, root + name + "/", root + name + "/..", root + "/../checkpoints" + name,
        root + "/./" + name, std::string("checkpoints") + name, root_.path() + name,
        root + "/step-000000000001-1-00000005", root + "/step-000000000000-1-00000006",
        root + name + "-", root + name + "-x", root + name + "x", root + "//" + name.substr(1),
        root + name + std::string(1, '\0')}) {
    EXPECT_FALSE(Rejected(Fence(kTerm, kTerm, 0, directory)).superseded()) << directory;
  }
  for (const std::string marker : {"", "manifest.json", ".cut-", ".cut-1", ".cut-1-",
                                   ".cut-1-2/../x", "../.cut-1-2", ".cut-1-x"}) {
    proto::ControlRequest fence = Fence(kTerm, kTerm, 0, root + name);
    fence.mutable_fence()->set_marker(marker);
    EXPECT_FALSE(Rejected(fence).superseded()) << marker;
  }
  EXPECT_EQ(WrittenOf(Fence(kTerm, kTerm, 0, Prepare(0))).error(), "");
  ClaimWith(control_, kTerm + 1);
  EXPECT_EQ(WrittenOf(Fence(kTerm + 1, kTerm, 0, Prepare(0, kTerm + 1))).error(), "");
  ClaimWith(control_, kTerm + 2);
  Prepare(0, kTerm + 2);
  EXPECT_EQ(WrittenOf(Fence(kTerm + 2, kTerm, 0, Prepare(0, kTerm + 2))).error(), "")
      << "its name was taken";
}

TEST_F(ParameterServerCutTest, ADirectoryOfAnotherRunIsRejected) {
  proto::ControlRequest claim = Claim(kTerm);
  claim.mutable_claim()->mutable_claimant()->set_run_directory(root_ / "ours");
  Ask(control_, claim);
  EXPECT_THAT(Rejected(Fence(kTerm, kTerm, 0, Prepare(0))).reason(),
              HasSubstr(root_ / "ours/checkpoints"));
  claim.mutable_claim()->mutable_claimant()->set_run_directory(root_.path());
  Ask(control_, claim);
  EXPECT_EQ(WrittenOf(Fence(kTerm, kTerm, 0, Prepare(0))).error(), "");
}

TEST_F(ParameterServerCutTest, ACheckpointIsNeverOverwritten) {
  const std::string directory = Prepare(0);
  const std::string model = directory + "/" + Layout().files[0].name;
  WriteNewFile(directory + "/manifest.json", "{}").IgnoreError();
  const std::string before = *ReadSmallFile(model, 1 << 20);
  const proto::Written written = WrittenOf(Fence(kTerm, kTerm, 0, directory));
  EXPECT_THAT(written.error(), HasSubstr(directory));
  EXPECT_FALSE(written.not_seen());
  EXPECT_EQ(*ReadSmallFile(model, 1 << 20), before);
}

TEST_F(ParameterServerCutTest, NothingIsWrittenBehindALink) {
  const std::string directory = Prepare(0);
  const std::string file = Layout().files[0].name;
  const std::string before = *ReadSmallFile(directory + "/" + file, 1 << 20);
  const auto unchanged = [&] { return *ReadSmallFile(directory + "/" + file, 1 << 20) == before; };

  const std::string link = PrepareEmpty(0, kTerm + 1);
  std::filesystem::remove_all(link);
  std::filesystem::create_directory_symlink(directory, link);
  ClaimWith(control_, kTerm + 1);
  EXPECT_THAT(WrittenOf(Fence(kTerm + 1, kTerm, 0, link)).error(), HasSubstr(link));
  EXPECT_TRUE(unchanged());

  const std::string linked_file = PrepareEmpty(0, kTerm + 2);
  std::filesystem::create_symlink(directory + "/" + file, linked_file + "/" + file);
  ClaimWith(control_, kTerm + 2);
  EXPECT_THAT(WrittenOf(Fence(kTerm + 2, kTerm, 0, linked_file)).error(),
              HasSubstr(linked_file + "/" + file));
  EXPECT_TRUE(unchanged());

  const std::string linked_marker = Prepare(0, kTerm + 3);
  std::filesystem::remove(linked_marker + "/" + kMarker);
  std::filesystem::create_symlink(directory + "/" + kMarker, linked_marker + "/" + kMarker);
  ClaimWith(control_, kTerm + 3);
  EXPECT_THAT(WrittenOf(Fence(kTerm + 3, kTerm, 0, linked_marker)).error(),
              HasSubstr(linked_marker + "/" + kMarker));
}

TEST_F(ParameterServerCutTest, DestroyedWhileWriting) {
  Accepted(Fence(kTerm, kTerm, 0, Prepare(0)));
  server_.reset();
  loop_->RunUntilIdle();
}

}  // namespace
}  // namespace shoal
