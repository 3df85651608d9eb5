#include "cli/chief_option.h"

#include <CLI/CLI.hpp>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"
#include "common/cluster/cluster_spec.h"
#include "common/files/durable_file.h"
#include "common/run/run_paths.h"

namespace shoal {

void ChiefOption::AddTo(CLI::App* command) {
  CLI::Option_group* group = command->add_option_group("Which job, one of these");
  group->add_option_function<std::string>(
      "RUN",
      [this](const std::string& given) {
        std::error_code ignored;
        const bool is_address =
            !std::filesystem::exists(given, ignored) && shoal::Address::Parse(given).ok();
        (is_address ? chief : run_dir) = given;
      },
      "Its run directory, or HOST:PORT of its coordinator");
  group->add_option("--chief", chief, "Address of its coordinator, HOST:PORT");
  group->add_option("--run_dir", run_dir,
                    "Its run directory, where the coordinator left its address");
  group->require_option(1);
}

absl::StatusOr<std::string> ChiefOption::Address() const {
  constexpr uint64_t kMostBytes = 1 << 10;
  std::string text = chief, source = "--chief";
  if (text.empty()) {
    const std::string path = source = RunPaths{AbsolutePath(run_dir)}.chief_address();
    const absl::StatusOr<std::string> content = ReadSmallFile(path, kMostBytes);
    if (!content.ok()) {
      return absl::NotFoundError(absl::StrCat(std::string(content.status().message()),
                                              "; no coordinator has led a run in ", run_dir,
                                              " yet: one that waits for its ps is found by "
                                              "--chief"));
    }
    text = std::string(absl::StripSuffix(*content, "\n"));
  }
  const absl::StatusOr<shoal::Address> address = shoal::Address::Parse(text);
  if (address.ok()) return address->ToString();
  return absl::InvalidArgumentError(
      absl::StrCat(source, ": ", std::string(address.status().message())));
}

}  // namespace shoal
