#include <string>
#include <utility>
#include <vector>

#include "common/base/version.h"
#include "common/rpc/methods.h"
#include "proto/cluster.pb.h"
#include "proto/evaluator.pb.h"
#include "tests/fuzz/sequences/speaker_parts.h"
#include "tests/fuzz/sequences/speakers.h"

namespace shoal {
namespace {

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

std::unique_ptr<Speaker> EvaluatorToCoordinator(FuzzCluster* cluster) {
  return std::make_unique<EvaluateSpeaker>(cluster);
}

std::unique_ptr<Speaker> OperatorToCoordinator(const std::string& method) {
  return std::make_unique<RequestSpeaker>(method);
}

}  // namespace shoal
