#include "tests/fuzz/sequences/speakers.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/term.h"
#include "common/base/version.h"
#include "common/step_plan/round.h"
#include "proto/cluster.pb.h"
#include "proto/coordinator.pb.h"
#include "proto/evaluator.pb.h"
#include "proto/parameter_server.pb.h"
#include "proto/worker.pb.h"

namespace shoal {
namespace {

using ProtoPtr = std::unique_ptr<google::protobuf::Message>;

// Requests beyond this many are forgotten.
constexpr size_t kMaxRequests = 1000;
// Of the coordinators that an attacker plays.
constexpr uint32_t kCoordinatorId = 0xbad;

void FillRound(const FuzzJob& job, uint64_t step, proto::Round* round) {
  const Round of = job.rounds()->Of(step);
  round->set_first(of.first);
  round->set_count(of.count);
  round->set_number(of.number);
}

uint64_t BatchExamples(const FuzzJob& job, uint64_t batch) {
  const uint64_t batch_size = job.job().batch_size;
  const uint64_t first = batch * batch_size;
  return first < job.test_examples() ? std::min(batch_size, job.test_examples() - first) : 1;
}

void FillClaimant(proto::Claimant* claimant) {
  claimant->set_run_id(FuzzCluster::kRunDirectory);
  claimant->set_run_directory(FuzzCluster::kRunDirectory);
  claimant->set_address("elsewhere:1");
  claimant->set_host("elsewhere");
  claimant->set_pid(1);
}

class WorkSpeaker : public Speaker {
 public:
  explicit WorkSpeaker(FuzzCluster* cluster) : cluster_(*cluster) {}

  ProtoPtr Make(uint8_t kind) override {
    auto report = std::make_unique<proto::WorkerReport>();
    const FuzzJob& job = cluster_.job();
    switch (kind % 9) {
      case 0: {
        proto::WorkerHello* const hello = report->mutable_hello();
        hello->set_version(kVersion);
        hello->set_host("elsewhere");
        hello->set_pid(1);
        hello->set_device("cpu");
        hello->set_threads(1);
        hello->set_incarnation(99);
        hello->set_timeline(timeline_);
        for (const uint64_t step : leases_) hello->add_held_steps(step);
        break;
      }
      case 1: {
        proto::WorkerReady* const ready = report->mutable_ready();
        ready->set_training_examples(FuzzJob::kTrainingExamples);
        ready->set_test_examples(job.test_examples());
        ready->set_shard_map_fingerprint(cluster_.shard_map().Fingerprint());
        ready->set_job_fingerprint(job.fingerprint());
        break;
      }
      case 2: {
        report->mutable_steps_done()->set_timeline(timeline_);
        proto::StepDone* const done = report->mutable_steps_done()->add_steps();
        if (!leases_.empty()) {
          done->set_step(leases_.front());
          leases_.pop_front();
        }
        if (done->step() < job.plan().total_steps())
          done->set_examples(static_cast<uint32_t>(job.plan().Range(done->step()).count));
        done->set_loss_sum(1);
        done->add_metric_sums(1);
        break;
      }
      case 3: {
        proto::EvaluationDone* const done = report->mutable_evaluation_done();
        if (!evaluations_.empty()) {
          done->set_timeline(evaluations_.front().timeline());
          done->set_cut_step(evaluations_.front().cut_step());
          done->set_batch(evaluations_.front().batch());
          evaluations_.pop_front();
        }
        done->set_examples(BatchExamples(job, done->batch()));
        done->set_loss_sum(1);
        done->add_metric_sums(1);
        break;
      }
      case 4:
        report->mutable_halted()->set_timeline(timeline_);
        report->mutable_halted()->set_begun_below(leases_.empty() ? 0 : leases_.front());
        break;
      case 5:
        report->mutable_waiting()->set_what("computing step 1 for 5 s");
        report->mutable_waiting()->set_computing(true);
        break;
      case 6:
        report->mutable_draining();
        break;
      case 7:
        report->mutable_leaving()->set_reason("SIGTERM");
        break;
      default:
        report->mutable_timeline_lost()->set_timeline(timeline_);
        break;
    }
    return report;
  }

  std::vector<ProtoPtr> Hear(const Message& message) override {
    proto::WorkerOrder order;
    if (!ParseMessage(message, &order)) return {};
    if (order.has_timeline_opened()) {
      timeline_ = order.timeline_opened().timeline();
      leases_.clear();
    }
    for (uint64_t i = 0; i < order.lease().count() && leases_.size() < kMaxRequests; ++i)
      leases_.push_back(order.lease().first() + i);
    if (order.has_evaluate() && evaluations_.size() < kMaxRequests)
      evaluations_.push_back(order.evaluate());
    return {};
  }

 private:
  FuzzCluster& cluster_;
  uint64_t timeline_ = 0;
  std::deque<uint64_t> leases_;
  std::deque<proto::Evaluate> evaluations_;
};

class ExchangeSpeaker : public Speaker {
 public:
  explicit ExchangeSpeaker(FuzzCluster* cluster) : cluster_(*cluster) {}

  ProtoPtr Make(uint8_t kind) override {
    auto request = std::make_unique<proto::ExchangeRequest>();
    const std::vector<Chunk>& chunks = cluster_.shard_map().ps(0).chunks;
    const uint64_t timeline = cluster_.ps(0).timeline();
    switch (kind % 6) {
      case 0: {
        proto::ExchangeHello* const hello = request->mutable_hello();
        hello->set_version(kVersion);
        hello->set_worker(1);
        hello->set_shard_map_fingerprint(cluster_.shard_map().Fingerprint());
        hello->set_job_fingerprint(cluster_.job().fingerprint());
        break;
      }
      case 2:
      case 4: {
        const uint64_t step = next_push_ / chunks.size() % cluster_.job().plan().total_steps();
        const size_t chunk = next_push_++ % chunks.size();
        proto::Push* const push = request->mutable_push();
        push->set_timeline(timeline);
        push->set_step(step);
        push->set_chunk(static_cast<uint32_t>(chunk));
        push->set_want_values(true);
        if (kind % 6 == 4) {
          push->set_skip(true);
          break;
        }
        if (cluster_.job().rounds().has_value()) {
          FillRound(cluster_.job(), step, push->mutable_round());
          push->set_pulled_version(push->round().first());
          push->set_want_values(false);
        }
        request->set_payload(std::string(chunks[chunk].size * sizeof(float), '\x3f'));
        break;
      }
      default: {
        proto::Pull* const pull = request->mutable_pull();
        pull->set_timeline(timeline);
        pull->set_chunk_count(static_cast<uint32_t>(chunks.size()));
        if (kind % 6 == 3) pull->set_version(version_);
        if (kind % 6 == 5) pull->set_cut_step(version_);
        break;
      }
    }
    return request;
  }

  std::vector<ProtoPtr> Hear(const Message& message) override {
    proto::ExchangeReply reply;
    if (!ParseMessage(message, &reply)) return {};
    if (reply.has_values()) version_ = reply.values().version();
    if (reply.has_applied()) version_ = reply.applied().version();
    return {};
  }

 private:
  FuzzCluster& cluster_;
  uint64_t next_push_ = 0;
  uint64_t version_ = 0;  // that a chunk had last
};

class ControlSpeaker : public Speaker {
 public:
  explicit ControlSpeaker(FuzzCluster* cluster) : cluster_(*cluster) {}

  ProtoPtr Make(uint8_t kind) override {
    auto request = std::make_unique<proto::ControlRequest>();
    request->set_term(term_);
    switch (kind % 10) {
      case 0:
      case 8: {
        if (kind % 10 == 8) request->set_term(cluster_.ps(0).promised_term());
        proto::Claim* const claim = request->mutable_claim();
        claim->set_version(kVersion);
        claim->set_job_fingerprint(cluster_.job().fingerprint());
        claim->set_training_examples(FuzzJob::kTrainingExamples);
        FillClaimant(claim->mutable_claimant());
        claim->set_leads(true);
        break;
      }
      case 1:
      case 9: {
        proto::Load* const load = request->mutable_load();
        load->set_incarnation(cluster_.ps_incarnation(0));
        load->set_job(cluster_.job().text());
        load->set_ps_count(1);
        if (kind % 10 == 1) break;
        load->set_checkpoint(absl::StrCat(FuzzCluster::kRunDirectory, "/checkpoints/elsewhere"));
        load->set_manifest_checksum(1);
        load->set_cut_step(3);
        break;
      }
      case 2: {
        proto::Fence* const fence = request->mutable_fence();
        fence->set_timeline(cluster_.ps(0).timeline());
        fence->set_cut_step(base_ + 1);
        fence->set_hold(true);
        break;
      }
      case 3:
        request->mutable_read_cut()->set_cut_step(base_ + 1);
        break;
      case 4:
        request->mutable_release()->set_cut_step(base_ + 1);
        break;
      case 5: {
        proto::Rows* const rows = request->mutable_rows();
        if (wanted_.empty()) break;
        rows->set_tensor(wanted_.front().tensor());
        rows->set_offset_bytes(wanted_.front().offset_bytes());
        rows->set_values(
            std::string(std::min<uint32_t>(wanted_.front().size_bytes(), 1 << 20), '\0'));
        wanted_.pop_front();
        break;
      }
      case 6:
        request->mutable_resign();
        break;
      default:
        request->mutable_stop();
        break;
    }
    return request;
  }

  std::vector<ProtoPtr> Hear(const Message& message) override {
    proto::ControlReply reply;
    if (!ParseMessage(message, &reply)) return {};
    if (reply.has_hello())
      term_ = MakeTerm(TermNumber(reply.hello().promised_term()) + 1, kCoordinatorId);
    if (reply.has_claimed()) base_ = reply.claimed().base();
    if (reply.has_rows_wanted() && wanted_.size() < kMaxRequests)
      wanted_.push_back(reply.rows_wanted());
    return {};
  }

 private:
  FuzzCluster& cluster_;
  uint64_t term_ = MakeTerm(1, kCoordinatorId);
  uint64_t base_ = 0;
  std::deque<proto::RowsWanted> wanted_;
};

class OrderSpeaker : public Speaker {
 public:
  explicit OrderSpeaker(FuzzCluster* cluster) : cluster_(*cluster) {}

  ProtoPtr Make(uint8_t kind) override {
    auto order = std::make_unique<proto::WorkerOrder>();
    const FuzzJob& job = cluster_.job();
    const uint64_t timeline = cluster_.ps(0).timeline();
    switch (kind % 9) {
      case 0: {
        proto::Welcome* const welcome = order->mutable_welcome();
        welcome->set_index(0);
        welcome->set_job(job.text());
        for (int i = 0; i < cluster_.shard_map().ps_count(); ++i)
          welcome->add_ps(FuzzCluster::PsName(i));
        break;
      }
      case 1:
        order->mutable_timeline_opened()->set_timeline(timeline);
        break;
      case 2: {
        proto::Lease* const lease = order->mutable_lease();
        const uint64_t step = next_++ % job.plan().total_steps();
        lease->set_timeline(timeline);
        lease->set_first(step);
        lease->set_count(1);
        lease->set_timeout_ms(60'000);
        if (job.rounds().has_value()) FillRound(job, step, lease->mutable_round());
        break;
      }
      case 3:
        order->mutable_evaluate()->set_timeline(timeline);
        order->mutable_evaluate()->set_cut_step(4);
        break;
      case 4:
        order->mutable_halt()->set_timeline(timeline);
        break;
      case 5:
        order->mutable_resume()->set_timeline(timeline);
        order->mutable_resume()->set_below(next_);
        break;
      case 6:
        order->mutable_drain()->set_reason("enough");
        break;
      case 7:
        order->mutable_rejected()->set_reason("not you");
        break;
      default:
        order->mutable_job_done();
        break;
    }
    return order;
  }

 private:
  FuzzCluster& cluster_;
  uint64_t next_ = 0;  // step
};

class ReplySpeaker : public Speaker {
 public:
  ReplySpeaker(FuzzCluster* cluster, int ps, bool answers)
      : cluster_(*cluster), ps_(ps), answers_(answers) {}

  ProtoPtr Make(uint8_t kind) override {
    switch (kind % 6) {
      case 0:
        return Hello();
      case 1:
        return requests_.empty() ? Values(proto::Pull(), 0) : AnswerOldest();
      case 2:
        return Applied(last_push_);
      case 3:
        return Values(last_pull_, last_pull_.first_chunk());
      default: {
        auto reply = std::make_unique<proto::ExchangeReply>();
        proto::Rejection* const rejection = reply->mutable_rejection();
        rejection->set_timeline(last_pull_.timeline() + (kind % 6 == 4 ? 1 : 0));
        rejection->set_requested_timeline(last_pull_.timeline());
        rejection->set_requested_cut_step(last_pull_.cut_step());
        if (last_pull_.has_version()) rejection->set_requested_version(last_pull_.version());
        rejection->set_round_complete(kind % 6 == 5);
        rejection->set_reason("no");
        return reply;
      }
    }
  }

  std::vector<ProtoPtr> Hear(const Message& message) override {
    proto::ExchangeRequest request;
    if (!ParseMessage(message, &request)) return {};
    if (request.has_push()) last_push_ = request.push();
    if (request.has_pull()) last_pull_ = request.pull();
    std::vector<ProtoPtr> said;
    if (request.has_hello()) {
      if (answers_) said.push_back(Hello());
    } else if (requests_.size() < kMaxRequests) {
      requests_.push_back(std::move(request));
    }
    while (answers_ && !requests_.empty()) said.push_back(AnswerOldest());
    return said;
  }

 private:
  const std::vector<Chunk>& chunks() const { return cluster_.shard_map().ps(ps_).chunks; }
  std::string Zeros(uint32_t chunk) const {
    return std::string(chunk < chunks().size() ? chunks()[chunk].size * sizeof(float) : 4, '\0');
  }

  ProtoPtr Hello() const {
    auto reply = std::make_unique<proto::ExchangeReply>();
    proto::ServerHello* const hello = reply->mutable_hello();
    hello->set_version(kVersion);
    hello->set_index(static_cast<uint32_t>(ps_));
    hello->set_incarnation(77);
    hello->set_timeline(cluster_.ps(0).timeline());
    return reply;
  }
  // Answers a pull chunk by chunk.
  ProtoPtr AnswerOldest() {
    const proto::ExchangeRequest request = requests_.front();
    if (request.has_push()) {
      requests_.pop_front();
      return Applied(request.push());
    }
    const proto::Pull& pull = request.pull();
    const uint32_t chunk = pull.first_chunk();
    if (pull.chunk_count() <= 1) {
      requests_.pop_front();
    } else {
      proto::Pull* const rest = requests_.front().mutable_pull();
      rest->set_first_chunk(chunk + 1);
      rest->set_chunk_count(pull.chunk_count() - 1);
    }
    return Values(pull, chunk);
  }
  ProtoPtr Applied(const proto::Push& push) const {
    auto reply = std::make_unique<proto::ExchangeReply>();
    proto::Applied* const applied = reply->mutable_applied();
    applied->set_timeline(push.timeline());
    applied->set_step(push.step());
    applied->set_chunk(push.chunk());
    applied->set_version(push.has_round() ? push.round().first() : push.step() + 1);
    if (push.want_values()) reply->set_payload(Zeros(push.chunk()));
    return reply;
  }
  ProtoPtr Values(const proto::Pull& pull, uint32_t chunk) const {
    auto reply = std::make_unique<proto::ExchangeReply>();
    proto::ChunkValues* const values = reply->mutable_values();
    values->set_timeline(pull.timeline());
    values->set_chunk(chunk);
    values->set_version(pull.version());
    values->set_cut_step(pull.cut_step());
    reply->set_payload(Zeros(chunk));
    return reply;
  }

  FuzzCluster& cluster_;
  const int ps_;
  const bool answers_;
  std::deque<proto::ExchangeRequest> requests_;
  proto::Push last_push_;
  proto::Pull last_pull_;
};

class ControlReplySpeaker : public Speaker {
 public:
  ControlReplySpeaker(FuzzCluster* cluster, int ps) : cluster_(*cluster), ps_(ps) {}

  ProtoPtr Make(uint8_t kind) override {
    auto reply = std::make_unique<proto::ControlReply>();
    const uint64_t cut = fence_.cut_step();
    switch (kind % 15) {
      case 0: {
        proto::ServerHello* const hello = reply->mutable_hello();
        hello->set_version(kVersion);
        hello->set_index(static_cast<uint32_t>(ps_));
        hello->set_incarnation(kIncarnation);
        hello->set_timeline(timeline_);
        break;
      }
      case 1:
        FillClaimed(reply->mutable_claimed());
        break;
      case 2:
        timeline_ = term_;
        reply->mutable_loaded()->set_timeline(term_);
        break;
      case 3:
        reply->mutable_fence_accepted()->set_cut_step(cut);
        reply->mutable_fence_accepted()->set_term(fence_term_);
        break;
      case 4:
        reply->mutable_cut_ready()->set_cut_step(cut);
        reply->mutable_cut_ready()->set_term(fence_term_);
        break;
      case 5: {
        proto::Written* const written = reply->mutable_written();
        written->set_cut_step(cut);
        written->set_term(fence_term_);
        proto::WrittenRange* const range = written->add_ranges();
        range->set_file("parameters.safetensors");
        range->set_size_bytes(64);
        break;
      }
      case 6: {
        proto::CutRows* const rows = reply->mutable_cut_rows();
        rows->set_cut_step(read_.cut_step());
        rows->set_chunk(read_.chunk());
        rows->set_part(read_.part());
        rows->set_term(fence_term_);
        const std::vector<Chunk>& chunks = cluster_.shard_map().ps(ps_).chunks;
        if (read_.chunk() < chunks.size())
          rows->set_values(std::string(chunks[read_.chunk()].size * sizeof(float), '\0'));
        break;
      }
      case 7:
        reply->mutable_written()->set_cut_step(cut);
        reply->mutable_written()->set_term(fence_term_);
        reply->mutable_written()->set_not_seen(true);
        break;
      case 8: {
        proto::FenceRejected* const rejected = reply->mutable_fence_rejected();
        rejected->set_cut_step(cut);
        rejected->set_term(fence_term_);
        rejected->set_highest_step(cut);
        rejected->set_reason("too late");
        break;
      }
      case 9:
        reply->mutable_load_failed()->set_term(term_);
        reply->mutable_load_failed()->set_reason("no");
        break;
      case 10:
        reply->mutable_rows_wanted()->set_term(term_);
        reply->mutable_rows_wanted()->set_tensor("first/kernel");
        reply->mutable_rows_wanted()->set_size_bytes(16);
        break;
      case 11:
        reply->mutable_departing();
        break;
      case 12:
        reply->mutable_stopping();
        break;
      case 13:
        reply->mutable_term_rejected()->set_promised_term(term_ + (uint64_t{1} << 32));
        FillClaimant(reply->mutable_term_rejected()->mutable_claimant());
        break;
      default:
        reply->mutable_claim_rejected()->set_term(term_);
        FillClaimant(reply->mutable_claim_rejected()->mutable_holder());
        break;
    }
    return reply;
  }

  std::vector<ProtoPtr> Hear(const Message& message) override {
    proto::ControlRequest request;
    if (!ParseMessage(message, &request)) return {};
    term_ = request.term();
    if (request.has_claim()) done_below_ = request.claim().done_below();
    if (request.has_read_cut()) read_ = request.read_cut();
    if (request.has_fence()) {
      fence_ = request.fence();
      fence_term_ = term_;
    }
    return {};
  }

 private:
  static constexpr uint64_t kIncarnation = 77;

  // It has applied what ps 0 has, which is honest.
  void FillClaimed(proto::Claimed* claimed) const {
    claimed->set_incarnation(kIncarnation);
    claimed->set_promised_term(term_);
    claimed->set_done_below(done_below_);
    claimed->set_timeline(timeline_);
    if (timeline_ == 0) return;
    claimed->set_job_fingerprint(cluster_.job().fingerprint());
    claimed->set_shard_map_fingerprint(cluster_.shard_map().Fingerprint());
    claimed->set_training_examples(FuzzJob::kTrainingExamples);
    const VariableStore* const store = cluster_.ps(0).variables();
    if (store == nullptr) return;
    claimed->set_base(store->base());
    for (const uint64_t step : store->AppliedAfterBase()) claimed->add_applied_after_base(step);
    claimed->set_lowest_updates(store->updates().lowest);
    claimed->set_highest_updates(store->updates().highest);
  }

  FuzzCluster& cluster_;
  const int ps_;
  uint64_t term_ = 0;
  uint64_t timeline_ = 0;
  uint64_t done_below_ = 0;
  uint64_t fence_term_ = 0;
  proto::Fence fence_;
  proto::ReadCut read_;
};

class EvaluateSpeaker : public Speaker {
 public:
  explicit EvaluateSpeaker(FuzzCluster* cluster) : cluster_(*cluster) {}

  ProtoPtr Make(uint8_t kind) override {
    auto report = std::make_unique<proto::EvaluatorReport>();
    switch (kind % 6) {
      case 0: {
        proto::EvaluatorHello* const hello = report->mutable_hello();
        hello->set_version(kVersion);
        hello->set_host("elsewhere");
        hello->set_pid(1);
        hello->set_device("cpu");
        hello->set_threads(1);
        hello->set_incarnation(98);
        break;
      }
      case 1:
        report->mutable_ready()->set_test_examples(cluster_.job().test_examples());
        report->mutable_ready()->set_job_fingerprint(cluster_.job().fingerprint());
        break;
      case 2:
        report->mutable_values_wanted()->set_evaluation(evaluation_);
        report->mutable_values_wanted()->set_variable("first/kernel");
        report->mutable_values_wanted()->set_size_bytes(16);
        break;
      case 3:
        report->mutable_progress()->set_evaluation(evaluation_);
        report->mutable_progress()->set_batches_done(1);
        report->mutable_progress()->set_batches(2);
        break;
      case 4: {
        proto::CheckpointEvaluated* const evaluated = report->mutable_evaluated();
        evaluated->set_evaluation(evaluation_);
        evaluated->set_examples(cluster_.job().test_examples());
        evaluated->set_loss_sum(1);
        evaluated->add_metric_sums(1);
        break;
      }
      default:
        report->mutable_leaving()->set_reason("SIGTERM");
        break;
    }
    return report;
  }

  std::vector<ProtoPtr> Hear(const Message& message) override {
    proto::EvaluatorOrder order;
    if (ParseMessage(message, &order) && order.has_evaluate())
      evaluation_ = order.evaluate().evaluation();
    return {};
  }

 private:
  FuzzCluster& cluster_;
  uint64_t evaluation_ = 0;
};

class RequestSpeaker : public Speaker {
 public:
  explicit RequestSpeaker(std::string method) : method_(std::move(method)) {}

  ProtoPtr Make(uint8_t kind) override {
    if (method_ == kStatusMethod) {
      auto request = std::make_unique<proto::StatusRequest>();
      request->set_version(kVersion);
      return request;
    }
    if (method_ == kCheckpointMethod) return std::make_unique<proto::CheckpointRequest>();
    auto request = std::make_unique<proto::DrainRequest>();
    request->set_type(kind % 2 == 0 ? "worker" : "chief");
    return request;
  }

 private:
  const std::string method_;
};

}  // namespace

std::unique_ptr<Speaker> WorkerToCoordinator(FuzzCluster* cluster) {
  return std::make_unique<WorkSpeaker>(cluster);
}

std::unique_ptr<Speaker> WorkerToPs(FuzzCluster* cluster) {
  return std::make_unique<ExchangeSpeaker>(cluster);
}

std::unique_ptr<Speaker> CoordinatorToPs(FuzzCluster* cluster) {
  return std::make_unique<ControlSpeaker>(cluster);
}

std::unique_ptr<Speaker> CoordinatorToWorker(FuzzCluster* cluster) {
  return std::make_unique<OrderSpeaker>(cluster);
}

std::unique_ptr<Speaker> PsToWorker(FuzzCluster* cluster, int ps) {
  return std::make_unique<ReplySpeaker>(cluster, ps, /*answers=*/false);
}

std::unique_ptr<Speaker> AnsweringPsToWorker(FuzzCluster* cluster, int ps) {
  return std::make_unique<ReplySpeaker>(cluster, ps, /*answers=*/true);
}

std::unique_ptr<Speaker> PsToCoordinator(FuzzCluster* cluster, int ps) {
  return std::make_unique<ControlReplySpeaker>(cluster, ps);
}

std::unique_ptr<Speaker> EvaluatorToCoordinator(FuzzCluster* cluster) {
  return std::make_unique<EvaluateSpeaker>(cluster);
}

std::unique_ptr<Speaker> OperatorToCoordinator(const std::string& method) {
  return std::make_unique<RequestSpeaker>(method);
}

}  // namespace shoal
