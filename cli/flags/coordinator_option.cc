#include "cli/flags/coordinator_option.h"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <optional>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "cli/coordinator_calls/ask_coordinator.h"
#include "cli/local_cluster/local_certificates.h"
#include "cli/reports/run_without_coordinator.h"
#include "common/base/status_macros.h"
#include "common/base/version.h"
#include "common/cluster/cluster_spec.h"
#include "common/files/durable_file.h"
#include "common/rpc/network.h"
#include "common/run/run_paths.h"
#include "coordinator/takeover/run_lock.h"

namespace shoal {
namespace {

std::optional<LeaseHolder> Holder(const std::string& run_dir) {
  return ReadLeaseHolder(RunPaths{AbsolutePath(run_dir)}.lease(), RealFileSystem());
}

absl::Status WrongLeader(const std::string& address, const std::string& run_dir, const char* does,
                         const proto::StatusReply& status) {
  return absl::FailedPreconditionError(absl::StrCat(
      address, ": no coordinator leads ", run_dir, " there: the one at this address ", does,
      " the run in ", status.run_dir(), " (job ", status.job_name(),
      "). To ask that one, give --chief=", address, " instead of the run directory. To see what ",
      run_dir, " holds: shoal checkpoint list ", run_dir));
}

}  // namespace

void CoordinatorOption::AddTo(CLI::App* command) {
  CLI::Option_group* group = command->add_option_group("Which job, one of these");
  group->add_option_function<std::string>(
      "RUN",
      [this](const std::string& given) {
        std::error_code ignored;
        const bool is_address =
            !std::filesystem::exists(given, ignored) && shoal::Address::Parse(given).ok();
        (is_address ? coordinator : run_dir) = given;
      },
      "Its run directory, or HOST:PORT of its coordinator");
  group->add_option("--chief", coordinator, "Address of its coordinator, HOST:PORT");
  group->add_option("--run_dir", run_dir,
                    "Its run directory, where the coordinator left its address");
  group->require_option(1);
  command
      ->add_option(
          "--tls_dir", tls_dir,
          "Directory with ca.crt, tls.crt and tls.key of an operator or viewer, if the job "
          "uses TLS (docs/security.md)")
      ->envname("SHOAL_TLS_DIR");
}

absl::StatusOr<std::shared_ptr<TlsSession>> CoordinatorOption::OpenTls() const {
  std::string directory = tls_dir;
  if (directory.empty() && !run_dir.empty()) {
    const std::string of_run = OperatorTlsDirectory(RunPaths{AbsolutePath(run_dir)}.tls());
    std::error_code ignored;
    if (std::filesystem::is_directory(of_run, ignored)) directory = of_run;
  }
  if (directory.empty()) return nullptr;
  return TlsSession::Open(directory, nullptr);
}

absl::StatusOr<std::string> CoordinatorOption::Address() const {
  constexpr uint64_t kMaxBytes = 1 << 10;
  std::string text = coordinator, source = "--chief";
  if (text.empty()) {
    const std::string path = source = RunPaths{AbsolutePath(run_dir)}.coordinator_address();
    const absl::StatusOr<std::string> content = ReadSmallFile(path, kMaxBytes);
    if (!content.ok()) {
      return absl::NotFoundError(absl::StrCat(std::string(content.status().message()),
                                              "; no coordinator has led a run in ", run_dir,
                                              " yet. To find one that waits for its ps, give "
                                              "--chief=HOST:PORT"));
    }
    text = std::string(absl::StripSuffix(*content, "\n"));
  }
  const absl::StatusOr<shoal::Address> address = shoal::Address::Parse(text);
  if (address.ok()) return address->ToString();
  return absl::InvalidArgumentError(
      absl::StrCat(source, ": ", std::string(address.status().message())));
}

absl::StatusOr<std::string> CoordinatorOption::LeaderAddress() const {
  constexpr Time kTimeout = std::chrono::seconds(15);
  SHOAL_ASSIGN_OR_RETURN(std::string address, Address());
  if (run_dir.empty()) return address;
  proto::StatusRequest request;
  request.set_version(kVersion);
  proto::StatusReply status;
  SHOAL_ASSIGN_OR_RETURN(const std::shared_ptr<TlsSession> tls, OpenTls());
  const absl::Status asked =
      AskCoordinator(address, kStatusMethod, request, kTimeout, tls, &status);
  if (absl::IsUnavailable(asked)) return ExplainSilence(asked);
  SHOAL_RETURN_IF_ERROR(asked);
  SHOAL_RETURN_IF_ERROR(CheckLeads(address, status));
  // A coordinator that has led nothing yet may be this run's, restarted, or that of any other run.
  const std::optional<LeaseHolder> holder = Holder(run_dir);
  if (holder.has_value() && holder->left && status.process().empty() &&
      status.phase() == "claiming") {
    return WrongLeader(address, run_dir, "waits for its ps, to lead", status);
  }
  return address;
}

bool CoordinatorOption::NobodyLeads(const absl::Status& error) const {
  if (run_dir.empty()) return false;
  // The coordinator left no address, is unreachable, or another run's coordinator has its address.
  if (absl::IsNotFound(error) || absl::IsUnavailable(error) || absl::IsFailedPrecondition(error))
    return true;
  const std::optional<LeaseHolder> holder = Holder(run_dir);
  return holder.has_value() && holder->left;
}

absl::Status CoordinatorOption::ExplainSilence(const absl::Status& unavailable) const {
  if (run_dir.empty()) {
    return absl::UnavailableError(
        absl::StrCat(std::string(unavailable.message()),
                     "; give the port of the coordinator (the chief of the cluster spec), not its "
                     "HTTP port (--http_port)"));
  }
  const std::optional<LeaseHolder> holder = Holder(run_dir);
  std::string what = std::string(unavailable.message());
  if (holder.has_value() && holder->left) {
    what = absl::StrCat("no job runs in ", run_dir);
    if (!ReadFailedRun(run_dir).has_value())
      absl::StrAppend(&what, ": its coordinator at ", holder->address, " has ended in order");
  }
  return absl::UnavailableError(absl::StrCat(what, "\n", DescribeRunWithoutCoordinator(run_dir)));
}

absl::Status CoordinatorOption::CheckLeads(const std::string& address,
                                           const proto::StatusReply& status) const {
  if (run_dir.empty() || status.process().empty()) return absl::OkStatus();
  const std::optional<LeaseHolder> holder = Holder(run_dir);
  if (!holder.has_value() || holder->process.empty() || holder->process == status.process()) {
    return absl::OkStatus();
  }
  return WrongLeader(address, run_dir, "leads", status);
}

}  // namespace shoal
