#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/cluster.pb.h"

namespace CLI {
class App;
}

namespace shoal {

// Which running job a command is about: --chief HOST:PORT, or --run_dir DIR, whose coordinator has
// left its address there; or either of them without its flag.
struct ChiefOption {
  std::string chief;
  std::string run_dir;

  // One of them has to be given. `this` outlives the parsing.
  void AddTo(CLI::App* command);
  // The coordinator's address; an error says what is wrong with what was given.
  absl::StatusOr<std::string> Address() const;
  // The same, for who tells the coordinator to do something: where a run directory was given, it is
  // asked first whether it leads that run. Errors are also those of CheckLeads and AskCoordinator.
  absl::StatusOr<std::string> LeaderAddress() const;
  // The address stays in a run directory when the run is over, and another job's coordinator may
  // have it since. kFailedPrecondition where the one that answers there with `status` is not the
  // one that the run's lease names. OK where an address was given, and where the lease does not
  // say.
  absl::Status CheckLeads(const std::string& address, const proto::StatusReply& status) const;
  // Whether no coordinator leads the run any more, where asking for its status has ended in
  // `error`: the files of the run tell how it has ended. Never where an address was given.
  bool NobodyLeads(const absl::Status& error) const;
  // `unavailable`, of a coordinator that did not answer; where a run directory was given, with what
  // its lease says of that, and what there still is of the run.
  absl::Status ExplainSilence(const absl::Status& unavailable) const;
};

}  // namespace shoal
