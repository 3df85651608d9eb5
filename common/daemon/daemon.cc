#include "common/daemon/daemon.h"

#include <chrono>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/base/usable_cores.h"
#include "common/base/version.h"
#include "common/daemon/process/exit_code.h"
#include "common/daemon/process/out_of_memory.h"
#include "common/daemon/process/process_environment.h"
#include "common/daemon/service_manager.h"
#include "common/rpc/grpc/library_log.h"

namespace shoal {
namespace {

// Max wait at the end for the log to be written.
constexpr std::chrono::seconds kLogPatience{2};
// Together with a worker's time to leave, below the ten seconds in the operators' docs.
constexpr std::chrono::seconds kEndPatience{3};

LogLevel LogLevelFromName(const std::string& name) {
  if (name == "warning") return LogLevel::kWarning;
  return name == "error" ? LogLevel::kError : LogLevel::kInfo;
}

// Returns advice for a task of another type than this program runs.
std::string AdviceFor(TaskType type) {
  switch (type) {
    case TaskType::kChief:
      return "start shoal-coordinator instead";
    case TaskType::kPs:
      return "start shoal-ps instead";
    case TaskType::kWorker:
    case TaskType::kEvaluator:
      break;
  }
  return "start shoal-worker instead";
}

// The evaluator is a worker that only evaluates.
bool Runs(TaskType program, TaskType task) {
  return task == program || (program == TaskType::kWorker && task == TaskType::kEvaluator);
}

void LogIfError(const absl::Status& status) {
  if (!status.ok()) LogWarning(std::string(status.message()));
}

}  // namespace

Daemon::Daemon(const std::string& program, TaskType type, const std::string& description)
    : program_(program), type_(type), settings_(program, description) {
  settings_.AddText("cluster_spec", &cluster_spec_file_,
                    "File with the cluster spec; without it, the text of the variable TF_CONFIG");
  settings_.AddChoice("log_format", &log_format_, {"text", "json"}, "Form of the log on stderr");
  settings_.AddChoice("log_level", &log_level_, {"info", "warning", "error"},
                      "Lowest level that is logged");
  settings_.AddInteger("http_port", &http_port_, -1, 65535,
                       "Port of /metrics, /healthz and /readyz; 0: a free one, -1: none");
  settings_.AddSwitch("http_optional", &http_optional_,
                      "Run without them if that port cannot be opened");
  settings_.AddText(
      "tls_dir", &tls_dir_,
      "Directory with ca.crt, tls.crt and tls.key (docs/security.md); without it, all "
      "traffic is plain");
  settings_.AddSwitch("insecure", &insecure_,
                      "Serve plain traffic beyond loopback, where everyone who reaches the port "
                      "can claim, push, read and stop");
  settings_.AddText(
      "metrics_token_file", &metrics_token_file_,
      "File with the bearer token that /metrics asks for; read again for each request");
  settings_.AddHidden("exit_with_parent", &parent_pid_, 0, INT32_MAX);
}

void Daemon::SetExamples(const std::string& examples) {
  constexpr char kExitCodes[] =
      "\n\nExit codes: 0 the job is over, 143 stopped on request, 64 wrong flags, 65 damaged data, "
      "77 "
      "another coordinator\n"
      "has taken over, 78 wrong cluster spec or job, too little memory, 138 worth another start.";
  settings_.SetFooter(absl::StrCat(examples, kExitCodes));
}

int Daemon::Run(int argc, char** argv, const std::function<absl::Status()>& body) {
  OpenStandardDescriptors();
  if (const std::optional<int> code = settings_.Parse(argc, argv)) return *code;
  if (parent_pid_ > 0) ExitWithParent(static_cast<int>(parent_pid_));
  ClearProxyVariables();
  UseSystemNames();
  KeepOpenSslUntilExit();
  RaiseFileLimit();
  log_options_ = {log_format_ == "json" ? LogFormat::kJson : LogFormat::kText,
                  LogLevelFromName(log_level_), TaskTypeName(type_)};
  StartLogging(log_options_);
  WriteLogOnCrash();
  ExitWhenOutOfMemory();
  SendLibraryLogTo([](const std::string& message) { LogWarning(message); });
  SignalThread signals;
  signals_ = &signals;
  LogConfiguration();
  if (const std::string quota = CpuQuotaText(); !quota.empty()) LogInfo(quota);
  absl::Status status = CheckFileLimit();
  if (status.ok()) status = body();
  end_deadline_.reset();
  signals.SetHandler(nullptr);
  signals_ = nullptr;
  const ExitCode code = ExitCodeOf(status);
  const LogFields fields = {{"exit_code", absl::StrCat(code)}};
  if (code == kExitDone) {
    LogInfo("ended", fields);
  } else if (code == kExitDrained) {
    LogInfo("stopped", fields);
  } else {
    LogError(std::string(status.message()), fields);
  }
  FlushLog(kLogPatience);
  return code;
}

absl::StatusOr<ClusterSpec> Daemon::ReadClusterSpec() {
  if (type_ == TaskType::kWorker && !ClusterSpecGiven(cluster_spec_file_)) {
    return absl::InvalidArgumentError(
        "no coordinator: give --chief=HOST:PORT, --cluster_spec=FILE or the environment variable "
        "TF_CONFIG");
  }
  SHOAL_ASSIGN_OR_RETURN(ClusterSpec spec, LoadClusterSpec(cluster_spec_file_, /*need_task=*/true));
  if (!Runs(type_, spec.task.type)) {
    return absl::InvalidArgumentError(absl::StrCat(
        cluster_spec_file_.empty() ? "TF_CONFIG" : cluster_spec_file_, ": $.task.type: is \"",
        TaskTypeName(spec.task.type), "\", but this is ", program_, ", which runs tasks of type \"",
        TaskTypeName(type_), "\"; ", AdviceFor(spec.task.type)));
  }
  NameTask(spec.task);
  LogInfo("cluster spec read",
          {{"from", cluster_spec_file_.empty() ? "TF_CONFIG" : cluster_spec_file_},
           {"chief", spec.coordinator_address().ToString()},
           {"ps", absl::StrCat(spec.ps.size())},
           {"workers", absl::StrCat(spec.workers.size())}});
  return spec;
}

absl::StatusOr<std::shared_ptr<TlsSession>> Daemon::OpenTls(RoleSet roles) {
  if (tls_dir_.empty()) return nullptr;
  if (insecure_) {
    return absl::InvalidArgumentError(
        absl::StrCat("--insecure and --tls_dir=", tls_dir_,
                     " are given, or SHOAL_INSECURE and SHOAL_TLS_DIR: leave one out. With "
                     "--tls_dir all traffic is encrypted; --insecure serves plain traffic"));
  }
  SHOAL_ASSIGN_OR_RETURN(
      tls_, TlsSession::Open(tls_dir_, [](const std::string& what) { LogWarning(what); }));
  if (!roles.Contains(tls_->own().role)) {
    return absl::InvalidArgumentError(absl::StrCat(
        tls_dir_, "/", kCertificateFile, " is the certificate of ", tls_->own().ToUri(), "; ",
        program_, " needs one of ", roles.ToString(), ": `shoal cert issue` makes it"));
  }
  LogInfo("traffic is encrypted", {{"identity", tls_->own().ToUri()}});
  return tls_;
}

absl::Status Daemon::Listen(const Address& own, Network* network, Network::Acceptor acceptor) {
  const PortSecurity security = tls_ != nullptr ? PortSecurity::kTls
                                : insecure_     ? PortSecurity::kInsecure
                                                : PortSecurity::kNone;
  SHOAL_ASSIGN_OR_RETURN(const BindAddress address, BindAddressOf(own, security));
  if (!address.warning.empty()) LogWarning(address.warning);
  SHOAL_ASSIGN_OR_RETURN(const std::string bound,
                         network->Listen(address.listen, std::move(acceptor)));
  serves_insecurely_ = !address.warning.empty();
  LogInfo("listening", {{"address", bound}});
  return absl::OkStatus();
}

void Daemon::NameTask(const TaskId& task) {
  log_options_.task = absl::StrCat(TaskTypeName(task.type), "-", task.index);
  StartLogging(log_options_);
}

void Daemon::OnStopSignal(std::function<void(int)> handler) {
  if (!handler) return signals_->SetHandler(nullptr);
  signals_->SetHandler([handler = std::move(handler)](int count) {
    if (count == 1) LogIfError(NotifyStopping());
    handler(count);
  });
}

void Daemon::Ending(const absl::Status& status) {
  if (end_deadline_ != nullptr) return;
  end_deadline_ = std::make_unique<EndDeadline>(kEndPatience, ExitCodeOf(status));
}

void Daemon::Serving(EventLoop* loop) { LogIfError(NotifyReady(loop)); }

void Daemon::LogConfiguration() const {
  LogFields fields;
  for (const Settings::Resolved& setting : settings_.resolved()) {
    if (setting.source == Settings::Source::kDefault) continue;
    fields.emplace_back(setting.name,
                        absl::StrCat(setting.value, " (", SettingSourceName(setting.source), ")"));
  }
  LogInfo(absl::StrCat(program_, " ", kVersion, fields.empty() ? ", all" : ", other",
                       " settings at their defaults"),
          fields);
}

}  // namespace shoal
