#include "cli/local_cluster/local_certificates.h"

#include <cstddef>
#include <filesystem>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/base/status_macros.h"
#include "common/base/text/shell_word.h"
#include "common/files/private_file.h"
#include "common/security/certificate_authority.h"

namespace shoal {
namespace {

// The whole cluster is of one run, so any name of the job will do.
constexpr char kTrustDomain[] = "shoal";
constexpr char kJob[] = "local";

std::string RoleOf(const TaskId& task) {
  switch (task.type) {
    case TaskType::kChief:
      return "coordinator";
    case TaskType::kEvaluator:
      return "evaluator";
    case TaskType::kPs:
    case TaskType::kWorker:
      break;
  }
  return absl::StrCat(TaskTypeName(task.type), "/", task.index);
}

std::vector<TaskId> TasksOf(const ClusterAddresses& addresses) {
  std::vector<TaskId> tasks = {{TaskType::kChief, 0}};
  for (size_t i = 0; i < addresses.ps.size(); ++i)
    tasks.push_back({TaskType::kPs, static_cast<int>(i)});
  for (size_t i = 0; i < addresses.workers.size(); ++i)
    tasks.push_back({TaskType::kWorker, static_cast<int>(i)});
  return tasks;
}

// Makes the CA in `ca`, and with it all TLS directories below `directory`.
absl::Status IssueAll(const std::string& ca, const std::string& directory,
                      const ClusterAddresses& addresses) {
  SHOAL_RETURN_IF_ERROR(CertificateAuthority::Create(
      ca, {.trust_domain = kTrustDomain, .job = kJob, .now = absl::Now()}));
  SHOAL_ASSIGN_OR_RETURN(const CertificateAuthority authority, CertificateAuthority::Open(ca));
  const auto issue = [&](const std::string& role, const std::string& path) -> absl::Status {
    SHOAL_ASSIGN_OR_RETURN(const CertificateAuthority::Issued issued,
                           authority.Issue({.role = role, .now = absl::Now()}));
    return WriteTlsDirectory(path, issued);
  };
  for (const TaskId& task : TasksOf(addresses)) {
    SHOAL_RETURN_IF_ERROR(issue(RoleOf(task), TlsDirectoryOf(directory, task)));
  }
  return issue("operator", OperatorTlsDirectory(directory));
}

}  // namespace

std::string TlsDirectoryOf(const std::string& directory, const TaskId& task) {
  return absl::StrCat(directory, "/", TaskTypeName(task.type), "-", task.index);
}

std::string OperatorTlsDirectory(const std::string& directory) { return directory + "/operator"; }

absl::Status RemoveCertificates(const std::string& path) {
  std::error_code error;
  std::filesystem::remove_all(path, error);
  if (!error) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(path, ": cannot remove it: ", error.message(),
                                                    "; type `rm -r ", ShellWord(path), "`"));
}

absl::Status MakeLocalCertificates(const std::string& directory,
                                   const ClusterAddresses& addresses) {
  SHOAL_RETURN_IF_ERROR(RemoveCertificates(directory));
  SHOAL_RETURN_IF_ERROR(MakePrivateDirectory(directory, /*only_owner_reads=*/true));
  const std::string ca = directory + "/ca";
  const absl::Status issued = IssueAll(ca, directory, addresses);
  const absl::Status removed = RemoveCertificates(ca);
  return issued.ok() ? removed : issued;
}

}  // namespace shoal
