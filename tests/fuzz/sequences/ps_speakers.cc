#include <deque>
#include <utility>
#include <vector>

#include "common/base/version.h"
#include "proto/parameter_server.pb.h"
#include "tests/fuzz/sequences/speaker_parts.h"
#include "tests/fuzz/sequences/speakers.h"

namespace shoal {
namespace {

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

}  // namespace

std::unique_ptr<Speaker> PsToWorker(FuzzCluster* cluster, int ps) {
  return std::make_unique<ReplySpeaker>(cluster, ps, /*answers=*/false);
}

std::unique_ptr<Speaker> AnsweringPsToWorker(FuzzCluster* cluster, int ps) {
  return std::make_unique<ReplySpeaker>(cluster, ps, /*answers=*/true);
}

std::unique_ptr<Speaker> PsToCoordinator(FuzzCluster* cluster, int ps) {
  return std::make_unique<ControlReplySpeaker>(cluster, ps);
}

}  // namespace shoal
