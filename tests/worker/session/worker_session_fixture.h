#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/version.h"
#include "tests/fakes/fake_loop.h"
#include "tests/fakes/fake_network.h"
#include "tests/worker/exchange/exchange_peer.h"
#include "worker/session/worker_session.h"

namespace shoal {

inline constexpr uint64_t kSessionTimeline = 70;
inline constexpr uint64_t kTotalSteps = 1000;  // of the job
inline constexpr Time kDrainTimeout = std::chrono::seconds(8);

// Computes only when the test tells it.
class FakeComputer : public StepComputer {
 public:
  explicit FakeComputer(const SmallModel* model)
      : model_(model),
        parameters_(model->layout.size),
        cut_parameters_(model->layout.size),
        gradients_(model->layout.size, 1) {}

  void Prepare(const std::string& job_text, int ps_count,
               std::function<void(absl::StatusOr<Prepared>)> done) override {
    calls.push_back(absl::StrCat("prepare ", job_text, " ", ps_count));
    prepare_done_ = std::move(done);
  }
  void Prefetch(uint64_t first_step, uint64_t count) override {
    calls.push_back(absl::StrCat("prefetch ", first_step, " ", count));
  }
  void CancelPrefetch() override { calls.push_back("cancel prefetch"); }
  void CancelAll() override {
    calls.push_back("cancel all");
    expected_evaluations.clear();
  }
  void PrefetchEvaluation(uint64_t batch) override { expected_evaluations.push_back(batch); }
  void CancelEvaluationPrefetch() override { expected_evaluations.clear(); }
  bool BeginsEarly() const override { return begins_early; }
  void Train(uint64_t step, std::vector<ChunkId> missing, std::function<void(int, int)> on_chunk,
             std::function<void(absl::StatusOr<BatchOutcome>)> done) override {
    EXPECT_FALSE(busy()) << "one computation at a time";
    EXPECT_TRUE(missing.empty() || begins_early);
    calls.push_back(absl::StrCat("train ", step));
    missing_at_begin = missing_now = std::move(missing);
    on_chunk_ = std::move(on_chunk);
    done_ = std::move(done);
  }
  void Evaluate(uint64_t batch, std::function<void(absl::StatusOr<BatchOutcome>)> done) override {
    EXPECT_FALSE(busy()) << "one computation at a time";
    calls.push_back(absl::StrCat("evaluate ", batch));
    done_ = std::move(done);
  }

  bool busy() const { return done_ != nullptr; }
  void FinishPrepare(const absl::Status& status = absl::OkStatus()) {
    const auto done = std::exchange(prepare_done_, nullptr);
    if (!status.ok()) return done(status);
    std::vector<std::string> names;
    for (const Variable& variable : model_->variables) names.push_back(variable.name);
    done(Prepared{.training_examples = 200,
                  .test_examples = test_batches > 0 ? 50u : 0u,
                  .total_steps = kTotalSteps,
                  .test_batches = test_batches,
                  .shard_map = &model_->shard_map,
                  .layout = &model_->layout,
                  .variable_names = names,
                  .parameters = parameters_,
                  .cut_parameters = cut_parameters_,
                  .gradients = gradients_,
                  .gradients_memory = gradients_memory,
                  .pulls_below = pulls_below});
  }
  void Arrived(int ps, int chunk) override {
    ++arrived;
    std::erase(missing_now, ChunkId{ps, chunk});
  }
  void CancelStep() override { calls.push_back("cancel step"); }
  Progress progress() const override { return progress_now; }
  void FinishChunks() {
    for (int ps = 0; ps < 2; ++ps) {
      for (size_t k = 0; k < model_->chunks(ps).size(); ++k) {
        if (model_->chunks(ps)[k].pushed()) on_chunk_(ps, static_cast<int>(k));
      }
    }
  }
  void Finish(absl::StatusOr<BatchOutcome> outcome) {
    std::exchange(done_, nullptr)(std::move(outcome));
  }
  void Finish() {
    Finish(BatchOutcome{
        .examples = 16, .loss_sum = 32, .metric_sums = {8}, .input_wait_us = 3, .compute_us = 5});
  }
  std::vector<std::string> TakeCalls() { return std::exchange(calls, {}); }
  const std::vector<float>& cut_parameters() const { return cut_parameters_; }

  std::vector<std::string> calls;
  std::vector<uint64_t> expected_evaluations;  // since the last CancelEvaluationPrefetch
  uint64_t test_batches = 5;                   // 0: the job has no test set
  uint64_t pulls_below = 0;                    // from the job's strategy
  bool begins_early = false;
  std::shared_ptr<const SharedMemory> gradients_memory;
  std::vector<ChunkId> missing_at_begin, missing_now;  // of the current step
  int arrived = 0;                                     // chunks that arrived during a step
  Progress progress_now;

 private:
  const SmallModel* const model_;
  std::vector<float> parameters_, cut_parameters_, gradients_;
  std::function<void(absl::StatusOr<Prepared>)> prepare_done_;
  std::function<void(int, int)> on_chunk_;
  std::function<void(absl::StatusOr<BatchOutcome>)> done_;
};

class WorkerSessionTest : public testing::Test {
 protected:
  explicit WorkerSessionTest(std::optional<uint32_t> index = 4) {
    session_ = std::make_unique<WorkerSession>(WorkerSession::Options{
        .loop = &loop_,
        .network = &network_,
        .computer = &computer_,
        .coordinator = "chief:1",
        .index = index,
        .incarnation = 99,
        .host = "node",
        .pid = 12,
        .coordinator_timeout = std::chrono::minutes(10),
        .drain_timeout = kDrainTimeout,
        .on_step =
            [this](uint64_t timeline, uint64_t step) {
              events_.push_back(absl::StrCat("step ", timeline, " ", step));
            },
        .on_index = [this](uint32_t given) { events_.push_back(absl::StrCat("index ", given)); },
        .on_over =
            [this](WorkerSession::End end, const absl::Status& status) {
              EXPECT_FALSE(end_.has_value()) << "over twice";
              end_ = end;
              why_ = std::string(status.message());
            }});
    session_->Start();
  }

  FarEnd& coordinator() { return network_.Newest("chief:1"); }
  FarEnd& ps(int index) { return network_.Newest(absl::StrCat("ps-", index, ":1")); }

  // Returns the reports to the coordinator since the last call.
  std::vector<proto::WorkerReport> TakeReports() {
    loop_.RunUntilIdle();
    return coordinator().Take<proto::WorkerReport>();
  }
  void Order(const proto::WorkerOrder& order) {
    coordinator().Send(order);
    loop_.RunUntilIdle();
  }
  void Welcome(uint32_t index = 4, std::vector<std::string> addresses = {"ps-0:1", "ps-1:1"},
               const std::string& job = "the job") {
    proto::WorkerOrder order;
    order.mutable_welcome()->set_index(index);
    order.mutable_welcome()->set_job(job);
    for (const std::string& address : addresses) order.mutable_welcome()->add_ps(address);
    Order(order);
  }
  void Open(uint64_t timeline) {
    timeline_ = timeline;
    proto::WorkerOrder order;
    order.mutable_timeline_opened()->set_timeline(timeline);
    Order(order);
  }
  void Lease(uint64_t first, uint64_t count) {
    proto::WorkerOrder order;
    order.mutable_lease()->set_timeline(timeline_);
    order.mutable_lease()->set_first(first);
    order.mutable_lease()->set_count(count);
    Order(order);
  }
  // Leases steps of a round; its number is first / 3.
  void LeaseOfRound(uint64_t first, uint64_t count, uint64_t round_first, uint32_t round_count) {
    proto::WorkerOrder order;
    order.mutable_lease()->set_timeline(timeline_);
    order.mutable_lease()->set_first(first);
    order.mutable_lease()->set_count(count);
    order.mutable_lease()->mutable_round()->set_first(round_first);
    order.mutable_lease()->mutable_round()->set_count(round_count);
    order.mutable_lease()->mutable_round()->set_number(round_first / 3);
    Order(order);
  }
  void Halt(uint64_t timeline = kSessionTimeline) {
    proto::WorkerOrder order;
    order.mutable_halt()->set_timeline(timeline);
    Order(order);
  }
  void Resume(uint64_t below) {
    proto::WorkerOrder order;
    order.mutable_resume()->set_timeline(kSessionTimeline);
    order.mutable_resume()->set_below(below);
    Order(order);
  }
  // Returns its answer to a Halt, which must be the only report since the last call.
  uint64_t BegunBelow() {
    const auto reports = TakeReports();
    EXPECT_EQ(reports.size(), 1u);
    EXPECT_EQ(reports.at(0).halted().timeline(), kSessionTimeline);
    return reports.at(0).halted().begun_below();
  }
  void OrderEvaluation(uint64_t cut_step, uint64_t batch) {
    proto::WorkerOrder order;
    order.mutable_evaluate()->set_timeline(timeline_);
    order.mutable_evaluate()->set_cut_step(cut_step);
    order.mutable_evaluate()->set_batch(batch);
    Order(order);
  }
  // Lets both ps answer until no request is left.
  void ServePs() {
    bool served = true;
    while (std::exchange(served, false)) {
      loop_.RunUntilIdle();
      for (int i = 0; i < 2; ++i) {
        if (network_.CountOf(absl::StrCat("ps-", i, ":1")) == 0 || !ps(i).open()) continue;
        for (const proto::ExchangeRequest& request : ps(i).Take<proto::ExchangeRequest>()) {
          served = true;
          Serve(i, request);
        }
      }
    }
  }
  void Serve(int i, const proto::ExchangeRequest& request) {
    if (request.has_hello()) return ExchangePeer::SendHello(ps(i), timeline_);
    if (request.has_push()) {
      ++pushes_[request.push().step()];
      if (request.push().skip()) ++skips_[request.push().step()];
      last_push_ = request.push();
      const int chunk = static_cast<int>(request.push().chunk());
      return ExchangePeer::SendApplied(ps(i), timeline_, request.push().step(), chunk, ++version_,
                                       model_.Filled(i, chunk, 1));
    }
    const proto::Pull& pull = request.pull();
    pulls_ += pull.chunk_count();
    if (pull.has_version()) {
      asked_versions_.push_back(pull.version());
      if (i == 1 && pull.version() < complete_below_)
        return ExchangePeer::RejectVersion(ps(i), timeline_, pull.version());
      version_ = pull.version();
    }
    for (uint32_t k = pull.first_chunk(); k < pull.first_chunk() + pull.chunk_count(); ++k) {
      if (pull.cut_step() != 0 && pull.cut_step() != held_cut_) {
        return ExchangePeer::Reject(ps(i), {pull.timeline(), pull.cut_step()}, timeline_,
                                    "not held");
      }
      ExchangePeer::SendValues(ps(i), timeline_, k, version_, pull.cut_step(),
                               model_.Filled(i, static_cast<int>(k), 1));
    }
  }
  // Runs until the session waits for leases in kSessionTimeline.
  void GetReady() {
    Welcome();
    computer_.FinishPrepare();
    Open(kSessionTimeline);
    ServePs();
    TakeReports();
    computer_.TakeCalls();
    events_.clear();
  }
  // Runs until the session computes this step.
  void StartStep(uint64_t step, uint64_t leases = 1) {
    GetReady();
    Lease(step, leases);
    ServePs();
    EXPECT_THAT(computer_.TakeCalls(), testing::Contains(absl::StrCat("train ", step)));
  }
  void FinishStep() {
    computer_.FinishChunks();
    computer_.Finish();
    ServePs();
  }
  void LoseCoordinator() {
    coordinator().Close(absl::UnavailableError("connection reset"));
    loop_.RunUntilIdle();
  }
  // The network has new certificates for the session's stream to the coordinator.
  void SayOutdated() {
    coordinator().SayOutdated();
    loop_.RunUntilIdle();
  }
  // The coordinator has read all reports of a stream that the session has ended. The session then
  // opens the next one.
  void EndInOrder() {
    ASSERT_TRUE(coordinator().finished().has_value());
    const int before = network_.CountOf("chief:1");
    coordinator().Close(absl::OkStatus());
    loop_.RunUntilIdle();
    EXPECT_EQ(network_.CountOf("chief:1"), before + 1) << "without a pause";
  }
  // Lets the session find the coordinator again.
  void Reconnect() {
    const int before = network_.CountOf("chief:1");
    for (int i = 0; i < 100 && network_.CountOf("chief:1") == before; ++i)
      loop_.Advance(std::chrono::milliseconds(50));
    EXPECT_EQ(network_.CountOf("chief:1"), before + 1);
  }
  void ExpectLeaving(const std::string& reason, bool failed) {
    const auto reports = TakeReports();
    ASSERT_FALSE(reports.empty());
    ASSERT_TRUE(reports.back().has_leaving()) << reports.back().ShortDebugString();
    EXPECT_THAT(reports.back().leaving().reason(), testing::HasSubstr(reason));
    EXPECT_EQ(reports.back().leaving().failed(), failed);
    ASSERT_TRUE(coordinator().finished().has_value())
        << "the stream ends in order, so that this arrives";
    EXPECT_FALSE(end_.has_value()) << "not before the coordinator has read it";
    coordinator().Close(absl::OkStatus());
    loop_.RunUntilIdle();
  }
  // Sends the coordinator's answer to Draining.
  void SendNoLeaseFollows() {
    proto::WorkerOrder order;
    order.mutable_drain()->set_reason("the worker asked to leave");
    Order(order);
  }
  void ExpectDraining() {
    const auto reports = TakeReports();
    EXPECT_TRUE(std::any_of(reports.begin(), reports.end(),
                            [](const proto::WorkerReport& each) { return each.has_draining(); }));
  }
  void ExpectOver(WorkerSession::End end, const std::string& why = "") {
    ASSERT_TRUE(end_.has_value());
    EXPECT_EQ(*end_, end);
    EXPECT_THAT(why_, testing::HasSubstr(why));
    // Nothing else follows.
    const size_t streams = network_.opened().size();
    computer_.TakeCalls();
    loop_.Advance(std::chrono::minutes(1));
    EXPECT_EQ(network_.opened().size(), streams);
    EXPECT_THAT(computer_.TakeCalls(), testing::IsEmpty());
  }
  std::vector<std::string> TakeEvents() { return std::exchange(events_, {}); }

  const SmallModel model_;
  FakeLoop loop_;
  FakeNetwork network_{&loop_};
  FakeComputer computer_{&model_};
  uint64_t timeline_ = kSessionTimeline;
  uint64_t held_cut_ = 0;
  uint64_t version_ = 0;
  uint64_t complete_below_ = 0;           // ps 1 keeps no older version
  std::vector<uint64_t> asked_versions_;  // requested by Pull
  proto::Push last_push_;
  uint64_t pulls_ = 0;              // number of chunks
  std::map<uint64_t, int> pushes_;  // chunks by step
  std::map<uint64_t, int> skips_;   // those of these that were skips
  std::vector<std::string> events_;
  std::optional<WorkerSession::End> end_;
  std::string why_;
  std::unique_ptr<WorkerSession> session_;
};

}  // namespace shoal
