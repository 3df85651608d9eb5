#include <CLI/CLI.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "cli/commands/command.h"
#include "cli/reports/certificate_report.h"
#include "common/base/status_macros.h"
#include "common/base/text/shell_word.h"
#include "common/files/durable_file.h"
#include "common/security/certificate.h"
#include "common/security/certificate_authority.h"
#include "common/security/identity.h"
#include "common/security/tls_files.h"

namespace shoal {
namespace {

// Makes a check of the command line from one that returns a status. Empty values have a check of
// their own, which all options share.
std::function<std::string(const std::string&)> CheckOf(
    std::function<absl::Status(const std::string&)> check) {
  return [check = std::move(check)](const std::string& value) {
    return value.empty() ? std::string() : std::string(check(value).message());
  };
}

struct AuthorityOptions {
  std::string directory;
  std::string job;
  std::string trust_domain = "shoal";
  int days = kAuthorityDays;
};

absl::Status MakeAuthority(const AuthorityOptions& options) {
  const absl::Time now = absl::Now();
  SHOAL_RETURN_IF_ERROR(
      CertificateAuthority::Create(options.directory, {.trust_domain = options.trust_domain,
                                                       .job = options.job,
                                                       .days = options.days,
                                                       .now = now}));
  SHOAL_ASSIGN_OR_RETURN(const CertificateAuthority authority,
                         CertificateAuthority::Open(options.directory));
  return PrintReport(absl::StrCat(
      options.directory, ": the CA of the job \"", authority.job(), "\", valid until ",
      UtcText(authority.not_after()), "\nWhoever has ", options.directory, "/", kAuthorityKeyFile,
      " can let anyone in; no daemon needs it. Next:\n  shoal cert issue ",
      ShellWord(options.directory), " coordinator tls/coordinator\n"));
}

void AddAuthority(CLI::App* cert, Command* chosen) {
  auto options = std::make_shared<AuthorityOptions>();
  CLI::App* command =
      cert->add_subcommand("ca", "Make a certificate authority (CA) for the tasks of a job");
  command->add_option("CA_DIR", options->directory, "Directory to write; made if it is missing")
      ->required();
  command->add_option("--job", options->job, "Name of the job, in the identity of every task")
      ->check(CheckOf([](const std::string& job) { return CheckIdentityJob(job); }))
      ->required();
  command
      ->add_option("--trust_domain", options->trust_domain,
                   "Name of whoever runs the cluster, in every identity")
      ->check(CheckOf([](const std::string& domain) { return CheckTrustDomain(domain); }))
      ->capture_default_str();
  command->add_option("--days", options->days, "Days for which the CA is valid")
      ->check(CLI::Range(1, kMaxCertificateDays))
      ->capture_default_str();
  command->footer(
      "Writes CA_DIR/ca.crt and CA_DIR/ca.key, which only you can read. Never overwrites a CA.\n"
      "\nExample:\n  shoal cert ca ca --job fashion_mnist\n"
      "\nExit codes: 0 written, 64 a wrong name, 78 a CA is there already, or others can read "
      "CA_DIR.");
  command->callback([=] { *chosen = [=] { return ReportStatus(MakeAuthority(*options)); }; });
}

struct IssueOptions {
  std::string authority;
  std::string role;
  std::string output;
  std::vector<std::string> addresses;
  int days = kCertificateDays;
};

absl::Status Issue(const IssueOptions& options) {
  SHOAL_ASSIGN_OR_RETURN(const CertificateAuthority authority,
                         CertificateAuthority::Open(options.authority));
  SHOAL_ASSIGN_OR_RETURN(const CertificateAuthority::Issued issued,
                         authority.Issue({.role = options.role,
                                          .addresses = options.addresses,
                                          .days = options.days,
                                          .now = absl::Now()}));
  SHOAL_RETURN_IF_ERROR(WriteTlsDirectory(options.output, issued));
  return PrintReport(absl::StrCat(options.output, ": ", issued.identity.ToUri(), ", valid until ",
                                  UtcText(issued.not_after), "\n"));
}

void AddIssue(CLI::App* cert, Command* chosen) {
  auto options = std::make_shared<IssueOptions>();
  CLI::App* command =
      cert->add_subcommand("issue", "Make the key and the certificate of a task or a person");
  command->add_option("CA_DIR", options->authority, "Directory that `shoal cert ca` has written")
      ->required();
  command
      ->add_option("ROLE", options->role,
                   "coordinator, ps/N, worker/N, worker (any free index), evaluator, operator "
                   "(may drain), or viewer (status and metrics)")
      ->check(CheckOf([](const std::string& role) { return CheckRoleText(role); }))
      ->required();
  command->add_option("OUT_DIR", options->output, "Directory to write, for --tls_dir")->required();
  command
      ->add_option("--address", options->addresses,
                   "Host name or IP address of the task, for clients that compare it; give one "
                   "--address for each")
      ->allow_extra_args(false)
      ->check(CheckOf(CheckCertificateAddress));
  command->add_option("--days", options->days, "Days for which the certificate is valid")
      ->check(CLI::Range(1, kMaxCertificateDays))
      ->capture_default_str();
  command->footer(
      "Writes tls.key, tls.crt and ca.crt into OUT_DIR, readable by you only. Never overwrites a\n"
      "file: to renew a certificate, issue it into a new directory, and point a link to it.\n"
      "\nExamples:\n"
      "  shoal cert issue ca ps/0 tls/ps-0 --address 10.0.0.2\n"
      "  shoal cert issue ca operator tls/ada --days 30\n"
      "\nExit codes: 0 written, 64 a wrong role or address, 78 no CA there, one that expires\n"
      "earlier, or OUT_DIR has such files already.");
  command->callback([=] { *chosen = [=] { return ReportStatus(Issue(*options)); }; });
}

struct ShowCertificateOptions {
  std::string file;
  bool json = false;
};

absl::Status ShowCertificates(const ShowCertificateOptions& options) {
  const absl::StatusOr<std::string> bytes = ReadSmallFile(options.file, kMaxPemBytes);
  if (absl::IsFailedPrecondition(bytes.status())) {  // a directory, for example
    return absl::FailedPreconditionError(
        absl::StrCat(bytes.status().message(), "; give a file, as ", kCertificateFile, " in it"));
  }
  SHOAL_RETURN_IF_ERROR(bytes.status());
  const absl::StatusOr<std::vector<CertificateDescription>> certificates =
      DescribeCertificates(*bytes);
  if (!certificates.ok()) {
    return absl::Status(certificates.status().code(),
                        absl::StrCat(options.file, ": ", certificates.status().message()));
  }
  return PrintReport(options.json ? CertificatesJson(*certificates)
                                  : CertificatesText(*certificates));
}

void AddShowCertificates(CLI::App* cert, Command* chosen) {
  auto options = std::make_shared<ShowCertificateOptions>();
  CLI::App* command =
      cert->add_subcommand("show", "Show the certificates in a file: identity, dates, serial");
  command->add_option("FILE", options->file, "tls.crt or ca.crt: PEM, or one certificate as DER")
      ->required();
  command->add_flag("--json", options->json, "As one line of JSON, an array of all certificates");
  command->footer(
      "A line `problem` says why no task of Shoal could use the certificate.\n"
      "\nExamples:\n"
      "  shoal cert show tls/ps-0/tls.crt\n"
      "  shoal cert show tls/ps-0/tls.crt --json | jq '.[0].not_after'\n"
      "\nExit codes: 0 shown, 65 no certificate in it, or a damaged one, 78 no such file.");
  command->callback([=] { *chosen = [=] { return ReportStatus(ShowCertificates(*options)); }; });
}

absl::Status CheckTlsDirectory(const std::string& directory) {
  SHOAL_ASSIGN_OR_RETURN(const TlsFiles files, ReadTlsFiles(directory, absl::Now()));
  std::string text = absl::StrCat(directory, ": good for ", files.own.identity.ToUri(),
                                  ", valid until ", UtcText(files.own.not_after), "\n");
  if (files.revoked.size() > 0)
    absl::StrAppend(&text, files.revoked.size(), " entries in ", kRevocationsFile, "\n");
  return PrintReport(text);
}

void AddCheckDirectory(CLI::App* cert, Command* chosen) {
  auto directory = std::make_shared<std::string>();
  CLI::App* command =
      cert->add_subcommand("check", "Check a TLS directory as a daemon does when it starts");
  command
      ->add_option("DIR", *directory, "Directory with ca.crt, tls.crt, tls.key and, maybe, revoked")
      ->required();
  command->footer(
      "Checks the dates, the identity, the chain to a CA, that the key belongs to the "
      "certificate,\n"
      "that nobody else can read the key, and every line of `revoked`.\n"
      "\nExample:\n  shoal cert check tls/ps-0\n"
      "\nExit codes: 0 a daemon takes it, 78 it does not: the message says why.");
  command->callback([=] { *chosen = [=] { return ReportStatus(CheckTlsDirectory(*directory)); }; });
}

}  // namespace

void AddCertCommand(CLI::App* app, Command* chosen) {
  CLI::App* cert = app->add_subcommand("cert", "Make and check the certificates of a job's tasks");
  cert->require_subcommand(1);
  AddAuthority(cert, chosen);
  AddIssue(cert, chosen);
  AddShowCertificates(cert, chosen);
  AddCheckDirectory(cert, chosen);
  cert->footer(
      "For those without certificates of their own; cert-manager and others work as well\n"
      "(docs/security.md).\n"
      "\nExamples:\n"
      "  shoal cert ca ca --job fashion_mnist\n"
      "  shoal cert issue ca ps/0 tls/ps-0\n"
      "  shoal cert show tls/ps-0/tls.crt\n"
      "  shoal cert check tls/ps-0");
}

}  // namespace shoal
