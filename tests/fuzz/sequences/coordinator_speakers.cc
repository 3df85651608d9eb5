#include <algorithm>
#include <deque>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/term.h"
#include "common/base/version.h"
#include "proto/evaluator.pb.h"
#include "proto/parameter_server.pb.h"
#include "proto/worker.pb.h"
#include "tests/fuzz/sequences/speaker_parts.h"
#include "tests/fuzz/sequences/speakers.h"

namespace shoal {
namespace {

// The id of the coordinators that an attacker plays.
constexpr uint32_t kCoordinatorId = 0xbad;

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

class EvaluatorOrderSpeaker : public Speaker {
 public:
  explicit EvaluatorOrderSpeaker(FuzzCluster* cluster) : cluster_(*cluster) {}

  ProtoPtr Make(uint8_t kind) override {
    auto order = std::make_unique<proto::EvaluatorOrder>();
    switch (kind % 5) {
      case 0:
        order->mutable_welcome()->set_job(cluster_.job().text());
        break;
      case 1:
        order->mutable_evaluate()->set_evaluation(++evaluation_);
        order->mutable_evaluate()->set_checkpoint("step-000000000003-1-00000001");
        break;
      case 2: {
        proto::Values* const values = order->mutable_values();
        values->set_evaluation(evaluation_);
        if (wanted_.empty()) break;
        values->set_evaluation(wanted_.front().evaluation());
        values->set_variable(wanted_.front().variable());
        values->set_offset_bytes(wanted_.front().offset_bytes());
        values->set_values(
            std::string(std::min<uint32_t>(wanted_.front().size_bytes(), 1 << 20), '\0'));
        wanted_.pop_front();
        break;
      }
      case 3:
        order->mutable_rejected()->set_reason("not you");
        break;
      default:
        order->mutable_job_done();
        break;
    }
    return order;
  }

  std::vector<ProtoPtr> Hear(const Message& message) override {
    proto::EvaluatorReport report;
    if (ParseMessage(message, &report) && report.has_values_wanted() &&
        wanted_.size() < kMaxRequests)
      wanted_.push_back(report.values_wanted());
    return {};
  }

 private:
  FuzzCluster& cluster_;
  uint64_t evaluation_ = 0;
  std::deque<proto::ValuesWanted> wanted_;
};

}  // namespace

std::unique_ptr<Speaker> CoordinatorToPs(FuzzCluster* cluster) {
  return std::make_unique<ControlSpeaker>(cluster);
}

std::unique_ptr<Speaker> CoordinatorToWorker(FuzzCluster* cluster) {
  return std::make_unique<OrderSpeaker>(cluster);
}

std::unique_ptr<Speaker> CoordinatorToEvaluator(FuzzCluster* cluster) {
  return std::make_unique<EvaluatorOrderSpeaker>(cluster);
}

}  // namespace shoal
