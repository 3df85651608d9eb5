#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/version.h"
#include "coordinator/takeover/ps_fleet.h"
#include "tests/common/base/temporary_directory.h"
#include "tests/common/checkpoint/small_checkpoint.h"
#include "tests/fakes/fake_loop.h"
#include "tests/fakes/fake_network.h"
#include "tests/fakes/passing_file_system.h"

namespace shoal {

inline constexpr uint32_t kCoordinator =
    50;  // its id, which also seeds the pause between two claims
inline constexpr int kPsCount = 2;
inline constexpr uint32_t kShardMap = 0x5a5a5a5a;

inline uint32_t JobFingerprint() { return SmallManifest(0, 0).job_fingerprint; }

// Counts the reads of files with values.
class CountingFiles : public PassingFileSystem {
 public:
  absl::StatusOr<std::unique_ptr<File>> Open(const std::string& path, Mode mode) override {
    if (mode == Mode::kRead && path.ends_with(".safetensors")) {
      ++values_read;
      if (broken) return absl::UnavailableError("input/output error");
    }
    return PassingFileSystem::Open(path, mode);
  }
  int values_read = 0;
  bool broken = false;
};

class PsFleetTest : public testing::Test {
 protected:
  void Start() {
    owned_fleet_ = std::make_unique<PsFleet>(PsFleet::Options{
        .loop = &loop_,
        .network = &network_,
        .store = &store_,
        .lock = lock_,
        .addresses = {"ps-0:1", "ps-1:1"},
        .job_text = job_text_,
        .job_fingerprint = fingerprint_,
        .shard_map_fingerprint = kShardMap,
        .coordinator_id = kCoordinator,
        .self = self_,
        .take_over = take_over_,
        .may_begin_anew = [] { return absl::OkStatus(); },
        .on_stored = [](const std::vector<StoredCheckpoint>&) {},
        .on_opened =
            [this](const PsFleet::Opened& opened) {
              opened_.push_back(opened);
              events_.push_back("opened");
            },
        .on_over =
            [this](const std::string& why) { events_.push_back(absl::StrCat("over: ", why)); },
        .end_of_run =
            [](const StoredCheckpoint& newest) { return EndOfRun({}, RunVerdict(), newest); },
        .nobody_trains = [this] { return nobody_trains_; },
        .on_reply =
            [this](int ps, const proto::ControlReply& reply) {
              events_.push_back(absl::StrCat("reply ", ps, " ", reply.kind_case()));
            },
        .done_below = [this] { return done_below_; },
        .training_examples = [this] { return training_examples_; },
        .on_applied =
            [this](int ps, const proto::Claimed& claimed) {
              applied_.push_back(
                  absl::StrCat("ps ", ps, " has ", claimed.base(), " of ", claimed.done_below()));
            },
        .on_reconnected = [this](int ps) { events_.push_back(absl::StrCat("reconnected ", ps)); },
        .is_cutting = [this] { return is_cutting_; },
        .on_failed =
            [this](const absl::Status& status) {
              events_.push_back(absl::StrCat("failed: ", std::string(status.message())));
            },
        .wakeup = &fleet_wakeup_});
    fleet_ = owned_fleet_.get();
    fleet_->Start();
    loop_.RunUntilIdle();
  }

  // Hands the fleet over. fleet_ still points to it.
  std::unique_ptr<PsFleet> TakeFleet() { return std::move(owned_fleet_); }
  void DestroyFleet() {
    fleet_ = nullptr;
    owned_fleet_.reset();
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
  void SendHello(int index, const Hello& hello) {
    proto::ControlReply reply;
    reply.mutable_hello()->set_incarnation(hello.incarnation);
    reply.mutable_hello()->set_promised_term(hello.promised);
    reply.mutable_hello()->set_index(hello.index.value_or(index));
    reply.mutable_hello()->set_version(hello.version);
    ps(index).Send(reply);
    loop_.RunUntilIdle();
  }
  void SendHello(int index) { SendHello(index, Hello()); }
  struct Applied {
    uint64_t timeline = 0;
    uint64_t base = 0;
    std::vector<uint64_t> after_base = {};
    uint32_t job = JobFingerprint();
    uint32_t shard_map = kShardMap;
  };
  // Answers the newest claim.
  void AnswerClaim(int index, const Applied& applied) {
    uint64_t term = 0, done_below = 0;
    for (const proto::ControlRequest& request : ps(index).Take<proto::ControlRequest>()) {
      if (!request.has_claim()) continue;
      term = request.term();
      done_below = request.claim().done_below();
    }
    EXPECT_NE(term, 0u) << "ps " << index << " was not claimed";
    proto::ControlReply reply;
    proto::Claimed* claimed = reply.mutable_claimed();
    claimed->set_promised_term(term);
    claimed->set_done_below(done_below);
    claimed->set_timeline(applied.timeline);
    claimed->set_job_fingerprint(applied.timeline == 0 ? 0 : applied.job);
    claimed->set_shard_map_fingerprint(applied.timeline == 0 ? 0 : applied.shard_map);
    claimed->set_base(applied.base);
    for (const uint64_t step : applied.after_base) claimed->add_applied_after_base(step);
    ps(index).Send(reply);
    loop_.RunUntilIdle();
  }
  void AnswerClaim(int index) { AnswerClaim(index, Applied()); }
  void RejectTerm(int index, uint64_t promised) {
    proto::ControlReply reply;
    reply.mutable_term_rejected()->set_promised_term(promised);
    ps(index).Send(reply);
    loop_.RunUntilIdle();
  }
  // Rejects the claim of `term` (0: the newest one), because the ps belongs to the run of ada.
  void RejectClaim(int index, uint64_t silent_ms, uint64_t term = 0) {
    proto::ControlReply reply;
    proto::ClaimRejected* rejected = reply.mutable_claim_rejected();
    rejected->set_term(term == 0 ? fleet_->term() : term);
    rejected->set_silent_ms(silent_ms);
    *rejected->mutable_holder() = Ada();
    ps(index).Send(reply);
    loop_.RunUntilIdle();
  }
  static proto::Claimant Ada() {
    proto::Claimant ada;
    ada.set_run_directory("/runs/ada");
    ada.set_address("ada:2222");
    ada.set_host("host-of-ada");
    ada.set_pid(7);
    return ada;
  }
  // Returns the Load for a ps. Expects exactly one.
  proto::ControlRequest TakeLoad(int index) {
    std::vector<proto::ControlRequest> loads;
    for (const proto::ControlRequest& request : ps(index).Take<proto::ControlRequest>()) {
      if (request.has_load()) loads.push_back(request);
    }
    EXPECT_EQ(loads.size(), 1u) << "ps " << index;
    return loads.empty() ? proto::ControlRequest() : loads[0];
  }
  // Requests the first element of the first variable for a ps. Returns the rows in the answer.
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
  void AnswerLoadFailed(int index, bool checkpoint_is_bad, const std::string& reason,
                        bool checkpoint_unread = false) {
    proto::ControlReply reply;
    reply.mutable_load_failed()->set_term(fleet_->term());
    reply.mutable_load_failed()->set_reason(reason);
    reply.mutable_load_failed()->set_checkpoint_is_bad(checkpoint_is_bad);
    reply.mutable_load_failed()->set_checkpoint_unread(checkpoint_unread);
    ps(index).Send(reply);
    loop_.RunUntilIdle();
  }
  // Answers all claims as empty ps; the fleet then sends Loads.
  void ClaimAllEmpty() {
    for (int i = 0; i < kPsCount; ++i) SendHello(i, {.incarnation = uint64_t{10} + i});
    for (int i = 0; i < kPsCount; ++i) AnswerClaim(i);
  }
  // Runs until the fleet leads, with a loaded timeline.
  void Lead() {
    Start();
    ClaimAllEmpty();
    for (int i = 0; i < kPsCount; ++i) AnswerLoaded(i, fleet_->term());
    ASSERT_EQ(fleet_->phase(), PsFleet::Phase::kLeading);
    for (int i = 0; i < kPsCount; ++i) ps(i).Take<proto::ControlRequest>();
    TakeEvents();
  }
  std::vector<std::string> TakeEvents() { return std::exchange(events_, {}); }

  bool is_cutting_ = false;
  TemporaryDirectory directory_;
  CountingFiles files_;
  CheckpointStore store_{directory_.path(), &files_};
  std::string job_text_ = "the job";
  uint32_t fingerprint_ = JobFingerprint();
  RunLock* lock_ = nullptr;  // must outlive the fleet
  proto::Claimant self_;
  bool take_over_ = false;
  bool nobody_trains_ = false;
  uint64_t done_below_ = 0;
  uint64_t training_examples_ = 0;
  std::vector<std::string> applied_;
  FakeLoop loop_;
  FakeNetwork network_{&loop_};
  std::vector<std::string> events_;
  std::vector<PsFleet::Opened> opened_;
  bool takes_end_ = true;  // false: the test does
  Wakeup fleet_wakeup_{
      &loop_, [this](Wakeup::Cause) {
        if (!takes_end_) return;
        if (const std::optional<RunEnd> end = fleet_->TakeEnd())
          events_.push_back(absl::StrCat("finished ", NameOf(end->last.directory)));
      }};
  PsFleet* fleet_ = nullptr;  // Start makes it

 private:
  std::unique_ptr<PsFleet> owned_fleet_;  // until TakeFleet
};

}  // namespace shoal
