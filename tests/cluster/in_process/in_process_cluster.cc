#include "tests/cluster/in_process/in_process_cluster.h"

#include <gtest/gtest.h>

#include <utility>

#include "absl/strings/str_cat.h"

namespace shoal {
namespace {

// Ends a test that hangs, not one on a busy machine or under a sanitizer.
constexpr std::chrono::minutes kPatience{5};

std::string PsName(int index) { return absl::StrCat("ps-", index); }

std::chrono::steady_clock::time_point Deadline() {
  return std::chrono::steady_clock::now() + kPatience;
}

}  // namespace

InProcessCluster::Task::~Task() {
  if (thread.joinable()) {
    node->loop()->Post([this] { node->loop()->Stop(); });
    thread.join();
  }
  // The logic goes before the loop that it uses.
  session.reset();
  evaluator.reset();
  computer.reset();
  run.reset();
  server.reset();
}

InProcessCluster::InProcessCluster(Options options) : options_(std::move(options)) {
  ps_.resize(options_.ps);
  workers_.resize(options_.workers);
}

InProcessCluster::~InProcessCluster() {
  for (auto& worker : workers_) worker.reset();
  evaluator_.reset();
  coordinator_.reset();
  for (auto& ps : ps_) ps.reset();
}

void InProcessCluster::StartCoordinator() {
  coordinator_ = std::make_unique<Task>();
  Task& task = *coordinator_;
  task.node = hub_.CreateNode();
  std::vector<std::string> ps_names;
  for (int i = 0; i < options_.ps; ++i) ps_names.push_back(PsName(i));
  std::set<int> listed;
  for (int i = 0; i < options_.workers; ++i) listed.insert(i);
  absl::StatusOr<std::unique_ptr<TrainingRun>> run =
      TrainingRun::Create({.loop = task.node->loop(),
                           .network = task.node.get(),
                           .job = options_.job,
                           .coordinator_address = "chief",
                           .ps_addresses = ps_names,
                           .listed_workers = listed,
                           .run_dir = options_.run_dir,
                           .coordinator_id = 7,
                           // Each takes the place of the one before.
                           .is_gone = [](const std::string&) { return true; },
                           .on_over =
                               [this, &task](const absl::Status& status) {
                                 MutexLock lock(&mutex_);
                                 task.over = true;
                                 task.status = status;
                                 changed_.NotifyAll();
                               }});
  ASSERT_TRUE(run.ok()) << run.status();
  task.run = *std::move(run);
  ASSERT_TRUE(task.node
                  ->Listen("chief",
                           [&task](const std::string& method, std::unique_ptr<Stream> stream) {
                             return task.run->Accept(method, std::move(stream));
                           })
                  .ok());
  task.run->Start();
  task.thread = std::thread([&task] { task.node->Run(); });
}

void InProcessCluster::StartPs(int index) {
  ps_[index] = std::make_unique<Task>();
  Task& task = *ps_[index];
  task.node = hub_.CreateNode();
  task.server = std::make_unique<ParameterServer>(ParameterServer::Options{
      .index = index,
      .incarnation = uint64_t{1000} + index,
      .loop = task.node->loop(),
      .files = index < static_cast<int>(options_.ps_files.size()) ? options_.ps_files[index]
                                                                  : RealFileSystem(),
      .control = {.on_stopped = [this, &task] {
        MutexLock lock(&mutex_);
        task.over = true;
        changed_.NotifyAll();
      }}});
  ASSERT_TRUE(task.node
                  ->Listen(PsName(index),
                           [&task](const std::string& method, std::unique_ptr<Stream> stream) {
                             return task.server->Accept(method, std::move(stream));
                           })
                  .ok());
  task.thread = std::thread([&task] { task.node->Run(); });
}

void InProcessCluster::StartWorker(int index) {
  workers_[index] = std::make_unique<Task>();
  Task& task = *workers_[index];
  task.node = hub_.CreateNode();
  task.computer = std::make_unique<ComputeThread>(
      ComputeThread::Options{.loop = task.node->loop(),
                             .backend = options_.backend,
                             .create_runner = options_.create_runner,
                             .threads = 1});
  task.session = std::make_unique<WorkerSession>(
      WorkerSession::Options{.loop = task.node->loop(),
                             .network = task.node.get(),
                             .computer = task.computer.get(),
                             .coordinator = "chief",
                             .index = static_cast<uint32_t>(index),
                             .incarnation = uint64_t{2000} + index,
                             .host = "here",
                             .on_step =
                                 [this, index](uint64_t timeline, uint64_t step) {
                                   MutexLock lock(&mutex_);
                                   finished_.push_back({index, timeline, step});
                                 },
                             .on_over =
                                 [this, &task](WorkerSession::End end, const absl::Status& status) {
                                   MutexLock lock(&mutex_);
                                   task.over = true;
                                   task.end = end;
                                   task.status = status;
                                   changed_.NotifyAll();
                                   task.node->loop()->Stop();
                                 }});
  task.session->Start();
  task.thread = std::thread([&task] { task.node->Run(); });
}

void InProcessCluster::StartEvaluator() {
  evaluator_ = std::make_unique<Task>();
  Task& task = *evaluator_;
  task.node = hub_.CreateNode();
  task.computer =
      std::make_unique<ComputeThread>(ComputeThread::Options{.loop = task.node->loop(),
                                                             .backend = options_.backend,
                                                             .threads = 1,
                                                             .only_evaluates = true});
  task.evaluator = std::make_unique<EvaluatorSession>(
      EvaluatorSession::Options{.loop = task.node->loop(),
                                .network = task.node.get(),
                                .computer = task.computer.get(),
                                .coordinator = "chief",
                                .incarnation = 3000 + ++evaluators_,
                                .host = "here",
                                .on_over = [this, &task](const absl::Status& status) {
                                  MutexLock lock(&mutex_);
                                  task.over = true;
                                  task.status = status;
                                  changed_.NotifyAll();
                                  task.node->loop()->Stop();
                                }});
  task.evaluator->Start();
  task.thread = std::thread([&task] { task.node->Run(); });
}

absl::Status InProcessCluster::WaitForEvaluator() {
  if (!WaitUntilOver(*evaluator_)) return absl::DeadlineExceededError("the evaluator is not over");
  MutexLock lock(&mutex_);
  return evaluator_->status;
}

absl::Status InProcessCluster::status_of_worker(int index) {
  MutexLock lock(&mutex_);
  return workers_[index]->status;
}

void InProcessCluster::StartAll() {
  for (int i = 0; i < options_.ps; ++i) StartPs(i);
  for (int i = 0; i < options_.workers; ++i) StartWorker(i);
  StartCoordinator();
}

void InProcessCluster::StopCoordinator() {
  coordinator_->node->loop()->Post([this] { coordinator_->run->Stop(); });
}

bool InProcessCluster::WaitUntilOver(Task& task) {
  const auto deadline = Deadline();
  MutexLock lock(&mutex_);
  while (!task.over) {
    if (!changed_.WaitUntil(&mutex_, deadline)) return task.over;
  }
  return true;
}

absl::Status InProcessCluster::WaitForCoordinator() {
  if (!WaitUntilOver(*coordinator_)) {
    return absl::DeadlineExceededError("the coordinator is not over: " +
                                       Status().ShortDebugString());
  }
  MutexLock lock(&mutex_);
  return coordinator_->status;
}

std::vector<WorkerSession::End> InProcessCluster::WaitForWorkers() {
  std::vector<WorkerSession::End> ends;
  for (size_t i = 0; i < workers_.size(); ++i) ends.push_back(WaitForWorker(static_cast<int>(i)));
  return ends;
}

WorkerSession::End InProcessCluster::WaitForWorker(int index) {
  EXPECT_TRUE(WaitUntilOver(*workers_[index])) << "worker " << index << " is not over";
  MutexLock lock(&mutex_);
  return workers_[index]->end;
}

proto::StatusReply InProcessCluster::Status() {
  auto reply = std::make_shared<std::optional<proto::StatusReply>>();
  coordinator_->node->loop()->Post([this, reply] {
    proto::StatusReply status = coordinator_->run->Status();
    MutexLock lock(&mutex_);
    *reply = std::move(status);
    changed_.NotifyAll();
  });
  const auto deadline = Deadline();
  MutexLock lock(&mutex_);
  while (!reply->has_value()) {
    if (!changed_.WaitUntil(&mutex_, deadline)) break;
  }
  EXPECT_TRUE(reply->has_value()) << "the coordinator's loop does not run";
  return reply->value_or(proto::StatusReply());
}

bool InProcessCluster::WaitForStatus(
    const std::function<bool(const proto::StatusReply&)>& condition) {
  const auto deadline = Deadline();
  while (std::chrono::steady_clock::now() < deadline) {
    if (condition(Status())) return true;
    std::this_thread::yield();
  }
  return false;
}

std::vector<InProcessCluster::FinishedStep> InProcessCluster::finished_steps() {
  MutexLock lock(&mutex_);
  return finished_;
}

}  // namespace shoal
