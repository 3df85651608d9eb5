#include "common/daemon/command_line.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/nearest_name.h"

namespace shoal {
namespace {

const auto kAll = [](const CLI::App*) { return true; };

// The long names of a command's flags; those of its groups, which have no name, are its own.
std::vector<std::string> FlagsOf(const CLI::App& command) {
  std::vector<std::string> flags;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
  }
  for (const CLI::App* group : command.get_subcommands(kAll)) {
    if (!group->get_name().empty()) continue;
    for (std::string& flag : FlagsOf(*group)) flags.push_back(std::move(flag));
  }
  return flags;
}

// CLI11 lists all that is left over, from the end.
std::string DescribeLeftOver(const CLI::App& app) {
  const CLI::App* command = &app;
  std::string typed = app.get_name();
  while (!command->get_subcommands().empty()) {
    command = command->get_subcommands().front();
    absl::StrAppend(&typed, " ", command->get_name());
  }
  const std::vector<std::string> left = app.remaining(/*recurse=*/true);
  const auto flag = std::find_if(left.begin(), left.end(),
                                 [](const std::string& each) { return each.starts_with("-"); });
  if (flag == left.end()) return absl::StrCat("`", typed, "` does not take `", left.front(), "`");
  const std::string name = flag->substr(0, flag->find('='));
  const std::string nearest = NearestName(name, FlagsOf(*command));
  return absl::StrCat("`", typed, "` has no flag `", name, "`",
                      nearest.empty() ? "" : absl::StrCat("; did you mean `", nearest, "`?"));
}

}  // namespace

void RefuseEmptyValues(CLI::App* app) {
  for (CLI::Option* option : app->get_options()) {
    if (option->get_items_expected_max() == 0) continue;
    option->check([](const std::string& value) {
      return value.empty() ? "is empty; give it a value, or leave it out" : std::string();
    });
  }
  for (CLI::App* command : app->get_subcommands(kAll)) RefuseEmptyValues(command);
}

std::string DescribeMistake(const CLI::App& app, const CLI::Error& error) {
  const bool left_over = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr;
  return left_over && !app.remaining(/*recurse=*/true).empty() ? DescribeLeftOver(app)
                                                               : error.what();
}

absl::Status PrintOut(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0)
    return absl::OkStatus();
  return absl::ErrnoToStatus(errno, "cannot write to standard output");
}

}  // namespace shoal
