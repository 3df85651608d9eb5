#include <algorithm>
#include <deque>
#include <vector>

#include "common/base/version.h"
#include "proto/coordinator.pb.h"
#include "proto/parameter_server.pb.h"
#include "proto/worker.pb.h"
#include "tests/fuzz/sequences/speaker_parts.h"
#include "tests/fuzz/sequences/speakers.h"

namespace shoal {
namespace {

uint64_t BatchExamples(const FuzzJob& job, uint64_t batch) {
  const uint64_t batch_size = job.job().batch_size;
  const uint64_t first = batch * batch_size;
  return first < job.test_examples() ? std::min(batch_size, job.test_examples() - first) : 1;
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

}  // namespace

std::unique_ptr<Speaker> WorkerToCoordinator(FuzzCluster* cluster) {
  return std::make_unique<WorkSpeaker>(cluster);
}

std::unique_ptr<Speaker> WorkerToPs(FuzzCluster* cluster) {
  return std::make_unique<ExchangeSpeaker>(cluster);
}

}  // namespace shoal
