#include "cli/train/train.h"

#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "cli/coordinator_calls/status_query.h"
#include "cli/display/console.h"
#include "cli/display/history_table.h"
#include "cli/display/resume_advice.h"
#include "cli/display/training_display.h"
#include "cli/local_cluster/daemon_commands.h"
#include "cli/local_cluster/local_certificates.h"
#include "cli/local_cluster/local_cluster.h"
#include "cli/local_cluster/signal_watch.h"
#include "cli/train/free_run.h"
#include "cli/train/resume_command.h"
#include "cli/train/run_directory.h"
#include "cli/train/supervisor.h"
#include "cli/validation/found_data.h"
#include "cli/validation/task_memory.h"
#include "cli/validation/validated_job.h"
#include "common/base/status_macros.h"
#include "common/base/version.h"
#include "common/checkpoint/checkpoint_store.h"
#include "common/daemon/process/exit_code.h"
#include "common/daemon/process/process_environment.h"
#include "common/daemon/stop_signals.h"
#include "common/job/job.h"
#include "common/log/logging.h"
#include "common/memory/memory_limit.h"
#include "common/model/keras_model.h"
#include "common/rpc/grpc/grpc_network.h"
#include "common/rpc/grpc/library_log.h"
#include "common/run/history.h"
#include "common/run/run_outcome.h"
#include "common/run/run_verdict.h"
#include "worker/compute/registry/compute_device.h"
#include "worker/job/job_names.h"

namespace shoal {
namespace {

constexpr Time kStatusInterval = std::chrono::milliseconds(200);
constexpr size_t kEpochsShown = 1000;  // at the end, the newest

const std::vector<int>& WatchedSignals() {
  static const std::vector<int> signals = [] {
    std::vector<int> watched = StopSignals();
    watched.insert(watched.end(), {SIGCHLD, SIGWINCH});
    return watched;
  }();
  return signals;
}

// Returns the path relative to the working directory if it lies below it.
std::string ShortPath(const std::string& path) {
  std::error_code error;
  const std::string relative = std::filesystem::proximate(path, error).string();
  return error || relative.starts_with("..") ? path : relative;
}

std::string Plural(int count, const char* noun) {
  return std::to_string(count) + " " + noun + (count == 1 ? "" : "s");
}

// One training, from its run directory to its last lines.
class Training {
 public:
  explicit Training(TrainOptions options)
      : options_(std::move(options)),
        console_(STDOUT_FILENO, STDERR_FILENO, TerminalStyle::Detect()) {
    // One queue for standard error keeps log lines out of the live line.
    SendLogTo([this](const std::string& message, const LogFields& fields) {
      std::string line = "shoal: " + message;
      for (const auto& [name, value] : fields) absl::StrAppend(&line, " ", name, "=", value);
      console_.PrintError(line);
    });
    SendLibraryLogTo([](const std::string& message) { LogWarning(message); });
  }
  ~Training() { SendLogTo({}); }

  int Run() {
    const int code = TrainToTheEnd();
    const absl::Status printed = console_.Finish();
    const int unprinted = printed.ok() ? code : Report(printed);
    return code == kExitDone ? unprinted : code;
  }

 private:
  int TrainToTheEnd() {
    const absl::StatusOr<bool> anything_to_do = Prepare();
    if (!anything_to_do.ok()) return Report(anything_to_do.status());
    if (!*anything_to_do) return kExitDone;
    const absl::Status started = RunCluster();
    if (!started.ok()) return Report(started);
    return exit_code_;
  }

  int Report(const absl::Status& status) {
    console_.PrintError("shoal: " + std::string(status.message()));
    return ExitCodeOf(status);
  }

  // Checks the job's data for its model as `shoal validate` does, before any process starts. Also
  // checks that all processes together fit into the memory of this machine: one process alone would
  // notice that late or never.
  absl::Status CheckDataAndMemory(const KerasModel& model) {
    SHOAL_ASSIGN_OR_RETURN(const FoundData found, CheckData(job_, model));
    if (!found.missing.empty()) return absl::NotFoundError(found.missing);
    if (!found.classes.empty()) console_.Print(found.classes);
    SHOAL_ASSIGN_OR_RETURN(
        const MemoryNeeds all,
        MemoryOfAllTasks(job_, model, {.ps = options_.ps, .workers = options_.workers},
                         found.training_examples, found.memory));
    const MemoryLimit limit = ReadSharedMemoryLimit();
    SHOAL_RETURN_IF_ERROR(CheckMemory(
        all, limit,
        "Take fewer --workers, a smaller --batch_size or --set micro_batch_size, which computes a "
        "batch in parts, or a machine with more memory."));
    if (const std::string warning = MayRunShort(all, limit); !warning.empty())
      console_.PrintError(warning);
    return absl::OkStatus();
  }

  // Otherwise each worker would find the error itself, after the cluster has started.
  absl::Status CheckDevice() const {
    const absl::Status here = CheckDevicesAreHere(options_.device, cuda::SurveyDevices);
    return absl::Status(here.code(), absl::StrCat("--device: ", std::string(here.message())));
  }

  // Reads the job, checks the run directory and prepares it. Returns false if the job is already
  // finished. A rejected job leaves the directory unchanged.
  absl::StatusOr<bool> Prepare() {
    SHOAL_RETURN_IF_ERROR(CheckFileLimit());
    std::vector<std::string> overridden;
    SHOAL_ASSIGN_OR_RETURN(
        job_, LoadJob(options_.job_path, /*check_data=*/true, options_.overrides, &overridden));
    for (const std::string& line : overridden) console_.Print(line);
    if (std::getenv("TF_CONFIG") != nullptr) {
      console_.PrintError(
          "TF_CONFIG is ignored: `shoal train` starts its own cluster on this machine. For a task "
          "of another cluster, start shoal-coordinator, shoal-ps or shoal-worker");
    }
    SHOAL_RETURN_IF_ERROR(WriteNames(&job_));
    SHOAL_ASSIGN_OR_RETURN(run_, RunDirectory::Open(RunDirectoryOf(options_.run_dir, job_.name)));
    if (!run_->lock_problem().empty()) console_.PrintError(run_->lock_problem());
    SHOAL_RETURN_IF_ERROR(run_->ResolveStrategy(options_.workers, &job_));
    SHOAL_ASSIGN_OR_RETURN(const RunDirectory::Decision decision, run_->Decide(job_));
    for (const std::string& problem : decision.problems) console_.PrintError(problem);
    // The coordinator does not see the table. It compares the job with the run's job.
    if (decision.job_there.has_value()) MatchColumnNames(*decision.job_there, &job_);
    if (decision.state == RunDirectory::State::kFinished) {
      PrintFinished(decision);
      return false;
    }
    SHOAL_RETURN_IF_ERROR(CheckDevice());
    SHOAL_ASSIGN_OR_RETURN(const KerasModel model, ModelOfJob(job_, options_.job_path));
    SHOAL_RETURN_IF_ERROR(CheckDataAndMemory(model));
    if (decision.state == RunDirectory::State::kFresh) {
      SHOAL_ASSIGN_OR_RETURN(const std::string weights, DescribeInitialWeights(job_, model));
      if (!weights.empty()) console_.Print(std::string(absl::StripSuffix(weights, "\n")));
    }
    SHOAL_ASSIGN_OR_RETURN(addresses_, ChooseAddresses(options_.workers, options_.ps));
    SHOAL_RETURN_IF_ERROR(AwaitFreeRun(run_->paths(), addresses_.coordinator,
                                       [this](const std::string& line) { console_.Print(line); }));
    SHOAL_RETURN_IF_ERROR(run_->Prepare(job_));
    first_epoch_ = decision.epochs_done;
    if (decision.state == RunDirectory::State::kResumed) {
      console_.Print(absl::StrCat("resuming from step ", decision.step, " (",
                                  ShortPath(decision.checkpoint), ")"));
    } else if (const size_t epochs =
                   ReadHistory(run_->paths().history()).value_or(History()).epochs.size();
               epochs > 0) {
      console_.Print(absl::StrCat(
          "there is no checkpoint to continue from: training begins at step 0 again, and its "
          "curves replace those of ",
          epochs, epochs == 1 ? " epoch" : " epochs", " in ", ShortPath(run_->paths().history())));
    }
    return true;
  }

  void PrintFinished(const RunDirectory::Decision& decision) {
    const char* const begin_anew = "to begin anew, choose another --run_dir.";
    if (decision.ended_after.has_value()) {
      console_.Print(absl::StrCat(job_.name, " is finished, after ", decision.step,
                                  " steps: early stopping ended it at epoch ",
                                  *decision.ended_after + 1, "."));
    } else {
      console_.Print(
          absl::StrCat(job_.name, " is finished: all ", decision.total_steps, " steps are done."));
    }
    PrintVerdict();
    PrintPlaces();
    console_.Print(
        decision.ended_after.has_value()
            ? absl::StrCat("To train longer, give EarlyStopping in the job's callbacks more "
                           "\"patience\", or take it out; ",
                           begin_anew)
            : absl::StrCat(
                  "To train longer, raise the job's epochs, in its file or with --epochs; ",
                  begin_anew));
  }

  ClusterPlan PlanCluster() {
    ClusterPlan plan;
    plan.addresses = addresses_;
    plan.binary_dir = OwnBinaryDirectory();
    plan.job_path = run_->paths().job();
    plan.run_dir = run_->paths().directory;
    plan.threads_per_worker =
        options_.threads > 0 ? options_.threads : ThreadsPerWorker(options_.workers);
    plan.device = options_.device;
    plan.tf32 = options_.tf32;
    plan.deterministic = options_.deterministic;
    if (options_.tls) plan.tls_dir = run_->paths().tls();
    console_.Print(absl::StrCat("shoal ", kVersion, ": training ", job_.name, " with ",
                                Plural(options_.workers, "worker"), " of ",
                                Plural(plan.threads_per_worker, "thread"), " and ", options_.ps,
                                " ps in ", ShortPath(run_->paths().directory)));
    return plan;
  }

  absl::Status RunCluster() {
    const ClusterPlan plan = PlanCluster();
    std::signal(SIGPIPE, SIG_IGN);
    std::shared_ptr<TlsSession> tls;
    if (options_.tls) {
      SHOAL_RETURN_IF_ERROR(MakeLocalCertificates(plan.tls_dir, plan.addresses));
      SHOAL_ASSIGN_OR_RETURN(
          tls, TlsSession::Open(OperatorTlsDirectory(plan.tls_dir),
                                [this](const std::string& what) { console_.PrintError(what); }));
    } else if (RealFileSystem()->Exists(run_->paths().tls())) {
      // With these certificates, commands would not reach a run without TLS.
      SHOAL_RETURN_IF_ERROR(RemoveCertificates(run_->paths().tls()));
      console_.PrintError(
          "The traffic of this run was encrypted before. Without --tls it is plain.");
    }
    const std::unique_ptr<GrpcNetwork> network = GrpcNetwork::Create({.tls = tls});
    EventLoop* const loop = network->loop();
    DescriptorWatch watch(loop);
    TrainingDisplay display(&console_, {.has_test_set = !job_.test.empty(),
                                        .first_epoch = first_epoch_,
                                        .epochs = job_.epochs,
                                        .workers = static_cast<size_t>(options_.workers)});
    std::unique_ptr<Supervisor> supervisor;
    LocalCluster cluster(
        {.loop = loop,
         .watch = &watch,
         .log_dir = run_->paths().logs(),
         .on_line = [this, &supervisor](
                        const Child& child,
                        const std::string& line) { OnLine(*supervisor, child, line); },
         .on_exit = [&supervisor](const Child& child) { supervisor->OnChildExit(child); }});
    supervisor =
        std::make_unique<Supervisor>(Supervisor::Options{.loop = loop,
                                                         .cluster = &cluster,
                                                         .console = &console_,
                                                         .max_restarts = options_.max_restarts,
                                                         .on_ended = [loop] { loop->Stop(); }});
    StopRequests stop_requests;
    SignalWatch signals(&watch, WatchedSignals(), [&](int signal) {
      if (signal == SIGCHLD) return cluster.ReapEnded();
      if (signal == SIGWINCH) return console_.set_style(TerminalStyle::Detect());
      if (stop_requests.IsNew(loop->Now())) supervisor->OnStopSignal();
    });
    SHOAL_RETURN_IF_ERROR(cluster.Start(DaemonCommands(plan, OwnEnvironment())));
    StatusPoller poller(loop, network.get(), plan.addresses.coordinator, kStatusInterval,
                        [&](absl::StatusOr<proto::StatusReply> status) {
                          if (status.ok()) {
                            supervisor->OnCoordinatorAnswer();
                            // 0: the coordinator does not know yet.
                            if (status->steps_done() > 0) steps_done_ = status->steps_done();
                          }
                          ShowStatus(status, *supervisor, loop->Now(), &display);
                        });
    network->Run();
    console_.ClearLive();
    Conclude(*supervisor, &display);
    return absl::OkStatus();
  }

  void OnLine(const Supervisor& supervisor, const Child& child, const std::string& line) {
    // Once the coordinator leaves, the other tasks warn about what is intended. Once the training
    // has failed, the coordinator does so, too. The last line must be the cause.
    const bool of_interest = supervisor.phase() == Supervisor::Phase::kRunning ||
                             (child.task.type == TaskType::kChief &&
                              supervisor.outcome() != Supervisor::Outcome::kFailed);
    const bool told_with_its_end = supervisor.ShowsLastLines(child) && IsLastError(line);
    if (!options_.verbose && !(of_interest && IsWarningOrWorse(line) && !told_with_its_end)) return;
    console_.Print(absl::StrCat("[", TaskName(child.task), "] ", line));
  }

  static void ShowStatus(const absl::StatusOr<proto::StatusReply>& status,
                         const Supervisor& supervisor, Time now, TrainingDisplay* display) {
    if (supervisor.phase() == Supervisor::Phase::kEnding) {
      display->ShowActivity("waiting for the processes to end", now);
    } else if (status.ok()) {
      display->Update(*status, now);
    } else {
      display->ShowActivity("waiting for the coordinator to answer", now);
    }
  }

  void Conclude(const Supervisor& supervisor, TrainingDisplay* display) {
    exit_code_ = supervisor.exit_code();
    const absl::StatusOr<History> read = ReadHistory(run_->paths().history());
    const absl::Status problem = read.ok() ? read->damage : read.status();
    if (!problem.ok()) console_.PrintError(std::string(problem.message()));
    const History history = read.value_or(History());
    display->PrintRemainingEpochs(history.epochs);
    if (supervisor.outcome() == Supervisor::Outcome::kDone) {
      PrintTable(history.epochs);
      PrintVerdict();
      PrintPlaces();
      return;
    }
    if (!supervisor.cause().empty()) KeepOutcome({exit_code_, supervisor.cause()});
    // A restart would end the same way. The message above says what is necessary first.
    if (IsRestartUseless(exit_code_)) return;
    const SavedSteps saved = ReadSavedSteps();
    const bool stopped = supervisor.outcome() == Supervisor::Outcome::kStopped;
    console_.PrintError(absl::StrCat(DescribeSavedSteps(saved), "\n", stopped ? "Stopped. " : "",
                                     AdviseToResume(saved, ResumeCommand(options_))));
  }

  // Records the outcome for `shoal status`: the coordinator knows only that it was stopped.
  void KeepOutcome(const RunOutcome& outcome) {
    const absl::Status kept = WriteRunOutcome(run_->paths(), outcome);
    if (!kept.ok()) console_.PrintError(std::string(kept.message()));
  }

  void PrintTable(const std::vector<proto::EpochResult>& history) {
    const size_t hidden = history.size() - std::min(history.size(), kEpochsShown);
    if (hidden > 0) {
      console_.Print(absl::StrCat("\n", hidden,
                                  hidden == 1 ? " epoch before: " : " epochs before: ",
                                  ShortPath(run_->paths().history())));
    }
    console_.Print(
        absl::StrCat("\n", FormatHistoryTable({history.begin() + hidden, history.end()})));
  }

  // Reads which checkpoint a resumed run continues from.
  SavedSteps ReadSavedSteps() const {
    const auto checkpoints = CheckpointStore(run_->paths().checkpoints()).List(nullptr);
    if (!checkpoints.ok() || checkpoints->empty()) return {.done = steps_done_};
    const auto finite = std::find_if(checkpoints->begin(), checkpoints->end(),
                                     [](const auto& each) { return each.manifest.finite(); });
    const auto& newest = finite == checkpoints->end() ? checkpoints->front() : *finite;
    return {.checkpoint = newest.manifest.cut_step,
            .total = newest.manifest.total_steps,
            .done = steps_done_};
  }

  // Prints the verdict of the job's callbacks.
  void PrintVerdict() {
    const absl::StatusOr<RunVerdict> verdict =
        ReadRunVerdict(job_.callbacks, run_->paths(), RealFileSystem());
    if (!verdict.ok()) return console_.PrintError(std::string(verdict.status().message()));
    for (const std::string& line : DescribeVerdict(*verdict)) console_.Print(line);
  }

  void PrintPlaces() {
    console_.Print("model        " + ShortPath(run_->paths().model()) + "\n" + "checkpoints  " +
                   ShortPath(run_->paths().checkpoints()) + "\n" + "history      " +
                   ShortPath(run_->paths().history()) + "\n" + "logs         " +
                   ShortPath(run_->paths().logs()));
  }

  const TrainOptions options_;
  Console console_;
  Job job_;
  std::unique_ptr<RunDirectory> run_;
  ClusterAddresses addresses_;
  uint64_t first_epoch_ = 0;  // first epoch of this start
  uint64_t steps_done_ = 0;   // last known from the coordinator
  int exit_code_ = kExitDone;
};

}  // namespace

int Train(const TrainOptions& options) { return Training(options).Run(); }

}  // namespace shoal
