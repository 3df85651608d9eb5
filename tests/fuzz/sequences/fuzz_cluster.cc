#include "tests/fuzz/sequences/fuzz_cluster.h"

#include <google/protobuf/stubs/logging.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/version.h"
#include "common/checkpoint/safetensors.h"
#include "common/files/durable_file.h"
#include "common/job/job_shard_map.h"
#include "common/log/logging.h"
#include "tests/fuzz/sequences/fuzz_check.h"
#include "tests/ps/store/applied_steps.h"

namespace shoal {
namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

// An attack may leave behind what ends the tasks that are started next, but not again and again.
constexpr int kMaxStarts = 24;
// A ps and a worker end a little before the coordinator, at the end of the job.
constexpr Time kRestartPause = seconds(5);
// The longest single wait is for a cut that is not complete: 60 s and two lease timeouts.
constexpr Time kPatience = minutes(15);

// Tasks and protobuf log broken messages. The log would cost more than the messages.
void BeQuiet() {
  static const bool quiet = [] {
    SendLogTo([](const std::string&, const LogFields&) {});
    google::protobuf::SetLogHandler(nullptr);
    return true;
  }();
  static_cast<void>(quiet);
}

ShardMap MapOf(const FuzzJob& job, int ps) {
  absl::StatusOr<ShardMap> map = ShardMapOf(job.job(), job.variables(), ps);
  FuzzCheck(map.ok(), map.status().ToString());
  return *std::move(map);
}

}  // namespace

FuzzCluster::Task::~Task() {
  session.reset();
  evaluator.reset();
  computer.reset();
  run.reset();
  server.reset();
}

FuzzCluster::FuzzCluster(uint8_t variant, Options options)
    : job_(FuzzJob::Of(variant)), options_(options), shard_map_(MapOf(job_, options.ps)) {
  BeQuiet();
  ps_.resize(options_.ps);
  FuzzCheck(MakeDirectories(absl::StrCat(kRunDirectory, "/checkpoints"), &disk_).ok(), "no disk");
}

FuzzCluster::~FuzzCluster() {
  evaluator_.reset();
  worker_.reset();
  coordinator_.reset();
  for (auto& ps : ps_) ps.reset();
}

std::string FuzzCluster::PsName(int index) { return absl::StrCat("ps", index); }

void FuzzCluster::StartCoordinator() {
  coordinator_.reset();
  coordinator_ = std::make_unique<Task>();
  Task* const task = coordinator_.get();
  task->node = hub_.CreateNode(kChief);
  std::vector<std::string> ps;
  for (int i = 0; i < options_.ps; ++i) ps.push_back(PsName(i));
  absl::StatusOr<std::unique_ptr<TrainingRun>> run = TrainingRun::Create(
      {.loop = &loop_,
       .network = task->node.get(),
       .files = &disk_,
       .job = job_.job(),
       .coordinator_address = kChief,
       .ps_addresses = std::move(ps),
       .listed_workers = {0},
       .run_dir = kRunDirectory,
       .coordinator_id = ++started_,
       .run_id = kRunDirectory,
       // Each takes the place of the one before.
       .is_gone = [](const std::string&) { return true; },
       .on_over = [this, task](const absl::Status& status) { End(task, status); }});
  FuzzCheck(run.ok(), run.status().ToString());
  task->run = *std::move(run);
  const auto bound = task->node->Listen(
      kChief, [run = task->run.get()](const std::string& method, std::unique_ptr<Stream> stream) {
        return run->Accept(method, std::move(stream));
      });
  FuzzCheck(bound.ok(), bound.status().ToString());
  task->run->Start();
}

void FuzzCluster::StartPs(int index) {
  ps_[index].reset();
  ps_[index] = std::make_unique<Task>();
  Task* const task = ps_[index].get();
  task->node = hub_.CreateNode(PsName(index));
  task->incarnation = 1000 + ++started_;
  task->server = std::make_unique<ParameterServer>(ParameterServer::Options{
      .index = index,
      .incarnation = task->incarnation,
      .loop = &loop_,
      .files = &disk_,
      .control = {.on_stopped = [this, task] { End(task, absl::OkStatus()); }}});
  const auto bound = task->node->Listen(
      PsName(index),
      [server = task->server.get()](const std::string& method, std::unique_ptr<Stream> stream) {
        return server->Accept(method, std::move(stream));
      });
  FuzzCheck(bound.ok(), bound.status().ToString());
}

void FuzzCluster::StartWorker() {
  worker_.reset();
  worker_ = std::make_unique<Task>();
  Task* const task = worker_.get();
  task->node = hub_.CreateNode("worker0");
  task->computer = std::make_unique<FuzzComputer>(&loop_, &job_);
  task->session = std::make_unique<WorkerSession>(WorkerSession::Options{
      .loop = &loop_,
      .network = task->node.get(),
      .computer = task->computer.get(),
      .coordinator = kChief,
      .index = 0,
      .incarnation = 2000 + ++started_,
      .host = "here",
      .on_over = [this, task](WorkerSession::End, const absl::Status& status) {
        End(task, status);
      }});
  task->session->Start();
}

void FuzzCluster::StartEvaluator() {
  evaluator_ = std::make_unique<Task>();
  Task* const task = evaluator_.get();
  task->node = hub_.CreateNode("evaluator");
  task->computer = std::make_unique<FuzzComputer>(&loop_, &job_);
  task->evaluator = std::make_unique<EvaluatorSession>(EvaluatorSession::Options{
      .loop = &loop_,
      .network = task->node.get(),
      .computer = task->computer.get(),
      .coordinator = kChief,
      .incarnation = 3000 + ++started_,
      .host = "here",
      .on_over = [this, task](const absl::Status& status) { End(task, status); }});
  task->evaluator->Start();
}

void FuzzCluster::KillCoordinator() { coordinator_.reset(); }

void FuzzCluster::StartTraining() {
  for (int i = 0; i < options_.ps; ++i) StartPs(i);
  StartCoordinator();
  StartWorker();
  const Time end = loop_.Now() + minutes(1);
  while (coordinator_->run->dispatcher() == nullptr ||
         coordinator_->run->dispatcher()->base() == 0) {
    if (loop_.Now() >= end) FuzzFail("no step without an attack: ", Describe());
    loop_.Advance(milliseconds(50));
  }
}

KnownValues FuzzCluster::Known() {
  KnownValues known;
  known.numbers = {job_.fingerprint(),   shard_map_.Fingerprint(),  FuzzJob::kTrainingExamples,
                   job_.test_examples(), job_.plan().total_steps(), uint64_t{1} << 32};
  for (const auto& ps : ps_) {
    if (ps == nullptr) continue;
    for (const uint64_t number :
         {ps->server->timeline(), ps->server->promised_term(),
          ps->server->promised_term() + (uint64_t{1} << 32), ps->incarnation})
      known.numbers.push_back(number);
  }
  known.texts = {kVersion,
                 job_.text(),
                 kRunDirectory,
                 absl::StrCat(kRunDirectory, "/checkpoints"),
                 absl::StrCat(kRunDirectory, "/checkpoints/../x"),
                 PsName(0),
                 kChief,
                 "worker",
                 "first/kernel",
                 "bf16",
                 "\x1b[2J",
                 "\xff\xfe",
                 ".cut-3-1"};
  const auto stored = disk_.List(absl::StrCat(kRunDirectory, "/checkpoints"));
  if (stored.ok()) {
    for (const FileSystem::Entry& entry : *stored)
      known.texts.push_back(absl::StrCat(kRunDirectory, "/checkpoints/", entry.name));
  }
  return known;
}

void FuzzCluster::CheckStores() const {
  for (const auto& ps : ps_) {
    if (ps != nullptr && ps->server->variables() != nullptr) CheckStore(*ps->server->variables());
  }
}

void FuzzCluster::CheckStore(const VariableStore& store) const {
  for (int i = 0; i < store.chunk_count(); ++i) {
    const StoredChunk& chunk = store.chunk(i);
    FuzzCheck(options_.may_load || chunk.applied().end() <= job_.plan().total_steps(), "chunk ", i,
              " has a step that the job does not have");
    const uint64_t count = CountSteps(chunk.applied());
    // In rounds, steps of a round that is not whole are in and not applied.
    const bool right =
        job_.rounds().has_value() ? chunk.version() <= count : chunk.version() == count;
    FuzzCheck(right, "chunk ", i, " has had ", chunk.version(), " updates of ", count, " steps");
  }
}

void FuzzCluster::End(Task* task, const absl::Status& status) const {
  FuzzCheck(!task->over_at.has_value(), "a task ends twice");
  task->over_at = loop_.Now();
  task->status = status;
}

bool FuzzCluster::IsDue(const std::unique_ptr<Task>& task) const {
  if (task == nullptr) return true;
  return task->over_at.has_value() && loop_.Now() - *task->over_at >= kRestartPause;
}

int FuzzCluster::StartEnded() {
  int started = 0;
  for (int i = 0; i < options_.ps; ++i) {
    if (!IsDue(ps_[i])) continue;
    StartPs(i);
    ++started;
  }
  if (IsDue(coordinator_)) {
    StartCoordinator();
    ++started;
  }
  if (IsDue(worker_)) {
    StartWorker();
    ++started;
  }
  return started;
}

void FuzzCluster::FinishJob() {
  const Time end = loop_.Now() + kPatience;
  int started = 0;
  while (coordinator_ == nullptr || !coordinator_->over_at.has_value() ||
         !coordinator_->status.ok()) {
    started += StartEnded();
    // It may be beyond help, but never in silence.
    if (started > kMaxStarts && options_.may_end_run) return;
    if (started > kMaxStarts || loop_.Now() > end)
      FuzzFail("the job does not come to its end: ", Describe());
    loop_.Advance(milliseconds(500));
    CheckStores();
  }
  if (!options_.may_change_values) CheckModel();
}

void FuzzCluster::CheckModel() {
  const auto file =
      SafetensorsFile::Open(absl::StrCat(kRunDirectory, "/model/model.safetensors"), &disk_);
  FuzzCheck(file.ok(), "no model: ", file.status().ToString());
  for (size_t v = 0; v < job_.variables().size(); ++v) {
    const TensorEntry* const entry = (*file)->Find(job_.variables()[v].name);
    FuzzCheck(entry != nullptr, "the model lacks ", job_.variables()[v].name);
    const absl::StatusOr<std::vector<float>> values = (*file)->ReadFloats(*entry);
    FuzzCheck(values.ok(), values.status().ToString());
    for (size_t i = 0; i < values->size(); ++i) {
      const float expected = job_.Trained(static_cast<int>(v), static_cast<int64_t>(i));
      FuzzCheck((*values)[i] == expected, job_.variables()[v].name, " is ", (*values)[i], " at ", i,
                ", but the steps of the job make ", expected);
    }
  }
}

std::string FuzzCluster::Describe() const {
  std::string text;
  if (coordinator_ != nullptr) {
    absl::StrAppend(&text, coordinator_->over_at.has_value() ? "coordinator over " : "coordinator ",
                    coordinator_->status.ToString(), "; ",
                    coordinator_->run->Status().ShortDebugString());
  }
  if (worker_ != nullptr)
    absl::StrAppend(&text, worker_->over_at.has_value() ? "; worker over " : "; worker ",
                    worker_->status.ToString());
  return text;
}

}  // namespace shoal
