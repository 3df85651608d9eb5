#include "tests/coordinator/scripted_cluster.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/version.h"
#include "common/job/job.h"
#include "common/job/job_shard_map.h"
#include "common/job/job_strategy.h"
#include "common/optimizer/optimizer.h"

namespace shoal {

// --- ScriptedPs ----------------------------------------------------------------------------------

bool ScriptedPs::Serve() {
  if (network_->CountOf(address_) == 0) return false;
  FarEnd& stream = network_->Newest(address_);
  if (!stream.open()) return false;
  bool served = false;
  if (greeted_ != &stream) {
    greeted_ = &stream;
    served = true;
    proto::ControlReply reply;
    reply.mutable_hello()->set_version(kVersion);
    reply.mutable_hello()->set_index(address_[3] - '0');
    reply.mutable_hello()->set_incarnation(incarnation);
    reply.mutable_hello()->set_promised_term(promised);
    reply.mutable_hello()->set_timeline(timeline);
    stream.Send(reply);
  }
  for (const proto::ControlRequest& request : stream.Take<proto::ControlRequest>()) {
    served = true;
    OnRequest(stream, request);
  }
  return AdvanceCut(stream) || served;
}

void ScriptedPs::Restart() {
  incarnation += 1000;
  promised = timeline = training_examples = 0;
  applied.clear();
  cut_.reset();
  network_->Newest(address_).Close(absl::UnavailableError("the ps is gone"));
}

void ScriptedPs::Leave() {
  proto::ControlReply reply;
  reply.mutable_departing();
  network_->Newest(address_).Send(reply);
}

void ScriptedPs::SendStopping() {
  proto::ControlReply reply;
  reply.mutable_stopping();
  network_->Newest(address_).Send(reply);
}

uint64_t ScriptedPs::base() const {
  uint64_t base = 0;
  while (applied.contains(base)) ++base;
  return base;
}

uint64_t ScriptedPs::whole_below() const {
  const uint64_t whole = rounds->StartAt(base());
  if (loads.empty() || loads.back().checkpoint().empty()) return whole;
  // Loaded from a checkpoint within a round, it stays there.
  const auto manifest = Manifest::Read(loads.back().checkpoint());
  return manifest.ok() ? std::max(manifest->cut_step, whole) : whole;
}

void ScriptedPs::OnRequest(FarEnd& stream, const proto::ControlRequest& request) {
  proto::ControlReply reply;
  if (request.term() < promised) {
    reply.mutable_term_rejected()->set_promised_term(promised);
    return stream.Send(reply);
  }
  promised = request.term();
  switch (request.kind_case()) {
    case proto::ControlRequest::kClaim: {
      if (!answers_claims) return;
      proto::Claimed* claimed = reply.mutable_claimed();
      claimed->set_promised_term(promised);
      claimed->set_done_below(request.claim().done_below());
      claimed->set_incarnation(incarnation);
      claimed->set_timeline(timeline);
      if (timeline != 0) {
        claimed->set_job_fingerprint(job_fingerprint_);
        claimed->set_shard_map_fingerprint(shard_map_fingerprint_);
      }
      claimed->set_applied_chunks(applied_chunks);
      claimed->set_base(base());
      if (rounds.has_value()) {
        claimed->set_lowest_updates(whole_below());
        claimed->set_highest_updates(updates.value_or(whole_below()));
      }
      if (timeline != 0 && training_examples == 0)
        training_examples = request.claim().training_examples();
      claimed->set_training_examples(training_examples);
      for (const uint64_t step : applied) {
        if (step > base()) claimed->add_applied_after_base(step);
      }
      return stream.Send(reply);
    }
    case proto::ControlRequest::kLoad: {
      loads.push_back(request.load());
      if (!answers_loads) return;
      timeline = request.term();
      training_examples = 0;
      updates.reset();
      applied.clear();
      cut_.reset();
      if (!request.load().checkpoint().empty()) {
        const auto manifest = Manifest::Read(request.load().checkpoint());
        ASSERT_TRUE(manifest.ok()) << manifest.status();
        for (uint64_t step = 0; step < manifest->cut_step; ++step) applied.insert(step);
      }
      reply.mutable_loaded()->set_timeline(timeline);
      return stream.Send(reply);
    }
    case proto::ControlRequest::kFence:
      return OnFence(stream, request.term(), request.fence());
    case proto::ControlRequest::kRelease:
      return released.push_back(request.release().cut_step());
    case proto::ControlRequest::kStop:
      stopped = true;
      if (!answers_stop) return;
      reply.mutable_stopping();
      return stream.Send(reply);
    case proto::ControlRequest::kResign:
      return;
    case proto::ControlRequest::kReadCut:
    case proto::ControlRequest::kRows:
      EXPECT_TRUE(lied_about) << "it sees the directory";
      return;
    case proto::ControlRequest::KIND_NOT_SET:
      FAIL() << "a request of no kind";
  }
}

// Rule 6.
void ScriptedPs::OnFence(FarEnd& stream, uint64_t term, const proto::Fence& fence) {
  ++fences_heard;
  if (fence.timeline() != timeline) return;
  proto::ControlReply reply;
  const auto name = std::pair(term, fence.cut_step());
  if (cut_ && name < std::pair(cut_->term, cut_->fence.cut_step())) return;
  if (cut_ && name == std::pair(cut_->term, cut_->fence.cut_step())) {
    reply.mutable_fence_accepted()->set_term(term);
    reply.mutable_fence_accepted()->set_cut_step(fence.cut_step());
    stream.Send(reply);
    if (!cut_->written) return;
    *reply.mutable_written() = *cut_->written;
    return stream.Send(reply);
  }
  const uint64_t end = rounds.has_value() ? whole_below()
                       : applied.empty()  ? 0
                                          : *applied.rbegin() + 1;
  const bool late = end > fence.cut_step();
  const bool newer_sent = superseded && term == timeline;
  if (late || newer_sent || rejects_fences_with.has_value()) {
    ++fences_rejected;
    reply.mutable_fence_rejected()->set_superseded(newer_sent);
    reply.mutable_fence_rejected()->set_term(term);
    reply.mutable_fence_rejected()->set_cut_step(fence.cut_step());
    reply.mutable_fence_rejected()->set_highest_step(
        rejects_fences_with.value_or(late ? end - 1 : 0));
    reply.mutable_fence_rejected()->set_reason(newer_sent ? "superseded" : "too late");
    return stream.Send(reply);
  }
  cut_ = Cut{.term = term, .fence = fence};
  fences.push_back(fence);
  fence_terms.push_back(term);
}

bool ScriptedPs::AdvanceCut(FarEnd& stream) {
  if (!cut_ || cut_->written || !accepts_fences) return false;
  proto::ControlReply reply;
  const bool news = !std::exchange(cut_->accepted, true);
  if (news) {
    reply.mutable_fence_accepted()->set_term(cut_->term);
    reply.mutable_fence_accepted()->set_cut_step(cut_->fence.cut_step());
    stream.Send(reply);
  }
  if (base() < cut_->fence.cut_step()) return news;
  if (!std::exchange(cut_->ready, true)) {
    reply.mutable_cut_ready()->set_term(cut_->term);
    reply.mutable_cut_ready()->set_cut_step(cut_->fence.cut_step());
    stream.Send(reply);
    if (!writes) return true;
  }
  if (!writes) return news;
  cut_->written.emplace();
  cut_->written->set_term(cut_->term);
  cut_->written->set_cut_step(cut_->fence.cut_step());
  cut_->written->set_error(write_error);
  if (write_error.empty() && address_ == "ps-0:1") {
    CheckpointWriter writer(layout_, cut_->fence.directory());
    for (const auto& [name, place] : layout_->places) {
      const std::vector<float> values(place.entry.size / sizeof(float), value);
      EXPECT_TRUE(writer.Write(name, 0, values.data(), place.entry.size).ok() || lied_about);
    }
    const auto parts = writer.Finish();
    EXPECT_TRUE(parts.ok() || lied_about) << parts.status();
    if (!parts.ok()) return news;
    for (const WrittenPart& part : *parts) {
      proto::WrittenRange* range = cut_->written->add_ranges();
      range->set_file(part.file);
      range->set_offset_bytes(part.offset_bytes);
      range->set_size_bytes(part.size_bytes);
      range->set_crc32c(part.crc32c);
    }
  }
  *reply.mutable_written() = *cut_->written;
  stream.Send(reply);
  return true;
}

// --- ScriptedWorker ------------------------------------------------------------------------------

void ScriptedWorker::SendHello(const Hello& hello) {
  proto::WorkerReport report;
  report.mutable_hello()->set_version(kVersion);
  report.mutable_hello()->set_index(hello.index);
  report.mutable_hello()->set_incarnation(hello.incarnation);
  report.mutable_hello()->set_timeline(hello.timeline);
  for (const uint64_t step : hello.held_steps) {
    report.mutable_hello()->add_held_steps(step);
    held_below_ = std::max(held_below_, step + 1);
  }
  timeline = hello.timeline;
  stream_->Send(report);
}

void ScriptedWorker::SendReady(uint64_t training_examples, uint64_t test_examples,
                               uint32_t shard_map) {
  proto::WorkerReport report;
  report.mutable_ready()->set_training_examples(training_examples);
  report.mutable_ready()->set_test_examples(test_examples);
  report.mutable_ready()->set_shard_map_fingerprint(shard_map);
  report.mutable_ready()->set_job_fingerprint(job_fingerprint);
  stream_->Send(report);
}

bool ScriptedWorker::Read() {
  const auto orders = stream_->Take<proto::WorkerOrder>();
  for (const proto::WorkerOrder& order : orders) {
    welcomed = welcomed || order.has_welcome();
    if (order.has_welcome()) job_fingerprint = JobFingerprint(order.welcome().job());
    if (order.has_halt()) {
      halted = true;
      proto::WorkerReport report;
      report.mutable_halted()->set_timeline(order.halt().timeline());
      report.mutable_halted()->set_begun_below(
          begun_below.value_or(leased.empty() ? held_below_ : *leased.rbegin() + 1));
      if (answers_halt) stream_->Send(report);
    }
    if (order.has_resume()) {
      halted = false;
      std::erase_if(leases, [&order](uint64_t step) { return step >= order.resume().below(); });
    }
    job_done = job_done || order.has_job_done();
    if (order.has_job_done()) job_failure = order.job_done().failure();
    if (order.has_drain()) drained = order.drain().reason();
    if (order.has_rejected()) rejected = order.rejected().reason();
    of_another_job = of_another_job || order.rejected().other_job();
    if (order.has_timeline_opened()) {
      const bool goes_on = timeline == order.timeline_opened().timeline();
      timeline = order.timeline_opened().timeline();
      timelines.push_back(timeline);
      halted = false;
      if (goes_on) continue;
      leases.clear();
      leased.clear();
      evaluations.clear();
    }
    if (order.has_evaluate() && order.evaluate().timeline() == timeline) {
      evaluations.push_back(order.evaluate());
    }
    if (!order.has_lease() || order.lease().timeline() != timeline) continue;
    round = order.lease().round();
    for (uint64_t i = 0; i < order.lease().count(); ++i) {
      leases.push_back(order.lease().first() + i);
      leased.insert(order.lease().first() + i);
    }
  }
  return !orders.empty();
}

void ScriptedWorker::Report(uint64_t step, uint32_t examples) {
  proto::WorkerReport report;
  report.mutable_steps_done()->set_timeline(timeline);
  proto::StepDone* done = report.mutable_steps_done()->add_steps();
  done->set_step(step);
  done->set_examples(examples);
  done->set_loss_sum(examples * loss);
  done->add_metric_sums(0.5 * examples);
  stream_->Send(report);
}

void ScriptedWorker::ReportAlreadyApplied(uint64_t step) {
  proto::WorkerReport report;
  report.mutable_steps_done()->set_timeline(timeline);
  report.mutable_steps_done()->add_steps()->set_step(step);
  report.mutable_steps_done()->mutable_steps(0)->set_already_applied(true);
  stream_->Send(report);
}

void ScriptedWorker::Evaluate() {
  ASSERT_FALSE(evaluations.empty());
  const proto::Evaluate order = evaluations.front();
  evaluations.pop_front();
  proto::WorkerReport report;
  proto::EvaluationDone* done = report.mutable_evaluation_done();
  done->set_timeline(order.timeline());
  done->set_cut_step(order.cut_step());
  done->set_batch(order.batch());
  const auto examples = static_cast<double>(test_batches->Range(order.batch()).count);
  done->set_examples(static_cast<uint64_t>(examples));
  done->set_loss_sum(examples * test_loss);
  done->add_metric_sums(0.25 * examples);
  stream_->Send(report);
}

void ScriptedWorker::SendComputing() {
  proto::WorkerReport report;
  report.mutable_waiting()->set_what("computing a step");
  report.mutable_waiting()->set_computing(true);
  stream_->Send(report);
}

void ScriptedWorker::SendDraining() {
  proto::WorkerReport report;
  report.mutable_draining();
  stream_->Send(report);
}

void ScriptedWorker::Leave(const std::string& reason) {
  proto::WorkerReport report;
  report.mutable_leaving()->set_reason(reason);
  stream_->Send(report);
}

// --- ScriptedCluster -----------------------------------------------------------------------------

ScriptedCluster::ScriptedCluster(Options options) : options_(std::move(options)) {
  if (options_.directory.empty()) options_.directory = directory.path();
  job_ = SmallJob{.directory = options_.directory,
                  .epochs = options_.epochs,
                  .steps = options_.steps,
                  .callbacks = options_.callbacks,
                  .checkpoint = options_.checkpoint,
                  .strategy = options_.strategy}
             .Load();
  if (options_.test_examples == 0) job_.test = {};
  if (options_.rounds_of.has_value()) {
    job_.strategy.name = "sync";
    job_.strategy.gradients_per_update = *options_.rounds_of;
  }
  EXPECT_TRUE(MakeDirectories(run_dir()).ok());
  const absl::StatusOr<KerasModel> model = ParseKerasModel(job_.model_json);
  EXPECT_TRUE(model.ok()) << model.status();
  layout_ = LayOutCheckpoint(model->graph.variables(), (*MakePsOptimizer(job_))->slot_names());
  shard_map_fingerprint_ = ShardMapOf(job_, model->graph.variables(), options_.ps)->Fingerprint();
  Job resolved = job_;
  EXPECT_TRUE(ResolveStrategy(options_.workers, &resolved).ok());
  for (int i = 0; i < options_.ps; ++i) {
    ps.push_back(std::make_unique<ScriptedPs>(&network, absl::StrCat("ps-", i, ":1"), &layout_,
                                              resolved.Fingerprint(), shard_map_fingerprint_));
    ps.back()->incarnation = options_.ps_incarnation;
    if (resolved.strategy.sync()) {
      ps.back()->rounds.emplace(StepPlan(kExamples, job_.batch_size, job_.epochs, job_.steps),
                                resolved.strategy.gradients_per_update);
    }
  }
  StartCoordinator();
}

void ScriptedCluster::StartCoordinator() {
  run.reset();
  over.reset();
  workers_.clear();
  std::set<int> listed;
  for (int i = 0; i < options_.workers; ++i) listed.insert(i);
  std::vector<std::string> addresses;
  for (int i = 0; i < options_.ps; ++i) addresses.push_back(absl::StrCat("ps-", i, ":1"));
  auto created =
      TrainingRun::Create({.loop = &loop,
                           .network = &network,
                           .job = job_,
                           .coordinator_address = "chief:1",
                           .ps_addresses = addresses,
                           .listed_workers = listed,
                           .run_dir = run_dir(),
                           .coordinator_id = ++coordinators_,
                           .is_gone = [this](const std::string&) { return !options_.others_live; },
                           .on_over =
                               [this](const absl::Status& status) {
                                 EXPECT_FALSE(over.has_value()) << "over twice";
                                 over = status;
                               }});
  ASSERT_TRUE(created.ok()) << created.status();
  run = *std::move(created);
  run->Start();
  Settle();
}

void ScriptedCluster::Settle() {
  bool busy = true;
  while (busy) {
    loop.RunUntilIdle();
    busy = false;
    for (auto& each : ps) busy = each->Serve() || busy;
    for (auto& worker : workers_) busy = worker->Read() || busy;
  }
}

void ScriptedCluster::Advance(Time time) {
  const Time end = loop.Now() + time;
  Settle();
  while (loop.Now() < end) {
    loop.Advance(std::min<Time>(end - loop.Now(), std::chrono::milliseconds(50)));
    Settle();
  }
}

ScriptedWorker& ScriptedCluster::Connect(const ScriptedWorker::Hello& hello) {
  auto stream = std::make_shared<FarEnd>(&loop, absl::StrCat("host-", hello.index), kWorkMethod);
  auto callbacks = run->Accept(kWorkMethod, stream->MakeStream());
  EXPECT_TRUE(callbacks.ok()) << callbacks.status();
  stream->set_callbacks(*std::move(callbacks));
  ScriptedWorker& worker = *workers_.emplace_back(std::make_unique<ScriptedWorker>(stream));
  worker.plan = BatchPlanOf(job_, kExamples).steps();
  if (options_.test_examples > 0)
    worker.test_batches.emplace(options_.test_examples, job_.batch_size, /*epochs=*/1, /*steps=*/0);
  worker.SendHello(hello);
  Settle();
  return worker;
}

ScriptedWorker& ScriptedCluster::Join(const ScriptedWorker::Hello& hello) {
  ScriptedWorker& worker = Connect(hello);
  EXPECT_TRUE(worker.welcomed) << worker.rejected;
  SendReady(worker, kExamples, options_.test_examples);
  return worker;
}

void ScriptedCluster::SendReady(ScriptedWorker& worker, uint64_t training_examples,
                                uint64_t test_examples) {
  worker.SendReady(training_examples, test_examples, shard_map_fingerprint_);
  Settle();
}

void ScriptedCluster::FinishStep(ScriptedWorker& worker) {
  ASSERT_FALSE(worker.leases.empty());
  const uint64_t step = worker.leases.front();
  worker.leases.pop_front();
  for (auto& each : ps) each->applied.insert(step);
  worker.Report(step);
  Settle();
}

void ScriptedCluster::FinishAll(ScriptedWorker& worker) {
  while (!worker.leases.empty()) FinishStep(worker);
}

void ScriptedCluster::Disconnect(ScriptedWorker& worker) {
  worker.stream().Close(absl::UnavailableError("connection reset"));
  Settle();
}

proto::TaskStatus ScriptedCluster::WorkerStatus(uint32_t index) const {
  const proto::StatusReply status = run->Status();
  for (const proto::TaskStatus& task : status.tasks()) {
    if (task.type() == "worker" && task.index() == index) return task;
  }
  ADD_FAILURE() << "no worker " << index;
  return {};
}

std::vector<uint64_t> ScriptedCluster::StoredSteps() const {
  std::vector<uint64_t> steps;
  const CheckpointStore store(run_dir() + "/checkpoints");
  const std::vector<StoredCheckpoint> stored = *store.List(nullptr);
  for (const StoredCheckpoint& checkpoint : stored) {
    EXPECT_TRUE(store.Verify(checkpoint).ok());
    steps.push_back(checkpoint.manifest.cut_step);
  }
  return steps;
}

}  // namespace shoal
