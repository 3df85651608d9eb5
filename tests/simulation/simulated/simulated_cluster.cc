#include "tests/simulation/simulated/simulated_cluster.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/files/durable_file.h"
#include "coordinator/training_run.h"
#include "ps/parameter_server.h"
#include "tests/simulation/simulated/simulated_computer.h"
#include "worker/session/worker_session.h"

namespace shoal {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr char kChief[] = "chief";
// Keepalive breaks a stream when its peer has not answered for this long.
constexpr Time kKeepaliveAtLeast = seconds(5);
constexpr Time kKeepaliveAtMost = seconds(15);
constexpr Time kNoticeAtOnce = milliseconds(5);
// Of a ps that was told to leave.
constexpr Time kPsGrace = seconds(20);

std::string PsName(int index) { return absl::StrCat("ps", index); }
std::string WorkerName(int index) { return absl::StrCat("worker", index); }

Certificate CertificateOf(Role role, std::optional<int> index) {
  return {.identity = {.trust_domain = "simulated", .job = "job", .role = role, .index = index}};
}

}  // namespace

struct SimulatedCluster::Program {
  virtual ~Program() = default;
  virtual void AfterCallback(SimulatedProcess&) {}
  virtual void Stop() {}  // as SIGTERM asks
};

struct SimulatedCluster::Coordinator : Program {
  SimulatedCluster* cluster = nullptr;
  std::unique_ptr<TrainingRun> run;
  void AfterCallback(SimulatedProcess& process) override;
  void Stop() override { run->Stop(); }
};

struct SimulatedCluster::Ps : Program {
  SimulatedCluster* cluster = nullptr;
  bool leaves = false;
  std::unique_ptr<ParameterServer> server;
  void Stop() override {
    leaves = true;
    server->Leave(kPsGrace);
  }
  void AfterCallback(SimulatedProcess& process) override {
    cluster->checks_.ps().AfterCallback(process);
  }
};

struct SimulatedCluster::WorkerProgram : Program {
  std::unique_ptr<SimulatedComputer> computer;
  std::unique_ptr<WorkerSession> session;
  ~WorkerProgram() override {
    session.reset();
    computer.reset();
  }
  void Stop() override { session->Drain("SIGTERM"); }
};

void SimulatedCluster::Coordinator::AfterCallback(SimulatedProcess& process) {
  std::vector<const ParameterServer*> servers;
  for (auto& [name, task] : cluster->tasks_) {
    Life* const life = task->current();
    if (life == nullptr || life->program == nullptr) continue;
    if (const auto* ps = dynamic_cast<const Ps*>(life->program.get())) {
      servers.push_back(ps->server.get());
    }
  }
  cluster->checks_.coordinator().AfterCallback(process, *run, servers);
  cluster->checks_.reopening().AfterCallback(run->workers());
}

SimulatedCluster::SimulatedCluster(World* world, SimulatedNetwork* network, SimulatedDisk* disk,
                                   Checks* checks, std::vector<SimulatedJob> jobs)
    : world_(*world),
      network_(*network),
      disk_(*disk),
      checks_(*checks),
      jobs_(std::move(jobs)),
      job_(&jobs_.front()),
      workload_(*job_->workload),
      ps_count_(workload_.ps) {
  disk_condition_.latency = workload_.file_latency;
  network_.set_base_latency(workload_.base_latency);
  for (const SimulatedJob& job : jobs_)
    (void)MakeDirectories(job.workload->run_dir + "/checkpoints", &disk_);
}

SimulatedCluster::~SimulatedCluster() {
  for (auto& [name, task] : tasks_) {
    for (auto& life : task->lives) {
      if (life->process->alive()) End(*task, *life, Death::kKill);
    }
  }
}

void SimulatedCluster::StartAll() {
  const auto add = [this](const std::string& name, int index) {
    std::unique_ptr<Task>& task = tasks_[name];
    if (task == nullptr) task = std::make_unique<Task>();
    task->name = name;
    task->index = index;
    task->over = false;
    StartAgainAfter(*task, world_.random().Between(Time(1000), milliseconds(200)));
  };
  add(kChief, -1);
  for (int i = 0; i < ps_count_; ++i) add(PsName(i), i);
  for (int i = 0; i < workload_.workers; ++i) add(WorkerName(i), i);
}

// Of two coordinators at once, each with another process that was the same ps, one is refused the
// run directory.
bool SimulatedCluster::AnotherLives(const Task& task, const Life& life) {
  return std::any_of(task.lives.begin(), task.lives.end(), [&life](const auto& other) {
    return other.get() != &life && other->process->alive();
  });
}

SimulatedCluster::Task* SimulatedCluster::Find(const std::string& name) {
  auto found = tasks_.find(name);
  return found == tasks_.end() ? nullptr : found->second.get();
}

void SimulatedCluster::Later(Time delay, std::function<void()> what) {
  world_.After(delay, std::move(what));
}

void SimulatedCluster::StartAgainAfter(Task& task, Time pause) {
  const uint64_t start = ++task.starts;
  Later(pause, [this, &task, start] {
    const Life* const current = task.current();
    const bool runs = current != nullptr && current->process->alive();
    if (task.starts == start && !task.over && !runs) Start(task);
  });
}

// Every other seed has certificates. Nothing is drawn, so a seed draws the same with and without.
std::optional<Certificate> SimulatedCluster::CertificateFor(const Task& task) const {
  if (workload_.seed % 2 == 0) return std::nullopt;
  if (task.name == kChief) return CertificateOf(Role::kCoordinator, std::nullopt);
  if (absl::StartsWith(task.name, "ps")) return CertificateOf(Role::kPs, task.index);
  const bool listed = task.index < workload_.workers - workload_.unlisted_workers;
  return CertificateOf(Role::kWorker, listed ? std::optional<int>(task.index) : std::nullopt);
}

void SimulatedCluster::Start(Task& task) {
  ++task.starts;
  auto life = std::make_unique<Life>();
  life->process = std::make_unique<SimulatedProcess>(SimulatedProcess::Options{
      .world = &world_,
      .network = &network_,
      .name = absl::StrCat(task.name, "#", task.lives.size() + 1),
      .host = task.name,
      .certificate = CertificateFor(task),
      .after_callback = [program = &life->program](SimulatedProcess& process) {
        if (*program != nullptr) (*program)->AfterCallback(process);
      }});
  const bool blind = absl::StartsWith(task.name, "ps") && task.index < workload_.blind_ps;
  life->files = std::make_unique<ProcessFiles>(life->process.get(), blind ? &other_disk_ : &disk_,
                                               &disk_condition_);
  world_.Trace(life->process->name(), "starts");
  task.lives.push_back(std::move(life));
  task.current()->program = MakeProgram(task, *task.current());
}

std::unique_ptr<SimulatedCluster::Program> SimulatedCluster::MakeProgram(Task& task, Life& life) {
  SimulatedProcess* const process = life.process.get();
  if (task.name == kChief) {
    auto program = std::make_unique<Coordinator>();
    program->cluster = this;
    std::vector<std::string> ps;
    for (int i = 0; i < ps_count_; ++i) ps.push_back(PsName(i));
    std::set<int> listed;
    for (int i = 0; i < workload_.workers - workload_.unlisted_workers; ++i) listed.insert(i);
    absl::StatusOr<std::unique_ptr<TrainingRun>> run = TrainingRun::Create(
        {.loop = process,
         .network = process,
         .files = life.files.get(),
         .job = job_->workload->job,
         .coordinator_address = kChief,
         .ps_addresses = ps,
         .listed_workers = listed,
         .run_dir = run_dir(),
         .coordinator_id = static_cast<uint32_t>(world_.random().Next()),
         .run_id = run_dir(),
         .on_over = [this, &task, &life](const absl::Status& status) {
           if (status.ok()) {
             job_done_ = true;
           } else if (!absl::IsAborted(status) && !absl::IsCancelled(status) &&
                      !disk_condition_.full && !disk_condition_.read_only &&
                      // It may have been so when that was tried.
                      !absl::IsResourceExhausted(status) && !absl::IsPermissionDenied(status) &&
                      !(absl::IsFailedPrecondition(status) && AnotherLives(task, life))) {
             world_.Fail(absl::StrCat("the coordinator gave up: ", status.ToString()));
           }
           OnExit(task, life, status.ToString(), !status.ok());
         }});
    if (!run.ok()) {
      world_.Fail(run.status().ToString());
      return program;
    }
    program->run = *std::move(run);
    (void)process->Listen(kChief, [run = program->run.get()](const std::string& method,
                                                             std::unique_ptr<Stream> stream) {
      return run->Accept(method, std::move(stream));
    });
    process->Enqueue([run = program->run.get()] { run->Start(); });
    return program;
  }
  if (absl::StartsWith(task.name, "ps")) {
    auto program = std::make_unique<Ps>();
    program->cluster = this;
    program->server = std::make_unique<ParameterServer>(ParameterServer::Options{
        .index = task.index,
        .incarnation = world_.random().Next() | 1,
        .loop = process,
        .files = life.files.get(),
        .control = {.on_stopped = [this, &task, &life, ps = program.get()] {
          if (ps->leaves) checks_.ps().OnLeft(*life.process);
          OnExit(task, life, "stopped", /*start_again=*/ps->leaves);
        }}});
    (void)process->Listen(task.name,
                          [server = program->server.get()](const std::string& method,
                                                           std::unique_ptr<Stream> stream) {
                            return server->Accept(method, std::move(stream));
                          });
    checks_.ps().Register(process, task.index, program->server.get());
    return program;
  }
  auto program = std::make_unique<WorkerProgram>();
  program->computer = std::make_unique<SimulatedComputer>(SimulatedComputer::Options{
      .process = process,
      .jobs = jobs_,
      .on_prepare =
          [this, process](const SimulatedJob& job) { checks_.workers().OnPrepare(*process, job); },
      .on_train =
          [this, process](uint64_t step, size_t chunks) {
            checks_.workers().OnTrain(*process, step, chunks);
            checks_.reopening().OnTrain(*process, step, chunks);
          },
      .on_evaluate =
          [this](const SimulatedJob& job, std::span<const float> cut) {
            return checks_.workers().OnEvaluate(job, cut);
          }});
  const bool listed = task.index < workload_.workers - workload_.unlisted_workers;
  program->session = std::make_unique<WorkerSession>(WorkerSession::Options{
      .loop = process,
      .network = process,
      .computer = program->computer.get(),
      .coordinator = kChief,
      .index = listed ? std::optional<uint32_t>(task.index) : std::nullopt,
      .incarnation = world_.random().Next(),
      .host = task.name,
      .on_over = [this, &task, &life](WorkerSession::End end, const absl::Status& status) {
        if (end == WorkerSession::End::kFailed && &life == task.current())
          world_.Fail(absl::StrCat("a worker failed: ", status.ToString()));
        OnExit(task, life, absl::StrCat("end ", static_cast<int>(end), " ", status.ToString()),
               end != WorkerSession::End::kJobDone);
      }});
  process->Enqueue([session = program->session.get()] { session->Start(); });
  return program;
}

// --- Ends ----------------------------------------------------------------------------------------

void SimulatedCluster::OnExit(Task& task, Life& life, const std::string& how, bool start_again) {
  world_.Trace(life.process->name(), "ends: " + how);
  // Not from inside one of its callbacks.
  Later(Time::zero(), [this, &task, &life, start_again] {
    if (!life.process->alive()) return;
    const bool current = &life == task.current();
    End(task, life, Death::kExit);
    if (!current) return;
    if (start_again) {
      StartAgainAfter(task, world_.random().Between(milliseconds(50), seconds(2)));
    } else {
      task.over = true;
    }
  });
}

void SimulatedCluster::End(Task& task, Life& life, Death death) {
  if (!life.process->alive()) return;
  world_.Trace(life.process->name(), "is dead");
  life.process->Kill();
  const bool vanishes = death == Death::kPowerLoss;
  network_.ProcessGone(life.process.get(), death == Death::kExit,
                       vanishes ? kKeepaliveAtMost : kNoticeAtOnce);
  checks_.Forget(life.process.get());
  life.program.reset();
  (void)task;
}

// --- Faults --------------------------------------------------------------------------------------

void SimulatedCluster::Strike(const Fault& fault) {
  using Kind = Fault::Kind;
  switch (fault.kind) {
    case Kind::kPowerLoss:
      return PowerLoss(fault.duration);
    case Kind::kDrainAll:
      for (auto& [name, each] : tasks_) {
        if (each->current() != nullptr && each->current()->process->alive())
          Drain(*each->current());
      }
      return;
    case Kind::kRestartAll:
      return RestartAll(static_cast<int>(fault.count), fault.duration);
    case Kind::kChangeJob:
      return ChangeJob(fault.duration);
    case Kind::kDiskFull:
      disk_condition_.full = true;
      return Later(fault.duration, [this] { disk_condition_.full = false; });
    case Kind::kDiskReadOnly:
      disk_condition_.read_only = true;
      return Later(fault.duration, [this] { disk_condition_.read_only = false; });
    case Kind::kDiskSlow:
      disk_condition_.latency = fault.latency;
      return Later(fault.duration, [this] { disk_condition_.latency = workload_.file_latency; });
    case Kind::kDamage:
      return DamageNewest();
    case Kind::kCut:
    case Kind::kCutBoth:
      if (fault.task == fault.other) return;
      Cut(fault.task, fault.other, fault.duration);
      if (fault.kind == Kind::kCutBoth) Cut(fault.other, fault.task, fault.duration);
      return;
    case Kind::kSlowLinks:
      network_.SetLatency(fault.task, fault.latency);
      return Later(fault.duration, [this, task = fault.task] { network_.ResetLatency(task); });
    case Kind::kSlowReader:
      network_.SetReadPause(fault.task, fault.latency);
      return Later(fault.duration, [this, task = fault.task] { network_.ResetReadPause(task); });
    default:
      break;
  }
  Task* const task = Find(fault.task);
  Life* const life = task == nullptr ? nullptr : task->current();
  if (life == nullptr || !life->process->alive()) return;
  const auto kill = [this, task, life, pause = fault.duration] {
    if (!life->process->alive()) return;
    const bool current = life == task->current();
    End(*task, *life, Death::kKill);
    if (current && !task->over) StartAgainAfter(*task, pause);
  };
  switch (fault.kind) {
    case Kind::kKill:
      return kill();
    case Kind::kKillAfterCallbacks:
      return life->process->KillAfterCallbacks(fault.count, kill);
    case Kind::kKillAtFileOperation:
      return life->process->KillAfterFileOperations(fault.count, kill);
    case Kind::kFreeze:
      return Freeze(*life, fault.duration);
    case Kind::kReplace:
    case Kind::kSecond:
      if (fault.kind == Kind::kReplace) Freeze(*life, fault.duration);
      // What moves with the address of a ps are the streams too: two that both serve the variables
      // of one index are two clusters, which nothing keeps apart.
      if (absl::StartsWith(task->name, "ps")) {
        network_.BreakAll(life->process.get(), kNoticeAtOnce);
      }
      // Nobody lets two of them run for ever.
      Later(fault.duration + world_.random().Between(seconds(1), seconds(20)),
            [this, task, life] { End(*task, *life, Death::kKill); });
      return Start(*task);
    case Kind::kBreakStreams:
      return network_.BreakAll(life->process.get(), kNoticeAtOnce);
    case Kind::kNewCertificates:
      return network_.ReplaceCertificates(life->process.get(), fault.duration);
    case Kind::kDrain:
      return Drain(*life);
    default:
      return;
  }
}

void SimulatedCluster::Drain(Life& life) {
  life.process->Enqueue([&life] {
    if (life.program != nullptr) life.program->Stop();
  });
}

void SimulatedCluster::Freeze(Life& life, Time duration) {
  if (life.process->frozen()) return;
  life.process->Freeze();
  const Time keepalive = world_.random().Between(kKeepaliveAtLeast, kKeepaliveAtMost);
  if (duration > keepalive) {
    Later(keepalive,
          [this, process = life.process.get()] { network_.BreakAll(process, kNoticeAtOnce); });
  }
  Later(duration, [this, process = life.process.get()] {
    world_.Trace(process->name(), "goes on");
    process->Thaw();
  });
}

void SimulatedCluster::Cut(const std::string& from, const std::string& to, Time duration) {
  network_.Cut(from, to);
  const Time keepalive = world_.random().Between(kKeepaliveAtLeast, kKeepaliveAtMost);
  if (duration > keepalive) {
    Later(keepalive, [this, from, to] { network_.BreakBetween(from, to, kKeepaliveAtLeast); });
  }
  Later(duration, [this, from, to] { network_.Mend(from, to); });
}

// The machine of the coordinator, the ps and the disk.
void SimulatedCluster::PowerLoss(Time duration) {
  for (auto& [name, task] : tasks_) {
    if (absl::StartsWith(name, "worker")) continue;
    for (auto& life : task->lives) End(*task, *life, Death::kPowerLoss);
  }
  disk_.LosePower(&world_.random());
  checks_.OnPowerLoss();
  for (auto& [name, task] : tasks_) {
    if (absl::StartsWith(name, "worker") || task->over) continue;
    if (absl::StartsWith(name, "ps") && task->index >= ps_count_) continue;
    StartAgainAfter(*task, duration + world_.random().Between(Time(1000), seconds(1)));
  }
}

void SimulatedCluster::RestartAll(int ps, Time duration) {
  if (job_done_) return;
  // The ps may go on, if they are still of use.
  const bool ps_go_on = world_.random().Coin();
  for (auto& [name, task] : tasks_) {
    ++task->starts;  // nobody starts it again but this
    if (ps_go_on && absl::StartsWith(name, "ps") && task->index < ps) continue;
    for (auto& life : task->lives) End(*task, *life, Death::kKill);
  }
  ps_count_ = ps;
  Later(duration, [this] {
    if (!job_done_) StartAll();
  });
}

// What an operator does that has another job trained: workers wait for the coordinator meanwhile,
// are started again by their supervisor, or have ended with the job before.
void SimulatedCluster::ChangeJob(Time duration) {
  if (job_done_) return;
  job_ = &jobs_.back();
  checks_.OnChange(*job_);
  for (auto& [name, task] : tasks_) {
    const bool is_worker = absl::StartsWith(name, "worker");
    if (absl::StartsWith(name, "ps") && task->index >= ps_count_) continue;
    if (is_worker && !task->over && !world_.random().OneIn(3)) continue;
    for (auto& life : task->lives) End(*task, *life, Death::kKill);
    task->over = false;
    StartAgainAfter(*task, duration + world_.random().Between(Time(1000), seconds(1)));
  }
}

void SimulatedCluster::DamageNewest() {
  const std::vector<StoredCheckpoint> stored = checks_.checkpoints().Stored();
  if (stored.size() < 2 || stored[0].manifest.cut_step == job_->workload->ending.last_step) return;
  if (damages_++ > 0) return;
  const std::vector<Manifest::File>& files = stored[0].manifest.files;
  const std::string path =
      absl::StrCat(stored[0].directory, "/", files[world_.random().Below(files.size())].name);
  if (!disk_.Damage(path, &world_.random())) return;
  world_.Trace("disk", "damaged " + path);
  checks_.checkpoints().OnDamage(stored[0].directory);
}

}  // namespace shoal
