#include "cli/command.h"

#include <cstdio>
#include <string>

#include "common/daemon/exit_code.h"

namespace shoal {

int ReportStatus(const absl::Status& status) {
  if (!status.ok()) std::fprintf(stderr, "shoal: %s\n", std::string(status.message()).c_str());
  return ExitCodeOf(status);
}

}  // namespace shoal
