#pragma once

#include <string>

#include "absl/status/statusor.h"

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
};

}  // namespace shoal
