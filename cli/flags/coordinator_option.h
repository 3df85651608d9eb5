#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/rpc/tls/tls_session.h"
#include "proto/cluster.pb.h"

namespace CLI {
class App;
}

namespace shoal {

// Selects the running job for a command: --chief HOST:PORT, or --run_dir DIR, where the coordinator
// has left its address. Either value also works without its flag.
struct CoordinatorOption {
  std::string coordinator;
  std::string run_dir;
  std::string tls_dir;

  // Adds the options and requires one of them. `this` must outlive the parsing.
  void AddTo(CLI::App* command);
  // Opens --tls_dir; without it, the operator's directory of a run that `shoal train --tls` has
  // begun. Null if there is neither: plain.
  absl::StatusOr<std::shared_ptr<TlsSession>> OpenTls() const;
  // Returns the coordinator's address. An error names the wrong option or file.
  absl::StatusOr<std::string> Address() const;
  // The same for commands that change something. With a run directory, it first asks the
  // coordinator whether it leads that run. Errors are also those of CheckLeads and AskCoordinator.
  absl::StatusOr<std::string> LeaderAddress() const;
  // Checks that the coordinator at `address`, which answered with `status`, leads this run. The
  // address stays in the run directory after the run, and another job's coordinator may use it now.
  // kFailedPrecondition: it is not the leader that the run's lease names. OK if the user gave an
  // address, or if the lease does not tell.
  absl::Status CheckLeads(const std::string& address, const proto::StatusReply& status) const;
  // Returns whether no coordinator leads the run any more, after a status request failed with
  // `error`. The files of the run then tell how it ended. Always false if the user gave an address.
  bool NobodyLeads(const absl::Status& error) const;
  // Returns `unavailable`, the error of a coordinator that did not answer, with an explanation.
  // With a run directory, it adds what the run's lease tells and what remains of the run.
  absl::Status ExplainSilence(const absl::Status& unavailable) const;
};

}  // namespace shoal
