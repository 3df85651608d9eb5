// A ps on a machine that does not see the coordinator's directory: its rows come and go by the
// Control stream.
#include <gmock/gmock.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>

#include "common/base/crc32c.h"
#include "common/checkpoint/manifest.h"
#include "tests/common/base/temporary_directory.h"
#include "tests/fakes/bare_file_system.h"
#include "tests/ps/parameter_server_fixture.h"

namespace shoal {
namespace {

using testing::HasSubstr;

constexpr char kUnseen[] = "/nowhere/checkpoints/step-000000000002-1-00000005";

// That of another user: all is there, and closed.
class ClosedFileSystem : public BareFileSystem {
 public:
  absl::StatusOr<std::unique_ptr<File>> Open(const std::string& path, Mode) override {
    return FileError(EACCES, "open", path);
  }
  bool Exists(const std::string&) override { return true; }
};

class RemoteRowsTest : public ParameterServerTest {
 protected:
  RemoteRowsTest() {
    control_ = ConnectControl();
    LoadJob(control_, kTerm);
    worker_ = ConnectWorker();
  }

  proto::CutRows ReadCut(uint64_t cut_step, uint32_t chunk, uint32_t part, uint64_t term = kTerm) {
    proto::ControlRequest request;
    request.set_term(term);
    request.mutable_read_cut()->set_cut_step(cut_step);
    request.mutable_read_cut()->set_chunk(chunk);
    request.mutable_read_cut()->set_part(part);
    return Ask(control_, request).cut_rows();
  }
  static std::vector<float> Floats(const std::string& bytes) {
    std::vector<float> values(bytes.size() / sizeof(float));
    std::memcpy(values.data(), bytes.data(), bytes.size());
    return values;
  }
  // A cut at 2 whose directory is not there, and step 2 applied after it.
  void CutUnseen() {
    PushStep(worker_, kTerm, 0);
    SendOnly(control_, Fence(kTerm, kTerm, 2, kUnseen));
    EXPECT_TRUE(control_.Take<proto::ControlReply>().has_fence_accepted());
    PushStep(worker_, kTerm, 2);
    PushStep(worker_, kTerm, 1);
    EXPECT_TRUE(control_.Take<proto::ControlReply>().has_cut_ready());
    loop_->RunUntilIdle();
    const proto::Written written = control_.Take<proto::ControlReply>().written();
    EXPECT_TRUE(written.not_seen());
    EXPECT_EQ(written.error(), "");
    EXPECT_EQ(written.ranges_size(), 0);
  }
  // A Load of a checkpoint that this machine does not have, with the steps below 2.
  proto::ControlRequest UnseenLoad(uint64_t term) {
    proto::ControlRequest load = Load(term, job_.ResolvedText(), "/nowhere/checkpoints/step-2");
    load.mutable_load()->set_manifest_checksum(7);
    load.mutable_load()->set_cut_step(2);
    return load;
  }
  static proto::ControlRequest Rows(uint64_t term, const proto::RowsWanted& wanted, float value) {
    proto::ControlRequest request;
    request.set_term(term);
    proto::Rows* rows = request.mutable_rows();
    rows->set_tensor(wanted.tensor());
    rows->set_offset_bytes(wanted.offset_bytes());
    const std::vector<float> values(wanted.size_bytes() / sizeof(float), value);
    rows->set_values(values.data(), wanted.size_bytes());
    return request;
  }

  Client control_;
  Client worker_;
};

TEST_F(RemoteRowsTest, ACutIsKeptForReadingUntilItsRelease) {
  CutUnseen();
  // Step 2 is not in the cut, whose copies are what is read.
  const std::vector<float> cut = Floats(ReadCut(2, 0, 0).values());
  EXPECT_EQ(cut, Values(worker_, kTerm, 0, 2));
  EXPECT_NE(cut, Values(worker_, kTerm, 0));
  EXPECT_EQ(ReadCut(2, 0, 1).values(), "") << "plain SGD has no slots";
  EXPECT_EQ(ReadCut(3, 0, 0).values(), "") << "another cut";
  EXPECT_EQ(ReadCut(2, 1000, 0).values(), "") << "no such chunk";
  EXPECT_EQ(ReadCut(2, 0, UINT32_MAX).values(), "") << "no such part";
  EXPECT_EQ(ReadCut(2, 0, 0).term(), kTerm);
  SendOnly(control_, Release(kTerm, 2));
  EXPECT_EQ(ReadCut(2, 0, 0).values(), "");
}

TEST_F(RemoteRowsTest, ACutIsReadOnlyUnderItsTerm) {
  CutUnseen();
  ClaimWith(control_, kTerm + 1);
  const proto::CutRows rows = ReadCut(2, 0, 0, kTerm + 1);
  EXPECT_EQ(rows.values(), "");
  EXPECT_EQ(rows.term(), kTerm + 1);
}

TEST_F(RemoteRowsTest, ARepeatedFenceIsAnsweredAgain) {
  CutUnseen();
  SendOnly(control_, Fence(kTerm, kTerm, 2, kUnseen));
  EXPECT_TRUE(control_.Take<proto::ControlReply>().has_fence_accepted());
  EXPECT_TRUE(control_.Take<proto::ControlReply>().has_cut_ready());
  EXPECT_TRUE(control_.Take<proto::ControlReply>().written().not_seen());
}

TEST_F(RemoteRowsTest, ADirectoryOfTheSameNameWithoutTheMarkerIsNotWrittenTo) {
  const TemporaryDirectory stranger;
  const std::string directory = stranger / "checkpoints/step-000000000000-1-00000005";
  std::filesystem::create_directories(directory);
  SendOnly(control_, Fence(kTerm, kTerm, 0, directory));
  loop_->RunUntilIdle();
  control_.Take<proto::ControlReply>();
  control_.Take<proto::ControlReply>();
  EXPECT_TRUE(control_.Take<proto::ControlReply>().written().not_seen());
  EXPECT_TRUE(std::filesystem::is_empty(directory));
}

TEST_F(RemoteRowsTest, ADirectoryThatIsClosedToThisPsCountsAsUnseen) {
  ClosedFileSystem closed;
  files_ = &closed;
  Restart();
  control_ = ConnectControl();
  LoadJob(control_, kTerm);
  worker_ = ConnectWorker();
  CutUnseen();
  EXPECT_NE(ReadCut(2, 0, 0).values(), "");
  const uint64_t next = kTerm + (uint64_t{1} << 32);
  ClaimWith(control_, next);
  EXPECT_TRUE(Ask(control_, UnseenLoad(next)).has_rows_wanted());
  server_.reset();
}

TEST_F(RemoteRowsTest, ALoadAsksForItsRowsAndOpensTheTimelineWithThem) {
  const uint64_t next = kTerm + (uint64_t{1} << 32);
  ClaimWith(control_, next);
  proto::ControlReply reply = Ask(control_, UnseenLoad(next));
  std::map<std::string, uint64_t> bytes;
  EXPECT_TRUE(Ask(worker_, Pull(next, 0, 1)).has_rejection()) << "empty until all rows are there";
  while (reply.has_rows_wanted()) {
    const proto::RowsWanted& wanted = reply.rows_wanted();
    EXPECT_EQ(wanted.term(), next);
    bytes[wanted.tensor()] += wanted.size_bytes();
    SendOnly(control_, Rows(next, wanted, 0.5f));
    loop_->RunUntilIdle();
    reply = control_.Take<proto::ControlReply>();
  }
  ASSERT_EQ(reply.loaded().timeline(), next) << reply.DebugString();
  for (const Variable& variable : JobVariables(job_)) {
    EXPECT_EQ(bytes[variable.name], ElementCount(variable.shape) * sizeof(float)) << variable.name;
  }
  EXPECT_EQ(Ask(control_, Claim(next)).claimed().base(), 2u);
  EXPECT_THAT(Values(worker_, next, 0), testing::Each(0.5f));
}

TEST_F(RemoteRowsTest, ANewStreamIsAskedForTheMissingRows) {
  const uint64_t next = kTerm + (uint64_t{1} << 32);
  ClaimWith(control_, next);
  const proto::ControlReply first = Ask(control_, UnseenLoad(next));
  ASSERT_TRUE(first.has_rows_wanted());
  Client again = ConnectCoordinator(next);
  const proto::ControlReply repeated = Ask(again, UnseenLoad(next));
  EXPECT_EQ(repeated.rows_wanted().tensor(), first.rows_wanted().tensor());
  EXPECT_EQ(repeated.rows_wanted().offset_bytes(), first.rows_wanted().offset_bytes());
}

TEST_F(RemoteRowsTest, RowsThatCannotBeReadMakeTheCheckpointBad) {
  const uint64_t next = kTerm + (uint64_t{1} << 32);
  ClaimWith(control_, next);
  proto::ControlRequest rows = Rows(next, Ask(control_, UnseenLoad(next)).rows_wanted(), 0);
  rows.mutable_rows()->set_error("model-00001-of-00001.safetensors is damaged");
  SendOnly(control_, rows);
  loop_->RunUntilIdle();
  proto::ControlReply reply;
  do reply = control_.Take<proto::ControlReply>();
  while (reply.has_rows_wanted());
  EXPECT_TRUE(reply.load_failed().checkpoint_is_bad());
  EXPECT_THAT(reply.load_failed().reason(), HasSubstr("is damaged"));
  EXPECT_EQ(Ask(control_, Claim(next)).claimed().timeline(), 0u);
}

TEST_F(RemoteRowsTest, RowsOfAWrongSizeAreRejected) {
  const uint64_t next = kTerm + (uint64_t{1} << 32);
  ClaimWith(control_, next);
  proto::ControlRequest rows = Rows(next, Ask(control_, UnseenLoad(next)).rows_wanted(), 0);
  rows.mutable_rows()->mutable_values()->resize(4);
  SendOnly(control_, rows);
  loop_->RunUntilIdle();
  proto::ControlReply reply;
  do reply = control_.Take<proto::ControlReply>();
  while (reply.has_rows_wanted());
  EXPECT_THAT(reply.load_failed().reason(), HasSubstr("sent 4 bytes"));
}

TEST_F(RemoteRowsTest, UnrequestedRowsChangeNothing) {
  const std::vector<float> before = Values(worker_, kTerm, 0);
  proto::RowsWanted wanted;
  wanted.set_tensor(JobVariables(job_)[0].name);
  wanted.set_size_bytes(4);
  SendOnly(control_, Rows(kTerm, wanted, 9));
  EXPECT_TRUE(control_.quiet());
  EXPECT_EQ(Values(worker_, kTerm, 0), before);
}

}  // namespace
}  // namespace shoal
